"""Covering indexes: indexes with all values that a query reads of an item.

If equal values add the same to the results, one item stands for all that have them: an index shows which values exist
and how often, and reading one item of each, or none at all, is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from asterism.models.documents.indexes.composite import INVERTED
from asterism.models.documents.indexes.rules import IndexingRules
from asterism.reading.access_plan import (
    PathConditions,
    ValueIndex,
    bounds_within,
    composite_index,
    single_index,
)
from asterism.reading.conditions import PropertyPath
from asterism.reading.index_use import CoveredPaths
from asterism.reading.value_spans import ValueSpan
from asterism.values.undefined import UNDEFINED
from asterism.values.value_order import is_scalar


class ExtremeKind(Enum):
    """The treatment of a value by MIN and MAX: ignored, ordered, or without an order."""

    UNDEFINED = "undefined"
    SCALAR = "scalar"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class CoveringIndex:
    """An index whose first `key_count` paths are the keys of a query; the next is its extreme, if it has one."""

    index: ValueIndex
    key_count: int
    has_extreme: bool
    spans: tuple[ValueSpan, ...]
    # The path whose index has no entry for an item without a value there; None if every item that is wanted has one.
    incomplete_path: PropertyPath | None

    @property
    def is_whole(self) -> bool:
        """True if entries with the same keys have the same value, and so are in the order of item numbers."""
        return self.key_count == len(self.index.paths)

    def keys_length(self, value: bytes) -> int | None:
        """Return how many bytes of an entry's value are its keys; None if a key is not a whole scalar, so that only the
        item distinguishes it from others."""
        at = 0
        for number in range(self.key_count):
            length = self._scalar_length(self._plain(value, at, number))
            if length is None:
                return None
            at += length
        return at

    def extreme_kind(self, value: bytes, keys_length: int) -> ExtremeKind:
        """Return the kind of the extreme, which follows the keys in an entry's value."""
        order, encoded = self.index.order, self._plain(value, keys_length, self.key_count)
        if encoded.startswith(order.undefined):
            return ExtremeKind.UNDEFINED
        return ExtremeKind.SCALAR if is_scalar(order, encoded) else ExtremeKind.OTHER

    def item_of(self, value: bytes) -> dict[str, object] | None:
        """Return an item with the values of an entry and nothing else; None if the entry does not have them as they
        were written."""
        order = self.index.order
        item: dict[str, object] = {}
        at = 0
        for number in range(self.key_count + self.has_extreme):
            plain = self._plain(value, at, number)
            length = self._scalar_length(plain)
            if length is None or not order.is_as_written(plain[:length]):
                return None
            scalar = order.decode(plain[:length])
            if scalar is not UNDEFINED and not _put(item, self.index.paths[number][0], scalar):
                return None
            at += length
        return item

    def _scalar_length(self, encoded: bytes) -> int | None:
        return self.index.order.scalar_length(encoded, bytes_max=self.index.value_bytes_max)

    def _plain(self, value: bytes, at: int, number: int) -> bytes:
        """Return an entry's value from the path with this number on, inverted back if that path descends."""
        return value[at:].translate(INVERTED) if self.index.paths[number][1] else value[at:]


def covering_index(
    covered: CoveredPaths, conditions: PathConditions, rules: IndexingRules, hidden: frozenset[str]
) -> CoveringIndex | None:
    """Return the smallest index with the covered paths, bounded by the conditions on them; None if no index has all."""
    paths = {*covered.keys, *(() if covered.extreme is None else (covered.extreme,))}
    if any(path[0] in hidden for path in paths):
        return None
    index = _index_of(covered, rules)
    if index is None:
        return None
    bounds = bounds_within(index, conditions)
    # A composite index has an entry for every item; the index of a path has none for an item without a value.
    is_complete = len(index.paths) > 1 or bool(bounds.paths)
    return CoveringIndex(
        index,
        len(covered.keys),
        covered.extreme is not None,
        bounds.spans,
        incomplete_path=None if is_complete else index.paths[0][0],
    )


def _index_of(covered: CoveredPaths, rules: IndexingRules) -> ValueIndex | None:
    count = len(covered.keys)
    if count == 1 and covered.extreme is None:
        (path,) = covered.keys
        if rules.covers_scalar(path):
            return single_index(path, rules.order)
    fitting = []
    for composite in rules.composites:
        paths = [path for path, _ in composite.paths]
        is_next = covered.extreme is None or paths[count : count + 1] == [covered.extreme]
        if set(paths[:count]) == covered.keys and is_next:
            fitting.append(composite)
    smallest = min(fitting, key=lambda composite: len(composite.paths), default=None)
    return None if smallest is None else composite_index(smallest)


def _put(item: dict[str, object], path: PropertyPath, value: object) -> bool:
    """Put a value at a path of an item; return False if a scalar is in the way, which no stored item has."""
    *names, last = path
    holder = item
    for name in names:
        below = holder.setdefault(name, {})
        if not isinstance(below, dict):
            return False
        holder = below
    holder[last] = value
    return True
