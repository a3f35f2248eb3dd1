"""Changes to the entries of many items that others may change at the same time: what walks over items write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.owner import Owner, PlanOutdated
from asterism.storage.contract import Batch, ExpectationFailed


async def apply_changes(
    owner: Owner, keyspace: Keyspace, changes: Sequence[Batch], *, planned_under: Mapping[str, Any] | None = None
) -> None:
    """Apply changes that each expect one item to be as it was read: all in one batch, or one by one when an item was
    changed or removed meanwhile, or the partition was split. What was overtaken is left out.

    Raises PlanOutdated when other settings than `planned_under` are in force.
    """
    if not changes:
        return
    together = Batch()
    for change in changes:
        together.extend(change)
    if not await _is_applied(owner, keyspace, together, planned_under):
        for change in changes:
            await _is_applied(owner, keyspace, change, planned_under)


async def _is_applied(owner: Owner, keyspace: Keyspace, batch: Batch, planned_under: Mapping[str, Any] | None) -> bool:
    point = batch.expectations[0].key[1:]
    try:
        await owner.apply(keyspace, point, batch, planned_under=planned_under)
    except PlanOutdated:
        raise
    except ExpectationFailed:
        return False
    return True
