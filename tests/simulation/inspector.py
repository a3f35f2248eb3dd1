"""The check of every effect on the nodes against the rules of the keyspaces floor, at the moment of the effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.catalog.store import CATALOG_PARTITION, GARBAGE, HISTORY, JOB, KEYSPACE, LEADER
from asterism.keyspaces.processes.coordination import NOBODY, leader_of
from asterism.keyspaces.routing.families import is_routed
from asterism.partitioning.partition_map import PartitionMap, PartitionRange
from asterism.storage.contract import Batch, Fence, Span
from asterism.storage.memory.partition import MemoryPartition
from asterism.storage.nodes import CATALOG_NUMBERS_END
from asterism.values.identifiers import NodeNumber, PartitionNumber, node_of, sequence_of
from tests.simulation.history import History
from tests.simulation.ledger import operations_in, routed_entries
from tests.simulation.network import Delivery, Node

# More than a partition of a simulation holds.
_ENTRIES_MAX = 1_000_000


@dataclass(slots=True)
class Inspector:
    """The state of the whole system, which no gateway knows."""

    nodes: dict[NodeNumber, Node]
    history: History
    on_broken: Callable[[str], None]
    # True if processes share the store, and so agree on a leader.
    is_shared: bool
    maps: dict[bytes, PartitionMap] = field(default_factory=dict)
    # Partitions that were published once and have been replaced.
    retired: set[PartitionNumber] = field(default_factory=set)
    # The number of times that new partitions came on a map.
    published: int = 0
    _catalog_lsn: int | None = None
    _leader: bytes | None = None

    def observe(self, delivery: Delivery) -> None:
        match delivery.name:
            case "apply" if delivery.partition == CATALOG_PARTITION:
                self._on_catalog(delivery, delivery.arguments[0])
            case "apply" if delivery.partition >= CATALOG_NUMBERS_END:
                self._on_data(delivery, delivery.arguments[0])
            case "set_fence":
                self._on_fence(delivery.partition, delivery.arguments[0])
            case "drop_partition" if any(delivery.partition in _numbers(map) for map in self.maps.values()):
                self.on_broken(f"{delivery.gateway} drops the partition {delivery.partition}, which is in use")
            case _:
                pass

    # --- data -------------------------------------------------------------------------------------------------------

    def _on_data(self, delivery: Delivery, batch: Batch) -> None:
        partition = delivery.partition
        if partition in self.retired:
            self.on_broken(f"{delivery.gateway} writes to the partition {partition}, which was replaced: it is lost")
        for operation, settings in operations_in(batch):
            self.history.effects[operation] += 1
            if self.history.effects[operation] > 1:
                self.on_broken(f"operation {operation} took effect twice")
            if self.history.are_outdated(settings):
                self.on_broken(f"operation {operation} was planned by settings {settings}, which are not in force")

    def _on_fence(self, partition: PartitionNumber, fence: Fence) -> None:
        if partition in self.retired and not fence.sealed:
            self.on_broken(f"the partition {partition}, which was replaced, is opened again")

    # --- the catalog ------------------------------------------------------------------------------------------------

    def _on_catalog(self, delivery: Delivery, batch: Batch) -> None:
        lsn = delivery.result
        if self._catalog_lsn is not None and lsn != self._catalog_lsn + 1:
            self.on_broken(f"the catalog's LSN goes from {self._catalog_lsn} to {lsn}")
        self._catalog_lsn = lsn
        self._check_leadership(delivery, batch)
        for key, value in batch.versioned_puts:
            if key.startswith(KEYSPACE):
                record = KeyspaceRecord.from_bytes(value)
                if "number" in record.settings:
                    self.history.note_settings(record.settings["number"])
                self._on_map(key, record.map)
        for key in batch.deletes:
            if key.startswith(KEYSPACE):
                self.maps.pop(key, None)

    def _check_leadership(self, delivery: Delivery, batch: Batch) -> None:
        puts = dict(batch.puts)
        if LEADER in puts:
            if leader_of(puts[LEADER])[0] != leader_of(self._leader)[0] + 1:
                self.on_broken(
                    f"the term of the leadership goes from {leader_of(self._leader)} to {leader_of(puts[LEADER])}"
                )
            self._leader = puts[LEADER]
        is_of_leader = any(key[:1] in (JOB, GARBAGE) for key in batch.deletes) or any(
            key.startswith(HISTORY) for key in puts
        )
        leader = leader_of(self._leader)[1]
        if self.is_shared and is_of_leader and leader != delivery.gateway.catalog.boot_number:
            leader_text = "no process" if leader == NOBODY else f"number {leader}"
            self.on_broken(f"{delivery.gateway} does the leader's work, and {leader_text} leads")

    def _on_map(self, key: bytes, after: PartitionMap) -> None:
        before = self.maps.get(key)
        self.maps[key] = after
        numbers = [each.partition for each in after.ranges]
        if len(set(numbers)) != len(numbers) or self.retired.intersection(numbers):
            self.on_broken(f"a partition is on the map twice, or again: {numbers}")
        if before is None:
            return
        if after.version < before.version:
            self.on_broken(f"the version of the map goes from {before.version} to {after.version}")
        known = {each.partition: each for each in before.ranges}
        for each in after.ranges:
            if each.partition not in known:
                self._check_published(each, list(before.overlapping(each.range)))
            elif each.epoch < known[each.partition].epoch or each.range != known[each.partition].range:
                self.on_broken(f"partition {each.partition} goes from {known[each.partition]} to {each}")
        self.published += any(each.partition not in known for each in after.ranges)
        self.retired.update(number for number in known if number not in numbers)

    def _check_published(self, target: PartitionRange, sources: list[PartitionRange]) -> None:
        """Check that a partition that comes on the map holds the entries of its sources, which are sealed."""
        made = self._partition(target.partition)
        entries, expected = all_entries(made), {}
        lsn = 0
        for source in sources:
            stored = self._partition(source.partition)
            if stored is None:
                self.on_broken(f"partition {source.partition} is gone before it was replaced")
                return
            if not stored.fence.sealed:
                self.on_broken(f"partition {source.partition} is replaced while it is open")
            lsn = max(lsn, stored.lsn)
            expected.update(routed_entries(all_entries(stored), target.range))
        if made is None or made.fence != Fence(target.epoch) or made.lsn < lsn:
            self.on_broken(f"partition {target.partition} is published before it is open in its place")
        routed = {key: value for key, value in entries.items() if is_routed(key)}
        if routed != expected:
            missing, more = expected.keys() - routed.keys(), routed.keys() - expected.keys()
            other = {key for key in expected.keys() & routed.keys() if expected[key] != routed[key]}
            self.on_broken(
                f"partition {target.partition} is not what it replaces: {len(missing)} entries are missing, "
                f"{len(more)} are too many, {len(other)} are others"
            )

    def _partition(self, number: PartitionNumber) -> MemoryPartition | None:
        found = self.nodes[node_of(number)].store.partitions.get(sequence_of(number))
        return None if found is None or found.dropping else found

    def entries_of(self, number: PartitionNumber) -> dict[bytes, bytes]:
        return all_entries(self._partition(number))


def _numbers(current: PartitionMap) -> list[PartitionNumber]:
    return [each.partition for each in current.ranges]


def all_entries(partition: MemoryPartition | None) -> dict[bytes, bytes]:
    if partition is None:
        return {}
    return dict(partition.entries.scan(Span(), reverse=False, limit=_ENTRIES_MAX, bytes_max=None).entries)
