"""The storage contract: the promises of an engine to the floors above it.

An engine is one node's ordered, transactional byte map with a namespace per physical partition. Semantics (etags,
indexes, time to live, routing) stay above this line; keys and values are bytes.

Inside a namespace the engine itself keeps two things that the caller cannot write: the *fence* (epoch, sealed,
journaling) and the *LSN*. Every call carries the epoch of its caller's map.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

# Bytes of the LSN as it is stamped into keys and values: unsigned, big-endian, so that bytes sort as numbers do.
LSN_BYTES = 8
# The longest key of a caller. LMDB's 511 bytes less the engine's own prefix, rounded down.
KEY_BYTES_MAX = 500
# Bytes of one counter as `Add` stores it: signed, big-endian.
COUNTER_BYTES = 8

WatchCallback = Callable[[], None]


# Nearly every vector of counters is a pair, of bytes and items; a format made for its length takes twice the time.
_PAIR = struct.Struct(">2q")


def encode_counters(counters: Sequence[int]) -> bytes:
    """Return the value that `Add` stores under its key; `struct.error` if a counter does not fit in 64 bits."""
    return _PAIR.pack(*counters) if len(counters) == 2 else struct.pack(f">{len(counters)}q", *counters)


def decode_counters(value: bytes | None) -> tuple[int, ...]:
    """Return the counters of a value written by `Add`; an absent key has none, which counts as zeros."""
    if not value:
        return ()
    return _PAIR.unpack(value) if len(value) == _PAIR.size else struct.unpack(f">{len(value) // COUNTER_BYTES}q", value)


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of keys: `start` is in it, `end` is not. An `end` of None is the end of the namespace.

    The bounds need not be valid keys: they may be longer than `KEY_BYTES_MAX`.
    """

    start: bytes = b""
    end: bytes | None = None

    def contains(self, key: bytes) -> bool:
        return self.start <= key and (self.end is None or key < self.end)


@dataclass(frozen=True, slots=True)
class Fence:
    """Access control of a partition: calls with another epoch are refused, and every call while it is sealed.

    While `journaling`, each applied batch also records the keys it touched (see `Engine.read_journal`), in the same
    transaction, in every process: this lets a copy catch up with writers that it does not know.
    """

    epoch: Epoch
    sealed: bool = False
    journaling: bool = False


# Expectations and adds are made for every write, and a frozen dataclass takes twice as long to make.
@dataclass(slots=True)
class Expectation:
    """Condition on a key that must hold when the batch is applied.

    `begins_with` None: the key is absent. Otherwise: the key is present and its value begins with these bytes; for a
    versioned record (see `Batch.versioned_puts`) that is the LSN of its batch.
    """

    key: bytes
    begins_with: bytes | None


@dataclass(slots=True)
class Add:
    """Add `deltas` to a vector of signed 64-bit counters, atomically; a missing key counts as zeros.

    The value is the counters, `COUNTER_BYTES` each (`encode_counters`). A stored vector of another length is aligned
    at its first counter, and counters missing on either side count as zero. The key is deleted if every counter is zero
    afterwards; between batches that are applied at the same time an engine may leave that out, so that the vector may
    keep zeros at its end if their lengths differ. With `first_max`, the batch is refused (`CeilingPassed`) if the first
    counter grows beyond it; a counter that would overflow 64 bits refuses the batch with `EngineFailed`, nothing
    written.
    """

    key: bytes
    deltas: tuple[int, ...]
    first_max: int | None = None


