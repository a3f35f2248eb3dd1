"""The partition map's third kind: a line of numbers, each in a physical partition of its own."""

from __future__ import annotations

import pytest

from asterism.partitioning.hash_space import even_boundaries, hash_fraction, midpoint
from asterism.partitioning.key_range import FULL
from asterism.partitioning.partition_key import (
    NUMBERED_POINTS_MAX,
    PartitionKeyDefinition,
    PartitionKeyKind,
    number_of_point,
    numbered_point,
)
from asterism.partitioning.partition_map import initial_map
from asterism.partitioning.split_merge import CannotSplit, SplitPointFinder, plan_demand_or_size_split
from asterism.values.identifiers import Epoch, PartitionNumber

LINE = PartitionKeyDefinition(paths=("/partition",), kind=PartitionKeyKind.NUMBERED)


def test_every_number_has_a_physical_partition_of_its_own() -> None:
    partitions = [PartitionNumber(number) for number in range(100, 132)]
    line = initial_map(LINE, partitions, epoch=Epoch(1))
    assert [line.find(numbered_point(number)).partition for number in range(32)] == partitions
    assert [number_of_point(numbered_point(number)) for number in range(32)] == list(range(32))


def test_the_largest_number_lies_before_the_end_of_the_line() -> None:
    assert numbered_point(NUMBERED_POINTS_MAX - 1) < FULL.end
    with pytest.raises(ValueError, match="fewer points"):
        even_boundaries(LINE, NUMBERED_POINTS_MAX + 1)


def test_a_number_is_not_divided() -> None:
    line = initial_map(LINE, [PartitionNumber(1), PartitionNumber(2)], epoch=Epoch(1))
    assert midpoint(LINE, line.ranges[0].range) is None
    assert hash_fraction(LINE, line.ranges[0].range) == 0.0
    for logical_partitions in (0, 1):
        plan = plan_demand_or_size_split(LINE, line.ranges[0], logical_partitions, SplitPointFinder(0))
        assert isinstance(plan, CannotSplit)


def test_a_stored_definition_is_read_again() -> None:
    assert PartitionKeyDefinition.from_record(LINE.to_record()) == LINE
    assert LINE.is_ordered
