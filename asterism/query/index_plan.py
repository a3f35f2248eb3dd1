"""Which index entries can answer a filter or an order: a decision, taken from the policy and the conditions alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, assert_never

from asterism.documents.cells import Box, spans_touching
from asterism.documents.composite_index import TURNED, CompositeIndex
from asterism.documents.index_paths import ARRAY_ELEMENT, Segment, path_token
from asterism.documents.index_place import ARRAY_VALUE, OBJECT_VALUE, VALUE_BYTES_MAX
from asterism.documents.index_reader import IndexSpan
from asterism.documents.indexes import IndexingRules
from asterism.documents.spatial_index import spatial_token
from asterism.query.index_conditions import (
    AllOf,
    AnyOf,
    ArrayHolds,
    Comparison,
    Condition,
    Defined,
    Everything,
    Nothing,
    OneOf,
    Operator,
    Prefix,
    Touches,
)
from asterism.query.scope import PropertyPath
from asterism.values.key_bytes import ENCODED_FALSE, ENCODED_TRUE, TAG_STRING, encode, is_truncated

_ANY_VALUE_END: Final = b"\xff"
# Of each expression that rows are ordered by where no index has the order: what differs only behind so many bytes is in
# the order of creation. A continuation holds them, in a header.
ORDER_BYTES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Lookup:
    """Items that have an entry in any of these spans. `rank` is a guess of how few they are: lower is fewer."""

    spans: tuple[IndexSpan, ...]
    path: str
    rank: int

    @property
    def is_of_one_value(self) -> bool:
        """Whether all entries have one value, and so are in the order of item numbers."""
        return self.rank == _EQUAL and len(self.spans) == 1


@dataclass(frozen=True, slots=True)
class AnyLookup:
    """Items that one of these finds."""

    lookups: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class AllLookups:
    """Items that all of these find, the most promising first; to read the first alone finds them too."""

    lookups: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class NoItems:
    """The filter lets nothing through."""


Access: TypeAlias = Lookup | AnyLookup | AllLookups | NoItems

_MakeSpans = Callable[[bytes], list[IndexSpan]]

_EQUAL, _AMONG, _BEGINS, _RANGE, _THERE = range(5)


def access_for(
    condition: Condition,
    rules: IndexingRules,
    hidden: frozenset[str] = frozenset(),
    pinned: frozenset[PropertyPath] = frozenset(),
) -> Access | None:
    """How the index finds the items that meet a condition; None when it cannot, and all must be read.

    `hidden` are properties that queries see otherwise than they are stored, so that no index knows them. `pinned` are
    paths of the partition key whose values the scope of the query has chosen already: looking them up finds the whole
    scope again.
    """
    if not isinstance(condition, Everything | Nothing | AllOf | AnyOf) and condition.path[0] in hidden:
        return None
    if isinstance(condition, Comparison | OneOf) and condition.path in pinned:
        return None
    match condition:
        case Everything():
            return None
        case Nothing():
            return NoItems()
        case Comparison(path, operator, value):
            rank = _EQUAL if operator == "=" else _RANGE
            return _lookup(rules, path, lambda token: [_compared(token, operator, value)], rank)
        case OneOf(path, values):
            return _lookup(rules, path, lambda token: [_compared(token, "=", value) for value in values], _AMONG)
        case Prefix(path, prefix):
            return _lookup(rules, path, lambda token: [_beginning(token, prefix)], _BEGINS)
        case ArrayHolds(path, value):
            segments: tuple[Segment, ...] = (*path, ARRAY_ELEMENT)
            return _lookup(rules, segments, lambda token: [_compared(token, "=", value)], _EQUAL)
        case Touches(path, boxes):
            return _near(rules, path, boxes)
        case Defined(path):
            return _lookup(rules, path, lambda token: [IndexSpan(token, b"", _ANY_VALUE_END)], _THERE)
        case AllOf(conditions):
            return _all([access_for(one, rules, hidden, pinned) for one in conditions])
        case AnyOf(conditions):
            return _any([access_for(one, rules, hidden, pinned) for one in conditions])
        case _:
            assert_never(condition)


def _lookup(rules: IndexingRules, path: Sequence[Segment], spans: _MakeSpans, rank: int) -> Lookup | None:
    if not rules.covers_scalar(path):
        return None
    return Lookup(tuple(spans(path_token(path))), path_text(path), rank)


def _near(rules: IndexingRules, path: PropertyPath, boxes: Sequence[Box]) -> Lookup | None:
    if not rules.covers_geometry(path):
        return None
    token = spatial_token(path)
    # A geometry may have several entries, so lookups of one path must not be narrowed to where they overlap. There is
    # only one span when it is that of the whole Earth, and then it does no harm.
    spans = tuple(IndexSpan(token, low, high) for low, high in spans_touching(boxes))
    return Lookup(spans, path_text(path)[:-1] + "*", _RANGE)


def _all(found: list[Access | None]) -> Access | None:
    usable = [one for one in found if one is not None]
    if any(isinstance(one, NoItems) for one in usable):
        return NoItems()
    usable = _narrowed(usable)
    if len(usable) <= 1:
        return usable[0] if usable else None
    return AllLookups(tuple(sorted(usable, key=_rank)))


def _narrowed(found: list[Access]) -> list[Access]:
    """One lookup for each path that was compared several times: from 5 on and below 9 is one stretch of its index."""
    spans: dict[str, Lookup] = {}
    others: list[Access] = []
    for one in found:
        known = spans.get(one.path) if isinstance(one, Lookup) else None
        if not isinstance(one, Lookup) or len(one.spans) != 1 or one.path.count("[]"):
            others.append(one)
        elif known is None:
            spans[one.path] = one
        else:
            (left,), (right,) = known.spans, one.spans
            low, high = max(left.low, right.low), min(left.high, right.high)
            stretch = IndexSpan(left.token, low, max(low, high))
            spans[one.path] = Lookup((stretch,), one.path, min(known.rank, one.rank))
    return [*spans.values(), *others]


def _any(found: list[Access | None]) -> Access | None:
    usable = [one for one in found if one is not None]
    if len(usable) < len(found):
        return None
    possible = [one for one in usable if not isinstance(one, NoItems)]
    if not possible:
        return NoItems()
    return possible[0] if len(possible) == 1 else AnyLookup(tuple(possible))


def _rank(access: Access) -> int:
    match access:
        case NoItems():
            return _EQUAL
        case Lookup(rank=rank):
            return rank
        case AllLookups(lookups):
            return min(map(_rank, lookups))
        case AnyLookup(lookups):
            return max(map(_rank, lookups))
        case _:
            assert_never(access)


def _compared(token: bytes, operator: Operator, value: object) -> IndexSpan:
    """A superset of the entries whose value compares so with `value`; comparisons hold within one type."""
    encoded = encode(value, bytes_max=VALUE_BYTES_MAX)
    behind = _behind(encoded)
    type_start, type_end = encoded[:1], bytes([encoded[0] + 1])
    if isinstance(value, bool):
        # The two are one type, and the only one that has two marks.
        type_start, type_end = ENCODED_FALSE, _behind(ENCODED_TRUE)
    match operator:
        case "=":
            return IndexSpan(token, encoded, behind)
        case "<":
            return IndexSpan(token, type_start, behind if is_truncated(encoded, VALUE_BYTES_MAX) else encoded)
        case "<=":
            return IndexSpan(token, type_start, behind)
        case ">":
            return IndexSpan(token, encoded if is_truncated(encoded, VALUE_BYTES_MAX) else behind, type_end)
        case ">=":
            return IndexSpan(token, encoded, type_end)
        case _:
            assert_never(operator)


def _beginning(token: bytes, prefix: str) -> IndexSpan:
    # A NUL in a string is escaped in its encoding, and the string's end is not part of a prefix.
    encoded = encode(prefix, bytes_max=None)[:-2][: VALUE_BYTES_MAX - 1]
    return IndexSpan(token, encoded, _behind(encoded) if len(encoded) > 1 else bytes([TAG_STRING + 1]))


def _behind(encoded: bytes) -> bytes:
    """The first bytes after all that begin with `encoded`, which never is all 0xFF."""
    trimmed = encoded.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1])


@dataclass(frozen=True, slots=True)
class RowOrder:
    """An order of rows: by the bytes of what they are ordered by, then by the number of their item, all of it turned
    round if `reverse`."""

    # The bytes of one value for each expression of ORDER BY.
    encode: Callable[[Sequence[object]], bytes]
    reverse: bool


@dataclass(frozen=True, slots=True)
class IndexOrder:
    """An index whose entries are in the order a query wants, read forwards or backwards."""

    span: IndexSpan
    rows: RowOrder
    path: str
    # The path whose index has no entry of an item without a value there; None if every item that is wanted has one.
    incomplete_path: PropertyPath | None = None

    @property
    def reverse(self) -> bool:
        return self.rows.reverse


def order_for(
    paths: Sequence[tuple[PropertyPath, bool]] | None, rules: IndexingRules, hidden: frozenset[str] = frozenset()
) -> IndexOrder | None:
    """The index that has the order of ORDER BY: a path's own, or a composite one, whichever way round."""
    if paths is None or any(path[0] in hidden for path, _ in paths):
        return None
    if len(paths) == 1:
        path, descending = paths[0]
        if not rules.covers_scalar(path):
            return None
        span = IndexSpan(path_token(path), b"", _ANY_VALUE_END)
        return IndexOrder(span, RowOrder(_index_value, descending), path_text(path), incomplete_path=path)
    composite, reverse = matching_composite(paths, rules.composites)
    if composite is None:
        return None
    shown = ", ".join(path_text(path) + (" DESC" if descending else " ASC") for path, descending in paths)
    # Turned round, the encoding of undefined ends with 0xFE; nothing begins with 0xFF.
    span = IndexSpan(composite.token, b"", _ANY_VALUE_END)
    return IndexOrder(span, RowOrder(composite.encode, reverse), f"({shown})")


