"""Access plans: the index entries that can answer a filter, chosen from the policy and the conditions alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from asterism.models.documents.indexes.cells import Box, spans_touching
from asterism.models.documents.indexes.composite import CompositeIndex
from asterism.models.documents.indexes.paths import ARRAY_ELEMENT, Segment, path_token
from asterism.models.documents.indexes.reader import IndexSpan
from asterism.models.documents.indexes.rules import IndexingRules
from asterism.models.documents.indexes.spatial import spatial_token
from asterism.models.documents.indexes.terms import VALUE_BYTES_MAX
from asterism.reading.conditions import (
    AllOf,
    AnyOf,
    ArrayHolds,
    Comparison,
    Condition,
    Defined,
    OneOf,
    PathCondition,
    Prefix,
    PropertyPath,
    Touches,
    Unrestricted,
    Unsatisfiable,
)
from asterism.reading.value_spans import ValueSpan, inverted, joined, spans_of
from asterism.values.value_order import ValueOrder, behind

# Conditions by the path that they restrict; all of them hold.
PathConditions: TypeAlias = Mapping[PropertyPath, Sequence[PathCondition]]

# Several values of several paths make as many spans of a composite index as there are combinations of them.
_COMBINATIONS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class ValueIndex:
    """An index with one entry for an item, which holds its values at some paths: a path's own, or a composite one."""

    token: bytes
    # Each with True if it descends.
    paths: tuple[tuple[PropertyPath, bool], ...]
    value_bytes_max: int
    name: str
    # The order of the values in it.
    order: ValueOrder


@dataclass(frozen=True, slots=True)
class IndexBounds:
    """The spans of an index that conditions leave, and the paths whose conditions they use."""

    spans: tuple[ValueSpan, ...]
    paths: frozenset[PropertyPath]


@dataclass(frozen=True, slots=True)
class Lookup:
    """The items that have an entry in any of these spans of an index. `rank` estimates how few they are: lower is
    fewer."""

    token: bytes
    spans: tuple[ValueSpan, ...]
    # The name of the index in explanations.
    name: str
    rank: int
    # False if an item may have several entries: one for each element of an array, or for each cell of a geometry.
    has_one_entry_per_item: bool = True

    @property
    def is_of_values(self) -> bool:
        """True if the entries of each span have one value, and so are in the order of item numbers."""
        return all(span.is_point for span in self.spans)

    @property
    def is_exact(self) -> bool:
        """True if the entries belong to items that meet the conditions, and to no others."""
        return all(span.is_exact for span in self.spans)

    def index_spans(self) -> list[IndexSpan]:
        return [IndexSpan(self.token, span.low, span.high) for span in self.spans]


@dataclass(frozen=True, slots=True)
class AnyLookup:
    """The union of lookups: items that any of them finds."""

    lookups: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class AllLookups:
    """The intersection of lookups, the most selective first; the first alone finds all of its items too."""

    lookups: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class NoItems:
    """The filter matches no item."""


Access: TypeAlias = Lookup | AnyLookup | AllLookups | NoItems

_EQUAL, _IN, _PREFIX, _RANGE, _DEFINED = range(5)
# A composite index that uses more paths is better than any that uses fewer.
_RANK_PER_FURTHER_PATH: Final = -10


def access_for(
    condition: Condition,
    rules: IndexingRules,
    hidden: frozenset[str] = frozenset(),
    pinned: frozenset[PropertyPath] = frozenset(),
) -> Access | None:
    """Return the access plan for the items that meet a condition; None if no index helps, and all must be read.

    `hidden` are properties that queries see in another form than the stored one, so that no index has them. `pinned`
    are paths of the partition key whose values the scope of the query has fixed already: a lookup of them finds the
    whole scope again.
    """
    return _Planner(rules, hidden, pinned).access(condition)


def exact_access(condition: Condition, rules: IndexingRules, hidden: frozenset[str] = frozenset()) -> Access | None:
    """Return the access plan for the items that meet a condition and no others; None if no index has exactly those."""
    planner = _Planner(rules, hidden, frozenset())
    access = planner.access(condition)
    return access if planner.is_exact and access is not None and _is_exact(access) else None


