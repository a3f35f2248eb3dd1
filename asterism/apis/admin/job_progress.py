"""The share of a split, merge or move that is done, estimated: entries are copied, and only items are counted."""

from __future__ import annotations

from typing import Final

from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.sizes import PartitionSizes
from asterism.errors import AsterismError
from asterism.keyspaces.reshaping.job import Progress, Step
from asterism.keyspaces.routing.families import ITEMS
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.scan import read_slice
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.partitioning.partition_map import PartitionRange

_STEPS: Final = list(Step)
# Of a job that is not over: the last changes, the seal and the new map are still to come.
PERCENT_MAX: Final = 99
_FIRST_ITEM: Final = SliceSize(1, 1)


async def percent_of(services: AdminServices, progress: Progress) -> int | None:
    """Return the share of the entries that are copied; None if it is not known."""
    if _STEPS.index(progress.step) > _STEPS.index(Step.COPYING):
        return PERCENT_MAX
    keyspace = services.store.catalog.keyspaces.get(progress.job.keyspace_rid)
    if keyspace is None:
        return None
    sources = [keyspace.record.map.get(range_id) for range_id in progress.job.source_ids]
    sizes, entries = PartitionSizes(services.router), 0
    for source in sources:
        size = None if source is None else await sizes.of(keyspace, source)
        if source is None or size is None:
            return None
        entries += size.items * await _entries_per_item(services, keyspace, source)
    return estimate_percent(copied=progress.entries_copied, expected=entries)


def estimate_percent(*, copied: int, expected: int) -> int:
    return min(PERCENT_MAX, 100 * copied // max(expected, 1))


async def _entries_per_item(services: AdminServices, keyspace: Keyspace, source: PartitionRange) -> int:
    """Return the entries of the first item of a partition: items of a container mostly have a similar form."""
    container = services.store.find_container(keyspace.record.rid)
    if container is None:
        return 1
    try:
        found = await read_slice(services.router, keyspace, ITEMS, source.range, _FIRST_ITEM)
        return container.entry_count(found.entries[0][1]) if found.entries else 1
    except AsterismError:
        return 1
