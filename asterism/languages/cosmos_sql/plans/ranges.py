"""The ranges that a plan sends its client to: intervals of the hash line, in the text that clients compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, cast

from asterism.languages.cosmos_sql.compiling.partition_filter import PartitionKeyTuple
from asterism.partitioning.effective_key import effective_key, prefix_range, to_text
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_key import PartitionKey, PartitionKeyDefinition


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """An interval from `start`, inclusive, to `end`, exclusive unless both are the same point."""

    start: str
    end: str

    @property
    def is_point(self) -> bool:
        return self.start == self.end

    def contains(self, other: PlannedRange) -> bool:
        return self == other or (self.start <= other.start and other.start < self.end and other.end <= self.end)

    def to_json(self) -> dict[str, object]:
        return {"min": self.start, "max": self.end, "isMinInclusive": True, "isMaxInclusive": self.is_point}


RangeOfKey = Callable[[PartitionKeyTuple], PlannedRange]

EVERYWHERE: Final = PlannedRange(*FULL.to_texts())
# For queries that no item can match, as in the service: any partition gives the right result.
ANYWHERE: Final = PlannedRange("", "")


def range_of_key(definition: PartitionKeyDefinition) -> RangeOfKey:
    """Return the function that finds a key's range: the point of a full key, or all keys below a prefix."""

    def range_of(key: PartitionKeyTuple) -> PlannedRange:
        components = cast(PartitionKey, key)
        if len(key) < len(definition.paths):
            return PlannedRange(*prefix_range(definition, components).to_texts())
        point = to_text(effective_key(definition, components))
        return PlannedRange(point, point)

    return range_of


def planned_ranges(keys: Iterable[PartitionKeyTuple] | None, range_of: RangeOfKey) -> tuple[PlannedRange, ...]:
    """Return the ranges of the keys that a filter allows, sorted and disjoint; None allows all, an empty list none."""
    if keys is None:
        return (EVERYWHERE,)
    # The widest range of those with the same start comes first, so that it contains the others.
    widest_first = sorted({range_of(key) for key in keys}, key=lambda planned: planned.end, reverse=True)
    kept: list[PlannedRange] = []
    for planned in sorted(widest_first, key=lambda planned: planned.start):
        if not kept or not kept[-1].contains(planned):
            kept.append(planned)
    return tuple(kept) or (ANYWHERE,)
