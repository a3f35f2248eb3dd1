"""Index transformation: after a change of the indexing policy, items get the entries of the new one, in the background.
So do edges after a change of the setting for incoming edges (`incoming/walk.py`).

From the moment of the change, writes leave items as the new policy wants them, and queries rely only on what the old
and the new policy both cover (`IndexingRules`). One walk over all items, in key order, does the rest. An item that a
client changes in the same moment needs nothing more: that write went by the new policy. The walk's position is a point
of the hash line, so that splits and merges do not matter to it; it is recorded now and then, and after a crash the walk
resumes there, which does no harm to items it meets again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from asterism.errors import AsterismError, OwnerNotFound, ResourceNotFound
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.families import ITEMS, number_bytes
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PlanOutdated
from asterism.keyspaces.routing.scan import read_slice
from asterism.keyspaces.routing.slice_sizes import REINDEXED_ITEMS
from asterism.keyspaces.routing.statistics import partition_size
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.incoming.walk import FoundEdge, is_beside, put_beside, put_elsewhere, remove_entries
from asterism.models.documents.item_changes import apply_changes
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import StoredItem, unpack_item
from asterism.models.documents.planner import ChangePlanner
from asterism.models.documents.settings import INCOMING_EDGES_DUE, DocumentProfile, StoredSettings
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.storage.contract import Batch, Expectation, StorageRefusal
from asterism.values.records import pack_record, unpack_record

_log = logging.getLogger(__name__)

# How much longer than it has worked the walk rests between two slices.
_REST_SECONDS = 0.001
_RETRY_SECONDS = 2.0
_POSITION_SECONDS = 2.0


class ReindexStep(Enum):
    """The steps of a walk. A fault test stops the process at each of them."""

    STARTED = "started"
    WALKING = "walking"
    WALKED = "walked"
    FINISHED = "finished"


def due_after_change(
    profile: DocumentProfile, before: KeyspaceRecord, settings: StoredSettings, *, mark: str
) -> Mapping[str, Any]:
    """Return the work that is due when `settings` replace a record's: the `policies` that items may be indexed by, and
    whether the entries of incoming edges are to be added or removed.

    `mark` tells this change from every other, so that the position of an older walk is not taken for one of its own.
    """
    old = profile.index_policy(before.settings)
    is_same_policy = profile.gives_same_entries(old, profile.index_policy(settings))
    changes_edges = profile.keeps_incoming_edges(before.settings) != profile.keeps_incoming_edges(settings)
    if is_same_policy and not changes_edges:
        return before.catching_up
    policies = list(before.catching_up.get("policies", ()))
    if not is_same_policy and old not in policies:
        policies.append(old)
    due: dict[str, Any] = {"policies": policies, "mark": mark}
    if changes_edges or INCOMING_EDGES_DUE in before.catching_up:
        due[INCOMING_EDGES_DUE] = True
    return due


@dataclass(slots=True)
class Walk:
    """The progress of a walk over the items of a keyspace."""

    keyspace: Keyspace
    mark: str
    position: bytes = b""
    items_walked: int = 0
    trouble: str = ""

    def to_bytes(self) -> bytes:
        return pack_record({"mark": self.mark, "position": self.position.hex(), "items": self.items_walked})

    def resume(self, stored: bytes | None) -> None:
        """Go on from a recorded position, if it is of this walk."""
        record = {} if stored is None else unpack_record(stored)
        if record.get("mark") == self.mark:
            self.position, self.items_walked = bytes.fromhex(record["position"]), record["items"]


class Reindexer:
    """Brings the items of every container to its indexing policy. One per process; runs only while there is work."""

    def __init__(
        self, catalog: Catalog, services: DocumentServices, container_of: Callable[[bytes], Container | None]
    ) -> None:
        self._catalog = catalog
        self._router = services.router
        self._clock = services.clock
        self._container_of = container_of
        self._tasks: dict[bytes, asyncio.Task[None]] = {}
        self.walks: dict[bytes, Walk] = {}
        # For fault tests: called at every step; and how often the position is recorded.
        self.on_step: Callable[[ReindexStep], None] | None = None
        self.position_seconds = _POSITION_SECONDS

    # --- starting and stopping --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Resume what a crash interrupted."""
        for keyspace in self._catalog.keyspaces.values():
            self.wake(keyspace)

    def wake(self, keyspace: Keyspace) -> None:
        rid = keyspace.record.rid
        running = self._tasks.get(rid)
        if self._catalog.leads and keyspace.record.catching_up and (running is None or running.done()):
            task = self._tasks[rid] = asyncio.create_task(self._run(keyspace))
            task.add_done_callback(lambda done: self._end(rid, done))

    def _end(self, rid: bytes, task: asyncio.Task[None]) -> None:
        if self._tasks.get(rid) is task:
            del self._tasks[rid]
            self.walks.pop(rid, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("an index transformation failed and is resumed at the next start", exc_info=error)

    async def stop(self) -> None:
        await end_tasks(self._tasks.values())
        self._tasks.clear()
        self.walks.clear()

    async def finished(self, keyspace: Keyspace) -> None:
        """Return when all items are as the policy wants them, or the container is deleted."""
        task = self._tasks.get(keyspace.record.rid)
        if task is not None:
            await asyncio.shield(task)

    async def all_walks(self) -> list[Walk]:
        """Return all walks under way, of this process and of others."""
        found = [await self._walk_of(keyspace) for keyspace in list(self._catalog.keyspaces.values())]
        return [walk for walk in found if walk is not None]

    async def _walk_of(self, keyspace: Keyspace) -> Walk | None:
        due = keyspace.record.catching_up
        if self._catalog.leads or not due:
            return self.walks.get(keyspace.record.rid)
        walk = Walk(keyspace, due["mark"])
        walk.resume(await self._catalog.catching_up_position(keyspace))
        return walk

    async def percent(self, keyspace: Keyspace) -> int:
        """Return how much of the work is done; 100 only when all is."""
        if not keyspace.record.catching_up:
            return 100
        walk = await self._walk_of(keyspace)
        sizes = [await partition_size(self._router, keyspace, partition) for partition in keyspace.record.map.ranges]
        items = sum(size.items for size in sizes)
        return 0 if walk is None or not items else min(99, 100 * walk.items_walked // items)

    # --- the walk ---------------------------------------------------------------------------------------------------

    async def _run(self, keyspace: Keyspace) -> None:
        """Walk until no earlier policy is left, however often the store refuses or the policy changes again."""
        while keyspace.record.catching_up and not keyspace.deleted:
            due = keyspace.record.catching_up
            walk = self.walks[keyspace.record.rid] = Walk(keyspace, due["mark"])
            try:
                walk.resume(await self._catalog.catching_up_position(keyspace))
                self._reach(ReindexStep.STARTED)
                await keyspace.earlier_work_done()
                # And those of other processes: from here on the fence refuses writes that go by an earlier policy.
                await self._catalog.fence_off_others(keyspace)
                await self._settle(keyspace)
                if await self._walk(walk, due):
                    self._reach(ReindexStep.WALKED)
                    await self._catalog.end_catching_up(keyspace, due)
            except (OwnerNotFound, ResourceNotFound):
                return
            except (StorageRefusal, AsterismError) as refusal:
                walk.trouble = str(refusal)
                _log.warning("the index transformation of %s is delayed: %s", keyspace.record.name, refusal)
                await asyncio.sleep(_RETRY_SECONDS)
        self._reach(ReindexStep.FINISHED)

    async def _settle(self, keyspace: Keyspace) -> None:
        """Wait for writes whose callers went away: a store applies batches in their order, so these come first."""
        at = b""
        while at < FULL.end:
            partition, _ = await self._router.apply(keyspace, at, Batch())
            at = partition.range.end

    async def _walk(self, walk: Walk, due: Mapping[str, Any]) -> bool:
        """Walk to the end; return False if the policy changed on the way."""
        keyspace = walk.keyspace
        container = self._container_of(keyspace.record.rid)
        if container is None:
            raise OwnerNotFound(kind="container", name=keyspace.record.name)
        planner = container.planner
        saved_at = self._clock.monotonic_seconds()
        while walk.position < FULL.end:
            if keyspace.record.catching_up is not due or not planner.is_for(keyspace.record):
                return False
            try:
                worked_seconds = await self._next_slice(walk, planner, due)
            except PlanOutdated:
                return False
            self._reach(ReindexStep.WALKING)
            now = self._clock.monotonic_seconds()
            if now - saved_at >= self.position_seconds:
                await self._catalog.put_catching_up_position(keyspace, walk.to_bytes())
                saved_at = now
            # Requests come first.
            await asyncio.sleep(worked_seconds + _REST_SECONDS)
        return True

    async def _next_slice(self, walk: Walk, planner: ChangePlanner, due: Mapping[str, Any]) -> float:
        """Bring some items into line; return for how many seconds that held the event loop."""
        keyspace, router, settings = walk.keyspace, self._router, planner.planned_under
        began = self._clock.monotonic_seconds()
        interval = KeyRange(walk.position, FULL.end)
        found = await read_slice(router, keyspace, ITEMS, interval, REINDEXED_ITEMS)
        items = [(key, unpack_item(stored, key)) for key, stored in found.entries]
        changes = [change for key, stored in items if (change := _change_of(key, stored, planner)) is not None]
        edges: list[FoundEdge] = []
        if INCOMING_EDGES_DUE in due and planner.sink_rule is not None:
            edges = [edge for key, stored in items if (edge := _edge_of(key, stored, planner)) is not None]
            changes += [put_beside(edge) for edge in edges if is_beside(edge)]
        worked_seconds = self._clock.monotonic_seconds() - began
        await apply_changes(router, keyspace, changes, planned_under=settings)
        await put_elsewhere(router, keyspace, [edge for edge in edges if not is_beside(edge)], planned_under=settings)
        if INCOMING_EDGES_DUE in due and planner.sink_rule is None:
            walked = KeyRange(walk.position, found.rest.start)
            await remove_entries(router, keyspace, walked, planned_under=settings)
        walk.items_walked += len(items)
        walk.position = found.rest.start
        return worked_seconds

    def _reach(self, step: ReindexStep) -> None:
        if self.on_step is not None:
            self.on_step(step)


def _change_of(key: bytes, stored: StoredItem, planner: ChangePlanner) -> Batch | None:
    """Return the change that an item still needs; None if it needs none, whatever policy it was indexed by."""
    if not stored.is_indexed or not planner.rules.earlier:
        return None
    missing, outdated = planner.rules.changes_due(planner.codec.decode(stored.body, key=key))
    if not missing and not outdated:
        return None
    tail, reference = number_bytes(stored.number), key[1:]
    return Batch(
        expectations=[Expectation(key, stored.version)],
        deletes=[term + tail for term in outdated],
        puts=[(term + tail, reference) for term in missing],
    )


def _edge_of(key: bytes, stored: StoredItem, planner: ChangePlanner) -> FoundEdge | None:
    """Return an item as an edge with its entry; None if it is another item."""
    # The reference is the key without its family; the point of the edge is not needed.
    entry = planner.stored_entry(ItemKey(b"", b"", key, key[1:]), stored)
    return None if entry is None else FoundEdge(key, stored.version, entry)
