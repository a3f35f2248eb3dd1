"""Several processes over one store: their presence, and the election of the one that does the background work.

Every process has a record in the coordination partition with a counter that it raises again and again. Which process
leads is a record of the catalog, with a term that rises by one when another takes over; every catalog change of
background work expects that record to be unchanged. The others watch the leader's counter with clocks of their own, and
when it has stood still for a few seconds, one of them takes the leadership. Nothing depends on clocks being right: a
leader that was only slow finds its changes refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from asterism.errors import AsterismError
from asterism.keyspaces.catalog.catalog import CATALOG_PARTITION, Catalog, CatalogChanges
from asterism.keyspaces.catalog.store import CATALOG_EPOCH, NUMBER
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.families import after_prefix
from asterism.storage.contract import Batch, Engine, OutOfSpace, Span, StorageRefusal
from asterism.values.identifiers import PartitionNumber
from asterism.values.json.text import dumps, loads

_log = logging.getLogger(__name__)

# The interval at which a process writes its record and reads the others while it serves requests.
BUSY_SECONDS = 0.1
# The intervals while it serves none: of the check for requests, of reading the others' records, and of writing its own,
# which is a commit and costs ten times as much. A leader does so twice within the time after which it would be thought
# to be gone.
IDLE_SECONDS = 0.5
IDLE_READ_SECONDS = 1.0
IDLE_REPORT_SECONDS = 2.0
# A leader whose counter has stood still for this long is thought to be gone.
TAKEOVER_SECONDS = 3.0
# For the budgets, so is any process that is this much later than announced; its record is removed later.
ABSENT_SECONDS = 2.0
_FORGET_SECONDS = 60.0
_TRIM_SECONDS = 60.0

_PRESENCE = b"p"
_MARK = struct.Struct(">QQ")
NOBODY = 0


class Presence(Protocol):
    """A part of the reports that processes exchange."""

    @property
    def is_busy(self) -> bool: ...

    def report(self) -> Mapping[str, Any]: ...

    def hear(self, reports: list[Mapping[str, Any]]) -> None: ...


class Background(Protocol):
    """The work that one process at a time does."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass(slots=True)
class _Other:
    """Another process as this one sees it."""

    stored: bytes
    changed_at: float
    report: Mapping[str, Any] = field(default_factory=dict)


def leader_of(mark: bytes | None) -> tuple[int, int]:
    """Return the term of a leadership record and the number of the leader, 0 without a leader."""
    return (0, NOBODY) if mark is None else cast("tuple[int, int]", _MARK.unpack(mark))


def _next_mark(known: bytes | None, process: int) -> bytes:
    """Return the leadership record of the next term."""
    return _MARK.pack(leader_of(known)[0] + 1, process)


