"""Index transformation: after a change of the indexing policy, items get the entries of the new one, in the background.

From the moment of the change, writes leave items as the new policy wants them, and queries rely only on what the old
and the new policy both cover (`IndexingRules`). One walk over all items, in key order, does the rest. An item that
somebody else changes in the same moment needs nothing more: whoever changed it went by the new policy. The place that
the walk has reached is a place on the hash line, so that splits and merges do not matter to it; it is remembered now
and then, and after a crash the walk goes on from there, which does no harm to items it meets again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from asterism.clock import Clock
from asterism.documents.index_place import Term
from asterism.documents.indexes import IndexingRules
from asterism.documents.item_changes import apply_changes
from asterism.documents.item_record import StoredItem, unpack_item
from asterism.documents.planning import rules_of
from asterism.errors import AsterismError, OwnerNotFound, ResourceNotFound
from asterism.keyspaces.background_tasks import end_tasks
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import ITEMS
from asterism.keyspaces.owner import Owner, PlanOutdated
from asterism.keyspaces.records import KeyspaceRecord
from asterism.keyspaces.statistics import partition_size
from asterism.storage.contract import Batch, Expectation, Span, StorageRefusal
from asterism.values.json_text import dumps, loads_stored

_log = logging.getLogger(__name__)

# One slice holds the event loop for some milliseconds at the most.
SLICE_ITEMS = 48
SLICE_BYTES = 128 * 1024
# How much longer than it has worked the walk rests between two slices.
_REST_SECONDS = 0.001
_RETRY_SECONDS = 2.0
_POSITION_SECONDS = 2.0
_END_OF_LINE = b"\xff"

# What of a policy decides over index entries.
_TELLING = ("indexingMode", "includedPaths", "excludedPaths", "compositeIndexes", "spatialIndexes")


class ReindexStep(Enum):
    """Where a walk stands. A fault test stops the process at each of these."""

    STARTED = "started"
    WALKING = "walking"
    WALKED = "walked"
    FINISHED = "finished"


def due_after_change(before: KeyspaceRecord, settings: Mapping[str, Any], *, mark: str) -> Mapping[str, Any]:
    """What is to be done to the items when `settings` take the place of a record's: their `policies` were these.

    `mark` tells this change from every other, so that the position of an older walk is not taken for one of its own.
    """
    old, new = before.settings["indexingPolicy"], settings["indexingPolicy"]
    if all((old.get(name) or []) == (new.get(name) or []) for name in _TELLING):
        return before.catching_up
    policies = list(before.catching_up.get("policies", ()))
    if old not in policies:
        policies.append(old)
    return {"policies": policies, "mark": mark}


@dataclass(slots=True)
class Walk:
    """How far the items of a keyspace have come."""

    keyspace: Keyspace
    mark: str
    position: bytes = b""
    items_walked: int = 0
    trouble: str = ""

    def to_bytes(self) -> bytes:
        return dumps({"mark": self.mark, "position": self.position.hex(), "items": self.items_walked})

    def take_up(self, stored: bytes | None) -> None:
        told = {} if stored is None else cast(dict[str, Any], loads_stored(stored))
        if told.get("mark") == self.mark:
            self.position, self.items_walked = bytes.fromhex(told["position"]), told["items"]


class Reindexing:
    """Brings the items of every container to its indexing policy. One per process; runs only while there is work."""

    def __init__(self, catalog: Catalog, owner: Owner, clock: Clock) -> None:
        self._catalog = catalog
        self._owner = owner
        self._clock = clock
        self._tasks: dict[bytes, asyncio.Task[None]] = {}
        self.walks: dict[bytes, Walk] = {}
        # For fault tests: who hears of every step, and how often the position is remembered.
        self.on_step: Callable[[ReindexStep], None] | None = None
        self.position_seconds = _POSITION_SECONDS

    # --- starting and stopping --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Takes up what a crash interrupted."""
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
            _log.error("an index transformation died and is taken up at the next start", exc_info=error)

    async def stop(self) -> None:
        await end_tasks(self._tasks.values())
        self._tasks.clear()
        self.walks.clear()

    async def finished(self, keyspace: Keyspace) -> None:
        """Returns when all items are as the policy wants them (or the container is gone)."""
        task = self._tasks.get(keyspace.record.rid)
        if task is not None:
            await asyncio.shield(task)

    async def all_walks(self) -> list[Walk]:
        """All walks under way, whoever goes them."""
        found = [await self._walk_of(keyspace) for keyspace in list(self._catalog.keyspaces.values())]
        return [walk for walk in found if walk is not None]

    async def _walk_of(self, keyspace: Keyspace) -> Walk | None:
        due = keyspace.record.catching_up
        if self._catalog.leads or not due:
            return self.walks.get(keyspace.record.rid)
        walk = Walk(keyspace, due["mark"])
        walk.take_up(await self._catalog.catching_up_position(keyspace))
        return walk

    async def percent(self, keyspace: Keyspace) -> int:
        """How much of the work is done; 100 only when all is."""
        if not keyspace.record.catching_up:
            return 100
        walk = await self._walk_of(keyspace)
        sizes = [await partition_size(self._owner, keyspace, one) for one in keyspace.record.map.ranges]
        items = sum(size.items for size in sizes)
        return 0 if walk is None or not items else min(99, 100 * walk.items_walked // items)

    # --- the walk ---------------------------------------------------------------------------------------------------

    async def _run(self, keyspace: Keyspace) -> None:
        """Walks until no policy is left behind, however often the store refuses or the policy changes again."""
        while keyspace.record.catching_up and not keyspace.deleted:
            due = keyspace.record.catching_up
            walk = self.walks[keyspace.record.rid] = Walk(keyspace, due["mark"])
            try:
                walk.take_up(await self._catalog.catching_up_position(keyspace))
                self._reach(ReindexStep.STARTED)
                await keyspace.earlier_work_done()
                # And nobody in another process: from here on all of them are refused who were not before.
                await self._catalog.fence_off_others(keyspace)
                await self._settle(keyspace)
                if await self._walk(walk, due):
                    self._reach(ReindexStep.WALKED)
                    await self._catalog.end_catching_up(keyspace, due)
            except (OwnerNotFound, ResourceNotFound):
                return
            except (StorageRefusal, AsterismError) as refusal:
                walk.trouble = str(refusal)
                _log.warning("the index of %s is held up: %s", keyspace.record.name, refusal)
                await asyncio.sleep(_RETRY_SECONDS)
        self._reach(ReindexStep.FINISHED)

    async def _settle(self, keyspace: Keyspace) -> None:
        """Waits for writes whose callers went away: a store applies batches in their order, so these come before."""
        at = b""
        while at < _END_OF_LINE:
            partition, _ = await self._owner.apply(keyspace, at, Batch())
            at = partition.range.end

    async def _walk(self, walk: Walk, due: Mapping[str, Any]) -> bool:
        """Walks on to the end; False if the policy changed on the way."""
        keyspace = walk.keyspace
        settings, rules = keyspace.record.settings, rules_of(keyspace.record)
        saved_at = self._clock.monotonic_seconds()
        while walk.position < _END_OF_LINE:
            if keyspace.record.catching_up is not due or keyspace.record.settings is not settings:
                return False
            try:
                worked_seconds = await self._next_slice(walk, rules, settings)
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

    async def _next_slice(self, walk: Walk, rules: IndexingRules, settings: Mapping[str, Any]) -> float:
        """Returns for how many seconds it held the event loop."""
        keyspace = walk.keyspace
        began = self._clock.monotonic_seconds()
        record = keyspace.record
        partition = record.map.find(walk.position)
        span = Span(ITEMS + walk.position, ITEMS + partition.range.end)
        page = await self._owner.scan(keyspace, record, partition, span, limit=SLICE_ITEMS, bytes_max=SLICE_BYTES)
        if page is None:
            return 0.0
        changes = [
            change
            for key, stored in page.entries
            if (change := _change_of(key, unpack_item(stored, key), rules)) is not None
        ]
        worked_seconds = self._clock.monotonic_seconds() - began
        await apply_changes(self._owner, keyspace, changes, planned_under=settings)
        walk.items_walked += len(page.entries)
        walk.position = page.entries[-1][0][1:] + b"\x00" if page.more else partition.range.end
        return worked_seconds

    def _reach(self, step: ReindexStep) -> None:
        if self.on_step is not None:
            self.on_step(step)


def _change_of(key: bytes, stored: StoredItem, rules: IndexingRules) -> Batch | None:
    """What an item still needs; None if nothing, whatever policy it was indexed by."""
    if not stored.is_indexed:
        return None
    missing, outdated = rules.changes_due(cast(Mapping[str, Any], loads_stored(stored.body)))
    if not missing and not outdated:
        return None
    keys_of = _entry_keys(stored.number)
    return Batch(
        expectations=[Expectation(key, stored.version)],
        deletes=keys_of(outdated),
        puts=[(entry, key[1:]) for entry in keys_of(missing)],
    )


def _entry_keys(item_number: int) -> Callable[[Iterable[Term]], list[bytes]]:
    tail = item_number.to_bytes(8, "big")
    return lambda terms: [term + tail for term in terms]
