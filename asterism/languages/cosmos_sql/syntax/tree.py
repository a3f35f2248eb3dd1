"""The query as a tree: a frozen class for each construct of the dialect.

The tree covers the whole language, whether or not this version runs it. Spans are left out of comparison, so that two
trees are equal when they have the same meaning.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import NamedTuple, TypeAlias, TypeVar

from asterism.reading.turns import pause

_NodeType = TypeVar("_NodeType", bound="Node")
# A walk over the tree of a long text takes longer than a turn.
_NODES_BETWEEN_PAUSES = 256


class Span(NamedTuple):
    """A place in the query text: half-open character offsets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree."""

    span: Span = field(compare=False, kw_only=True)


# --- expressions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: object


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`@name`, with its at-sign: a value that is sent beside the text."""

    name: str


@dataclass(frozen=True, slots=True)
class Path(Node):
    """An alias and constant steps below it: `c`, `c.a["b c"][0]`. Strings step into objects, integers into arrays."""

    alias: str
    steps: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Member(Node):
    """A step that is computed, or whose target is not an alias: `c[@name]`, `{"a": 1}.a`."""

    target: Expression
    step: Expression


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ObjectLiteral(Node):
    properties: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """A comparison, arithmetic or bitwise operation or `||` of two operands; `<>` is stored as `!=`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class And(Node):
    """Two or more operands, none of them an `And`: a filter of a thousand terms is wide, not deep."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    condition: Expression
    consequent: Expression
    alternative: Expression


@dataclass(frozen=True, slots=True)
class Coalesce(Node):
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In(Node):
    needle: Expression
    haystack: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Between(Node):
    value: Expression
    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class Like(Node):
    value: Expression
    pattern: Expression
    escape: str | None
    negated: bool


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function by its upper-case name, or a user's own (`udf.name`) by the name as written."""

    name: str
    arguments: tuple[Expression, ...]
    is_udf: bool
    name_span: Span = field(compare=False)


class SubqueryKind(Enum):
    SCALAR = "subquery"
    EXISTS = "EXISTS"
    ARRAY = "ARRAY"
    ALL = "ALL"
    FIRST = "FIRST"
    LAST = "LAST"


@dataclass(frozen=True, slots=True)
class Subquery(Node):
    kind: SubqueryKind
    query: Query


Expression: TypeAlias = (
    Literal
    | Parameter
    | Path
    | Member
    | ArrayLiteral
    | ObjectLiteral
    | Unary
    | Binary
    | And
    | Or
    | Conditional
    | Coalesce
    | In
    | Between
    | Like
    | Call
    | Subquery
)


# --- clauses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectStar(Node):
    pass


@dataclass(frozen=True, slots=True)
class SelectValue(Node):
    expression: Expression


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    expression: Expression
    alias: str | None


@dataclass(frozen=True, slots=True)
class SelectList(Node):
    items: tuple[SelectItem, ...]


Selection: TypeAlias = SelectStar | SelectValue | SelectList


@dataclass(frozen=True, slots=True)
class Select(Node):
    selection: Selection
    distinct: bool = False
    top: Expression | None = None
    # The offset of the word TOP.
    top_start: int | None = field(default=None, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class SubqueryCollection(Node):
    query: Query


@dataclass(frozen=True, slots=True)
class Source(Node):
    """A collection of FROM: `c.a AS x` binds x to the value there, `x IN c.a` to each element of the array there."""

    collection: Path | SubqueryCollection
    alias: str | None
    is_iterator: bool = False


@dataclass(frozen=True, slots=True)
class From(Node):
    source: Source
    joins: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    expression: Expression
    descending: bool
    # True if ASC or DESC was written: some orders refuse both.
    is_explicit: bool


@dataclass(frozen=True, slots=True)
class OrderBy(Node):
    items: tuple[OrderItem, ...]
    by_rank: bool


@dataclass(frozen=True, slots=True)
class GroupBy(Node):
    expressions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class OffsetLimit(Node):
    offset: Expression
    limit: Expression


@dataclass(frozen=True, slots=True)
class Query(Node):
    select: Select
    from_clause: From | None = None
    where: Expression | None = None
    group_by: GroupBy | None = None
    order_by: OrderBy | None = None
    offset_limit: OffsetLimit | None = None


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below, in the order of the text."""
    for name in _field_names(type(node)):
        yield from _nodes_in(getattr(node, name))


_FIELD_NAMES: dict[type[Node], tuple[str, ...]] = {}


def _field_names(node_type: type[Node]) -> tuple[str, ...]:
    if node_type not in _FIELD_NAMES:
        _FIELD_NAMES[node_type] = tuple(part.name for part in fields(node_type) if part.compare)
    return _FIELD_NAMES[node_type]


def _nodes_in(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for element in value:
            yield from _nodes_in(element)


def with_children(node: _NodeType, change: Callable[[Node], Node]) -> _NodeType:
    """Return `node` with `change` applied to each node directly below; `node` itself when nothing changes."""
    changes = {}
    for name in _field_names(type(node)):
        part = getattr(node, name)
        # Not left to `_change_part`, which would cost a frame on every level of the tree.
        changed = change(part) if isinstance(part, Node) else _change_part(part, change)
        if changed is not part:
            changes[name] = changed
    # The names are fields of the node; `change` guarantees that their new values fit.
    return replace(node, **changes) if changes else node  # type: ignore[arg-type]


def _change_part(part: object, change: Callable[[Node], Node]) -> object:
    if not isinstance(part, tuple):
        return part
    elements = []
    for element in part:
        elements.append(change(element) if isinstance(element, Node) else _change_part(element, change))  # noqa: PERF401
    return part if all(map(operator.is_, elements, part)) else tuple(elements)


def descendants(root: Node) -> Iterator[Node]:
    """Yield `root` and all nodes below it, in no particular order."""
    waiting = [root]
    count = 0
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(children(node))
        count += 1
        if not count % _NODES_BETWEEN_PAUSES:
            pause()


def levels(root: Node, *, levels_max: int) -> int:
    """Return the height of the tree, counted without recursion and only to one above `levels_max`."""
    level: list[Node] = [root]
    height = 0
    while level and height <= levels_max:
        height += 1
        below: list[Node] = []
        for start in range(0, len(level), _NODES_BETWEEN_PAUSES):
            pause()
            below += [child for node in level[start : start + _NODES_BETWEEN_PAUSES] for child in children(node)]
        level = below
    return height
