"""Copies of containers into ones with another partition key, while clients go on (spec C18).

The source is made to keep all versions; the position in them is noted; all items are copied; then the versions are
followed, deletes among them, until the operator switches. A job is recorded in the catalog and resumed after a crash
where it was recorded last: bringing an item into line once more does no harm.

From the switch on the source refuses clients' writes. Those that were let in before are waited for and followed, and
only then are the two compared: every acknowledged write is in the target, and none comes after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from asterism.errors import ReshapeRefused
from asterism.keyspaces.routing.statistics import partition_size
from asterism.models.documents.container import Container
from asterism.models.documents.pages import range_scope, scan_items
from asterism.models.documents.rekey.copier import UNCOPIED_MAX, ItemCopier, TooManyUncopied
from asterism.models.documents.rekey.copy_jobs import POLL_SECONDS, CopyJobs, CopyTools, JobRecords, Pair, images_of
from asterism.models.documents.rekey.job import RekeyJob, RekeyPhase, RekeyStep
from asterism.partitioning.key_range import FULL

_WHOLE_LINE = range_scope(FULL)


class Rekeyer(CopyJobs[RekeyJob]):
    """The re-keying jobs of the process."""

    def __init__(self, tools: CopyTools) -> None:
        work = tools.catalog.work
        super().__init__(tools, JobRecords(work.rekeys, work.put_rekey), RekeyJob.from_bytes)

    # --- requests ---------------------------------------------------------------------------------------------------

    def is_source(self, rid: bytes) -> bool:
        return any(job.source_rid == rid.hex() and not job.phase.is_over for job in self.jobs.values())

    def is_busy_with(self, rid: bytes) -> bool:
        """Return whether a container is the source or the target of a re-keying that is not over."""
        return any(
            rid.hex() in (job.source_rid, job.target_rid) and not job.phase.is_over for job in self.jobs.values()
        )

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

    # --- running ----------------------------------------------------------------------------------------------------

    async def _work(self, job: RekeyJob) -> bool:
        try:
            return await self._next_part(job)
        except TooManyUncopied:
            await self._let_writes_in(job)
            job.phase, job.is_switching = RekeyPhase.FAILED, False
            await self._record(job)
            return False

    async def _next_part(self, job: RekeyJob) -> bool:
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

    def _copier(self, job: RekeyJob, pair: Pair) -> ItemCopier:
        return ItemCopier(self._services.router, pair.source, pair.target, job)

    def _shared_at_once(self, job: RekeyJob) -> object:
        return job.is_caught_up, len(job.uncopied)

    # --- copying ----------------------------------------------------------------------------------------------------

    async def _prepare(self, job: RekeyJob, pair: Pair) -> None:
        await self._keep_versions(job, pair, _WHOLE_LINE)
        job.phase = RekeyPhase.COPYING
        await self._record(job)
        self.on_step(RekeyStep.PREPARED)

    async def _copy(self, job: RekeyJob, pair: Pair) -> None:
        async def settle(bodies: Sequence[bytes]) -> None:
            await self._copier(job, pair).settle(bodies)

        await self._copy_pieces(job, self._pieces(pair.source, bytes.fromhex(job.copied_up_to)), settle)
        if job.must_sweep:
            async for bodies, _ in self._pieces(pair.target, None):
                await settle(bodies)
        job.phase, job.must_sweep = RekeyPhase.FOLLOWING, False
        await self._record(job)
        self.on_step(RekeyStep.COPIED)

    async def _pieces(
        self, container: Container, position: bytes | None
    ) -> AsyncIterator[tuple[Sequence[bytes], bytes]]:
        async for piece in scan_items(self._services.router, container, _WHOLE_LINE, position=position):
            yield [body for _, body in piece.items], piece.behind.start

    # --- following --------------------------------------------------------------------------------------------------

    async def _follow(self, job: RekeyJob, pair: Pair) -> None:
        """Follow one page of changes; without any, try again what could not be copied, or switch."""
        now = int(self._services.clock.wall_seconds())
        if self._has_lost_versions(job, pair.source):
            await self._restart(job)
            return
        # Read once: a switch that is asked for meanwhile waits for the next page, before which writes are refused.
        is_switching = job.is_switching
        if is_switching:
            await self._refuse_writes(pair)
        page = await self._next_changes(job, pair.source, _WHOLE_LINE)
        copier = self._copier(job, pair)
        if page.rows:
            job.is_changed = True
            await copier.settle(images_of(page))
        elif job.is_changed:
            await copier.settle_uncopied()
            job.is_changed = False
        await self._note_followed(job, page, read_at_wall_seconds=now)
        if not page.rows:
            if is_switching:
                await self._try_to_switch(job, pair)
            else:
                await asyncio.sleep(POLL_SECONDS)

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
        await self._tools.housekeeper.deletions_done(keyspace.record.rid)
        self.on_step(RekeyStep.QUIET)

    async def _let_writes_in(self, job: RekeyJob) -> None:
        """Let the source take writes again. Done before the job's record says that it no longer switches, so that a
        crash between the two does not leave clients shut out."""
        source = self._source(job)
        if source is not None and source.keyspace.record.writes_refused:
            await self._catalog.refuse_writes(source.keyspace, "")

    async def _try_to_switch(self, job: RekeyJob, pair: Pair) -> None:
        if job.uncopied:
            await self._let_writes_in(job)
            job.is_switching = False
            await self._record(job)
            return
        job.source_items, job.target_items = [await self.item_count(container) for container in pair]
        if (await self._next_changes(job, pair.source, _WHOLE_LINE)).rows:
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
