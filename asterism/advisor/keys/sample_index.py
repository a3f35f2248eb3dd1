"""An index of the sampled items by the values at their paths: which of them a query would find."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from asterism.advisor.keys.item_profile import ItemProfile, SampledItem
from asterism.advisor.keys.sketches import shortened
from asterism.advisor.value_digests import Scalar

_NONE: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Matches:
    """The items that a condition leaves: an estimate for all items, and those of the sample."""

    count: float
    rows: frozenset[int]
    # True for = and IN: their index entries can be read in the order of the items.
    is_equal: bool


class SampleIndex:
    def __init__(self, profile: ItemProfile) -> None:
        self.profile = profile
        self.items: Sequence[SampledItem] = profile.sample.kept
        self.scale = profile.scale
        self.is_whole = profile.sample.is_whole
        self._by_value: dict[str, dict[Scalar, frozenset[int]]] = {}
        self._sorted: dict[str, tuple[list[str], list[int], list[float], list[int]]] = {}

    def equal(self, path: str, values: Sequence[Scalar]) -> Matches:
        found = self._values_at(path)
        short = [shortened(value) for value in values]
        # A set of its own for each query would fill the memory.
        rows = (
            found.get(short[0], _NONE)
            if len(short) == 1
            else _NONE.union(*(found.get(value, _NONE) for value in short))
        )
        return Matches(sum(self._count(path, value, found) for value in short), rows, is_equal=True)

    def between(self, path: str, low: Scalar, high: Scalar) -> Matches:
        texts, text_rows, numbers, number_rows = self._sorted_at(path)
        if isinstance(low, str) or isinstance(high, str):
            start = bisect_left(texts, low) if isinstance(low, str) else 0
            end = bisect_right(texts, high) if isinstance(high, str) else len(texts)
            rows = frozenset(text_rows[start:end])
        else:
            start = 0 if low is None else bisect_left(numbers, float(low))
            end = len(numbers) if high is None else bisect_right(numbers, float(high))
            rows = frozenset(number_rows[start:end])
        return Matches(len(rows) * self.scale, rows, is_equal=False)

    def row_of_id(self, item_id: str) -> int | None:
        """Return a sampled item with this id."""
        return next(iter(self._values_at("/id").get(shortened(item_id), _NONE)), None)

    def _count(self, path: str, value: Scalar, found: Mapping[Scalar, frozenset[int]]) -> float:
        profile = self.profile.paths.get(path)
        if profile is not None and profile.distinct.exact is not None:
            entry = profile.distinct.exact.get(value)
            return float(entry or 0)
        rows = found.get(value)
        if self.is_whole or profile is None:
            return float(len(rows or ()))
        # A sample overstates the rare values that it has, and lacks most: take the mean unless it has several.
        mean = profile.count / max(1, self.profile.distinct(path))
        return len(rows) * self.scale if rows is not None and len(rows) > 2 else mean

    def _values_at(self, path: str) -> dict[Scalar, frozenset[int]]:
        known = self._by_value.get(path)
        if known is None:
            rows: dict[Scalar, list[int]] = {}
            for row, item in enumerate(self.items):
                if path in item.values:
                    rows.setdefault(item.values[path], []).append(row)
            known = self._by_value[path] = {value: frozenset(own) for value, own in rows.items()}
        return known

    def _sorted_at(self, path: str) -> tuple[list[str], list[int], list[float], list[int]]:
        known = self._sorted.get(path)
        if known is None:
            held = [(item.values.get(path), row) for row, item in enumerate(self.items)]
            texts = sorted((value, row) for value, row in held if isinstance(value, str))
            numbers = sorted(
                (float(value), row)
                for value, row in held
                if isinstance(value, int | float) and not isinstance(value, bool)
            )
            known = self._sorted[path] = (
                [value for value, _ in texts],
                [row for _, row in texts],
                [number for number, _ in numbers],
                [row for _, row in numbers],
            )
        return known
