"""The tree of a query."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

# A value of a record or an expression; None is NULL.
Value = None | bool | int | float | str | datetime | list[object] | dict[str, object]


class Type(Enum):
    """The types that CAST makes."""

    INTEGER = "INT"
    FLOAT = "FLOAT"
    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    TIMESTAMP = "TIMESTAMP"


class AggregateKind(Enum):
    COUNT = "COUNT"
    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"
    AVG = "AVG"


class EveryElement(Enum):
    """The step `[*]` of a path."""

    STEP = "*"


# A member, an element of a list, or every element.
Step = str | int | EveryElement


@dataclass(frozen=True, slots=True)
class Literal:
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Path:
    """A column or, of JSON, a place within the record; no steps are the record itself."""

    steps: tuple[str | int, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Unary:
    """`sign` is - or NOT."""

    sign: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, `||` or a comparison."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logic:
    """AND or OR of two or more operands."""

    sign: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    is_negated: bool


@dataclass(frozen=True, slots=True)
class IsIn:
    operand: Expression
    choices: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class IsLike:
    operand: Expression
    pattern: Expression
    escape: str


@dataclass(frozen=True, slots=True)
class Cast:
    operand: Expression
    target: Type


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """COUNT(*) has no operand. `number` tells the aggregates of a query apart."""

    kind: AggregateKind
    operand: Expression | None
    number: int


Expression = Literal | Path | Unary | Binary | Logic | IsNull | IsIn | IsLike | Cast | Call | Aggregate


@dataclass(frozen=True, slots=True)
class Column:
    """A result; without an alias it is named by its path, or by its place."""

    expression: Expression
    alias: str | None


@dataclass(frozen=True, slots=True)
class Select:
    """`columns` is None for `*`. `source` is the path of FROM to what a record is."""

    columns: tuple[Column, ...] | None
    source: tuple[Step, ...]
    condition: Expression | None
    limit: int | None
    aggregates: tuple[Aggregate, ...]
