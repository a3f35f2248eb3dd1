"""Bytes of a journal record: the keys that a batch touched, in a form that does not need the batch's LSN.

Stamped keys are stored in two parts, and joined with the LSN of the record's row between them when it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from asterism.storage.contract import LSN_BYTES, Batch, JournalEntry, Span
from asterism.values.identifiers import Lsn

_COUNTS = struct.Struct(">III")
_LENGTH = struct.Struct(">i")
# The length of a missing end.
_NO_END = -1


def encode_journal(batch: Batch) -> bytes:
    keys = [
        *batch.deletes,
        *(key for key, _ in batch.puts),
        *(key for key, _ in batch.versioned_puts),
        *(add.key for add in batch.adds),
    ]
    parts: list[bytes | None] = [*keys]
    for head, tail, _ in batch.stamped_puts:
        parts += (head, tail)
    for span in batch.range_deletes:
        parts += (span.start, span.end)
    counts = _COUNTS.pack(len(keys), len(batch.stamped_puts), len(batch.range_deletes))
    return counts + b"".join(_encode_parts(parts))


def _encode_parts(parts: Iterable[bytes | None]) -> Iterable[bytes]:
    for part in parts:
        yield _LENGTH.pack(_NO_END if part is None else len(part))
        if part:
            yield part


def decode_journal(lsn: Lsn, record: bytes) -> JournalEntry:
    key_count, stamped_count, span_count = _COUNTS.unpack_from(record)
    parts = list(_decode_parts(record))
    stamped_at, spans_at = key_count, key_count + 2 * stamped_count
    stamp = lsn.to_bytes(LSN_BYTES, "big")
    keys = [part or b"" for part in parts[:stamped_at]]
    keys += ((parts[at] or b"") + stamp + (parts[at + 1] or b"") for at in range(stamped_at, spans_at, 2))
    spans = (Span(parts[at] or b"", parts[at + 1]) for at in range(spans_at, spans_at + 2 * span_count, 2))
    return JournalEntry(lsn, tuple(keys), tuple(spans))


def _decode_parts(record: bytes) -> Iterable[bytes | None]:
    at = _COUNTS.size
    while at < len(record):
        (length,) = _LENGTH.unpack_from(record, at)
        at += _LENGTH.size
        yield None if length == _NO_END else record[at : at + length]
        at += max(length, 0)
