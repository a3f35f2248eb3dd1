"""Reading: what a transaction shows of one partition, and the snapshot that keeps one open."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import lmdb

from asterism.storage.contract import LSN_BYTES, EngineFailed, JournalEntry, ScanPage, Span
from asterism.storage.lmdb.layout import (
    JOURNAL_PREFIX,
    PREFIX_BYTES,
    after_prefix,
    bounds,
    decode_journal,
    journal_key,
)
from asterism.values.identifiers import Lsn


def scan_page(
    txn: lmdb.Transaction[bytes],
    prefix: bytes,
    span: Span,
    *,
    reverse: bool,
    limit: int,
    bytes_max: int | None,
) -> ScanPage:
    """One page of a span; looks one entry further than it returns, to know whether there is more."""
    low, high = bounds(prefix, span)
    cursor = txn.cursor()
    entries: list[tuple[bytes, bytes]] = []
    if low >= high or not (_place_below(cursor, high) if reverse else cursor.set_range(low)):
        return ScanPage(entries, more=False)
    bytes_left = float("inf") if bytes_max is None else bytes_max
    for key, value in cursor.iterprev() if reverse else cursor.iternext():
        if key < low if reverse else key >= high:
            return ScanPage(entries, more=False)
        if len(entries) >= limit or (bytes_left <= 0 and entries):
            return ScanPage(entries, more=True)
        entries.append((key[PREFIX_BYTES:], value))
        bytes_left -= len(key) - PREFIX_BYTES + len(value)
    return ScanPage(entries, more=False)


def _place_below(cursor: lmdb.Cursor[bytes], high: bytes) -> bool:
    return cursor.prev() if cursor.set_range(high) else cursor.last()


def journal_entries(txn: lmdb.Transaction[bytes], prefix: bytes, *, after: int, limit: int) -> list[JournalEntry]:
    cursor = txn.cursor()
    if not cursor.set_range(journal_key(prefix, after + 1)):
        return []
    end = after_prefix(JOURNAL_PREFIX + prefix)
    entries: list[JournalEntry] = []
    for key, record in islice(cursor.iternext(), limit):
        if key >= end:
            break
        entries.append(decode_journal(Lsn(int.from_bytes(key[-LSN_BYTES:], "big")), record))
    return entries


class LmdbSnapshot:
    """A read transaction held open; LMDB keeps every page it can see until it is closed."""

    def __init__(self, txn: lmdb.Transaction[bytes], prefix: bytes, lsn: Lsn) -> None:
        self._txn = txn
        self._prefix = prefix
        self._lsn = lsn

    @property
    def lsn(self) -> Lsn:
        return self._lsn

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        get = self._txn.get
        prefix = self._prefix
        try:
            return [get(prefix + key) for key in keys]
        except lmdb.Error as error:
            raise EngineFailed(f"the snapshot cannot be read: {error}") from error

    async def scan(
        self, span: Span, *, reverse: bool = False, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        try:
            return scan_page(self._txn, self._prefix, span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        except lmdb.Error as error:
            raise EngineFailed(f"the snapshot cannot be read: {error}") from error

    async def close(self) -> None:
        self._txn.abort()
