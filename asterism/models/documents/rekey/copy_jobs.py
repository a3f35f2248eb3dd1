"""The part that all jobs share which copy items of one container into another while clients go on.

The source is made to keep all versions; the position in them is noted; the items are copied; then the versions are
followed, deletes among them. A job is recorded in the catalog and resumed after a crash where it was recorded last:
bringing an item into line once more does no harm. When and how clients change over is the business of each kind of job.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from asterism.errors import AsterismError, RequestRateTooLarge
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.models.documents.changes.feed import AllVersions, FeedPage, position_now, read_feed_page
from asterism.models.documents.changes.item_version import unpack_version
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.rekey.job import RekeyStep
from asterism.models.documents.results import Scope
from asterism.models.documents.upkeep.housekeeper import Housekeeper
from asterism.partitioning.feed_position import FeedPosition
from asterism.storage.contract import StorageRefusal

_log = logging.getLogger(__name__)

# The server may be down, or a job wait for the operator, for so long before everything is compared again.
RETENTION_MINUTES = 7 * 24 * 60
# Entries are removed a minute late at most; so much earlier they are no longer relied on.
_RETENTION_MARGIN_SECONDS = 120
PAGE_CHANGES = 200
POLL_SECONDS = 0.1
_RETRY_SECONDS = 1.0
_RECORD_SECONDS = 2.0
# Background removals that were planned before versions were kept are stored by then.
_SETTLE_SECONDS = 1.0

Replace = Callable[[Container, Mapping[str, Any]], Awaitable[Container]]
Entry = TypeVar("Entry")


class CopyJob(Protocol):
    """The fields of a job's record that the copying needs."""

    number: int
    source_rid: str
    target_rid: str
    # How far the copy has come on the source's hash line.
    copied_up_to: str
    # How far the source's versions were followed, and when that was.
    feed_position: str
    followed_at_wall_seconds: int
    # The retention that the source had, in minutes, while it has the job's.
    retention_before: int | None
    # True if deletes may have been missed, so that the target is to be walked too.
    must_sweep: bool
    items_copied: int
    changes_followed: int
    # For other processes; not kept over a restart.
    trouble: str
    # True if no more than a page of changes is left to follow.
    is_caught_up: bool

    def to_bytes(self) -> bytes: ...


Job = TypeVar("Job", bound=CopyJob)


