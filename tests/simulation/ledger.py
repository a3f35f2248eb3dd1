"""The data of a simulation: small items with everything that a model keeps beside its items, written in one batch each.

Every operation has a number of its own and leaves an entry in a log that is never trimmed, so that the end of a run
shows which operations were carried out, how often, and in which order.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from asterism.keyspaces.routing.families import (
    CHANGE_LOG,
    COUNTERS,
    INDEX,
    ITEMS,
    LOGICAL_SIZES,
    TOTALS_KEY,
    VERSIONS,
    after_prefix,
    is_routed,
    log_key,
    log_suffix,
    lsn_in_log_key,
    route_of,
)
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.storage.contract import LSN_BYTES, Add, Batch, Expectation, Span
from asterism.values.identifiers import Lsn

DEFINITION = PartitionKeyDefinition(paths=("/pk",))
POINT_BYTES = len(storage_point(DEFINITION, ("",)))

# The operation that wrote an item, and the settings that the writer used.
_ITEM = struct.Struct(">QI")
_INDEX_KEY = struct.Struct(">QQ")
# The operation, the one before it on the same item (0 for none), the item, the settings, and the kind.
_LOG_ENTRY = struct.Struct(">QQIIB")


class Kind(IntEnum):
    PUT = 1
    DELETE = 2


@dataclass(frozen=True, slots=True)
class Item:
    """A place for an item: its number names it in the logs."""

    number: int
    point: bytes
    id: bytes

    @property
    def key(self) -> bytes:
        return ITEMS + self.point + self.id

    @property
    def reference(self) -> bytes:
        return self.point + self.id


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as it was found in its place."""

    version: bytes
    operation: int
    settings: int
    size: int

    @property
    def lsn(self) -> Lsn:
        return Lsn(int.from_bytes(self.version, "big"))


@dataclass(frozen=True, slots=True)
class LogEntry:
    lsn: Lsn
    operation: int
    previous: int
    item: int
    settings: int
    kind: Kind


def make_items(logical_partitions: int, items_each: int) -> list[Item]:
    places = [(f"key {place}", number) for place in range(logical_partitions) for number in range(items_each)]
    return [
        Item(number, storage_point(DEFINITION, (key,)), b"i%d" % place)
        for number, (key, place) in enumerate(places, start=1)
    ]


def read_item(stored: bytes | None) -> StoredItem | None:
    if stored is None:
        return None
    operation, settings = _ITEM.unpack_from(stored, LSN_BYTES)
    return StoredItem(stored[:LSN_BYTES], operation, settings, len(stored) - LSN_BYTES)


# --- planning -------------------------------------------------------------------------------------------------------


def plan_put(item: Item, found: StoredItem | None, *, operation: int, settings: int, padding: int) -> Batch:
    value = _ITEM.pack(operation, settings) + bytes(padding)
    batch = Batch(versioned_puts=[(item.key, value)])
    batch.puts.append((_index_key(operation, item), item.reference))
    batch.stamped_puts.append((CHANGE_LOG, log_suffix(place_in_batch=0, item_number=item.number), item.reference))
    _expect_and_forget(item, found, batch)
    _log(item, found, batch, operation=operation, settings=settings, kind=Kind.PUT)
    _count(item.point, batch, size_delta=len(value) - (found.size if found else 0), items_delta=0 if found else 1)
    return batch


def plan_delete(item: Item, found: StoredItem, *, operation: int, settings: int) -> Batch:
    batch = Batch(deletes=[item.key])
    _expect_and_forget(item, found, batch)
    _log(item, found, batch, operation=operation, settings=settings, kind=Kind.DELETE)
    _count(item.point, batch, size_delta=-found.size, items_delta=-1)
    return batch


def plan_clear(point: bytes, found: dict[Item, StoredItem], *, operation: int, settings: int) -> Batch:
    """Remove a whole logical partition, its items as a range."""
    items = ITEMS + point
    batch = Batch(range_deletes=[Span(items, after_prefix(items))])
    for item, stored in found.items():
        _expect_and_forget(item, stored, batch)
        _log(item, stored, batch, operation=operation, settings=settings, kind=Kind.DELETE)
    sizes = COUNTERS.pack(sum(stored.size for stored in found.values()), len(found))
    batch.expectations.append(Expectation(LOGICAL_SIZES + point, sizes))
    _count(point, batch, size_delta=-sum(stored.size for stored in found.values()), items_delta=-len(found))
    return batch