class _Planner:
    def __init__(self, rules: IndexingRules, hidden: frozenset[str], pinned: frozenset[PropertyPath]) -> None:
        self._rules = rules
        self._hidden = hidden
        self._pinned = pinned
        # True as long as every condition is part of the access plan.
        self.is_exact = True

    def access(self, condition: Condition) -> Access | None:
        match condition:
            case Unrestricted():
                self.is_exact = False
                return None
            case Unsatisfiable():
                return NoItems()
            case AllOf(conditions):
                return self._all(conditions)
            case AnyOf(conditions):
                return _any([self.access(part) for part in conditions])
            case _:
                return self._all((condition,))

    def _all(self, conditions: Sequence[Condition]) -> Access | None:
        of_paths: dict[PropertyPath, list[PathCondition]] = {}
        found: list[Access | None] = []
        for condition in conditions:
            match condition:
                case Comparison() | OneOf() | Prefix() | Defined():
                    if self._is_usable(condition):
                        of_paths.setdefault(condition.path, []).append(condition)
                    else:
                        self.is_exact = False
                case ArrayHolds():
                    found.append(self._of_element(condition))
                case Touches(path, boxes):
                    found.append(self._of_geometry(path, boxes))
                case _:
                    found.append(self.access(condition))
        found += self._of_paths(of_paths)
        if any(isinstance(access, NoItems) for access in found):
            return NoItems()
        usable = [access for access in found if access is not None]
        self.is_exact = self.is_exact and len(usable) == len(found)
        if len(usable) <= 1:
            return usable[0] if usable else None
        return AllLookups(tuple(sorted(usable, key=_rank)))

    def _is_usable(self, condition: PathCondition) -> bool:
        is_pinned = isinstance(condition, Comparison | OneOf) and condition.path in self._pinned
        return condition.path[0] not in self._hidden and not is_pinned

    def _of_paths(self, conditions: PathConditions) -> list[Access | None]:
        left = dict(conditions)
        found: list[Access | None] = []
        while (best := self._best_composite(left)) is not None:
            index, bounds = best
            found.append(_lookup(index, bounds, left))
            left = {path: own for path, own in left.items() if path not in bounds.paths}
        for path, own in left.items():
            index = single_index(path, self._rules.order)
            is_covered = self._rules.covers_scalar(path)
            found.append(_lookup(index, bounds_within(index, {path: own}), left) if is_covered else None)
        return found

    def _best_composite(self, conditions: PathConditions) -> tuple[ValueIndex, IndexBounds] | None:
        """Return the composite index that uses the most paths, if one uses several."""
        if len(conditions) < 2:
            return None
        indexes = [composite_index(composite) for composite in self._rules.composites]
        bounded = [(index, bounds_within(index, conditions)) for index in indexes]
        usable = [(index, bounds) for index, bounds in bounded if len(bounds.paths) > 1]
        return max(usable, key=lambda pair: (len(pair[1].paths), -len(pair[0].paths)), default=None)

    def _of_element(self, condition: ArrayHolds) -> Access | None:
        if condition.path[0] in self._hidden:
            return None
        segments: tuple[Segment, ...] = (*condition.path, ARRAY_ELEMENT)
        if not self._rules.covers_scalar(segments):
            return None
        spans = spans_of([Comparison(condition.path, "=", condition.value)], self._rules.order, VALUE_BYTES_MAX)
        name = path_text(segments)
        return Lookup(path_token(segments), tuple(spans), name, _EQUAL, has_one_entry_per_item=False)

    def _of_geometry(self, path: PropertyPath, boxes: Sequence[Box]) -> Access | None:
        if path[0] in self._hidden or not self._rules.covers_geometry(path):
            return None
        spans = [ValueSpan(low, high, is_exact=False) for low, high in spans_touching(boxes)]
        name = path_text(path)[:-1] + "*"
        return Lookup(spatial_token(path), tuple(spans), name, _RANGE, has_one_entry_per_item=False)


# --- indexes and their parts ----------------------------------------------------------------------------------------


def single_index(path: PropertyPath, order: ValueOrder) -> ValueIndex:
    return ValueIndex(path_token(path), ((path, False),), VALUE_BYTES_MAX, path_text(path), order)


def composite_index(composite: CompositeIndex) -> ValueIndex:
    paths, bytes_max = composite.paths, composite.component_bytes_max
    return ValueIndex(composite.token, paths, bytes_max, order_text(paths), composite.order)


