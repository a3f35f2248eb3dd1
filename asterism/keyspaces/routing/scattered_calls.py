"""Reads and batches of many logical partitions: one call per physical partition, whatever map is in force by then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import MapOutdated, PartitionRouter, PlanOutdated
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Batch, ExpectationFailed
from asterism.values.identifiers import Lsn

_Answer = TypeVar("_Answer")
_Call = Callable[[KeyspaceRecord, PartitionRange, Sequence[int]], Awaitable[Sequence[_Answer] | None]]


async def read_scattered(
    router: PartitionRouter, keyspace: Keyspace, keys: Sequence[tuple[bytes, bytes]]
) -> list[bytes | None]:
    """Return the values of keys, each given after a point of its partition; all of a partition are of one moment."""

    async def read(
        record: KeyspaceRecord, partition: PartitionRange, places: Sequence[int]
    ) -> Sequence[bytes | None] | None:
        found = await router.read_from(keyspace, record, partition, [keys[place][1] for place in places])
        return None if found is None else found[1]

    return await _by_partition(keyspace, [point for point, _ in keys], read)


async def apply_scattered(
    router: PartitionRouter,
    keyspace: Keyspace,
    changes: Sequence[tuple[bytes, Batch]],
    *,
    planned_under: Mapping[str, Any] | None = None,
) -> list[Lsn | None]:
    """Apply batches, each given after a point of its partition; return their LSNs, None for one whose expectations
    failed. Those of one physical partition are one batch, or one by one if an expectation failed.

    Raises PlanOutdated if other settings than `planned_under` are in force; some of the batches may be applied then, as
    after every other error.
    """

    async def apply(record: KeyspaceRecord, _: PartitionRange, places: Sequence[int]) -> Sequence[Lsn | None] | None:
        together = Batch()
        for place in places:
            together.extend(changes[place][1])
        try:
            point = changes[places[0]][0]
            # Logical partitions that were together on the map may be divided by a split.
            _, lsn = await router.apply(keyspace, point, together, planned_under=planned_under, on_map=record.map)
        except MapOutdated:
            return None
        except PlanOutdated:
            raise
        except ExpectationFailed:
            return [await apply_alone(place) for place in places] if len(places) > 1 else [None]
        return [lsn] * len(places)

    async def apply_alone(place: int) -> Lsn | None:
        point, batch = changes[place]
        try:
            _, lsn = await router.apply(keyspace, point, batch, planned_under=planned_under)
        except PlanOutdated:
            raise
        except ExpectationFailed:
            return None
        return lsn

    return await _by_partition(keyspace, [point for point, _ in changes], apply)


async def _by_partition(keyspace: Keyspace, points: Sequence[bytes], call: _Call[_Answer]) -> list[_Answer]:
    """Call once for each partition of the points, all at a time; again for those whose map was outdated (None)."""
    answers: dict[int, _Answer] = {}
    while len(answers) < len(points):
        record = keyspace.record
        groups: dict[int, tuple[PartitionRange, list[int]]] = {}
        for place, point in enumerate(points):
            if place not in answers:
                partition = record.map.find(point)
                groups.setdefault(partition.id, (partition, []))[1].append(place)
        calls = [call(record, partition, places) for partition, places in groups.values()]
        found = await _all_of(calls)
        for (_, places), values in zip(groups.values(), found, strict=True):
            if values is not None:
                answers.update(zip(places, values, strict=True))
    return [answers[place] for place in range(len(points))]


async def _all_of(calls: Sequence[Awaitable[_Answer]]) -> list[_Answer]:
    """Return what the calls return; raise the first error when all have ended, so that none goes on unobserved."""
    if len(calls) == 1:
        return [await calls[0]]
    answers: list[_Answer] = []
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer
        answers.append(answer)
    return answers
