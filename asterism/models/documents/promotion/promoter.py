"""Moves of a logical partition into a container of its own, while clients go on (spec C19).

The items are copied exactly, and their changes followed (`rekey/copy_jobs.py`). As soon as the copy has caught up,
requests change over by themselves, by the stages of a rule in the source's record (`ForwardingState`): writes of the
logical partition wait; the last changes are followed, and both sides are compared; reads go to the target; writes do.
Then the old copies are deleted. The rule stays until the operator ends it.

The rule tells how far a job has come, where its own record is behind it after a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from asterism.errors import ReshapeRefused
from asterism.keyspaces.catalog.forwarding import ForwardingRule, ForwardingState, with_rule, without_rule
from asterism.keyspaces.routing import slice_sizes
from asterism.keyspaces.routing.families import ITEMS, LOGICAL_SIZES
from asterism.keyspaces.routing.scan import scan_line
from asterism.keyspaces.routing.slice_sizes import SliceSize
from asterism.keyspaces.routing.statistics import Size, size_from
from asterism.models.documents.container import Container
from asterism.models.documents.creation_order import SLICE_BYTES, SLICE_ITEMS
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import body_of
from asterism.models.documents.promotion.copier import ExactCopier
from asterism.models.documents.promotion.job import PromotionJob, PromotionPhase, PromotionStep
from asterism.models.documents.rekey.copy_jobs import POLL_SECONDS, CopyJobs, CopyTools, JobRecords, Pair, images_of
from asterism.models.documents.rekey.job import RekeyStep
from asterism.models.documents.results import Scope
from asterism.models.documents.upkeep.background_task import BackgroundTask, TaskKind
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_key import PartitionKey
from asterism.values.undefined import UNDEFINED

_log = logging.getLogger(__name__)

# Writes wait so long for a hand-over before they are let in again; clients give up later.
_FENCED_SECONDS_MAX = 5.0
# The pause before the next attempt.
_BETWEEN_ATTEMPTS_SECONDS = 2.0
# No batch has a higher one: while requests are forwarded, every item of the logical partition is an old copy.
_ANY_LSN = (1 << 63) - 1
_SLICE = SliceSize(SLICE_ITEMS, SLICE_BYTES)


class Promoter(CopyJobs[PromotionJob]):
    """The promotions of the process."""

    def __init__(self, tools: CopyTools) -> None:
        work = tools.catalog.work
        super().__init__(tools, JobRecords(work.promotions, work.put_promotion), PromotionJob.from_bytes)

    def is_busy_with(self, rid: bytes) -> bool:
        """Return whether a container takes part in a promotion that has not changed over yet."""
        done = (PromotionPhase.CLEANING, PromotionPhase.FORWARDING)
        return any(
            rid.hex() in (job.source_rid, job.target_rid) and job.phase not in done for job in self.jobs.values()
        )

    def wake(self) -> None:
        super().wake()
        # The operator may have had jobs forgotten in another process.
        for number in self._jobs.keys() - self._running.keys() - self._records.stored.keys():
            del self._jobs[number]

    async def end(self, job: PromotionJob, source: Container) -> None:
        """End the forwarding: from now on writes are refused with a sentence, and reads find nothing."""
        rule = rule_of(job, source)
        if rule is None or job.phase is not PromotionPhase.FORWARDING:
            raise ReshapeRefused(reason="The promotion is not over yet; wait until the old copies are deleted.")
        if rule.state is ForwardingState.FORWARDING:
            await self._set_rule(source, replace(rule, state=ForwardingState.ENDED))

    async def forget(self, job: PromotionJob, source: Container) -> None:
        """Let clients write items with the key to the old container again, as if there had never been any."""
        rule = rule_of(job, source)
        if rule is not None and rule.state is not ForwardingState.ENDED:
            raise ReshapeRefused(reason="Requests are still forwarded; end that first, with --end.")
        await self._drop_rule(job, source)
        await self._forget(job)

    # --- the life of a job ------------------------------------------------------------------------------------------

    async def _work(self, job: PromotionJob) -> bool:
        source, pair = self._source(job), self._pair(job)
        if source is None or job.number not in self._catalog.work.promotions:
            return await self._forget(job)
        rule = rule_of(job, source)
        if pair is None:
            return await self._abandon(job, source, rule)
        if rule is not None and rule.state is not ForwardingState.FENCED and job.phase is PromotionPhase.FOLLOWING:
            await self._complete(job, pair, rule)
        match job.phase:
            case PromotionPhase.PREPARING:
                await self._let_writes_in(job, source)
                await self._keep_versions(job, pair, scope_of(job, source))
                job.deferred = {}
                await self._enter(job, PromotionPhase.COPYING)
                self.on_step(RekeyStep.PREPARED)
            case PromotionPhase.COPYING:
                await self._copy(job, pair)
            case PromotionPhase.FOLLOWING:
                await self._follow(job, pair)
            case PromotionPhase.CLEANING:
                await self._restore_retention(job)
                if await self._is_clean(job, source):
                    await self._enter(job, PromotionPhase.FORWARDING)
                    self.on_step(PromotionStep.CLEANED)
            case PromotionPhase.FORWARDING:
                return True
        job.trouble = ""
        return False

    async def _enter(self, job: PromotionJob, phase: PromotionPhase) -> None:
        job.phase = phase
        await self._record(job)

    async def _abandon(self, job: PromotionJob, source: Container, rule: ForwardingRule | None) -> bool:
        """End a job whose target was deleted. Copies that are left from before the hand-over do not come back."""
        await self._restore_retention(job)
        has_changed_over = rule is not None and rule.state is not ForwardingState.FENCED
        if has_changed_over and not await self._is_clean(job, source):
            return False
        if rule is not None:
            await self._drop_rule(job, source)
        return await self._forget(job)

    async def _forget(self, job: PromotionJob) -> bool:
        if job.number in self._catalog.work.promotions:
            await self._catalog.work.forget_promotion(job.number)
        self._jobs.pop(job.number, None)
        return True

    def _shared_at_once(self, job: PromotionJob) -> object:
        return job.is_caught_up, len(job.deferred)

    # --- copying and following --------------------------------------------------------------------------------------

    async def _copy(self, job: PromotionJob, pair: Pair) -> None:
        async def settle(bodies: Sequence[bytes]) -> None:
            await self._settle(job, pair, bodies)

        scope = scope_of(job, pair.source)
        begin = max(scope.start, bytes.fromhex(job.copied_up_to))
        await self._copy_pieces(job, self._pieces(pair.source, Scope(begin, scope.end)), settle)
        if job.must_sweep:
            async for bodies, _ in self._pieces(pair.target, scope_of(job, pair.target)):
                await settle(bodies)
        job.must_sweep = False
        await self._enter(job, PromotionPhase.FOLLOWING)
        self.on_step(RekeyStep.COPIED)

    async def _pieces(self, container: Container, scope: Scope) -> AsyncIterator[tuple[Sequence[bytes], bytes]]:
        """Yield all items, expired ones too: an exact copy expires when its item does."""
        interval = KeyRange(scope.start, max(scope.start, scope.end))
        async for piece in scan_line(self._services.router, container.keyspace, ITEMS, interval, _SLICE):
            yield [body_of(stored) for _, stored in piece.entries], piece.rest.start

    async def _settle(self, job: PromotionJob, pair: Pair, bodies: Sequence[bytes]) -> None:
        waiting = await ExactCopier(self._services.router, *pair).settle(bodies)
        job.deferred |= {item_key.reference.hex(): item_key.point.hex() for item_key in waiting}

    async def _follow(self, job: PromotionJob, pair: Pair) -> None:
        if self._has_lost_versions(job, pair.source):
            await self._restart(job)
            return
        await self._follow_page(job, pair)
        # With few changes left: there may always be some, until writes wait.
        if job.is_caught_up:
            await self._hand_over(job, pair)

    async def _follow_page(self, job: PromotionJob, pair: Pair) -> bool:
        """Follow a page of changes; return True if there was none."""
        now = int(self._services.clock.wall_seconds())
        page = await self._next_changes(job, pair.source, scope_of(job, pair.source))
        await self._settle(job, pair, images_of(page))
        if job.deferred:
            keys = [_item_key(point, reference) for reference, point in job.deferred.items()]
            waiting = await ExactCopier(self._services.router, *pair).settle_waiting(keys)
            job.deferred = {item_key.reference.hex(): item_key.point.hex() for item_key in waiting}
        await self._note_followed(job, page, read_at_wall_seconds=now)
        return not page.rows and not page.was_cut_short

    async def _restart(self, job: PromotionJob) -> None:
        """Compare everything once more, also from the target's side."""
        job.must_sweep, job.is_caught_up = True, False
        await self._enter(job, PromotionPhase.PREPARING)

    # --- handing over -----------------------------------------------------------------------------------------------

    async def _hand_over(self, job: PromotionJob, pair: Pair) -> None:
        is_ready = False
        try:
            is_ready = await self._make_equal(job, pair)
        except TimeoutError:
            _log.warning("promotion %d: requests of before are still at work", job.number)
        finally:
            if not is_ready:
                await self._let_writes_in(job, pair.source)
        if not is_ready:
            await self._retry_later(job)
            return
        self.on_step(RekeyStep.COMPARED)
        # By return every process reads from the target; only then may any of them write there.
        await self._set_state(job, pair, ForwardingState.HANDED_OVER)
        self.on_step(PromotionStep.HANDED_OVER)

    async def _complete(self, job: PromotionJob, pair: Pair, rule: ForwardingRule) -> None:
        if rule.state is ForwardingState.HANDED_OVER:
            await self._set_state(job, pair, ForwardingState.FORWARDING)
            self.on_step(PromotionStep.FORWARDED)
        await self._enter(job, PromotionPhase.CLEANING)
        self.on_step(PromotionStep.NOTED)

    async def _retry_later(self, job: PromotionJob) -> None:
        if job.is_unequal:
            job.is_unequal = False
            await self._restart(job)
        else:
            job.is_unequal = True
            await asyncio.sleep(_BETWEEN_ATTEMPTS_SECONDS)

    async def _make_equal(self, job: PromotionJob, pair: Pair) -> bool:
        """Keep writes waiting and follow the last changes; return whether both sides are equal before it takes long."""
        clock, keyspace = self._services.clock, pair.source.keyspace
        until = clock.monotonic_seconds() + _FENCED_SECONDS_MAX
        await self._set_state(job, pair, ForwardingState.FENCED)
        self.on_step(RekeyStep.FENCED)
        async with asyncio.timeout(_FENCED_SECONDS_MAX):
            await keyspace.earlier_work_done()
            await self._tools.housekeeper.deletions_done(keyspace.record.rid)
        # A process that led before may still be at a copy; under another record it looks at both sides again.
        await self._catalog.change_terms(pair.target.keyspace, lambda before: before)
        self.on_step(PromotionStep.TARGET_FENCED)
        while clock.monotonic_seconds() < until:
            is_followed = await self._follow_page(job, pair)
            if is_followed and not job.deferred and await self._have_equal_sizes(job, pair):
                return True
            if is_followed:
                # Expired items are removed on both sides, in their own time.
                await asyncio.sleep(POLL_SECONDS)
        return False

    async def _have_equal_sizes(self, job: PromotionJob, pair: Pair) -> bool:
        source, target = [await self.size_of(container, scope_of(job, container)) for container in pair]
        return source == target

    async def size_of(self, container: Container, scope: Scope) -> Size:
        """Return the bytes and items of all logical partitions of a scope."""
        total, interval = Size(), KeyRange(scope.start, scope.end)
        pieces = scan_line(self._services.router, container.keyspace, LOGICAL_SIZES, interval, slice_sizes.COUNTERS)
        async for found in pieces:
            for size in (size_from(stored) for _, stored in found.entries):
                total = Size(total.bytes + size.bytes, total.items + size.items)
        return total

    async def _set_state(self, job: PromotionJob, pair: Pair, state: ForwardingState) -> None:
        source, target = pair
        rule = rule_of(job, source)
        if rule is None:
            prefix = scope_of(job, source).start
            rule = ForwardingRule(job.number, prefix, job.key, target.record.rid, target.record.name, state)
        await self._set_rule(source, replace(rule, state=state), as_leader=True)

    async def _set_rule(self, source: Container, rule: ForwardingRule, *, as_leader: bool = False) -> None:
        await self._catalog.change_terms(
            source.keyspace,
            lambda before: replace(before, forwarding=with_rule(before.forwarding, rule)),
            as_leader=as_leader,
        )

    async def _let_writes_in(self, job: PromotionJob, source: Container) -> None:
        rule = rule_of(job, source)
        if rule is not None and rule.state is ForwardingState.FENCED:
            await self._drop_rule(job, source)

    async def _drop_rule(self, job: PromotionJob, source: Container) -> None:
        await self._catalog.change_terms(
            source.keyspace,
            lambda before: replace(before, forwarding=without_rule(before.forwarding, job.number) or None),
        )

    # --- the old copies ---------------------------------------------------------------------------------------------

    async def _is_clean(self, job: PromotionJob, source: Container) -> bool:
        """Have the old copies deleted; return True when they are gone."""
        scope, rid = scope_of(job, source), source.record.rid
        await source.keyspace.earlier_work_done()
        housekeeper, work = self._tools.housekeeper, self._catalog.work
        # A deletion that is at its end must not meet the items of a key that is written here again one day.
        own = [task for task in housekeeper.tasks.values() if (task.keyspace_rid, task.end) == (rid, scope.end)]
        if not own:
            if not (await self.size_of(source, scope)).items:
                return True
            number = await work.new_task_number()
            kind = TaskKind.DELETE_PARTITION_KEY
            task = BackgroundTask(number, kind, rid, scope.start, scope.end, up_to_lsn=_ANY_LSN)
            await work.put_task(number, task.to_bytes())
            housekeeper.begin(task)
        await asyncio.sleep(POLL_SECONDS)
        return False


def key_of(job: PromotionJob) -> PartitionKey:
    return tuple(UNDEFINED if value == {} else value for value in job.key)


def scope_of(job: PromotionJob, container: Container) -> Scope:
    """Return the part of either container that holds the items of the promoted key."""
    return container.logical_scope(key_of(job))


def rule_of(job: PromotionJob, source: Container) -> ForwardingRule | None:
    rules = source.keyspace.record.forwarding or ()
    return next((rule for rule in rules if rule.number == job.number), None)


def _item_key(point: str, reference: str) -> ItemKey:
    return ItemKey.of_reference(bytes.fromhex(point), bytes.fromhex(reference))
