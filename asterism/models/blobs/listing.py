"""Listings: blobs in the order of their names, prefixes in place of what is below them, snapshots and versions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.ordered_items import Bound, OrderedKeys, OrderedScan
from asterism.keyspaces.routing.scan import Entry
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.limits import KIB
from asterism.models.blobs.blocks import has_uncommitted
from asterism.models.blobs.calls import ListPage, ListQuery, Marker
from asterism.models.blobs.finding import KeptRecord, kept_slices
from asterism.models.blobs.layout import point_of
from asterism.models.blobs.record import BlobRecord, Role, name_of, order_of, unpack_blob
from asterism.models.blobs.space import BlobSpace
from asterism.models.blobs.tiers import settle_tier
from asterism.partitioning.key_range import FULL
from asterism.throughput import charge
from asterism.values.ordered_text import PART_BYTES_MAX, ordered_text

# Roots are decoded in 2 to 4 µs each; small blobs have their data in them.
_SLICE_ENTRIES: Final = 500
_SLICE_BYTES: Final = 512 * KIB
# Behind a prefix that was skipped: perhaps the next one begins there, and what is read further is skipped again.
_SLICE_ENTRIES_AFTER_SKIP: Final = 32
# Of the snapshots and versions of a name, perhaps few are asked for.
_KEPT_ENTRIES_MIN: Final = 32


async def list_blobs(space: BlobSpace, query: ListQuery) -> ListPage:
    return await _Listing(space, query).run()


class _Listing:
    """One page of a listing in the making."""

    def __init__(self, space: BlobSpace, query: ListQuery) -> None:
        self._space = space
        self._query = query
        self._now = space.now()
        self._found: list[BlobRecord | str] = []
        self._wants_kept = query.snapshots or query.versions or query.deleted
        # The prefix that was found last: what begins with it is below it.
        self._skipped: str | None = None

    async def run(self) -> ListPage:
        query = self._query
        start = ordered_text(query.prefix)
        if query.after is not None:
            start = max(start, ordered_text(query.after.name))
        end = after_prefix(ordered_text(query.prefix))
        upper = Bound(FULL.end) if end is None else _upper_bound(end)
        slice_entries = min(query.limit + 1, _SLICE_ENTRIES)
        while True:
            stopped, is_skipping = await self._scan(_lower_bound(start), upper, slice_entries)
            if stopped is not None or not is_skipping:
                return ListPage(self._found, stopped)
            assert self._skipped is not None
            behind = after_prefix(ordered_text(self._skipped))
            assert behind is not None, "no text ends with the last byte"
            start, slice_entries = behind, _SLICE_ENTRIES_AFTER_SKIP

    async def _scan(self, lower: Bound, upper: Bound, slice_entries: int) -> tuple[Marker | None, bool]:
        """Scan on; return the marker at which the page is full, and True if the rest of a prefix is to be skipped."""
        space = self._space
        keys = OrderedKeys(space.keyspace.record.definition)
        scan = OrderedScan(space.services.router, space.keyspace, keys, lower, upper, order_of)
        pages = scan.pages(SliceSize(slice_entries, _SLICE_BYTES))
        try:
            async for page in pages:
                read_bytes = sum([len(stored) for _, stored in page.entries])
                cost = charge.feed_page(items=len(page.entries), page_bytes=read_bytes)
                space.spend(page.partition, cost, page.entries[0][0])
                stopped = await self._take(page.entries)
                if stopped is not None:
                    return stopped, False
                if self._skipped is not None and name_of(page.entries[-1][1]).startswith(self._skipped):
                    return None, True
        finally:
            await pages.aclose()
        return None, False

    async def _take(self, entries: list[Entry]) -> Marker | None:
        query, found = self._query, self._found
        limit, delimiter, prefix_length = query.limit, query.delimiter, len(query.prefix)
        now, is_plain = self._now, not (self._wants_kept or query.uncommitted or query.after)
        for _, stored in entries:
            if self._skipped is not None and name_of(stored).startswith(self._skipped):
                continue
            record = unpack_blob(stored)
            if record.archive_status is not None:
                record = settle_tier(record, self._now)
            if delimiter:
                at = record.name.find(delimiter, prefix_length)
                if at >= 0:
                    if await self._shows_any_of(record):
                        prefix = record.name[: at + len(delimiter)]
                        if len(found) >= limit:
                            return Marker(prefix)
                        found.append(prefix)
                        self._skipped = prefix
                    continue
            if is_plain:
                if not record.exists or record.is_expired(now):
                    continue
                if len(found) >= limit:
                    return Marker(record.name)
                found.append(record)
                continue
            stopped = await self._take_name(record)
            if stopped is not None:
                return stopped
        return None

    async def _take_name(self, root: BlobRecord) -> Marker | None:
        """Take the records of a name that the query asks for: the oldest first, the blob itself last."""
        found, limit, after = self._found, self._query.limit, self._query.after
        first_moment: int | None = 0
        if after is not None and after.name == root.name:
            first_moment = after.moment
        if first_moment is not None and self._may_ask_for_kept(root):
            async for slice_ in self._kept_slices(root, first_moment, limit - len(found) + 1):
                for moment, _, record in slice_:
                    if self._asks_for(record):
                        if len(found) >= limit:
                            return Marker(root.name, moment)
                        found.append(record)
        if await self._shows_root(root):
            if len(found) >= limit:
                return Marker(root.name)
            found.append(root)
        return None

    async def _shows_any_of(self, root: BlobRecord) -> bool:
        if await self._shows_root(root):
            return True
        if self._may_ask_for_kept(root):
            async for slice_ in self._kept_slices(root, 0, 1):
                if any(self._asks_for(kept.record) for kept in slice_):
                    return True
        return False

    async def _shows_root(self, root: BlobRecord) -> bool:
        if root.exists:
            return not root.is_expired(self._now)
        return self._query.uncommitted and await has_uncommitted(self._space, point_of(root.name))

    def _may_ask_for_kept(self, root: BlobRecord) -> bool:
        query = self._query
        return bool(
            (query.snapshots and root.snapshots_kept)
            or (query.versions and root.versions_kept)
            or (query.deleted and root.deleted_kept)
        )

    def _kept_slices(self, root: BlobRecord, first_moment: int, wanted: int) -> AsyncIterator[list[KeptRecord]]:
        size = SliceSize(min(max(wanted, _KEPT_ENTRIES_MIN), _SLICE_ENTRIES), _SLICE_BYTES)
        return kept_slices(self._space, point_of(root.name), first_moment, size)

    def _asks_for(self, record: BlobRecord) -> bool:
        query = self._query
        if record.is_deleted and not query.deleted:
            return False
        if record.role is Role.SNAPSHOT:
            return query.snapshots
        return record.role is Role.CURRENT or query.versions


def _lower_bound(ordered: bytes) -> Bound:
    escaped = _escaped(ordered)
    if len(escaped) < PART_BYTES_MAX:
        return Bound(escaped)
    return Bound(escaped[:PART_BYTES_MAX] + b"\x00", (ordered, b""))


def _upper_bound(ordered: bytes) -> Bound:
    escaped = _escaped(ordered)
    if len(escaped) < PART_BYTES_MAX:
        return Bound(escaped)
    behind = after_prefix(escaped[:PART_BYTES_MAX])
    assert behind is not None, "no key ends with the last byte"
    return Bound(behind, (ordered, b""))


def _escaped(ordered: bytes) -> bytes:
    # As `leading_part` writes a text in a key.
    return ordered.replace(b"\x00", b"\x00\xff")
