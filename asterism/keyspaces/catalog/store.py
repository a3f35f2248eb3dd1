"""The catalog's own partition: its keys, the batches that change it, and the log from which processes read changes.

Every process over one store keeps the catalog in memory. A change is one batch that also writes, when the store is
shared, an entry of the *change log* under its LSN: the keys it touched. A process that is behind reads the log from the
LSN it knows, and those keys; when it is further behind than the log reaches, everything.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from functools import partial

from asterism.errors import StorageUnavailable
from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.scan import scan_span
from asterism.storage.contract import (
    LSN_BYTES,
    Batch,
    Engine,
    EngineFailed,
    Expectation,
    ExpectationFailed,
    Fence,
    PartitionUnknown,
    Span,
)
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

CATALOG_PARTITION = PartitionNumber(0)
CATALOG_EPOCH = Epoch(1)
# Numbers below this are the catalog's own; stores made before it was so may have data in them all the same.
FIRST_DATA_PARTITION = 16

DATABASE = b"d"
DATABASE_NAME = b"D"
KEYSPACE = b"k"
KEYSPACE_NAME = b"K"
OFFER = b"o"
GARBAGE = b"g"
JOB = b"j"
HISTORY = b"h"
CATCHING_UP = b"x"
TASK = b"b"
REKEY = b"r"
# The operator wants a re-keying to switch: apart from its record, which only the leader writes.
REKEY_SWITCH = b"R"
# A logical partition on its way to a container of its own, and the use of the rule that forwards its requests.
PROMOTION = b"v"
FORWARDED = b"V"
LEADER = b"L"
NEXT_PARTITION = b"n/partition"
NEXT_BOOT = b"n/boot"
NEXT_TASK = b"n/task"
LSN_FLOOR = b"n/lsn"
_COORDINATION = b"n/coordination"
_LOG = b"l"
# Log entries up to this LSN may have been removed.
_LOG_TRIMMED = b"n/trimmed"
# Entries that stay when the log is trimmed: more changes than any process that is alive is behind.
LOG_ENTRIES_KEPT = 5_000

NUMBER = struct.Struct(">Q")
_LENGTH = struct.Struct(">H")


def name_key(prefix: bytes, name: str) -> bytes:
    """Return the key that two things of one name share; a digest, because 255 characters may be 1,020 bytes."""
    return prefix + hashlib.blake2b(name.encode(), digest_size=32).digest()


def numbered(prefix: bytes, number: int) -> bytes:
    return prefix + NUMBER.pack(number)


def number_in(key: bytes) -> int:
    return int(NUMBER.unpack(key[1:])[0])


def encode_keys(keys: Iterable[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(key)) + key for key in keys)


def decode_keys(stored: bytes) -> list[bytes]:
    keys, at = [], 0
    while at < len(stored):
        (length,) = _LENGTH.unpack_from(stored, at)
        at += _LENGTH.size
        keys.append(stored[at : at + length])
        at += length
    return keys


class CatalogStore:
    """Access to partition 0. `is_shared`: other processes write to it too."""

    def __init__(self, engine: Engine, *, is_shared: bool) -> None:
        self._engine = engine
        self.is_shared = is_shared
        # Everything up to this LSN is in memory.
        self.known_lsn = Lsn(0)
        # The leadership record that a batch of background work expects; None while this process does not lead.
        self.leader_mark: bytes | None = None
        # Called when a batch was refused because another process leads by now.
        self.on_deposed: Callable[[], None] | None = None

    async def open(self) -> None:
        try:
            await self._engine.read_fence(CATALOG_PARTITION)
        except PartitionUnknown:
            await create_once(self._engine, CATALOG_PARTITION, CATALOG_EPOCH, announced=True)
        # Later reads are at least as new.
        self.known_lsn, _ = await self._engine.read(CATALOG_PARTITION, CATALOG_EPOCH, [])

    # --- reading ----------------------------------------------------------------------------------------------------

    async def read(self, keys: list[bytes]) -> list[bytes | None]:
        return (await self._engine.read(CATALOG_PARTITION, CATALOG_EPOCH, keys))[1]

    async def scan(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Return every catalog entry under a prefix; the catalog is small enough to be read whole."""
        return await self._scan(Span(prefix, after_prefix(prefix)))

    async def _scan(self, span: Span) -> list[tuple[bytes, bytes]]:
        read_page = partial(self._engine.scan, CATALOG_PARTITION, CATALOG_EPOCH)
        return [entry async for entries in scan_span(read_page, span) for entry in entries]

    # --- changing ---------------------------------------------------------------------------------------------------

    async def change(self, batch: Batch, *, as_leader: bool = False) -> Lsn:
        """Apply a batch, or raise ExpectationFailed. `as_leader`: only if this process still leads.

        Records of background work may use the reserve of a full store: they are small, and the work they stand for
        makes room, or ends work that can have none.
        """
        batch.may_use_reserve = batch.may_use_reserve or as_leader
        if self.is_shared:
            touched = [*batch.deletes, *(key for key, _ in (*batch.puts, *batch.versioned_puts))]
            batch.stamped_puts.append((_LOG, b"", encode_keys(touched)))
            if as_leader:
                batch.expectations.append(Expectation(LEADER, self._mark()))
        try:
            return self._note(await self._engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, batch))
        except ExpectationFailed as failed:
            if as_leader and failed.key == LEADER:
                raise self._deposed() from None
            raise

    def _mark(self) -> bytes:
        if self.leader_mark is None:
            raise self._deposed()
        return self.leader_mark

    def _deposed(self) -> StorageUnavailable:
        if self.on_deposed is not None:
            self.on_deposed()
        return StorageUnavailable(reason="another process does the background work by now")

    def _note(self, lsn: Lsn) -> Lsn:
        # Without changes of others in between, memory is as new as the batch once its caller has updated it.
        if lsn == self.known_lsn + 1:
            self.known_lsn = lsn
        return lsn

    async def take_numbers(self, counter_key: bytes, count: int, *, first: int = 1) -> int:
        """Return the first of `count` unique numbers, also when the store is full: the counter takes no more room than
        before."""
        while True:
            (stored,) = await self.read([counter_key])
            number = first if stored is None else int(NUMBER.unpack(stored)[0])
            batch = Batch(
                expectations=[Expectation(counter_key, stored)],
                puts=[(counter_key, NUMBER.pack(number + count))],
                may_use_reserve=True,
            )
            try:
                self._note(await self._engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, batch))
            except ExpectationFailed:
                continue
            return number

    async def coordination_partition(self) -> PartitionNumber:
        """Return the partition of the messages between processes; it is made if it is missing."""
        number = None
        while number is None:
            (stored,) = await self.read([_COORDINATION])
            if stored is not None:
                number = PartitionNumber(NUMBER.unpack(stored)[0])
                break
            chosen = await self._free_number()
            batch = Batch(
                expectations=[Expectation(_COORDINATION, None)],
                puts=[(_COORDINATION, NUMBER.pack(chosen))],
                may_use_reserve=True,
            )
            try:
                self._note(await self._engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, batch))
            except ExpectationFailed:
                continue
        try:
            await self._engine.read_fence(number)
        except PartitionUnknown:
            await create_once(self._engine, number, CATALOG_EPOCH, announced=False)
        return number

    async def _free_number(self) -> int:
        """Return one of the catalog's own numbers, which move with the catalog.

        In a store older than them some hold data, but not all: it would have used higher ones.
        """
        there = await self._engine.partitions()
        return next(number for number in range(1, FIRST_DATA_PARTITION) if PartitionNumber(number) not in there)

    # --- following --------------------------------------------------------------------------------------------------

    async def is_behind(self) -> bool:
        lsn, _ = await self._engine.read(CATALOG_PARTITION, CATALOG_EPOCH, [])
        return lsn != self.known_lsn

    async def changed_keys(self, *, after: Lsn) -> tuple[Lsn, set[bytes] | None]:
        """Return the LSN of the last change of the catalog, and the keys touched after the given one; None for the keys
        if the log does not reach back so far."""
        lsn, (trimmed,) = await self._engine.read(CATALOG_PARTITION, CATALOG_EPOCH, [_LOG_TRIMMED])
        if trimmed is not None and NUMBER.unpack(trimmed)[0] > after:
            return lsn, None
        keys: set[bytes] = set()
        if lsn != after:
            first = _LOG + NUMBER.pack(after + 1)
            for key, stored in await self._scan(Span(first, after_prefix(_LOG))):
                lsn = max(lsn, Lsn(int.from_bytes(key[1 : 1 + LSN_BYTES], "big")))
                keys.update(decode_keys(stored))
        return lsn, keys

    async def trim_log(self) -> None:
        """Remove entries that all processes have read. The leader does so now and then."""
        lsn, (trimmed,) = await self._engine.read(CATALOG_PARTITION, CATALOG_EPOCH, [_LOG_TRIMMED])
        known = 0 if trimmed is None else int(NUMBER.unpack(trimmed)[0])
        if lsn - known < 2 * LOG_ENTRIES_KEPT:
            return
        up_to = lsn - LOG_ENTRIES_KEPT
        batch = Batch(
            expectations=[Expectation(_LOG_TRIMMED, trimmed)],
            range_deletes=[Span(_LOG, _LOG + NUMBER.pack(up_to))],
            puts=[(_LOG_TRIMMED, NUMBER.pack(up_to))],
        )
        await self.change(batch, as_leader=True)


async def create_once(engine: Engine, number: PartitionNumber, epoch: Epoch, *, announced: bool) -> None:
    """Create a partition that another process may be creating at the same time."""
    try:
        await engine.create_partition(number, Fence(epoch), announced=announced)
    except EngineFailed:
        await engine.read_fence(number)
