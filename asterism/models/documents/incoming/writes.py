"""The order in which an edge and its entry at the sink are written (D11).

There is no transaction over partitions. The entry of an edge is written before the edge. The entry that an edge leaves
behind is removed after the edge, and only if it has the version that it had before the edge was changed. A crash in
between leaves an entry too many, which readers ignore, and never an entry too few.

The removal is safe because a writer that needs the entry again writes it again, and writes it after it has read the
edge: either it read the edge as it is now, and then its entry is newer than the version to be removed; or it read an
earlier version, and then its own batch is refused. A new edge has a new number, and so an entry of its own. For the
same reason a writer that is refused may take back an entry that it has put where none was.

Entries of the edge's own physical partition are part of the edge's batch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from asterism.errors import AsterismError, StorageUnavailable, StoredDamage
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.scattered_calls import apply_scattered, read_scattered
from asterism.models.documents.incoming.entries import Entry, EntryChanges
from asterism.models.documents.settings import StoredSettings
from asterism.partitioning.partition_map import PartitionMap
from asterism.storage.contract import LSN_BYTES, Batch, Expectation, ExpectationFailed, StorageRefusal
from asterism.values.identifiers import Lsn

_Answer = TypeVar("_Answer")

# An entry and the version that it has or had.
Versioned = tuple[Entry, bytes]

# After these the batch may have been applied all the same.
_UNCERTAIN: Final = (StorageUnavailable, StoredDamage)


class EntryWriter:
    """Writes the entries around the batches of edges of one keyspace."""

    __slots__ = ("_keyspace", "_router")

    def __init__(self, keyspace: Keyspace, router: PartitionRouter) -> None:
        self._keyspace = keyspace
        self._router = router

    async def write(
        self,
        point: bytes,
        batch: Batch,
        changes: EntryChanges,
        apply: Callable[[PartitionMap | None], Awaitable[_Answer]],
        *,
        planned_under: StoredSettings,
    ) -> _Answer:
        """Write the entries of a unit of work, and its batch by `apply`, which gets the map on which the batch must be
        applied, if that matters. The caller holds `keyspace.in_flight` since it read the items, unless it only
        removes them."""
        apart, on_map = self._join(point, batch, changes)
        if not apart:
            return await apply(on_map)
        left = await self._versions(apart.removes)
        own = await self._put(apart.puts, planned_under)
        try:
            answer = await apply(on_map)
        except (ExpectationFailed, AsterismError) as refusal:
            if not isinstance(refusal, _UNCERTAIN):
                await self._remove(own)
            raise
        await self._remove(left)
        return answer

    def _join(self, point: bytes, batch: Batch, changes: EntryChanges) -> tuple[EntryChanges, PartitionMap | None]:
        """Add the entries of the batch's own physical partition to it; return the others, and the map by which entries
        of other logical partitions were added."""
        ranges = self._keyspace.record.map
        own = ranges.find(point)
        on_map = None
        apart = EntryChanges()
        for entry in changes.puts:
            if entry.point != point:
                if ranges.find(entry.point) is not own:
                    apart.puts.append(entry)
                    continue
                on_map = ranges
            batch.versioned_puts.append((entry.key, entry.reference))
        for entry in changes.removes:
            if entry.point != point:
                if ranges.find(entry.point) is not own:
                    apart.removes.append(entry)
                    continue
                on_map = ranges
            batch.deletes.append(entry.key)
        return apart, on_map

    async def _versions(self, entries: Sequence[Entry]) -> list[Versioned]:
        """Return the entries that are there, with their versions."""
        if not entries:
            return []
        stored = await read_scattered(self._router, self._keyspace, [(entry.point, entry.key) for entry in entries])
        return [(entry, value[:LSN_BYTES]) for entry, value in zip(entries, stored, strict=True) if value is not None]

    async def _put(self, entries: Sequence[Entry], planned_under: StoredSettings) -> list[Versioned]:
        """Write entries, again if they are there; return those that were not, with the versions that they have now."""
        if not entries:
            return []
        router, keyspace = self._router, self._keyspace
        absent = [(entry.point, put_if_absent(entry)) for entry in entries]
        lsns = await apply_scattered(router, keyspace, absent, planned_under=planned_under)
        placed = list(zip(entries, lsns, strict=True))
        present = [
            (entry.point, Batch(versioned_puts=[(entry.key, entry.reference)])) for entry, lsn in placed if lsn is None
        ]
        if present:
            await apply_scattered(router, keyspace, present, planned_under=planned_under)
        return [(entry, version_of(lsn)) for entry, lsn in placed if lsn is not None]

    async def _remove(self, entries: Sequence[Versioned]) -> None:
        """Remove entries that have these versions. A failure leaves entries that readers ignore, and does not undo the
        unit."""
        if entries:
            with suppress(StorageRefusal, AsterismError):
                removals = [(entry.point, removal(entry, version)) for entry, version in entries]
                await apply_scattered(self._router, self._keyspace, removals)


def put_if_absent(entry: Entry) -> Batch:
    return Batch(expectations=[Expectation(entry.key, None)], versioned_puts=[(entry.key, entry.reference)])


def removal(entry: Entry, version: bytes) -> Batch:
    """Return the batch that removes an entry if it has this version."""
    return Batch(expectations=[Expectation(entry.key, version)], deletes=[entry.key])


def version_of(lsn: Lsn) -> bytes:
    """Return the version of an entry that the batch `lsn` has written."""
    return lsn.to_bytes(LSN_BYTES, "big")
