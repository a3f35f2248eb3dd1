"""A reader that stays open: it knows how far it has come, and reads ahead before data that it needs is removed.

The log of a collection outlives it, but the log of a sharded collection, and that of a whole database, go with their
keyspaces. Readers of this process are drained before; others learn from the log of the account that they have lost
something (`HistoryLost`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from asterism.errors import AsterismError
from asterism.models.collections.catalog_log import dropped_keyspaces
from asterism.models.collections.change_position import ChangePosition
from asterism.models.collections.change_scope import ChangeScope
from asterism.models.collections.changes import ChangeLog, ChangeSource, LoggedChange
from asterism.models.collections.open_readers import scope_sources
from asterism.models.collections.store import CollectionStore
from asterism.partitioning.feed_position import FeedPosition
from asterism.partitioning.key_range import FULL

# Changes that are read ahead at most; a client that is further behind has lost the rest.
_AHEAD_MAX = 1000
# Pages of changes of others that are read before the caller is asked whether it still wants to wait.
_PAGES_AT_ONCE = 16

Event = TypeVar("Event")
Make = Callable[[LoggedChange], Awaitable[Event]]


class HistoryLost(Exception):
    """Changes behind the position of a reader are no longer kept."""


class ChangeReader(Generic[Event]):
    """Gives the changes of a scope as events, which `make` builds while all they need is still there."""

    def __init__(self, store: CollectionStore, scope: ChangeScope, position: ChangePosition, make: Make[Event]) -> None:
        self._store = store
        self._log = ChangeLog(store.services.router)
        self.scope = scope
        # Behind the events that were given, and behind those that were read.
        self.position = position
        self._read_to = position
        self._make = make
        self._ahead: list[Event] = []
        self._problem: Exception | None = None
        self._reading = asyncio.Lock()
        self._is_over = False
        # False if the last read came to the end of what there was.
        self.has_more = True
        # One that no name leads to any more is read until it is gone.
        self._sources: dict[bytes, ChangeSource] = {}
        self._find_sources()

    async def next(self) -> list[Event]:
        """Return the next events, none if there are none now. HistoryLost, and whatever `make` raises."""
        async with self._reading:
            if self._problem is None:
                await self._read()
            events, self._ahead = self._ahead, []
            if not events and self._problem is not None:
                problem, self._problem = self._problem, None
                raise problem
            self.position = self._read_to
            return events

    async def drain(self) -> None:
        """Read everything that is there now, whatever the budgets have; a reader that cannot has lost it."""
        async with self._reading:
            with suppress(AsterismError):
                while self._problem is None and not self._is_over and len(self._ahead) < _AHEAD_MAX:
                    before = len(self._ahead)
                    await self._read(is_admitted=True)
                    if len(self._ahead) == before and not self.has_more:
                        return

    async def _read(self, *, is_admitted: bool = False) -> None:
        """Read until there are events, nothing is left, or some time has passed. A problem is kept behind the events
        before it."""
        for _ in range(_PAGES_AT_ONCE):
            if self._is_over or self._problem is not None:
                return
            sources = self._find_sources()
            changes, position, self.has_more = await self._log.read(
                sources, self._read_to, self.scope.accepts, is_admitted=is_admitted
            )
            made = self._read_to
            try:
                for change in changes:
                    self._check_complete(change)
                    self._ahead.append(await self._make(change))
                    made = change.position
                    if self.scope.ends_with(change):
                        position, self._is_over = change.position, True
                        break
            except Exception as problem:
                self._problem, self._read_to = problem, made
                return
            self._read_to = self._without_dropped(changes, position)
            if self._ahead or not self.has_more:
                return

    def _find_sources(self) -> list[ChangeSource]:
        for source in scope_sources(self._store, self.scope):
            self._sources[source.keyspace.record.rid] = source
        self._sources = {rid: source for rid, source in self._sources.items() if not source.keyspace.deleted}
        return list(self._sources.values())

    def _check_complete(self, change: LoggedChange) -> None:
        """Refuse to go on behind the drop of a keyspace that was not read to its end."""
        for rid, end in dropped_keyspaces(change).items():
            seen = self._read_to.keyspaces.get(rid)
            if seen is None or not _has_reached(seen, end):
                raise HistoryLost

    @staticmethod
    def _without_dropped(changes: list[LoggedChange], position: ChangePosition) -> ChangePosition:
        gone = {rid for change in changes if not change.is_of_document for rid in dropped_keyspaces(change)}
        if gone.isdisjoint(position.keyspaces):
            return position
        kept = {rid: seen for rid, seen in position.keyspaces.items() if rid not in gone}
        return ChangePosition(
            kept, tuple(seen for seen in position.partly if seen.keyspace not in gone), position.since
        )


def _has_reached(seen: FeedPosition, end: FeedPosition) -> bool:
    starts = [start for start, _ in end.steps[1:]]
    return all(
        seen.least(start, stop) >= lsn for (start, lsn), stop in zip(end.steps, [*starts, FULL.end], strict=True)
    )
