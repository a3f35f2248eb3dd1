"""Variables of a text and their values, which come with the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.tree import (
    CardinalityValue,
    Instruction,
    Predicate,
    Strategy,
    Traversal,
    Variable,
)


def with_values(traversal: Traversal, values: Mapping[str, Any]) -> Traversal:
    """Return the traversal with the values of its variables; the same object if it has none."""
    steps = instructions_with_values(traversal.steps, values)
    source = instructions_with_values(traversal.source, values)
    if steps is traversal.steps and source is traversal.source:
        return traversal
    return Traversal(steps, source)


def instructions_with_values(
    instructions: tuple[Instruction, ...], values: Mapping[str, Any]
) -> tuple[Instruction, ...]:
    """Return instructions with the values of their variables; the same object if they have none."""
    changed = False
    found: list[Instruction] = []
    for instruction in instructions:
        arguments = _sequence(instruction.arguments, values)
        if arguments is not instruction.arguments:
            changed = True
            instruction = Instruction(instruction.name, tuple(arguments), instruction.line, instruction.column)
        found.append(instruction)
    return tuple(found) if changed else instructions


def _sequence(arguments: Any, values: Mapping[str, Any]) -> Any:
    """Return a tuple or list with the values of its variables; the same object if it has none."""
    found = [_value(argument, values) for argument in arguments]
    if all(new is old for new, old in zip(found, arguments, strict=True)):
        return arguments
    return found


def _value(argument: Any, values: Mapping[str, Any]) -> Any:
    """Return an argument with the values of its variables; the same object if it has none."""
    match argument:
        case str() | int() | float() | None:
            return argument
        case Variable(name):
            if name not in values:
                raise CompileFailure(
                    f"Unable to resolve symbol '{name}' in the current context.",
                    line=argument.line,
                    column=argument.column,
                )
            return values[name]
        case Traversal():
            return with_values(argument, values)
        case Predicate(operator, value):
            new = _value(value, values)
            return argument if new is value else Predicate(operator, new)
        case CardinalityValue(cardinality, value):
            new = _value(value, values)
            return argument if new is value else CardinalityValue(cardinality, new)
        case Strategy(name, settings):
            new = _value(settings, values)
            return argument if new is settings else Strategy(name, new)
        case list():
            return _sequence(argument, values)
        case set() | frozenset():
            members = list(argument)
            new = _sequence(members, values)
            return argument if new is members else type(argument)(new)
        case Mapping():
            pairs = [(_value(key, values), _value(value, values)) for key, value in argument.items()]
            is_same = all(
                new_key is key and new_value is value
                for (new_key, new_value), (key, value) in zip(pairs, argument.items(), strict=True)
            )
            return argument if is_same else type(argument)(pairs)  # type: ignore[call-arg] # a dict or one of its kind
    return argument