def bounds_within(index: ValueIndex, conditions: PathConditions) -> IndexBounds:
    """Return the spans of an index that conditions leave: its leading paths as long as each has given values, then a
    range of the next path."""
    heads = [ValueSpan(b"", b"", is_point=True)]
    used: list[PropertyPath] = []
    for path, descending in index.paths:
        if path not in conditions:
            break
        own = spans_of(conditions[path], index.order, index.value_bytes_max)
        if len(heads) * len(own) > _COMBINATIONS_MAX and len(index.paths) > 1:
            break
        used.append(path)
        parts = inverted(own) if descending else own
        are_points = all(part.is_point for part in parts)
        heads = [_appended(head, part) for head in heads for part in parts]
        if not are_points:
            return IndexBounds(tuple(heads), frozenset(used))
    # Entries of one value are those with a value of every path.
    is_whole = len(used) == len(index.paths)
    spans = [ValueSpan(head.low, _end_of(head.low), is_whole, head.is_exact) for head in heads]
    return IndexBounds(tuple(spans), frozenset(used))


def _appended(head: ValueSpan, part: ValueSpan) -> ValueSpan:
    return ValueSpan(head.low + part.low, head.low + part.high, is_exact=head.is_exact and part.is_exact)


def _end_of(encoded: bytes) -> bytes:
    return behind(encoded) if encoded else b"\xff"


def path_conditions(
    condition: Condition, hidden: frozenset[str] = frozenset()
) -> dict[PropertyPath, list[PathCondition]]:
    """Return the conditions on single paths that every matching item meets, by their path."""
    found: dict[PropertyPath, list[PathCondition]] = {}
    for part in condition.conditions if isinstance(condition, AllOf) else (condition,):
        if isinstance(part, Comparison | OneOf | Prefix | Defined) and part.path[0] not in hidden:
            found.setdefault(part.path, []).append(part)
    return found


# --- lookups --------------------------------------------------------------------------------------------------------


def _lookup(index: ValueIndex, bounds: IndexBounds, conditions: PathConditions) -> Access:
    if not bounds.spans:
        return NoItems()
    rank = _rank_of(bounds, [condition for path in bounds.paths for condition in conditions[path]])
    return Lookup(index.token, bounds.spans, index.name, rank + _RANK_PER_FURTHER_PATH * (len(bounds.paths) - 1))


def _rank_of(bounds: IndexBounds, conditions: Iterable[PathCondition]) -> int:
    if all(span.is_point for span in bounds.spans):
        return _EQUAL if len(bounds.spans) == 1 else _IN
    kinds = set(map(type, conditions))
    if Prefix in kinds:
        return _PREFIX
    return _DEFINED if kinds == {Defined} else _RANGE


def _any(found: list[Access | None]) -> Access | None:
    usable = [access for access in found if access is not None]
    if len(usable) < len(found):
        return None
    possible = _united([access for access in usable if not isinstance(access, NoItems)])
    if not possible:
        return NoItems()
    return possible[0] if len(possible) == 1 else AnyLookup(tuple(possible))


def _united(found: Sequence[Access]) -> list[Access]:
    """Merge the lookups of each index into one."""
    lookups: dict[bytes, Lookup] = {}
    others: list[Access] = []
    for access in found:
        if not isinstance(access, Lookup):
            others.append(access)
        elif access.token not in lookups:
            lookups[access.token] = access
        else:
            known = lookups[access.token]
            spans = tuple(joined((*known.spans, *access.spans)))
            rank = max(known.rank, access.rank, _IN)
            lookups[access.token] = Lookup(access.token, spans, access.name, rank, known.has_one_entry_per_item)
    return [*lookups.values(), *others]


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


def _is_exact(access: Access) -> bool:
    match access:
        case NoItems():
            return True
        case Lookup():
            return access.is_exact
        case AllLookups(lookups) | AnyLookup(lookups):
            return all(map(_is_exact, lookups))
        case _:
            assert_never(access)


# --- names ----------------------------------------------------------------------------------------------------------


def path_text(path: Sequence[Segment]) -> str:
    """Return a path as index policies write it."""
    return "".join("/[]" if segment is ARRAY_ELEMENT else f"/{segment}" for segment in path) + "/?"


def order_text(paths: Sequence[tuple[PropertyPath, bool]]) -> str:
    """Return several paths with their directions, as an explanation names a composite index."""
    return "(" + ", ".join(path_text(path) + (" DESC" if descending else " ASC") for path, descending in paths) + ")"