@dataclass(frozen=True, slots=True)
class JobRecords:
    """The records of one kind of job in the catalog."""

    stored: Mapping[int, bytes]
    put: Callable[[int, bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CopyTools:
    """The parts of the store that jobs work with."""

    catalog: Catalog
    services: DocumentServices
    container_of: Callable[[bytes], Container | None]
    replace_container: Replace
    housekeeper: Housekeeper


class Pair(NamedTuple):
    source: Container
    target: Container


class CopyJobs(ABC, Generic[Job]):
    """The jobs of one kind in the process. The leader runs them; any process shows them."""

    def __init__(self, tools: CopyTools, records: JobRecords, unpack: Callable[[bytes], Job]) -> None:
        self._tools = tools
        self._catalog = tools.catalog
        self._services = tools.services
        self._records = records
        self._unpack = unpack
        self.on_step: Callable[[StrEnum], None] = lambda step: None  # noqa: ARG005
        self._running: dict[int, asyncio.Task[None]] = {}
        self._recorded_at: dict[int, float] = {}
        self._recorded: dict[int, object] = {}
        self._jobs: dict[int, Job] = {}

    @abstractmethod
    async def _work(self, job: Job) -> bool:
        """Do the next part of a job; return True when nothing is left to do."""

    @abstractmethod
    def _shared_at_once(self, job: Job) -> object:
        """Return the fields by which other processes decide, and which they must not get late."""

    # --- starting and stopping --------------------------------------------------------------------------------------

    @property
    def jobs(self) -> dict[int, Job]:
        """The jobs by number. Ended ones stay, for the operator to see, as long as both containers do."""
        if self._catalog.leads:
            return self._jobs
        return {number: self._unpack(stored) for number, stored in self._records.stored.items()}

    async def recover(self) -> None:
        self.wake()

    def wake(self) -> None:
        """Start the jobs that are recorded, by this process or another."""
        if not self._catalog.leads:
            return
        for number, stored in list(self._records.stored.items()):
            if number not in self._jobs:
                self.start(self._unpack(stored))

    async def stop(self) -> None:
        await end_tasks(self._running.values())
        self._running.clear()
        self._jobs.clear()

    def look_again(self) -> None:
        """Clean up after jobs whose containers were deleted."""
        for number, job in self.jobs.items():
            if number not in self._running and self._pair(job) is None:
                self.start(job)

    # --- running ----------------------------------------------------------------------------------------------------

    def start(self, job: Job) -> None:
        """Run a job that is recorded already, if this process leads."""
        if not self._catalog.leads or job.number in self._running:
            return
        job.trouble, job.is_caught_up = "", False
        self._jobs[job.number] = job
        self._running[job.number] = asyncio.create_task(self._run(job))

    async def _run(self, job: Job) -> None:
        is_over = False
        while not is_over:
            try:
                is_over = await self._work(job)
            except RequestRateTooLarge as throttled:
                await asyncio.sleep(throttled.retry_after_seconds)
            except (AsterismError, StorageRefusal) as problem:
                _log.warning("copying %d waits: %s", job.number, problem)
                job.trouble = str(problem)
                await asyncio.sleep(_RETRY_SECONDS)
        del self._running[job.number]

    def _source(self, job: Job) -> Container | None:
        return self._tools.container_of(bytes.fromhex(job.source_rid))

    def _pair(self, job: Job) -> Pair | None:
        """Return the containers with their present settings; None if one does not exist any more."""
        source = self._source(job)
        target = self._tools.container_of(bytes.fromhex(job.target_rid))
        return None if source is None or target is None else Pair(source, target)

    async def _record(self, job: Job) -> None:
        self._recorded_at[job.number] = self._services.clock.monotonic_seconds()
        self._recorded[job.number] = self._shared_at_once(job)
        await self._records.put(job.number, job.to_bytes())

    async def _record_at_times(self, job: Job) -> None:
        is_due = self._services.clock.monotonic_seconds() - self._recorded_at.get(job.number, 0.0) > _RECORD_SECONDS
        if is_due or self._recorded.get(job.number) != self._shared_at_once(job):
            await self._record(job)

    # --- keeping versions -------------------------------------------------------------------------------------------

    async def _keep_versions(self, job: Job, pair: Pair, scope: Scope) -> None:
        """Copy the scripts, make the source keep its versions, and note the position from which they are followed."""
        await self._copy_scripts(pair)
        self.on_step(RekeyStep.SCRIPTS_COPIED)
        minutes = _kept_seconds(pair.source) // 60
        if minutes < RETENTION_MINUTES:
            if job.retention_before is None:
                job.retention_before = minutes
                await self._record(job)
            await self._retain(pair.source, RETENTION_MINUTES)
        self.on_step(RekeyStep.VERSIONS_KEPT)
        await pair.source.keyspace.earlier_work_done()
        await asyncio.sleep(_SETTLE_SECONDS)
        job.followed_at_wall_seconds = int(self._services.clock.wall_seconds())
        job.feed_position = (await position_now(self._services.router, pair.source, scope)).to_text()
        job.copied_up_to, job.items_copied = "", 0

    async def _copy_scripts(self, pair: Pair) -> None:
        scripts, target_rid = self._catalog.scripts, pair.target.record.rid
        now = int(self._services.clock.wall_seconds())
        for kind in (scripts.stored_procedures, scripts.triggers, scripts.functions):
            for script in kind.owned_by(pair.source.record.rid):
                if kind.find(target_rid, script.name) is None:
                    await kind.create(target_rid, script.name, script.properties, now=now)

    async def _retain(self, source: Container, minutes: int) -> None:
        settings = source.keyspace.record.settings
        await self._tools.replace_container(
            source, self._services.profile.with_versions_kept(settings, minutes=minutes)
        )

    async def _restore_retention(self, job: Job) -> None:
        source = self._source(job)
        if job.retention_before is None or source is None:
            return
        if _kept_seconds(source) == RETENTION_MINUTES * 60:
            await self._retain(source, job.retention_before)
        job.retention_before = None
        await self._record(job)
        self.on_step(RekeyStep.RESTORED)

    # --- copying and following --------------------------------------------------------------------------------------

    async def _copy_pieces(
        self,
        job: Job,
        pieces: AsyncIterator[tuple[Sequence[Entry], bytes]],
        settle: Callable[[Sequence[Entry]], Awaitable[None]],
    ) -> None:
        """Settle each piece, which comes with the place on the line behind it."""
        clock = self._services.clock
        began = clock.monotonic_seconds()
        async for entries, behind in pieces:
            await settle(entries)
            job.items_copied += len(entries)
            job.copied_up_to = behind.hex()
            await self._record_at_times(job)
            self.on_step(RekeyStep.PIECE_COPIED)
            # Requests come first: the walk rests half as long as it has worked.
            await asyncio.sleep((clock.monotonic_seconds() - began) / 2)
            began = clock.monotonic_seconds()

    def _has_lost_versions(self, job: Job, source: Container) -> bool:
        """Return whether versions may be gone that were not followed: everything is then to be compared again."""
        kept_seconds = _kept_seconds(source) - _RETENTION_MARGIN_SECONDS
        return int(self._services.clock.wall_seconds()) - job.followed_at_wall_seconds > kept_seconds

    async def _next_changes(self, job: Job, source: Container, scope: Scope) -> FeedPage:
        position = FeedPosition.from_text(job.feed_position)
        router, log = self._services.router, AllVersions(as_stored=True)
        return await read_feed_page(router, source, scope, position, log, items_max=PAGE_CHANGES)

    async def _note_followed(self, job: Job, page: FeedPage, *, read_at_wall_seconds: int) -> None:
        """Record that the changes of a page are in the target."""
        if page.rows:
            job.changes_followed += len(page.rows)
            self.on_step(RekeyStep.CHANGES_FOLLOWED)
        job.is_caught_up = len(page.rows) < PAGE_CHANGES
        job.feed_position, job.followed_at_wall_seconds = page.position.to_text(), read_at_wall_seconds
        await self._record_at_times(job)


def images_of(page: FeedPage) -> list[bytes]:
    """Return the bodies of the changed items before and after each change."""
    versions = [unpack_version(b"", row) for row in page.rows]
    return [image for version in versions for image in (version.before, version.after) if image]


def _kept_seconds(container: Container) -> int:
    return container.planner.settings.versions_kept_seconds or 0
