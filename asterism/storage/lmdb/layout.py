"""Layout of the LMDB engine's keys and records. docs/storage-format.md describes it in prose.

A caller's key is stored under its partition's number (4 bytes, big-endian), so that a partition is one contiguous span
of the only tree. The engine's own records are stored under the number that no partition may have, after all of them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asterism.storage.contract import (
    Batch,
    EngineFailed,
    Fence,
    JournalEntry,
    PartitionUnknown,
    Span,
)
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber, sequence_of

# Version 2 keeps programs off that know only 1: they would write items that readers of version 2 do not find. Version 3
# keeps those off that do not know the write log: they would not see what is only in it.
FORMAT_VERSION = 3
OLDEST_FORMAT_VERSION = 1
FORMAT_NAME = b"asterism-lmdb"

PREFIX_BYTES = 4
PARTITION_NUMBER_MAX = 0xFFFF_FFFE
ENGINE_PREFIX = b"\xff\xff\xff\xff"
FORMAT_KEY = ENGINE_PREFIX + b"F"
META_PREFIX = ENGINE_PREFIX + b"M"
META_END = ENGINE_PREFIX + b"N"
JOURNAL_PREFIX = ENGINE_PREFIX + b"J"
CHECKPOINT_KEY = ENGINE_PREFIX + b"L"

# flags, epoch, LSN, and the LSN above which the journal is valid: one record, because every read needs the first three.
META = struct.Struct(">BQQQ")
FLAG_SEALED = 1
FLAG_JOURNALING = 2
FLAG_DROPPING = 4
# A partition with one of these flags refuses every call with an epoch.
FLAGS_CLOSED = FLAG_SEALED | FLAG_DROPPING

_LSN = struct.Struct(">Q")
_SEQUENCE = struct.Struct(">Q")
_COUNT = struct.Struct(">I")
_LENGTH = struct.Struct(">H")


class PartitionNames(dict[int, tuple[bytes, bytes]]):
    """Cache of the meta key and the key prefix by partition number.

    The store identifies a partition by its number in the fleet's sequence, which is unique: the four bytes do not
    depend on the store's node number.
    """

    def __missing__(self, partition: int) -> tuple[bytes, bytes]:
        sequence = sequence_of(PartitionNumber(partition))
        if partition < 0 or sequence > PARTITION_NUMBER_MAX:
            raise PartitionUnknown(partition)
        prefix = sequence.to_bytes(PREFIX_BYTES, "big")
        names = self[partition] = (META_PREFIX + prefix, prefix)
        return names


@dataclass(slots=True)
class PartitionMeta:
    """The meta record of a partition, mutable within a transaction."""

    epoch: Epoch
    lsn: Lsn
    sealed: bool = False
    journaling: bool = False
    dropping: bool = False
    # Journal records up to this LSN are discarded, even if they are not removed yet.
    journal_after: Lsn = Lsn(0)

    def fence(self) -> Fence:
        return Fence(self.epoch, sealed=self.sealed, journaling=self.journaling)

    def encode(self) -> bytes:
        flags = self.sealed * FLAG_SEALED | self.journaling * FLAG_JOURNALING | self.dropping * FLAG_DROPPING
        return META.pack(flags, self.epoch, self.lsn, self.journal_after)


def decode_meta(record: bytes) -> PartitionMeta:
    flags, epoch, lsn, journal_after = META.unpack(record)
    return PartitionMeta(
        epoch=Epoch(epoch),
        lsn=Lsn(lsn),
        sealed=bool(flags & FLAG_SEALED),
        journaling=bool(flags & FLAG_JOURNALING),
        dropping=bool(flags & FLAG_DROPPING),
        journal_after=Lsn(journal_after),
    )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last record of the write log that is in the tree; records up to it count no more.

    The id tells the store's log from that of another: it is drawn when a store first has a log.
    """

    store_id: bytes
    sequence: int

    def encode(self) -> bytes:
        return self.store_id + _SEQUENCE.pack(self.sequence)


def decode_checkpoint(record: bytes) -> Checkpoint:
    return Checkpoint(record[: -_SEQUENCE.size], _SEQUENCE.unpack_from(record, len(record) - _SEQUENCE.size)[0])


def encode_format() -> bytes:
    return FORMAT_NAME + _COUNT.pack(FORMAT_VERSION)


def check_format(record: bytes) -> int:
    """Return the version of the store; refuse one of another program, or of a later version of this one."""
    if len(record) != len(FORMAT_NAME) + _COUNT.size or not record.startswith(FORMAT_NAME):
        raise EngineFailed("the directory holds an LMDB environment that is not Asterism's")
    (version,) = _COUNT.unpack(record[len(FORMAT_NAME) :])
    if not OLDEST_FORMAT_VERSION <= version <= FORMAT_VERSION:
        raise EngineFailed(
            f"the store has format version {version}, but this program supports versions up to {FORMAT_VERSION}; "
            "use a later version of the program"
        )
    return int(version)


def bounds(prefix: bytes, span: Span) -> tuple[bytes, bytes]:
    """Return the first stored key of a span, and the first after it."""
    return prefix + span.start, after_prefix(prefix) if span.end is None else prefix + span.end


def after_prefix(prefix: bytes) -> bytes:
    """Return the first key after all keys with a prefix whose last four bytes are not all 0xFF."""
    number = int.from_bytes(prefix[-PREFIX_BYTES:], "big") + 1
    return prefix[:-PREFIX_BYTES] + number.to_bytes(PREFIX_BYTES, "big")


def journal_key(prefix: bytes, lsn: int) -> bytes:
    return JOURNAL_PREFIX + prefix + _LSN.pack(lsn)


def encode_journal(batch: Batch, stamp: bytes) -> bytes:
    """Return the record of the keys and spans that a batch touches, given the LSN bytes of its stamped keys."""
    keys = [
        *batch.deletes,
        *(key for key, _ in batch.puts),
        *(key for key, _ in batch.versioned_puts),
        *(prefix + stamp + suffix for prefix, suffix, _ in batch.stamped_puts),
        *(add.key for add in batch.adds),
    ]
    parts = [_COUNT.pack(len(keys))]
    for key in keys:
        parts += (_LENGTH.pack(len(key)), key)
    parts.append(_COUNT.pack(len(batch.range_deletes)))
    for span in batch.range_deletes:
        parts += (_LENGTH.pack(len(span.start)), span.start)
        end = span.end
        parts += (b"\x00",) if end is None else (b"\x01", _LENGTH.pack(len(end)), end)
    return b"".join(parts)


def decode_journal(lsn: Lsn, record: bytes) -> JournalEntry:
    reader = _RecordReader(record)
    keys = tuple(reader.take_bytes() for _ in range(reader.take_count()))
    spans = tuple(reader.take_span() for _ in range(reader.take_count()))
    return JournalEntry(lsn=lsn, keys=keys, spans=spans)


class _RecordReader:
    """Cursor over a journal record, from its beginning."""

    def __init__(self, record: bytes) -> None:
        self._record = record
        self._at = 0

    def take_count(self) -> int:
        (count,) = _COUNT.unpack_from(self._record, self._at)
        self._at += _COUNT.size
        return int(count)

    def take_bytes(self) -> bytes:
        (length,) = _LENGTH.unpack_from(self._record, self._at)
        start = self._at + _LENGTH.size
        self._at = start + length
        return self._record[start : self._at]

    def take_span(self) -> Span:
        start = self.take_bytes()
        has_end = self._record[self._at]
        self._at += 1
        return Span(start, self.take_bytes() if has_end else None)
