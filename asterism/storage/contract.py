"""The storage contract: what an engine promises to everything above it.

An engine is one node's ordered, transactional byte map with a namespace per physical partition. Semantics (etags,
indexes, time to live, routing) never sink below this line; keys and values are bytes.

Inside a namespace the engine itself keeps two things the caller cannot write: the *fence* (epoch, sealed,
journaling) and the *LSN*. Every call carries the epoch its caller believes in.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

# Bytes of the LSN as it is stamped into keys and values: unsigned, big-endian, so that bytes sort as numbers do.
LSN_BYTES = 8
# The longest key a caller may use. LMDB's 511 bytes less the engine's own prefix, rounded down.
KEY_BYTES_MAX = 500
# Bytes of one counter as `Add` stores it: signed, big-endian.
COUNTER_BYTES = 8


def encode_counters(counters: Sequence[int]) -> bytes:
    """The value `Add` leaves under its key; `struct.error` if a counter does not fit in 64 bits."""
    return struct.pack(f">{len(counters)}q", *counters)


def decode_counters(value: bytes | None) -> tuple[int, ...]:
    """The counters of a value `Add` wrote; an absent key has none, which counts as zeros."""
    return struct.unpack(f">{len(value) // COUNTER_BYTES}q", value) if value else ()


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of keys: `start` is in it, `end` is not. An `end` of None is the end of the namespace.

    The two bounds need not be keys anyone could write: they may be longer than `KEY_BYTES_MAX`.
    """

    start: bytes = b""
    end: bytes | None = None

    def contains(self, key: bytes) -> bool:
        return self.start <= key and (self.end is None or key < self.end)


@dataclass(frozen=True, slots=True)
class Fence:
    """Who may use a partition: calls with another epoch are refused, and every call while it is sealed.

    While `journaling`, each applied batch also records which keys it touched (see `Engine.read_journal`), in the
    same transaction, whoever applies it: that is what lets a copy catch up with writers it does not know.
    """

    epoch: Epoch
    sealed: bool = False
    journaling: bool = False


# Expectations and adds are made for every write, and a frozen dataclass takes twice as long to make.
@dataclass(slots=True)
class Expectation:
    """What must still be true of a key when the batch is applied.

    `begins_with` None: the key is absent. Otherwise: the key is present and its value begins with these bytes; for a
    versioned record (see `Batch.versioned_puts`) that is the LSN it was written with.
    """

    key: bytes
    begins_with: bytes | None


@dataclass(slots=True)
class Add:
    """Adds `deltas` to a vector of signed 64-bit counters, atomically; a missing key counts as zeros.

    The value is the counters, `COUNTER_BYTES` each (`encode_counters`). A stored vector of another length is aligned
    at its first counter, and what either side lacks counts as zero. The key is deleted when every counter is zero
    afterwards. With `first_max`, the batch is refused (`CeilingPassed`) if the first counter grows and would be larger
    than that; a counter that would leave 64 bits refuses the batch with `EngineFailed`, nothing written.
    """

    key: bytes
    deltas: tuple[int, ...]
    first_max: int | None = None


@dataclass(slots=True)
class Batch:
    """One atomic change of one partition. All of it happens, durably, with one LSN, or none of it.

    The engine checks `expectations` against the state before the batch, then carries out range deletes, deletes,
    puts, versioned puts, stamped puts and adds, in this order. No key may be named by two of the writing lists; within
    one list the last put of a key wins and the adds to a key follow one another. A span names no key: a put or an add
    inside one of the batch's own range deletes finds the span already empty.
    """

    expectations: list[Expectation] = field(default_factory=list)
    range_deletes: list[Span] = field(default_factory=list)
    deletes: list[bytes] = field(default_factory=list)
    puts: list[tuple[bytes, bytes]] = field(default_factory=list)
    # Stored as the batch's LSN (8 bytes, big-endian) followed by the value.
    versioned_puts: list[tuple[bytes, bytes]] = field(default_factory=list)
    # (prefix, suffix, value): stored under prefix + LSN + suffix. The change log is written with these.
    stamped_puts: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)
    adds: list[Add] = field(default_factory=list)
    # A small record without which the store could not be served or emptied: taken while a full store takes only
    # deletes, as far as there is any room at all.
    may_use_reserve: bool = False

    def extend(self, other: Batch) -> None:
        """Add everything of another batch to this one: every list, so that no kind of change is lost on the way."""
        for each in fields(self):
            mine = getattr(self, each.name)
            if isinstance(mine, list):
                mine.extend(getattr(other, each.name))
        self.may_use_reserve = self.may_use_reserve or other.may_use_reserve


