"""Entries of incoming edges after a change of the setting: those that edges lack are added, or all are removed.

Both are parts of the walk over a container's items (`upkeep/reindexer.py`). While it is under way, every write of an
edge writes its entry, so that an edge which is changed in the same moment needs nothing more of the walk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from asterism.keyspaces.routing.families import INCOMING_EDGES
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.scan import scan_line
from asterism.keyspaces.routing.scattered_calls import apply_scattered, read_scattered
from asterism.keyspaces.routing.slice_sizes import REMOVED_ENTRIES
from asterism.models.documents.incoming.entries import Entry
from asterism.models.documents.incoming.writes import put_if_absent, removal, version_of
from asterism.models.documents.item_changes import apply_changes
from asterism.models.documents.settings import StoredSettings
from asterism.partitioning.key_range import KeyRange
from asterism.storage.contract import LSN_BYTES, Batch, Expectation


class FoundEdge(NamedTuple):
    """An edge that the walk has read: its stored key, its version, and the entry that it must have at its sink."""

    key: bytes
    version: bytes
    entry: Entry


def is_beside(edge: FoundEdge) -> bool:
    """Return whether an edge surely lies in the physical partition of its sink: both have the same point."""
    return edge.key[1:].startswith(edge.entry.point)


def put_beside(edge: FoundEdge) -> Batch:
    """Return the batch that gives an edge the entry that lies beside it, if the edge is still as it was read."""
    return Batch(
        expectations=[Expectation(edge.key, edge.version)], versioned_puts=[(edge.entry.key, edge.entry.reference)]
    )


async def put_elsewhere(
    router: PartitionRouter, keyspace: Keyspace, edges: Sequence[FoundEdge], *, planned_under: StoredSettings
) -> None:
    """Give edges the entries that lie in other logical partitions.

    An entry that is there stays as it is: its writer may be about to write the edge. One that was put for an edge that
    has been changed since is taken back, unless another writer has written it since.
    """
    if not edges:
        return
    puts = [(edge.entry.point, put_if_absent(edge.entry)) for edge in edges]
    lsns = await apply_scattered(router, keyspace, puts, planned_under=planned_under)
    stored = await read_scattered(router, keyspace, [(edge.key[1:], edge.key) for edge in edges])
    mistaken = [
        (edge.entry.point, removal(edge.entry, version_of(lsn)))
        for edge, lsn, value in zip(edges, lsns, stored, strict=True)
        if lsn is not None and (value is None or not value.startswith(edge.version))
    ]
    if mistaken:
        await apply_scattered(router, keyspace, mistaken, planned_under=planned_under)


async def remove_entries(
    router: PartitionRouter, keyspace: Keyspace, interval: KeyRange, *, planned_under: StoredSettings
) -> None:
    """Remove all entries in an interval of the line, some at a time."""
    if interval.start >= interval.end:
        return
    async for found in scan_line(router, keyspace, INCOMING_EDGES, interval, REMOVED_ENTRIES):
        # The expectations keep a batch from the wrong half of a partition that was split meanwhile.
        removals = [
            Batch(expectations=[Expectation(key, value[:LSN_BYTES])], deletes=[key]) for key, value in found.entries
        ]
        await apply_changes(router, keyspace, removals, planned_under=planned_under)
        await asyncio.sleep(0.001 if removals else 0)
