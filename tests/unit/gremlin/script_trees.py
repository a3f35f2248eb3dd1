"""Helpers for tests of scripts: trees in a form that tells equal values of different types apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from asterism.languages.gremlin.text.parser import parse
from asterism.languages.gremlin.tree import (
    CardinalityValue,
    Instruction,
    Predicate,
    Strategy,
    Traversal,
)


def first_arguments(arguments: str, bound: frozenset[str] | None = None) -> tuple[Any, ...]:
    """Return the arguments of a step as the parser reads them."""
    return parse(f"g.inject({arguments})", bound).steps[0].arguments


def child(name: str, *arguments: Any) -> Traversal:
    """Return a child traversal of a single step."""
    return Traversal((Instruction(name, arguments),))


def typed(value: Any) -> Any:
    """Return a value with the types of all numbers and collections in it, for comparison."""
    for base, describe in _DESCRIPTIONS:
        if isinstance(value, base):
            return (base.__name__, describe(value))
    return (type(value).__name__, value)


def _mapping(value: Mapping[Any, Any]) -> Any:
    return [(typed(key), typed(entry)) for key, entry in value.items()]


_DESCRIPTIONS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (Traversal, lambda value: (typed(list(value.source)), typed(list(value.steps)))),
    (Instruction, lambda value: (value.name, typed(list(value.arguments)))),
    (Predicate, lambda value: (value.operator, typed(value.value))),
    (CardinalityValue, lambda value: (value.cardinality, typed(value.value))),
    (Strategy, lambda value: (value.name, _mapping(value.settings))),
    (list, lambda value: [typed(member) for member in value]),
    (set, lambda value: sorted(map(repr, map(typed, value)))),
    (frozenset, lambda value: sorted(map(repr, map(typed, value)))),
    (dict, _mapping),
    (float, lambda value: (type(value).__name__, repr(value))),
    (Decimal, repr),
)