class Coordination:
    """This process among the others. Its number is the catalog's boot number, which is unique."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        *,
        monotonic: Callable[[], float],
        background: Background,
        presence: list[Presence],
        name: str,
        is_first: bool = False,
    ) -> None:
        """`is_first`: the leader before is known to be gone."""
        self._engine = engine
        self._catalog = catalog
        self._monotonic = monotonic
        self._background = background
        self._presence = presence
        self._name = name
        self._is_first = is_first
        self._partition: PartitionNumber | None = None
        self._counter = 0
        self._others: dict[int, _Other] = {}
        self._leader_seen: tuple[bytes | None, float] = (None, 0.0)
        self._ticker: asyncio.Task[None] | None = None
        self._changing: asyncio.Task[None] | None = None
        # Held while the background work is started or stopped: a leader that is deposed meanwhile stops all of it.
        self._switching = asyncio.Lock()
        self._follower: asyncio.Task[None] | None = None
        self._is_behind = asyncio.Event()
        self._hurry = asyncio.Event()
        self._unwatch: Callable[[], None] | None = None
        self._trimmed_at = 0.0
        self._reported_at = self._read_at = -math.inf
        # The last records of the processes that are present.
        self._heard: list[bytes] | None = None
        # The reason why the others could not be reached at the last attempt; empty if they could.
        self._trouble = ""

    @property
    def number(self) -> int:
        return self._catalog.boot_number

    @property
    def others(self) -> int:
        """Return the number of other processes."""
        return len(self._present())

    # --- starting and stopping --------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._partition = await self._catalog.store.coordination_partition()
        self._catalog.store.on_deposed = self._on_deposed
        self._unwatch = self._engine.watch(CATALOG_PARTITION, self._is_behind.set)
        # No watch reports what has changed since the catalog was opened.
        self._is_behind.set()
        self._follower = asyncio.create_task(self._follow())
        self._leader_seen = (self._catalog.leader, self._monotonic())
        self._catalog.listeners.append(self._on_change)
        try:
            await self._tick()
        except OutOfSpace as problem:
            # The stored data can still be read; a leader is elected when there is room.
            self._note_trouble(problem)
        self._ticker = asyncio.create_task(self._tick_forever())

    async def stop(self) -> None:
        """Leave, and give up the leadership, so that another process need not wait to take over."""
        if self._unwatch is not None:
            self._unwatch()
        await end_tasks([self._ticker, self._follower])
        if self._changing is not None:
            await asyncio.gather(self._changing, return_exceptions=True)
        mark = self._catalog.store.leader_mark
        await self._background.stop()
        try:
            if mark is not None:
                self._catalog.store.leader_mark = None
                await self._catalog.take_leadership(_next_mark(mark, NOBODY), after=mark)
            await self._apply(Batch(deletes=[_PRESENCE + NUMBER.pack(self.number)]))
        except (StorageRefusal, AsterismError) as problem:
            _log.warning("the end of this process is not recorded, and the others notice it late: %s", problem)

    async def _follow(self) -> None:
        """Take over changes of other processes in the catalog, soon after they are made."""
        while True:
            await self._is_behind.wait()
            self._is_behind.clear()
            try:
                await self._catalog.follow()
            except (StorageRefusal, AsterismError) as problem:
                _log.warning("the catalog cannot be followed for now: %s", problem)
                await asyncio.sleep(IDLE_SECONDS)
                self._is_behind.set()

    def hurry(self) -> None:
        """Have this process write its record soon."""
        self._hurry.set()

    # --- reports ----------------------------------------------------------------------------------------------------

    async def _tick_forever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BUSY_SECONDS if self._is_busy else self._idle_seconds):
                    await self._hurry.wait()
            reports_now = self._hurry.is_set() or self._is_busy or self._is_due(self._reported_at, self._report_seconds)
            self._hurry.clear()
            must_read = self._is_due(self._read_at, IDLE_READ_SECONDS) or (
                not self._catalog.leads and self._leader_is_gone()
            )
            if not reports_now and not must_read:
                continue
            try:
                await self._tick(reports_now=reports_now)
                self._trouble = ""
            except (StorageRefusal, AsterismError) as problem:
                self._note_trouble(problem)

    def _note_trouble(self, problem: Exception) -> None:
        """Log a problem, once for each reason: the next attempt is due in half a second."""
        if str(problem) != self._trouble:
            _log.warning("the other processes cannot be reached for now: %s", problem)
        self._trouble = str(problem)

    @property
    def _is_busy(self) -> bool:
        return any(presence.is_busy for presence in self._presence)

    @property
    def _idle_seconds(self) -> float:
        """Return the seconds to the next check, which is due when the leader would be thought to be gone."""
        if self._catalog.leads:
            return min(IDLE_SECONDS, self._report_seconds)
        due_in = self._leader_alive_at() + TAKEOVER_SECONDS - self._monotonic()
        return min(IDLE_SECONDS, max(due_in, BUSY_SECONDS))

    @property
    def _report_seconds(self) -> float:
        return min(IDLE_REPORT_SECONDS, TAKEOVER_SECONDS / 2) if self._catalog.leads else IDLE_REPORT_SECONDS

    def _is_due(self, last_at: float, seconds: float) -> bool:
        # A little early, because the next chance would be late.
        return self._monotonic() - last_at >= seconds - IDLE_SECONDS / 2

    async def _tick(self, *, reports_now: bool = True) -> None:
        await self._catalog.take_boot_number()
        if reports_now:
            await self._report()
        await self._read_others()
        present = self._present()
        records = [other.stored for other in present]
        if reports_now or records != self._heard:
            self._heard = records
            reports = [other.report for other in present]
            for presence in self._presence:
                presence.hear(reports)
        await self._check_leadership()

    async def _report(self) -> None:
        self._counter += 1
        self._reported_at = self._monotonic()
        every = BUSY_SECONDS if self._is_busy else self._report_seconds
        record: dict[str, Any] = {"name": self._name, "counter": self._counter, "every": every}
        for presence in self._presence:
            record.update(presence.report())
        await self._apply(Batch(puts=[(_PRESENCE + NUMBER.pack(self.number), dumps(record))]))

    async def _apply(self, batch: Batch) -> None:
        assert self._partition is not None
        # One small record for each process, also in a full store: processes that know of each other can empty it.
        batch.may_use_reserve = True
        await self._engine.apply(self._partition, CATALOG_EPOCH, batch)

    async def _read_others(self) -> None:
        assert self._partition is not None
        span = Span(_PRESENCE, after_prefix(_PRESENCE))
        page = await self._engine.scan(self._partition, CATALOG_EPOCH, span)
        self._read_at = now = self._monotonic()
        seen: dict[int, _Other] = {}
        for key, stored in page.entries:
            number = int(NUMBER.unpack(key[len(_PRESENCE) :])[0])
            if number == self.number:
                continue
            known = self._others.get(number)
            # A record has a counter in it, so that it is never written twice alike.
            if known is None or known.stored != stored:
                known = _Other(stored, now, cast("dict[str, Any]", loads(stored)))
            seen[number] = known
        self._others = seen

    def _present(self) -> list[_Other]:
        now = self._monotonic()
        return [
            other
            for other in self._others.values()
            # Versions that did not write their interval wrote twice a second.
            if now - other.changed_at < ABSENT_SECONDS + other.report.get("every", IDLE_SECONDS)
        ]

    # --- leading ----------------------------------------------------------------------------------------------------

    async def _check_leadership(self) -> None:
        if self._catalog.leads:
            if self._catalog.leader != self._catalog.store.leader_mark:
                self._on_deposed()
            else:
                await self._tidy_up()
        elif self._changing is None and self._leader_is_gone():
            await self._try_to_lead()

    def _leader_is_gone(self) -> bool:
        _, leader = leader_of(self._catalog.leader)
        if leader == NOBODY or self._is_first:
            return True
        return self._monotonic() - self._leader_alive_at() > TAKEOVER_SECONDS

    def _leader_alive_at(self) -> float:
        """Return the time at which the leader was last seen to change anything."""
        if self._leader_seen[0] != self._catalog.leader:
            self._leader_seen = (self._catalog.leader, self._monotonic())
        other = self._others.get(leader_of(self._catalog.leader)[1])
        # A leader without a record may be just about to write its first.
        return self._leader_seen[1] if other is None else max(other.changed_at, self._leader_seen[1])

    async def _try_to_lead(self) -> None:
        known = self._catalog.leader
        mark = _next_mark(known, self.number)
        if not await self._catalog.take_leadership(mark, after=known):
            return
        self._is_first = False
        await self._catalog.follow()
        self._catalog.store.leader_mark = mark
        try:
            async with self._switching:
                await self._background.start()
        except (StorageRefusal, AsterismError) as problem:
            _log.warning("the background work cannot be taken over for now: %s", problem)
            self._on_deposed()

    def _on_change(self, changes: CatalogChanges) -> None:
        if changes.leader and self._catalog.leads and self._catalog.leader != self._catalog.store.leader_mark:
            self._on_deposed()

    def _on_deposed(self) -> None:
        """Stop the background work, as another process leads by now; called from within the work that was refused."""
        self._catalog.store.leader_mark = None
        if self._changing is None:
            self._changing = asyncio.create_task(self._step_down())

    async def _step_down(self) -> None:
        _log.warning("the background work is left to another process")
        try:
            async with self._switching:
                await self._background.stop()
        finally:
            self._changing = None

    async def _tidy_up(self) -> None:
        """Remove records of processes that are long gone, and trim the catalog's log."""
        now = self._monotonic()
        gone = [number for number, other in self._others.items() if now - other.changed_at > _FORGET_SECONDS]
        if gone:
            await self._apply(Batch(deletes=[_PRESENCE + NUMBER.pack(number) for number in gone]))
        if now - self._trimmed_at > _TRIM_SECONDS:
            self._trimmed_at = now
            await self._catalog.store.trim_log()


class Services:
    """Background work of several kinds as one; the last to start stops first."""

    def __init__(self, parts: list[tuple[Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]]]) -> None:
        """Each part is its start and its stop function; to stop a part that was not started does no harm."""
        self._parts = parts

    async def start(self) -> None:
        for start, _ in self._parts:
            await start()

    async def stop(self) -> None:
        for _, stop in reversed(self._parts):
            await stop()