def _expect_and_forget(item: Item, found: StoredItem | None, batch: Batch) -> None:
    batch.expectations.append(Expectation(item.key, None if found is None else found.version))
    if found is not None:
        batch.deletes.append(log_key(found.lsn, place_in_batch=0, item_number=item.number))
        batch.deletes.append(_index_key(found.operation, item))


def _index_key(operation: int, item: Item) -> bytes:
    return INDEX + _INDEX_KEY.pack(operation, item.number)


def _log(item: Item, found: StoredItem | None, batch: Batch, *, operation: int, settings: int, kind: Kind) -> None:
    previous = 0 if found is None else found.operation
    entry = item.point + _LOG_ENTRY.pack(operation, previous, item.number, settings, kind)
    batch.stamped_puts.append((VERSIONS, log_suffix(place_in_batch=kind, item_number=item.number), entry))


def _count(point: bytes, batch: Batch, *, size_delta: int, items_delta: int) -> None:
    batch.adds.append(Add(LOGICAL_SIZES + point, (size_delta, items_delta)))
    batch.adds.append(Add(TOTALS_KEY, (size_delta, items_delta)))


# --- reading back ---------------------------------------------------------------------------------------------------


def operations_in(batch: Batch) -> list[tuple[int, int]]:
    """Return the operations that a batch carries out, each with its settings."""
    entries = [_LOG_ENTRY.unpack_from(value, POINT_BYTES) for head, _, value in batch.stamped_puts if head == VERSIONS]
    return sorted({(operation, settings) for operation, _, _, settings, _ in entries})


def routed_entries(entries: dict[bytes, bytes], interval: KeyRange) -> dict[bytes, bytes]:
    """Return the entries that lie in an interval of the key space."""
    return {
        key: value
        for key, value in entries.items()
        if is_routed(key) and interval.contains(route_of(key, value)[:POINT_BYTES])
    }


def log_of(entries: dict[bytes, bytes]) -> list[LogEntry]:
    """Return the log of all operations, in its order."""
    found = []
    for key, value in sorted(entries.items()):
        if key.startswith(VERSIONS):
            operation, previous, item, settings, kind = _LOG_ENTRY.unpack_from(value, POINT_BYTES)
            found.append(LogEntry(lsn_in_log_key(key), operation, previous, item, settings, Kind(kind)))
    return found


def check_partition(entries: dict[bytes, bytes], interval: KeyRange, items: dict[bytes, Item]) -> list[str]:
    """Return the problems of the entries of one partition taken alone."""
    problems = []
    stored = {items[key[1:]]: read_item(value) for key, value in entries.items() if key.startswith(ITEMS)}
    outside = [key.hex() for key, value in entries.items() if is_routed(key) and not _lies_in(interval, key, value)]
    if outside:
        problems.append(f"entries lie outside the range: {outside}")
    sizes: dict[bytes, tuple[int, int]] = {}
    changes, index = {}, {}
    for item, found in stored.items():
        assert found is not None
        size, count = sizes.get(item.point, (0, 0))
        sizes[item.point] = (size + found.size, count + 1)
        changes[log_key(found.lsn, place_in_batch=0, item_number=item.number)] = item.reference
        index[_index_key(found.operation, item)] = item.reference
    kept_sizes = {key[1:]: COUNTERS.unpack(value) for key, value in _family(entries, LOGICAL_SIZES).items()}
    if kept_sizes != sizes:
        problems.append(f"the sizes of logical partitions are {kept_sizes}, and the data has {sizes}")
    totals = tuple(map(sum, zip(*sizes.values(), strict=True))) if sizes else (0, 0)
    kept_totals = COUNTERS.unpack(entries[TOTALS_KEY]) if TOTALS_KEY in entries else (0, 0)
    if kept_totals != totals:
        problems.append(f"the totals are {kept_totals}, and the data has {totals}")
    if _family(entries, CHANGE_LOG) != changes:
        problems.append("the change log does not list every item once, under the LSN of its last change")
    if _family(entries, INDEX) != index:
        problems.append("the index does not list every item once")
    return problems


def _lies_in(interval: KeyRange, key: bytes, value: bytes) -> bool:
    return interval.contains(route_of(key, value)[:POINT_BYTES])


def _family(entries: dict[bytes, bytes], family: bytes) -> dict[bytes, bytes]:
    return {key: value for key, value in entries.items() if key.startswith(family)}
