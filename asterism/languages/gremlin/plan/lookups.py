"""Lookups that the has-steps behind a step narrow, so that it reads only elements that they let pass.

The has-steps stay in the plan and test what was read: a lookup need not be exact, except where a limit is taken over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from asterism.languages.gremlin.graph.contract import EVERYTHING, IndexCondition, Lookup
from asterism.languages.gremlin.graph.documents import is_key_value
from asterism.languages.gremlin.graph.elements import EDGE_NAMES
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.has_conditions import HasCondition, has_conditions
from asterism.languages.gremlin.tree import T_ID, T_LABEL, Instruction, Predicate, Token, Traversal
from asterism.languages.gremlin.values.numbers import is_number

Member = TypeVar("Member")

_COMPARISONS = frozenset({"eq", "gt", "gte", "lt", "lte"})
# Predicates with two bounds, as two comparisons.
_BETWEEN = {"between": ("gte", "lt"), "inside": ("gt", "lt")}


@dataclass(slots=True)
class _LookupDraft:
    compiler: Compiler
    lookup: Lookup
    # False once a condition is more than the lookup says.
    is_exact: bool = True


def narrowed(compiler: Compiler, following: Sequence[Instruction], lookup: Lookup = EVERYTHING) -> Lookup:
    """Return a lookup of no more than the instructions behind it let pass."""
    narrowing = _LookupDraft(compiler, lookup)
    for instruction in following:
        if not _narrow(narrowing, instruction):
            _take_limit(narrowing, instruction)
            break
    return narrowing.lookup


def _narrow(narrowing: _LookupDraft, instruction: Instruction) -> bool:
    """Take the conditions of an instruction; return False if it lets elements pass by something else."""
    name, arguments = instruction.name, instruction.arguments
    if name in ("as", "identity"):
        return True
    conditions = has_conditions(instruction, narrowing.compiler.key)
    if conditions is not None:
        for condition in conditions:
            _take(narrowing, condition)
        return True
    if name in ("and", "where", "filter") and arguments and all(map(_is_chain, arguments)):
        for argument in arguments:
            for inner in argument.steps:
                if not _narrow(narrowing, inner):
                    narrowing.is_exact = False
                    break
        return True
    return False


def _is_chain(argument: Any) -> bool:
    return isinstance(argument, Traversal) and bool(argument.steps)


def _take(narrowing: _LookupDraft, condition: HasCondition) -> None:
    key, predicate, lookup = condition.key, condition.predicate, narrowing.lookup
    values = None if predicate is None else _values_of(predicate)
    if key == T_ID and values is not None:
        narrowing.lookup = replace(lookup, ids=_both(lookup.ids, [value for value in values if type(value) is str]))
    elif key == T_LABEL and values is not None:
        labels = [value for value in values if type(value) is str]
        narrowing.lookup = replace(lookup, labels=_both(lookup.labels, labels))
    elif isinstance(key, str) and key == narrowing.compiler.key_name and values is not None:
        keys = [plain(value) for value in values if is_key_value(value)]
        narrowing.lookup = replace(lookup, keys=_both(lookup.keys, keys))
    else:
        narrowing.is_exact = False
        if isinstance(key, str) and key not in EDGE_NAMES and predicate is not None:
            found = tuple(_index_conditions(key, predicate))
            narrowing.lookup = replace(lookup, conditions=lookup.conditions + found)


def _both(left: tuple[Member, ...] | None, right: Iterable[Member]) -> tuple[Member, ...]:
    wanted = list(dict.fromkeys(right))
    return tuple(wanted) if left is None else tuple(member for member in left if member in wanted)


def _values_of(predicate: Predicate) -> Sequence[Any] | None:
    """Return the values that a predicate lets pass; None if it is not a list of values."""
    if predicate.operator == "eq":
        return [predicate.value]
    if predicate.operator == "within" and isinstance(predicate.value, list | tuple | set | frozenset):
        return list(predicate.value)
    return None


def _index_conditions(name: str, predicate: Predicate) -> Iterable[IndexCondition]:
    operator, value = predicate.operator, predicate.value
    if operator in _COMPARISONS:
        yield IndexCondition(name, operator, plain(value))
    elif operator == "within" and isinstance(value, list | tuple | set | frozenset):
        yield IndexCondition(name, operator, tuple(plain(member) for member in value))
    elif operator in _BETWEEN and isinstance(value, list | tuple) and len(value) == 2:
        for bound, operator_of_bound in zip(value, _BETWEEN[operator], strict=True):
            yield IndexCondition(name, operator_of_bound, plain(bound))
    elif operator == "and":
        for part in value:
            yield from _index_conditions(name, part)


def plain(value: Any) -> Any:
    """Return a number without its Java type, as stored documents and indexes have it."""
    if is_number(value):
        return int(value) if isinstance(value, int) else float(value)
    return value


def _take_limit(narrowing: _LookupDraft, instruction: Instruction) -> None:
    limit = limit_of(instruction)
    if narrowing.is_exact and limit is not None:
        narrowing.lookup = replace(narrowing.lookup, limit=limit)


def limit_of(instruction: Instruction) -> int | None:
    """Return the number of traversers that a `limit` or `range` takes at most; None for other steps."""
    arguments = instruction.arguments
    if arguments and isinstance(arguments[0], Token):
        # limit(local, 1) is of values.
        return None
    if instruction.name == "limit" and len(arguments) == 1:
        limit = arguments[0]
    elif instruction.name == "range" and len(arguments) == 2:
        limit = arguments[1]
    else:
        return None
    return int(limit) if isinstance(limit, int) and limit >= 0 else None
