"""Changes to the entries of many items, written by walks over items that clients may change at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter, PlanOutdated
from asterism.storage.contract import Batch, ExpectationFailed


async def apply_changes(
    router: PartitionRouter,
    keyspace: Keyspace,
    changes: Sequence[Batch],
    *,
    planned_under: Mapping[str, Any] | None = None,
) -> None:
    """Apply changes that each expect one item to be as it was read: all in one batch, or one by one when an item was
    changed or removed meanwhile, or the partition was split. Changes that were overtaken are left out.

    Raises PlanOutdated when other settings than `planned_under` are in force.
    """
    if not changes:
        return
    together = Batch()
    for change in changes:
        together.extend(change)
    if not await _is_applied(router, keyspace, together, planned_under):
        for change in changes:
            await _is_applied(router, keyspace, change, planned_under)


async def _is_applied(
    router: PartitionRouter, keyspace: Keyspace, batch: Batch, planned_under: Mapping[str, Any] | None
) -> bool:
    point = batch.expectations[0].key[1:]
    try:
        await router.apply(keyspace, point, batch, planned_under=planned_under)
    except PlanOutdated:
        raise
    except ExpectationFailed:
        return False
    return True
