"""Logical partitions for operators: how many there are, the largest of them, and their names."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, Final, cast

from asterism.apis.admin.ordered_ranges import readable_key, readable_text
from asterism.apis.admin.services import AdminServices
from asterism.errors import AsterismError
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.statistics import LogicalPartition, first_item, logical_partitions
from asterism.models.collections.item_view import logical_key
from asterism.models.documents.item_record import body_of
from asterism.partitioning.key_range import KeyRange, point_to_text
from asterism.partitioning.partition_key import PartitionKeyKind, extract, number_of_point
from asterism.partitioning.partition_map import PartitionRange
from asterism.values.item import Item
from asterism.values.json.text import loads
from asterism.values.undefined import UNDEFINED

# Of a physical partition: at 0.3 µs each they take a moment, and beyond them the answer says that it is partial.
SURVEYED_MAX: Final = 200_000


@dataclass(frozen=True, slots=True)
class Survey:
    """The logical partitions of a physical one; with `is_partial`, of the beginning of its range."""

    count: int
    largest: list[LogicalPartition]
    is_partial: bool


async def survey(services: AdminServices, keyspace: Keyspace, partition: PartitionRange, *, top: int) -> Survey:
    """Look through the sizes of all logical partitions, in slices; other requests run between them."""
    largest: list[tuple[int, bytes, LogicalPartition]] = []
    count = 0
    async for logical in logical_partitions(services.router, keyspace, partition):
        if count == SURVEYED_MAX:
            return Survey(count, _largest_first(largest), is_partial=True)
        count += 1
        heapq.heappush(largest, (logical.size.bytes, logical.effective_key, logical))
        if len(largest) > top:
            heapq.heappop(largest)
    return Survey(count, _largest_first(largest), is_partial=False)


def _largest_first(heap: list[tuple[int, bytes, LogicalPartition]]) -> list[LogicalPartition]:
    return [logical for _, _, logical in sorted(heap, reverse=True)]


class KeyNames:
    """The names of logical partitions, each read once for a request."""

    def __init__(self, services: AdminServices, keyspace: Keyspace) -> None:
        self._services = services
        self._keyspace = keyspace
        self._kind = services.kind_of(keyspace)
        self._known: dict[bytes, dict[str, Any]] = {}
        # Whose node does not answer: a read would wait for it, and names are not worth that.
        self.unreachable: list[KeyRange] = []

    async def of(self, effective_key: bytes) -> dict[str, Any]:
        """Name a logical partition by its hash and by its partition key value, which an item of it shows."""
        known = self._known.get(effective_key)
        if known is None:
            known = self._known[effective_key] = await self._read(effective_key)
        return known

    async def _read(self, effective_key: bytes) -> dict[str, Any]:
        named: dict[str, Any] = {"effective_key": point_to_text(effective_key)}
        definition = self._keyspace.record.definition
        if definition.kind is PartitionKeyKind.NUMBERED:
            return named | {"partition_key": [number_of_point(effective_key)]}
        if definition.is_ordered:
            return named | {"partition_key": [readable_key(effective_key)]}
        if any(interval.contains(effective_key) for interval in self.unreachable):
            return named
        try:
            stored = await first_item(self._services.router, self._keyspace, effective_key)
            if stored is None:
                return named
            if self._kind is not None and self._kind.explorer == "entities":
                return named | {"partition_key": [readable_text(self._services.partition_key_of_entity(stored))]}
            if self._kind is not None and self._kind.explorer == "collections":
                return named | {"partition_key": logical_key(self._keyspace.record, effective_key, stored)}
            key = extract(definition, cast(Item, loads(body_of(stored))))
        except AsterismError:
            # Its node is away, or its items have no key that can be shown.
            return named
        # JSON cannot express an absent value; clients send an empty object for it.
        return named | {"partition_key": [{} if value is UNDEFINED else value for value in key]}
