"""Read views of a partition: scans within a transaction, and the snapshot that keeps a transaction open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from asterism.storage.lmdb.overlay import Layer, OverlaidEntries, Overlay, look_up, read_keys
from asterism.values.identifiers import Lsn

# Returns the next entries, as many as it is asked for, or all that are left.
TakeEntries = Callable[[int], list[tuple[bytes, bytes]]]

# Entries are read from the store in runs, with a loop inside the library: one by one costs twice as much. The first run
# is short, because values may be large and the span small; each further run is twice as long, as far as bytes allow.
_FIRST_RUN_ENTRIES = 16
_RUN_ENTRIES_MAX = 512


class StoreView:
    """One state of the store: a transaction, and what lies over the tree at its beginning.

    It is good until a group is laid over the tree; `keep` makes it good for longer.
    """

    __slots__ = ("_layers", "txn")

    def __init__(self, txn: lmdb.Transaction[bytes], layers: Sequence[Layer] = ()) -> None:
        self.txn = txn
        self._layers = layers

    def keep(self, group: Iterable[bytes], *, added_to: Overlay) -> None:
        """Keep what a group is about to change in an overlay that the view looks at."""
        self._layers = [
            layer if layer.overlay is not added_to else _with_undone(layer, group) for layer in self._layers
        ]

    def get(self, key: bytes) -> bytes | None:
        return look_up(self._layers, self.txn.get, key)

    def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return read_keys(self._layers, self.txn.get, keys)

    def entries(self, low: bytes, high: bytes, *, reverse: bool = False) -> TakeEntries:
        """Return a function that returns the next entries from `low`, or downward from `high`; the tree's go on beyond
        the other bound."""
        cursor = self.txn.cursor()
        stored: Iterator[tuple[bytes, bytes]] = iter(())
        if reverse:
            if _place_below(cursor, high):
                stored = cursor.iterprev()
        elif cursor.set_range(low):
            stored = cursor.iternext()
        if not self._layers:
            return lambda count: list(islice(stored, count))
        return OverlaidEntries(stored, self._layers, low, high, reverse=reverse).take


def _with_undone(layer: Layer, group: Iterable[bytes]) -> Layer:
    # The empty record of a layer is shared by all views.
    kept = layer if layer.undone else Layer(layer.overlay, {})
    kept.overlay.keep_for(kept.undone, group)
    return kept


def scan_page(
    view: StoreView,
    prefix: bytes,
    span: Span,
    *,
    reverse: bool,
    limit: int,
    bytes_max: int | None,
    lsn: Lsn | None = None,
) -> ScanPage:
    """Return a page of a span; read one entry further than the page, to set `more`."""
    low, high = bounds(prefix, span)
    entries: list[tuple[bytes, bytes]] = []
    if low >= high:
        return ScanPage(entries, False, lsn)
    take = view.entries(low, high, reverse=reverse)
    bytes_left = float("inf") if bytes_max is None else bytes_max
    run_entries = _FIRST_RUN_ENTRIES
    while True:
        run = take(min(run_entries, limit + 1 - len(entries)))
        is_last = not run or (run[-1][0] < low if reverse else run[-1][0] >= high)
        if is_last:
            run = [entry for entry in run if (entry[0] >= low if reverse else entry[0] < high)]
        run_bytes = 0
        if bytes_max is not None:
            run_bytes = sum([len(key) + len(value) for key, value in run]) - PREFIX_BYTES * len(run)
        if bytes_left - run_bytes <= 0:
            following = () if is_last else take(1)
            more = any(key >= low if reverse else key < high for key, _ in following)
            return _cut_page(entries, run, limit, bytes_left, more=more, lsn=lsn)
        bytes_left -= run_bytes
        entries += [(key[PREFIX_BYTES:], value) for key, value in run]
        if len(entries) > limit:
            return ScanPage(entries[:limit], True, lsn)
        if is_last:
            return ScanPage(entries, False, lsn)
        each = run_bytes // len(run) + 1
        run_entries = max(1, int(min(_RUN_ENTRIES_MAX, 2 * len(run), bytes_left // each)))


def _cut_page(
    entries: list[tuple[bytes, bytes]],
    run: list[tuple[bytes, bytes]],
    limit: int,
    bytes_left: float,
    *,
    more: bool,
    lsn: Lsn | None,
) -> ScanPage:
    """Return a page that ends within its last run, with the entry that exceeds its bytes."""
    for key, value in run:
        if len(entries) >= limit or (bytes_left <= 0 and entries):
            return ScanPage(entries, True, lsn)
        entries.append((key[PREFIX_BYTES:], value))
        bytes_left -= len(key) - PREFIX_BYTES + len(value)
    return ScanPage(entries, more, lsn)


def _place_below(cursor: lmdb.Cursor[bytes], high: bytes) -> bool:
    return cursor.prev() if cursor.set_range(high) else cursor.last()


def journal_entries(view: StoreView, prefix: bytes, *, after: int, limit: int) -> list[JournalEntry]:
    end = after_prefix(JOURNAL_PREFIX + prefix)
    entries: list[JournalEntry] = []
    for key, record in view.entries(journal_key(prefix, after + 1), end)(limit):
        if key >= end:
            break
        entries.append(decode_journal(Lsn(int.from_bytes(key[-LSN_BYTES:], "big")), record))
    return entries


class LmdbSnapshot:
    """An open read transaction; LMDB keeps every page that is visible to it until it is closed."""

    def __init__(self, view: StoreView, prefix: bytes, lsn: Lsn, open_views: set[StoreView]) -> None:
        """Take over the view. As long as it is among the open ones, it keeps what changes."""
        open_views.add(view)
        self._open_views = open_views
        self._view = view
        self._prefix = prefix
        self._lsn = lsn

    @property
    def lsn(self) -> Lsn:
        return self._lsn

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        prefix = self._prefix
        try:
            return self._view.read([prefix + key for key in keys])
        except lmdb.Error as error:
            raise EngineFailed(f"the snapshot cannot be read: {error}") from error

    async def scan(
        self, span: Span, *, reverse: bool = False, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        try:
            return scan_page(self._view, self._prefix, span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        except lmdb.Error as error:
            raise EngineFailed(f"the snapshot cannot be read: {error}") from error

    async def close(self) -> None:
        self._open_views.discard(self._view)
        self._view.txn.abort()