def bounded_order(order: IndexOrder, access: Access | None) -> IndexOrder:
    """The stretch of an order's index that the filter leaves, where it compares the path that the order is by."""
    for lookup in access.lookups if isinstance(access, AllLookups) else (access,):
        if isinstance(lookup, Lookup) and lookup.path == order.path and len(lookup.spans) == 1:
            return replace(order, span=lookup.spans[0], incomplete_path=None)
    return order


def is_answered_by(order: IndexOrder, access: Access | None) -> bool:
    """Whether the filter has no other condition that an index can use than those of the order's own path."""
    lookups = access.lookups if isinstance(access, AllLookups) else (access,)
    return all(lookup is None or (isinstance(lookup, Lookup) and lookup.path == order.path) for lookup in lookups)


def row_order(descending: Sequence[bool], *, are_ties_rising: bool = False) -> RowOrder:
    """The order of rows by expressions that no index has: the first of them rises, the others go with or against it.
    With `are_ties_rising`, equal rows are in the order of creation even where the first descends."""
    reverse = descending[0] and not are_ties_rising
    turned = [one is not reverse for one in descending]

    def encode_row(values: Sequence[object]) -> bytes:
        encoded = [encode(value, bytes_max=ORDER_BYTES_MAX) for value in values]
        return b"".join(
            one.translate(TURNED) if is_turned else one for one, is_turned in zip(encoded, turned, strict=True)
        )

    return RowOrder(encode_row, reverse)


def _index_value(values: Sequence[object]) -> bytes:
    """The value as the index of a path has it: of an array or object it knows only that it is one."""
    (value,) = values
    if isinstance(value, dict | list):
        return OBJECT_VALUE if isinstance(value, dict) else ARRAY_VALUE
    return encode(value, bytes_max=VALUE_BYTES_MAX)


def matching_composite(
    paths: Sequence[tuple[PropertyPath, bool]], composites: Sequence[CompositeIndex]
) -> tuple[CompositeIndex | None, bool]:
    """The composite index with exactly these paths and directions, or with every direction turned round."""
    wanted = tuple(paths)
    turned = tuple((path, not descending) for path, descending in paths)
    for composite in composites:
        if composite.paths == wanted:
            return composite, False
        if composite.paths == turned:
            return composite, True
    return None, False


def path_text(path: Sequence[Segment]) -> str:
    """A path as index policies write it."""
    return "".join("/[]" if segment is ARRAY_ELEMENT else f"/{segment}" for segment in path) + "/?"
