"""A traversal as data: the form that texts and bytecode have in common before they are planned.

Arguments are plain values (None, booleans, the numbers of `values.numbers`, str, datetime, UUID, list, set, dict,
elements of a graph) and the nodes of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Instruction:
    """One call of a chain, such as `has('name', 'x')`. Line and column are those of its name in a text, from 1."""

    name: str
    arguments: tuple[Any, ...] = ()
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """A chain of calls. Those on the source (`withSideEffect`, `with`, ...) come apart from the steps, as in bytecode;
    an anonymous traversal, which is an argument, has none."""

    steps: tuple[Instruction, ...] = ()
    source: tuple[Instruction, ...] = ()


@dataclass(frozen=True, slots=True)
class Variable:
    """A name whose value comes with the request, as a binding."""

    name: str
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Token:
    """A constant of one of Gremlin's enumerations, such as `T.id` or `Order.desc`; old names are replaced by readers
    (`Order.decr` is `desc`)."""

    # T, Order, Scope, Column, Pop, Direction, Cardinality, Barrier, Operator, Pick, Merge, DT or GType.
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Predicate:
    """A test of a value. `value` is a list for within, without, between, inside, outside; a list of predicates for
    `and` and `or`; a predicate for `not`; a Token, a name or a class for typeOf."""

    operator: str
    value: Any


@dataclass(frozen=True, slots=True)
class CardinalityValue:
    """A value with the cardinality that it is stored with, in maps of `mergeV`."""

    cardinality: str
    value: Any


@dataclass(frozen=True, slots=True)
class Strategy:
    """A traversal strategy by its simple class name, with its settings; for `withoutStrategies` it has none."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lambda:
    """Code of a client's language, which is refused wherever it stands."""

    text: str


T_ID = Token("T", "id")
T_LABEL = Token("T", "label")
T_KEY = Token("T", "key")
T_VALUE = Token("T", "value")

# `datetime()` and `UUID()` without arguments: values that each request gets anew. No binding can have these names.
NOW = Variable("datetime()")
RANDOM_UUID = Variable("UUID()")