@dataclass(slots=True)
class Batch:
    """An atomic change of one partition. It is applied completely, durably, with one LSN, or not at all.

    The engine checks `expectations` against the state before the batch, then applies range deletes, deletes, puts,
    versioned puts, stamped puts and adds, in this order. No key may be in two of the writing lists; within a list the
    last put of a key wins and the adds to a key accumulate. Spans do not count as keys: a put or an add inside one of
    the batch's own range deletes finds the span already empty.
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
    # For small records without which the store could not be served or emptied: accepted even if a full store accepts
    # only deletes, as long as there is any room at all.
    may_use_reserve: bool = False

    def extend(self, other: Batch) -> None:
        """Add every list of another batch to this one, so that no kind of change is lost."""
        for list_field in fields(self):
            own = getattr(self, list_field.name)
            if isinstance(own, list):
                own.extend(getattr(other, list_field.name))
        self.may_use_reserve = self.may_use_reserve or other.may_use_reserve


@dataclass(frozen=True, slots=True)
class ScanPage:
    """Entries in key order (or reversed). `more` is True if a limit (entries or bytes) was reached before the end of
    the span, and at least one further entry exists. `lsn` is the partition's LSN at the moment of the page, where the
    engine knows it without a further read."""

    entries: list[tuple[bytes, bytes]]
    more: bool
    lsn: Lsn | None = field(default=None, compare=False)

    def rest(self, span: Span, *, reverse: bool = False) -> Span | None:
        """Return the part of the scanned `span` behind this page; None if the page is the last."""
        if not self.more:
            return None
        last = self.entries[-1][0]
        return Span(span.start, last) if reverse else Span(last + b"\x00", span.end)


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """The keys that an applied batch touched while the partition was journaling.

    `keys` are all keys that it put, deleted or added to; `spans` are its range deletes.
    """

    lsn: Lsn
    keys: tuple[bytes, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class StandbyStatus:
    """A replica of the node: its name, its state (the server's own word, such as "sync") and the bytes of log that it
    has not replayed yet, None if unknown."""

    name: str
    state: str
    lag_bytes: int | None


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Status of a node for operators. `is_writable` False: it accepts no batches that make the data grow."""

    bytes_used: int
    is_writable: bool
    server_version: str
    standbys: tuple[StandbyStatus, ...] = ()


class StorageRefusal(Exception):
    """Refusal of a call by an engine. The floors above translate these; clients never see them."""


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
    """An add would have exceeded its `first_max`; nothing was written."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key.hex())
        self.key = key


class RecordDamaged(StorageRefusal):
    """The stored value of a key is damaged; nothing was written."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key.hex())
        self.key = key


class OutOfSpace(StorageRefusal):
    """The disk or the configured map is full, or so nearly full that only deletes are accepted; nothing was written,
    and later calls may succeed."""


class FenceChanged(StorageRefusal):
    """The fence differs from the one that the caller expected to replace; nothing was changed."""


class EngineFailed(StorageRefusal):
    """The engine failed for a reason of its own. The outcome of a batch is then unknown; an outcome that the engine can
    determine is never reported this way."""


class Snapshot(Protocol):
    """A consistent view of one partition at one LSN. Must be closed; retains storage while it is open."""

    @property
    def lsn(self) -> Lsn: ...

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def scan(
        self, span: Span, *, reverse: bool = False, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage: ...

    async def close(self) -> None: ...


class Engine(Protocol):
    """One node's store. All calls are safe to make concurrently from one event loop.

    Reads see every batch whose `apply` has returned. `apply` returns when the batch is durable: it survives a crash of
    the process and a power failure. The outcome of an `apply` whose caller is canceled is unknown. Calls with an epoch
    raise `PartitionUnknown` or `EpochFenced` according to the fence, before any other check; calls without an epoch
    raise `PartitionUnknown`.

    A read with `at_least` may be stale: any replica of the partition that has reached that LSN may answer it. A replica
    that has not, or whose fence refuses the epoch, is skipped in favor of the primary, which answers at any LSN; an
    engine without replicas ignores the option.
    """

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> tuple[Lsn, list[bytes | None]]:
        """Return the values of the keys, None where absent, and the partition's LSN, all from one point in time."""
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
        """Return at most `limit` entries, and no further entry once `bytes_max` bytes of keys and values are collected
        (at least one entry is always returned if the span has any)."""
        ...

    async def snapshot(self, partition: PartitionNumber, epoch: Epoch, *, at_least: Lsn | None = None) -> Snapshot:
        """Open a snapshot. The fence is checked now and not again: a snapshot outlives a seal."""
        ...

    async def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Lsn:
        """Apply the batch, all or nothing; return its LSN, one more than that of the batch before."""
        ...

    # --- partitions ---------------------------------------------------------------------------------------------

    async def create_partition(
        self, partition: PartitionNumber, fence: Fence, *, lsn: Lsn = Lsn(0), announced: bool = False
    ) -> None:
        """Create an empty namespace whose first batch will get `lsn` + 1. Creating one that exists is an error
        (`EngineFailed`). Batches applied to an `announced` partition can be watched by every process (`watch`)."""
        ...

    def watch(self, partition: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back, on the running event loop, soon after this process or another has applied a batch to an announced
        partition; several batches may share a call, and calls may be spurious. After a time in which the engine could
        have missed a batch it calls back once. Return the function that ends the watch."""
        ...

    async def drop_partition(self, partition: PartitionNumber) -> bool:
        """Forbid all access at once, durably, and remove a bounded part of the data (about 10,000 entries); return True
        when nothing is left. Call it until then; dropping an unknown partition returns True."""
        ...

    async def partitions(self) -> dict[PartitionNumber, tuple[Fence, Lsn]]:
        """Return every partition on the node that is not being dropped."""
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
        """Replace the fence, durably; every batch applied before is complete and every later one is subject to it.
        Return the partition's LSN at that point. `lsn` raises the LSN (it never lowers it). Turning journaling off
        discards the journal. With `expected`, any other fence is left unchanged (`FenceChanged`)."""
        ...

    # --- copying (reads without an epoch: of partitions the copier itself has fenced or not yet published) ----------

    async def read_unfenced(self, partition: PartitionNumber, keys: Sequence[bytes]) -> list[bytes | None]: ...

    async def scan_unfenced(
        self, partition: PartitionNumber, span: Span, *, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage: ...

    async def read_journal(self, partition: PartitionNumber, *, after: Lsn, limit: int = 1000) -> list[JournalEntry]:
        """Return the keys that batches have touched since journaling started, in LSN order, for LSNs above `after`.
        Empty if the partition is not journaling. Copied writes are not in it."""
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
        """Write entries unchanged, without an LSN, durably: range deletes, deletes, then puts. Only for a partition
        that is still sealed, with the copier's epoch (`EpochFenced` otherwise)."""
        ...

    # --- the engine itself --------------------------------------------------------------------------------------

    @property
    def commits(self) -> int:
        """Return how many transactions this engine has committed since it was opened. Batches that share a transaction
        count once; a change whose call has returned is counted."""
        ...

    async def status(self) -> EngineStatus: ...

    async def close(self) -> None:
        """Wait for batches in flight, then release everything. The engine cannot be used again."""
        ...
