"""Work behind the calls: what is due in entities without traffic, deleted subscriptions, idle entities.

Only the leading process does it. A process that is at work has timers for what becomes due there (`due.py`); this finds
what a crash has left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import replace
from typing import Final

from asterism.errors import AsterismError
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.models.messages.activity import activity_key
from asterism.models.messages.descriptions import TopicDescription
from asterism.models.messages.due import carry_out_due, forget_duplicates
from asterism.models.messages.entity import Entity
from asterism.models.messages.layout import unpack_number
from asterism.models.messages.removal import MARK_AGE_MS, remove_old_marks, remove_subscription
from asterism.models.messages.store import MessageStore
from asterism.storage.contract import StorageRefusal

_log = logging.getLogger(__name__)

ROUND_SECONDS: Final = 60.0
# Between two entities the event loop belongs to requests.
_REST_SECONDS: Final = 0.001
# Marks that crashes have left are few; they are looked for less often.
_MARKS_EVERY_ROUNDS: Final = 10


class MessageUpkeep:
    def __init__(self, store: MessageStore, *, round_seconds: float = ROUND_SECONDS) -> None:
        self._store = store
        self._services = store.services
        self._round_seconds = round_seconds
        self._tasks: list[asyncio.Task[None]] = []
        self._rounds = 0
        self._started_ms = 0

    async def start(self) -> None:
        self._started_ms = self._services.now_ms()
        self._tasks = [asyncio.create_task(self._repeat())]

    async def stop(self) -> None:
        await end_tasks(self._tasks)

    async def _repeat(self) -> None:
        while True:
            try:
                await self.tidy()
            except Exception:
                # A defect must not end the upkeep for good.
                _log.exception("a round of the upkeep of messages has failed")
            await asyncio.sleep(self._round_seconds)

    async def tidy(self) -> None:
        """Do one round."""
        finds_marks = self._rounds % _MARKS_EVERY_ROUNDS == 0
        self._rounds += 1
        for record in self._store.namespaces.all("queue", "topic"):
            if not record.keyspace.deleted:
                await self._tidy_entity(self._store.entity_of(record), finds_marks=finds_marks)
            await asyncio.sleep(_REST_SECONDS)

    async def _tidy_entity(self, entity: Entity, *, finds_marks: bool) -> None:
        if not entity.is_gone and await self._tried(self._delete_idle(entity)):
            return
        if entity.is_gone:
            return
        description = entity.description
        if isinstance(description, TopicDescription):
            for number in description.removed_subscriptions:
                await self._tried(self._remove_subscription(entity, number))
        for fragment in entity.all_fragments:
            if fragment.is_up:
                await self._tried(self._look(entity, fragment.number))
                if description.requires_duplicate_detection:
                    await self._tried(forget_duplicates(entity, fragment))
                if finds_marks:
                    before_ms = self._services.now_ms() - MARK_AGE_MS
                    find = self._store.entity_of_keyspace
                    await self._tried(remove_old_marks(fragment, find, before_ms=before_ms))
        if entity.terms.forwarding:
            self._services.forwarding.wake_all(entity)

    async def _tried(self, work: Awaitable[object]) -> bool:
        """Do a part of a round, and return its result. The other parts go on where a node is away or what is stored
        cannot be read."""
        try:
            return bool(await work)
        except (AsterismError, StorageRefusal) as problem:
            _log.warning("upkeep of messages goes on later: %s", problem)
            return False

    async def _look(self, entity: Entity, fragment: int) -> None:
        next_ms = await carry_out_due(entity, entity.all_fragments[fragment])
        self._services.due.schedule(entity, fragment, next_ms)

    # --- deleted subscriptions --------------------------------------------------------------------------------------

    async def _remove_subscription(self, entity: Entity, number: int) -> None:
        await remove_subscription(entity, number)

        def done(before: TopicDescription) -> TopicDescription:
            return replace(before, removed_subscriptions=before.removed_subscriptions - {number})

        await self._store.update(entity, done)

    # --- idle entities ----------------------------------------------------------------------------------------------

    async def _delete_idle(self, entity: Entity) -> bool:
        """Delete the entity, or those of its subscriptions, that were not used for their periods. Return True if the
        entity is gone."""
        description = entity.description
        if description.auto_delete_ms is not None and await self._is_idle(entity, 0, description.auto_delete_ms):
            await self._store.delete(entity)
            return True
        if isinstance(description, TopicDescription):
            for subscription in list(description.subscriptions.values()):
                period_ms = subscription.auto_delete_ms
                if period_ms is not None and await self._is_idle(entity, subscription.number, period_ms):
                    await self._store.delete_subscription(entity, subscription.name)
        return False

    async def _is_idle(self, entity: Entity, subscription: int, period_ms: int) -> bool:
        entity.touch_if_waiting(subscription)
        known_since_ms = max(entity.known_since_ms, self._started_ms, entity.created_ms_of(subscription))
        used_ms = max(entity.used_ms.get(subscription, 0), known_since_ms)
        now_ms = self._services.now_ms()
        if now_ms - used_ms < period_ms:
            return False
        if not self._services.router.has_others:
            return True
        # Uses by other processes are stored, though not each.
        fragment = entity.all_fragments[0]
        (stored,) = await fragment.reader.read([activity_key(fragment.point, subscription)])
        return stored is None or now_ms - unpack_number(stored) >= period_ms
