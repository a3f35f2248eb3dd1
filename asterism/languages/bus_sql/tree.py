"""The tree of a filter or action. Chains of one operator are flat, so that only brackets make a tree deep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Constant:
    """NULL is the value None."""

    value: Any
    position: int


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    position: int


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the message: one that its sender chose, or one of the system."""

    name: str
    is_system: bool
    position: int


@dataclass(frozen=True, slots=True)
class NamedProperty:
    """`property(name)`: a property whose name is the value of an expression."""

    name: Expression
    position: int


@dataclass(frozen=True, slots=True)
class NewId:
    position: int


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Expression
    position: int


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Operators of equal rank, from left to right."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]
    position: int


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: str
    left: Expression
    right: Expression
    position: int


@dataclass(frozen=True, slots=True)
class Like:
    operand: Expression
    pattern: Expression
    escape: Expression | None
    position: int


@dataclass(frozen=True, slots=True)
class In:
    operand: Expression
    choices: tuple[Expression, ...]
    position: int


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    position: int


@dataclass(frozen=True, slots=True)
class Exists:
    property: Property
    position: int


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression
    position: int


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Expression, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Expression, ...]
    position: int


Expression = (
    Constant
    | Parameter
    | Property
    | NamedProperty
    | NewId
    | Negative
    | Arithmetic
    | Comparison
    | Like
    | In
    | IsNull
    | Exists
    | Not
    | And
    | Or
)


@dataclass(frozen=True, slots=True)
class Set:
    property: Property
    value: Expression


@dataclass(frozen=True, slots=True)
class Remove:
    property: Property


Statement = Set | Remove
