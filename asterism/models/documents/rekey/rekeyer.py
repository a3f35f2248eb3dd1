"""Copies of containers into ones with another partition key, while clients go on (spec C18).

The source is made to keep all versions; the position in them is noted; all items are copied; then the versions are
followed, deletes among them, until the operator switches. A job is recorded in the catalog and resumed after a crash
where it was recorded last: bringing an item into line once more does no harm.

From the switch on the source refuses clients' writes. Those that were let in before are waited for and followed, and
only then are the two compared: every acknowledged write is in the target, and none comes after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from asterism.errors import AsterismError, RequestRateTooLarge, ReshapeRefused
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.statistics import partition_size
from asterism.models.documents.changes.feed import AllVersions, FeedPage, position_now, read_feed_page
from asterism.models.documents.changes.item_version import unpack_version
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.pages import range_scope, scan_items
from asterism.models.documents.rekey.copier import UNCOPIED_MAX, ItemCopier, TooManyUncopied
from asterism.models.documents.rekey.job import RekeyJob, RekeyPhase, RekeyStep
from asterism.models.documents.upkeep.housekeeper import Housekeeper
from asterism.partitioning.feed_position import FeedPosition
from asterism.partitioning.key_range import FULL
from asterism.storage.contract import StorageRefusal

_log = logging.getLogger(__name__)

# The server may be down, or a job wait for the operator, for so long before everything is compared again.
RETENTION_MINUTES = 7 * 24 * 60
# Entries are removed a minute late at most; so much earlier they are no longer relied on.
_RETENTION_MARGIN_SECONDS = 120
_PAGE_CHANGES = 200
_POLL_SECONDS = 0.1
_RETRY_SECONDS = 1.0
_RECORD_SECONDS = 2.0
# Background removals that were planned before versions were kept are stored by then.
_SETTLE_SECONDS = 1.0
_WHOLE_LINE = range_scope(FULL)

Replace = Callable[[Container, Mapping[str, Any]], Awaitable[Container]]


class Pair(NamedTuple):
    source: Container
    target: Container


class Rekeyer:
    """The re-keying jobs of the process."""

    def __init__(
        self,
        catalog: Catalog,
        services: DocumentServices,
        container_of: Callable[[bytes], Container | None],
        replace_container: Replace,
        housekeeper: Housekeeper,
    ) -> None:
        self._catalog = catalog
        self._services = services
        self._container_of = container_of
        self._replace_container = replace_container
        self._housekeeper = housekeeper
        self.on_step: Callable[[RekeyStep], None] = lambda step: None  # noqa: ARG005
        self._running: dict[int, asyncio.Task[None]] = {}
        self._recorded_at: dict[int, float] = {}
        self._recorded: dict[int, tuple[bool, int]] = {}
        self._jobs: dict[int, RekeyJob] = {}

    # --- starting and stopping --------------------------------------------------------------------------------------

    @property
    def jobs(self) -> dict[int, RekeyJob]:
        """The jobs by number. Ended ones stay, for the operator to see, as long as both containers do."""
        if self._catalog.leads:
            return self._jobs
        return {number: RekeyJob.from_bytes(stored) for number, stored in self._catalog.work.rekeys.items()}

    async def recover(self) -> None:
        self.wake()

    def wake(self) -> None:
        """Start the jobs that are recorded, by this process or another."""
        if not self._catalog.leads:
            return
        for number, stored in list(self._catalog.work.rekeys.items()):
            if number not in self._jobs:
                self.start(RekeyJob.from_bytes(stored))

    async def stop(self) -> None:
        await end_tasks(self._running.values())
        self._running.clear()
        self._jobs.clear()

    # --- requests ---------------------------------------------------------------------------------------------------

    def is_source(self, rid: bytes) -> bool:
        return any(job.source_rid == rid.hex() and not job.phase.is_over for job in self.jobs.values())

    async def switch(self, target: Container) -> RekeyJob:
        """Let the source refuse writes, and end the job as soon as both containers are equal."""
        rid = target.record.rid.hex()
        job = next((job for job in self.jobs.values() if job.target_rid == rid), None)
        if job is None:
            raise ReshapeRefused(reason=f"The container '{target.record.name}' is not the target of a re-keying.")
        if job.phase is RekeyPhase.FAILED:
            raise ReshapeRefused(reason="The re-keying has failed. Delete the target and start again.")
        if job.uncopied:
            raise ReshapeRefused(reason=_uncopied_message(job))
        if not job.phase.is_over:
            job.is_switching = True
            await self._catalog.work.ask_for_switch(job.number)
            self.on_step(RekeyStep.SWITCH_ASKED)
        return job

    def look_again(self) -> None:
        """Clean up after jobs whose containers were deleted."""
        for number, job in self.jobs.items():
            if number not in self._running and self._pair(job) is None:
                self.start(job)

    # --- running ----------------------------------------------------------------------------------------------------

    def start(self, job: RekeyJob) -> None:
        """Run a job that is recorded already, if this process leads."""
        if not self._catalog.leads or job.number in self._running:
            return
        job.trouble, job.is_caught_up = "", False
        self._jobs[job.number] = job
        self._running[job.number] = asyncio.create_task(self._run(job))

    async def _run(self, job: RekeyJob) -> None:
        is_over = False
        while not is_over:
            try:
                is_over = await self._work(job)
            except RequestRateTooLarge as throttled:
                await asyncio.sleep(throttled.retry_after_seconds)
            except TooManyUncopied:
                await self._let_writes_in(job)
                job.phase, job.is_switching = RekeyPhase.FAILED, False
                await self._record(job)
            except (AsterismError, StorageRefusal) as problem:
                _log.warning("re-keying %d waits: %s", job.number, problem)
                job.trouble = str(problem)
                await asyncio.sleep(_RETRY_SECONDS)
        del self._running[job.number]

    async def _work(self, job: RekeyJob) -> bool:
        """Do the next part of a job; return True when nothing is left to do."""
        if job.number in self._catalog.work.switches:
            job.is_switching = not job.phase.is_over
            await self._record(job)
            await self._catalog.work.forget_switch(job.number)
        pair = self._pair(job)
        if pair is None:
            await self._restore_retention(job)
            await self._let_writes_in(job)
            await self._catalog.work.forget_rekey(job.number)
            del self._jobs[job.number]
            return True
        match job.phase:
            case RekeyPhase.PREPARING:
                await self._prepare(job, pair)
            case RekeyPhase.COPYING:
                await self._copy(job, pair)
            case RekeyPhase.FOLLOWING:
                await self._follow(job, pair)
            case _:
                await self._restore_retention(job)
                return True
        job.trouble = ""
        return False

    def _pair(self, job: RekeyJob) -> Pair | None:
        """Return the containers with their present settings; None if one does not exist any more."""
        source = self._container_of(bytes.fromhex(job.source_rid))
        target = self._container_of(bytes.fromhex(job.target_rid))
        return None if source is None or target is None else Pair(source, target)

    def _copier(self, job: RekeyJob, pair: Pair) -> ItemCopier:
        return ItemCopier(self._services.router, pair.source, pair.target, job)

    async def _record(self, job: RekeyJob) -> None:
        self._recorded_at[job.number] = self._services.clock.monotonic_seconds()
        self._recorded[job.number] = _shared_at_once(job)
        await self._catalog.work.put_rekey(job.number, job.to_bytes())

    async def _record_at_times(self, job: RekeyJob) -> None:
        is_due = self._services.clock.monotonic_seconds() - self._recorded_at.get(job.number, 0.0) > _RECORD_SECONDS
        if is_due or self._recorded.get(job.number) != _shared_at_once(job):
            await self._record(job)

    # --- keeping versions -------------------------------------------------------------------------------------------

    async def _prepare(self, job: RekeyJob, pair: Pair) -> None:
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
        job.feed_position = (await position_now(self._services.router, pair.source, _WHOLE_LINE)).to_text()
        job.phase, job.copied_up_to, job.items_copied = RekeyPhase.COPYING, "", 0
        await self._record(job)
        self.on_step(RekeyStep.PREPARED)

    async def _copy_scripts(self, pair: Pair) -> None:
        scripts, target_rid = self._catalog.scripts, pair.target.record.rid
        now = int(self._services.clock.wall_seconds())
        for kind in (scripts.stored_procedures, scripts.triggers, scripts.functions):
            for script in kind.owned_by(pair.source.record.rid):
                if kind.find(target_rid, script.name) is None:
                    await kind.create(target_rid, script.name, script.properties, now=now)

    async def _retain(self, source: Container, minutes: int) -> None:
        settings = source.keyspace.record.settings
        await self._replace_container(source, self._services.profile.with_versions_kept(settings, minutes=minutes))

    async def _restore_retention(self, job: RekeyJob) -> None:
        source = self._container_of(bytes.fromhex(job.source_rid))
        if job.retention_before is None or source is None:
            return
        if _kept_seconds(source) == RETENTION_MINUTES * 60:
            await self._retain(source, job.retention_before)
        job.retention_before = None
        await self._record(job)
        self.on_step(RekeyStep.RESTORED)

    # --- copying ----------------------------------------------------------------------------------------------------

    async def _copy(self, job: RekeyJob, pair: Pair) -> None:
        clock = self._services.clock
        began = clock.monotonic_seconds()
        at = bytes.fromhex(job.copied_up_to)
        async for piece in scan_items(self._services.router, pair.source, _WHOLE_LINE, position=at):
            await self._copier(job, pair).settle([body for _, body in piece.items])
            job.items_copied += len(piece.items)
            job.copied_up_to = piece.behind.start.hex()
            await self._record_at_times(job)
            self.on_step(RekeyStep.PIECE_COPIED)
            # Requests come first: the walk rests half as long as it has worked.
            await asyncio.sleep((clock.monotonic_seconds() - began) / 2)
            began = clock.monotonic_seconds()
        if job.must_sweep:
            async for piece in scan_items(self._services.router, pair.target, _WHOLE_LINE, position=None):
                await self._copier(job, pair).settle([body for _, body in piece.items])
        job.phase, job.must_sweep = RekeyPhase.FOLLOWING, False
        await self._record(job)
        self.on_step(RekeyStep.COPIED)

    # --- following --------------------------------------------------------------------------------------------------

    async def _follow(self, job: RekeyJob, pair: Pair) -> None:
        """Follow one page of changes; without any, try again what could not be copied, or switch."""
        now = int(self._services.clock.wall_seconds())
        kept_seconds = _kept_seconds(pair.source) - _RETENTION_MARGIN_SECONDS
        if now - job.followed_at_wall_seconds > kept_seconds:
            await self._restart(job)
            return
        # Read once: a switch that is asked for meanwhile waits for the next page, before which writes are refused.
        is_switching = job.is_switching
        if is_switching:
            await self._refuse_writes(pair)
        page = await self._next_changes(job, pair)
        copier = self._copier(job, pair)
        if page.rows:
            job.is_changed = True
            await copier.settle(_images(page))
            job.changes_followed += len(page.rows)
            self.on_step(RekeyStep.CHANGES_FOLLOWED)
        elif job.is_changed:
            await copier.settle_uncopied()
            job.is_changed = False
        job.is_caught_up = len(page.rows) < _PAGE_CHANGES
        job.feed_position, job.followed_at_wall_seconds = page.position.to_text(), now
        await self._record_at_times(job)
        if not page.rows:
            if is_switching:
                await self._try_to_switch(job, pair)
            else:
                await asyncio.sleep(_POLL_SECONDS)

    async def _next_changes(self, job: RekeyJob, pair: Pair) -> FeedPage:
        position = FeedPosition.from_text(job.feed_position)
        router, log = self._services.router, AllVersions(as_stored=True)
        return await read_feed_page(router, pair.source, _WHOLE_LINE, position, log, items_max=_PAGE_CHANGES)

    async def _restart(self, job: RekeyJob) -> None:
        """Compare everything once more, also from the target's side."""
        job.phase, job.must_sweep, job.is_caught_up = RekeyPhase.PREPARING, True, False
        await self._record(job)

    # --- switching --------------------------------------------------------------------------------------------------

    async def _refuse_writes(self, pair: Pair) -> None:
        """Let the source refuse writes, and return when no write that was let in is under way any more."""
        keyspace = pair.source.keyspace
        if not keyspace.record.writes_refused:
            await self._catalog.refuse_writes(keyspace, _refusal_message(pair))
            self.on_step(RekeyStep.FENCED)
        await keyspace.earlier_work_done()
        await self._housekeeper.deletions_done(keyspace.record.rid)
        self.on_step(RekeyStep.QUIET)

    async def _let_writes_in(self, job: RekeyJob) -> None:
        """Let the source take writes again. Done before the job's record says that it no longer switches, so that a
        crash between the two does not leave clients shut out."""
        source = self._container_of(bytes.fromhex(job.source_rid))
        if source is not None and source.keyspace.record.writes_refused:
            await self._catalog.refuse_writes(source.keyspace, "")

    async def _try_to_switch(self, job: RekeyJob, pair: Pair) -> None:
        if job.uncopied:
            await self._let_writes_in(job)
            job.is_switching = False
            await self._record(job)
            return
        job.source_items, job.target_items = [await self.item_count(container) for container in pair]
        if (await self._next_changes(job, pair)).rows:
            # Items expire, and the counts are of different moments.
            return
        if job.source_items != job.target_items:
            await self._restart(job)
            return
        self.on_step(RekeyStep.COMPARED)
        job.phase, job.is_switching = RekeyPhase.SWITCHED, False
        await self._record(job)
        self.on_step(RekeyStep.SWITCHED)

    async def item_count(self, container: Container) -> int:
        keyspace = container.keyspace
        ranges, router = keyspace.record.map.ranges, self._services.router
        sizes = [await partition_size(router, keyspace, partition) for partition in ranges]
        return sum(size.items for size in sizes)


def _shared_at_once(job: RekeyJob) -> tuple[bool, int]:
    """Return the fields by which other processes decide, and which they must not get late."""
    return job.is_caught_up, len(job.uncopied)


def _kept_seconds(container: Container) -> int:
    return container.planner.settings.versions_kept_seconds or 0


def _images(page: FeedPage) -> list[bytes]:
    """Return the bodies of the changed items before and after each change."""
    versions = [unpack_version(b"", row) for row in page.rows]
    return [image for version in versions for image in (version.before, version.after) if image]


def _refusal_message(pair: Pair) -> str:
    return (
        f"The container '{pair.source.record.name}' is read-only: its items are in '{pair.target.record.name}' now, "
        "under another partition key. Write there; deleting that container would open this one again."
    )


def _uncopied_message(job: RekeyJob) -> str:
    first = next(iter(job.uncopied.values()))
    count = len(job.uncopied)
    return (
        f"{count} of the source's items cannot be in the target (at most {UNCOPIED_MAX} are listed), the first is "
        f"'{first.id}': {first.reason} Change or delete them in the source."
    )
