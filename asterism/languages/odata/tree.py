"""A filter as a tree of conditions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from asterism.models.tables.property_types import EdmType


class Comparison(StrEnum):
    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GE = "ge"
    LT = "lt"
    LE = "le"


# The same condition with its sides exchanged.
MIRRORED = {
    Comparison.EQ: Comparison.EQ,
    Comparison.NE: Comparison.NE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
}


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant, in the form in which it is compared: moments are ticks, guids texts in lower case."""

    type: EdmType
    value: str | int | float | bool | bytes


@dataclass(frozen=True, slots=True)
class Compare:
    name: str
    comparison: Comparison
    literal: Literal


@dataclass(frozen=True, slots=True)
class IsTrue:
    """A property alone: true only for a Boolean that is true."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool


@dataclass(frozen=True, slots=True)
class Not:
    inner: Condition


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]


Condition = Compare | IsTrue | Constant | Not | And | Or