@dataclass(frozen=True, slots=True)
class ScanPage:
    """Entries in key order (or reversed). `more` says that a limit (entries or bytes) was met before the end
    of the span, so that at least one further entry was there."""

    entries: list[tuple[bytes, bytes]]
    more: bool


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """The keys one applied batch touched while the partition was journaling.

    `keys` are all keys it put, deleted or added to; `spans` are its range deletes.
    """

    lsn: Lsn
    keys: tuple[bytes, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class StandbyStatus:
    """A copy of the node that follows it: its name, how it follows (the server's own word, such as "sync") and how
    many bytes of log it has still to make its own, None where that cannot be told."""

    name: str
    state: str
    lag_bytes: int | None


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What an operator wants to know of a node. `is_writable` False: it takes no batches that make the data grow."""

    bytes_used: int
    is_writable: bool
    server_version: str
    standbys: tuple[StandbyStatus, ...] = ()


class StorageRefusal(Exception):
    """Why an engine did not do a call. The floors above translate these; no client ever sees one."""


class PartitionUnknown(StorageRefusal):
    """No such partition on this node (never created, or dropped)."""


class EpochFenced(StorageRefusal):
    """The partition is sealed or has another epoch: the caller's map is out of date."""


class ExpectationFailed(StorageRefusal):
    """An expectation did not hold; nothing was written. `key` is the first that failed."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key.hex())
        self.key = key


class CeilingPassed(StorageRefusal):
    """An add would have passed its `first_max`; nothing was written."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key.hex())
        self.key = key


class RecordDamaged(StorageRefusal):
    """What the store has under a key is not what was written there; nothing was written."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key.hex())
        self.key = key


class OutOfSpace(StorageRefusal):
    """The disk or the configured map is full, or so nearly full that only deletes are taken; nothing was written, and
    later calls may succeed."""


class FenceChanged(StorageRefusal):
    """The fence is not the one the caller expected to replace; nothing was changed."""


class EngineFailed(StorageRefusal):
    """The engine could not do the call for a reason of its own. Whether a batch was applied is then not known; an
    outcome that the engine can find out is never reported this way."""


class Snapshot(Protocol):
    """A consistent view of one partition at one LSN. Must be closed; holds storage while it is open."""

    @property
    def lsn(self) -> Lsn: ...

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def scan(
        self, span: Span, *, reverse: bool = False, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage: ...

    async def close(self) -> None: ...


class Engine(Protocol):
    """One node's store. All calls are safe to make concurrently from one event loop.

    Reads see every batch whose `apply` has returned. `apply` returns when the batch is durable: it survives the
    process and the machine being switched off. A caller cancelled in `apply` does not know whether its batch was
    applied. Calls with an epoch raise `PartitionUnknown` or `EpochFenced` as the
    fence says, before anything else is looked at; calls without one raise `PartitionUnknown`.

    A read with `at_least` may be old: any copy of the partition that has reached that LSN may answer it. A copy that
    has not, or whose fence refuses the epoch, is passed over in favour of the original, which answers whatever its LSN
    is; an engine without copies takes no notice.
    """

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> tuple[Lsn, list[bytes | None]]:
        """Values of the keys, None where absent, and the partition's LSN, all from one moment."""
        ...

    async def scan(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        span: Span,
        *,
        reverse: bool = False,
        limit: int = 1000,
        bytes_max: int | None = None,
        at_least: Lsn | None = None,
    ) -> ScanPage:
        """At most `limit` entries, and no further entry once `bytes_max` bytes of keys and values are collected
        (at least one entry is always returned if the span has any)."""
        ...

    async def snapshot(self, partition: PartitionNumber, epoch: Epoch, *, at_least: Lsn | None = None) -> Snapshot:
        """The fence is looked at now and not again: a snapshot outlives a seal."""
        ...

    async def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Lsn:
        """Applies the batch, all or nothing; returns its LSN, one more than that of the batch before."""
        ...

    # --- partitions ---------------------------------------------------------------------------------------------

    async def create_partition(
        self, partition: PartitionNumber, fence: Fence, *, lsn: Lsn = Lsn(0), announced: bool = False
    ) -> None:
        """Makes an empty namespace whose first batch will get `lsn` + 1. Creating one that exists is an error
        (`EngineFailed`). Batches applied to an `announced` partition can be watched by every process (`watch`)."""
        ...

    def watch(self, partition: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls back, on the running event loop, soon after anyone, in this process or another, has applied a batch to
        an announced partition; several batches may share a call, and a call may be for nothing. After a time in which
        the engine could not have heard of a batch it calls back once. Returns the function that ends the watch."""
        ...

    async def drop_partition(self, partition: PartitionNumber) -> bool:
        """Forbids all access at once, durably, and removes a bounded share of the data (about 10,000 entries);
        returns True when nothing is left. Call it until then; dropping an unknown partition returns True."""
        ...

    async def partitions(self) -> dict[PartitionNumber, tuple[Fence, Lsn]]:
        """Every partition on the node that is not being dropped."""
        ...

    async def read_fence(self, partition: PartitionNumber) -> tuple[Fence, Lsn]: ...

    async def set_fence(
        self,
        partition: PartitionNumber,
        fence: Fence,
        *,
        lsn: Lsn | None = None,
        expected: Fence | None = None,
    ) -> Lsn:
        """Replaces the fence, durably; every batch applied before it is complete and none applied after it escapes
        it. Returns the partition's LSN at that moment. `lsn` raises the LSN (it never lowers it). Turning
        journaling off forgets the journal. With `expected`, a fence that is another is left as it is
        (`FenceChanged`)."""
        ...

    # --- copying (reads without an epoch: of partitions the copier itself has fenced or not yet published) ----------

    async def read_unfenced(self, partition: PartitionNumber, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def scan_unfenced(
        self, partition: PartitionNumber, span: Span, *, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage: ...

    async def read_journal(self, partition: PartitionNumber, *, after: Lsn, limit: int = 1000) -> list[JournalEntry]:
        """What batches applied since journaling began touched, in LSN order, for LSNs above `after`. Empty when the
        partition is not journaling. Copied writes are not in it."""
        ...

    async def write_copied(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        *,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[Span] = (),
    ) -> None:
        """Writes entries as they are, without an LSN, durably: range deletes, deletes, then puts. Only for a partition
        that is still sealed, with the copier's epoch (`EpochFenced` otherwise)."""
        ...

    # --- the engine itself --------------------------------------------------------------------------------------

    async def status(self) -> EngineStatus: ...

    async def close(self) -> None:
        """Waits for batches under way, then releases everything. The engine cannot be used again."""
        ...
