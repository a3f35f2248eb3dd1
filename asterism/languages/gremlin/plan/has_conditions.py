"""Conditions of the has-family as data, so that they can be tested on elements or folded into a lookup of the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.graph.elements import Edge, Vertex, VertexProperty
from asterism.languages.gremlin.tree import T_ID, T_KEY, T_LABEL, T_VALUE, Instruction, Predicate, Token, Traversal
from asterism.languages.gremlin.values.numbers import is_number


@dataclass(frozen=True, slots=True)
class HasCondition:
    """A test of one property of an element, or of T.id, T.label, T.key or T.value."""

    # None is the name of no property: the condition never holds.
    key: str | Token | None
    # None for a property that only has to exist.
    predicate: Predicate | None


def has_conditions(
    instruction: Instruction, key: Callable[[Any], Any] = lambda argument: argument
) -> tuple[HasCondition, ...] | None:
    """Return the conditions of an instruction, all of which must hold; None if it is no such instruction, or if its
    condition is a traversal. `key` is the compiler's reading of property names (`Compiler.key`)."""
    reader = _READERS.get(instruction.name)
    if reader is None or any(isinstance(argument, Traversal) for argument in instruction.arguments):
        return None
    return reader(instruction, key)


def _read_has(instruction: Instruction, key: Callable[[Any], Any]) -> tuple[HasCondition, ...]:
    arguments = instruction.arguments
    match arguments:
        case [name]:
            return (_condition(instruction, key(name), None),)
        case [name, value]:
            return (_condition(instruction, key(name), _predicate(value)),)
        case [label, name, value]:
            return (
                HasCondition(T_LABEL, _predicate(label)),
                _condition(instruction, key(name), _predicate(value)),
            )
    raise _refused(instruction)


def _read_tokens(token: Token) -> Callable[[Instruction, Callable[[Any], Any]], tuple[HasCondition, ...]]:
    """Return the reader of hasLabel, hasKey and hasValue: any of several values, or a predicate."""

    def read(instruction: Instruction, _: Callable[[Any], Any]) -> tuple[HasCondition, ...]:
        if not instruction.arguments:
            raise _refused(instruction)
        return (HasCondition(token, _any_of(instruction.arguments)),)

    return read


def _read_ids(instruction: Instruction, _: Callable[[Any], Any]) -> tuple[HasCondition, ...]:
    arguments = instruction.arguments
    if not arguments:
        raise _refused(instruction)
    # A list is several ids where it is the only argument.
    if len(arguments) == 1 and isinstance(arguments[0], list | tuple | set | frozenset):
        ids = tuple(arguments[0])
        return (HasCondition(T_ID, with_text_ids(_any_of(ids) if ids else Predicate("within", []))),)
    return (HasCondition(T_ID, with_text_ids(_any_of(arguments))),)


def with_text_ids(predicate: Predicate) -> Predicate:
    """Return a predicate on ids with texts in place of numbers: ids are stored as texts, and `1` asks for `'1'`."""
    operator, value = predicate.operator, predicate.value
    if operator in ("eq", "neq"):
        return Predicate(operator, id_text(value))
    if operator in ("within", "without"):
        return Predicate(operator, [id_text(member) for member in value])
    if operator in ("and", "or"):
        return Predicate(operator, [with_text_ids(member) for member in value])
    if operator == "not":
        return Predicate(operator, with_text_ids(value))
    return predicate


def id_text(value: Any) -> Any:
    """Return the id that a value asks for; values that are no ids stay as they are and match nothing."""
    if is_number(value) or isinstance(value, UUID):
        return str(value)
    if isinstance(value, Vertex | Edge | VertexProperty):
        return value.id
    return value


def _condition(instruction: Instruction, name: Any, predicate: Predicate | None) -> HasCondition:
    if name is not None and not isinstance(name, str) and not (isinstance(name, Token) and name.kind == "T"):
        raise _refused(instruction)
    if name == T_ID and predicate is not None:
        return HasCondition(T_ID, with_text_ids(predicate))
    return HasCondition(name, predicate)


def _predicate(value: Any) -> Predicate:
    return value if isinstance(value, Predicate) else Predicate("eq", value)


def _any_of(values: tuple[Any, ...]) -> Predicate:
    return _predicate(values[0]) if len(values) == 1 else Predicate("within", list(values))


def _refused(instruction: Instruction) -> CompileFailure:
    kinds = ",".join(type(argument).__name__ for argument in instruction.arguments)
    return CompileFailure(
        f"Unable to bind to method '{instruction.name}', with arguments of type: ({kinds})",
        line=instruction.line,
        column=instruction.column,
    )


_READERS: dict[str, Callable[[Instruction, Callable[[Any], Any]], tuple[HasCondition, ...]]] = {
    "has": _read_has,
    "hasId": _read_ids,
    "hasKey": _read_tokens(T_KEY),
    "hasLabel": _read_tokens(T_LABEL),
    "hasValue": _read_tokens(T_VALUE),
}
