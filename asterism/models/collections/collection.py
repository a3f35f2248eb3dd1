"""A collection: documents on a keyspace. Every change is one batch, decided on what was read.

A change that another writer has overtaken is decided again on fresh data, in the queue of its key. Callers pass a
transaction as `unit`: its reads are of one moment, and its changes are staged until it commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Collection_
from dataclasses import dataclass, field
from typing import Any

from asterism.clock import Clock
from asterism.errors import AsterismError, OwnerNotFound, TooMuchContention
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.commit import Committer
from asterism.keyspaces.routing.contention import WriterQueues
from asterism.keyspaces.routing.families import LOGICAL_SIZES, TOTALS_KEY
from asterism.keyspaces.routing.keyspace import Keyspace, Spent
from asterism.keyspaces.routing.router import PartitionRouter, PlanOutdated
from asterism.keyspaces.routing.statistics import Size, partition_size, size_from
from asterism.limits import Limits
from asterism.models.collections.batches import Decide, blamed_insert, decide_all, insert_groups, runs_of
from asterism.models.collections.change_signal import ChangeSignal
from asterism.models.collections.hybrid_time import HybridClock
from asterism.models.collections.layout import DocumentKey, body_of, document_key
from asterism.models.collections.planner import ChangePlanner, DocumentChange, PlannedChanges, duplicate
from asterism.models.collections.records import CollectionRecord
from asterism.models.collections.results import (
    Change,
    DuplicateKey,
    FoundDocument,
    IndexEntryProblem,
    InsertResult,
    NoSuchCollection,
    RetriedStatement,
    RetryToken,
    ShardKeyProblem,
    WriteProblem,
)
from asterism.models.collections.retries import COMMITTED, SessionOutcomes, find_anywhere, read_outcomes
from asterism.models.collections.rules import CollectionRules, CompileIndex
from asterism.models.collections.scans import CollectionReads, Scan, ScanQuery, Verify
from asterism.models.collections.unit import Unit
from asterism.models.collections.write_claims import WriteClaims
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Add, ExpectationFailed
from asterism.throughput import charge
from asterism.values.bson.codec import decode
from asterism.values.bson.raw_documents import get_field
from asterism.values.bson.types import Document

# How often a writer that waits for the end of a re-keying looks for it, where another process does it.
_FROZEN_NAP_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class CollectionServices:
    """The parts of the program that collections need."""

    router: PartitionRouter
    reshaper: Reshaper
    limits: Limits
    clock: Clock
    random_bytes: Callable[[int], bytes]
    planner: ChangePlanner
    hybrid_clock: HybridClock
    compile_index: CompileIndex
    signal: ChangeSignal = field(default_factory=ChangeSignal)
    writer_queues: WriterQueues = field(default_factory=WriterQueues)
    claims: WriteClaims = field(default_factory=WriteClaims)

    def wall_milliseconds(self) -> int:
        return int(self.clock.wall_seconds() * 1000)


class Collection:
    """Documents of one collection. Held for the length of a request; `rules` are those in force."""

    __slots__ = ("_committer", "_current", "_services", "_verify", "keyspace")

    def __init__(
        self,
        keyspace: Keyspace,
        current: Callable[[], CollectionRules],
        services: CollectionServices,
        *,
        verify: Verify | None = None,
    ) -> None:
        """`current` returns the rules of the settings in force; NoSuchCollection once the collection is dropped or has
        its documents in another keyspace. `verify` raises it for rules by which nothing can be read any more."""
        self.keyspace = keyspace
        self._verify = verify
        self._current = current
        self._services = services
        limits = services.limits
        self._committer = Committer(
            keyspace,
            services.router,
            services.reshaper,
            logical_bytes_max=limits.logical_partition_bytes_max,
            physical_bytes_max=limits.physical_partition_bytes_max,
        )

    @property
    def rules(self) -> CollectionRules:
        return self._current()

    @property
    def record(self) -> CollectionRecord:
        return self._current().record

    async def _writable_rules(self) -> CollectionRules:
        """Return the rules in force once writers are let in; NoSuchCollection if the documents are elsewhere then."""
        while (rules := self._current()).record.is_frozen:
            await self._pause()
        return rules

    async def _readable_rules(self) -> CollectionRules:
        """Return the rules in force once readers are let in; NoSuchCollection if the documents are elsewhere then."""
        while (rules := self._current()).record.is_closed:
            await self._pause()
        return rules

    async def _pause(self) -> None:
        await self._services.router.follow()
        await self.keyspace.changed(seconds_max=_FROZEN_NAP_SECONDS)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def read(
        self,
        document_id: object,
        equalities: Mapping[str, Any] | None = None,
        *,
        rules: CollectionRules | None = None,
        unit: Unit | None = None,
        spent: Spent | None = None,
    ) -> FoundDocument | None:
        """Return the document of an id. Of a sharded collection the equalities must name the shard key. `rules` are the
        present ones, if the caller has them."""
        if rules is None or rules.record.is_closed:
            rules = await self._readable_rules()
        settings = self.keyspace.record.settings
        point = rules.pinned_point(equalities or {"_id": document_id})
        assert point is not None, "only a known logical partition has one document of an id"
        key = document_key(point, document_id)
        reads = await self._reads(unit, point)
        try:
            partition, _, (stored,) = await reads.read(self.keyspace, point, (key.stored,))
        except OwnerNotFound:
            raise NoSuchCollection(rules.record.name) from None
        if self._verify is not None and unit is None and self.keyspace.record.settings is not settings:
            self._verify(rules, has_begun=False)
        body = None if stored is None else body_of(stored)
        cost = charge.MISS if body is None else charge.point_read(len(body))
        self.keyspace.spend(partition, cost, point)
        if spent is not None:
            spent.charge += cost
        return None if body is None else FoundDocument(key, body)

    async def open_scan(self, query: ScanQuery, *, unit: Unit | None = None, spent: Spent | None = None) -> Scan:
        rules = await self._readable_rules()
        point = rules.pinned_point(query.equalities)
        if unit is not None and point is None:
            ranges = self.keyspace.record.map.ranges
            point = ranges[0].range.start if len(ranges) == 1 else None
            if point is None:
                await unit.enter(self.keyspace, ranges[-1].range.start, rules.record.namespace)
                await unit.enter(self.keyspace, ranges[0].range.start, rules.record.namespace)
        reads = self._services.router if unit is None else await self._reads(unit, point or b"")
        return await Scan(self.keyspace, rules, reads, query, spent, None if unit is not None else self._verify).open()

    async def _reads(self, unit: Unit | None, point: bytes) -> CollectionReads:
        if unit is None:
            return self._services.router
        await unit.enter(self.keyspace, point, self.record.namespace)
        return unit

    async def size(self) -> Size:
        """Return bytes and documents, as every write keeps them."""
        rules, router = self.rules, self._services.router
        if not rules.is_sharded:
            _, _, (stored,) = await router.read(self.keyspace, rules.fixed_point, (LOGICAL_SIZES + rules.fixed_point,))
            return size_from(stored)
        sizes = [size for _, size in await self.partition_sizes()]
        return Size(sum(size.bytes for size in sizes), sum(size.items for size in sizes))

    async def partition_sizes(self) -> list[tuple[PartitionRange, Size]]:
        """Return the physical partitions of a sharded collection with their sizes."""
        router, keyspace = self._services.router, self.keyspace
        return [(part, await partition_size(router, keyspace, part)) for part in keyspace.record.map.ranges]

    # --- inserting --------------------------------------------------------------------------------------------------

    async def insert(
        self,
        documents: Sequence[bytes],
        *,
        ordered: bool = True,
        retry: RetryToken | None = None,
        unit: Unit | None = None,
        spent: Spent | None = None,
        allow_missing_shard_key: bool = False,
        only: Collection_[int] | None = None,
    ) -> InsertResult:
        """Insert documents, whose first element is `_id`. Those of one logical partition are one batch, or a few.

        Ordered inserts end at the first problem; others go on. `only` names the documents to insert, by their places;
        None is all. If the collection is dropped or re-keyed meanwhile, `result.left` names those that are not written.
        """
        result = InsertResult()
        wanted = range(len(documents)) if only is None else sorted(only)
        try:
            rules = await self._writable_rules()
        except NoSuchCollection:
            result.left = list(wanted)
            return result
        pending: list[tuple[int, DocumentKey, bytes]] = []
        for index in wanted:
            body = documents[index]
            try:
                point = (
                    rules.point_of(decode(body), allow_missing=allow_missing_shard_key)
                    if rules.is_sharded
                    else rules.fixed_point
                )
            except ShardKeyProblem as problem:
                result.problems.append(WriteProblem(index, problem))
                if ordered:
                    break
                continue
            pending.append((index, document_key(point, get_field(body, "_id")), body))
        failed_at = len(documents)
        for group in insert_groups(pending, ordered=ordered):
            if result.left:
                result.left += [index for index, _, _ in group]
                continue
            try:
                problems = await self._insert_group(group, result, ordered=ordered, retry=retry, unit=unit, spent=spent)
            except OwnerNotFound:
                result.left += [index for index, _, _ in group]
                continue
            except AsterismError as error:
                if retry is not None or unit is not None or not result.inserted:
                    # The caller may repeat all of it: nothing was written, or everything written is remembered.
                    raise
                problems = [WriteProblem(index, error) for index, _, _ in group]
                result.problems += problems
            if problems and ordered:
                failed_at = min(problem.index for problem in problems)
                break
        result.problems.sort(key=lambda problem: problem.index)
        if ordered:
            result.problems = [problem for problem in result.problems if problem.index <= failed_at][:1]
        return result

    async def _insert_group(
        self,
        group: list[tuple[int, DocumentKey, bytes]],
        result: InsertResult,
        *,
        ordered: bool,
        retry: RetryToken | None,
        unit: Unit | None,
        spent: Spent | None,
    ) -> list[WriteProblem]:
        point = group[0][1].point
        problems: list[WriteProblem] = []
        error: Exception
        if unit is not None:
            await self._stage_inserts(group, result, problems, unit)
            result.problems += problems
            return problems
        outcomes: SessionOutcomes | None = None
        if retry is not None:
            outcomes, group = await self._not_inserted(group, result, retry)
        while group:
            try:
                await self._writable_rules()
            except NoSuchCollection:
                result.left += [index for index, _, _ in group]
                break
            with self.keyspace.in_flight:
                settings = self.keyspace.record.settings
                try:
                    rules = self.rules
                except NoSuchCollection:
                    continue
                if rules.record.is_frozen:
                    continue
                changes = [DocumentChange(rules, key, None, body) for _, key, body in group]
                try:
                    planned = self._services.planner.plan(changes)
                    if outcomes is not None and retry is not None:
                        numbers = sorted(retry.statement + index for index, _, _ in group)
                        outcomes.plan_inserts(planned.batch, numbers, now=self._services.wall_milliseconds())
                    await self._commit(point, planned, settings, spent)
                    result.inserted += len(group)
                    break
                except (PlanOutdated, OwnerNotFound):
                    # With its database, if it is gone: the rules say so.
                    continue
                except ExpectationFailed as failed:
                    place, error = blamed_insert(planned, failed.key, group)
                except DuplicateKey as found:
                    place, error = found.place, found
                except IndexEntryProblem as found:
                    place, error = found.place, found.error
            if retry is not None:
                # The same statements may have come twice, and the other ones were faster.
                known = len(group)
                outcomes, group = await self._not_inserted(group, result, retry)
                if len(group) < known:
                    continue
            problems.append(WriteProblem(group[place][0], error))
            group = group[:place] if ordered else group[:place] + group[place + 1 :]
        result.problems += problems
        return problems

    async def _not_inserted(
        self, group: list[tuple[int, DocumentKey, bytes]], result: InsertResult, retry: RetryToken
    ) -> tuple[SessionOutcomes, list[tuple[int, DocumentKey, bytes]]]:
        """Return the outcomes of the session, and the inserts that it has not carried out before."""
        outcomes = await self._outcomes(retry, group[0][1].point)
        done = {index for index, _, _ in group if outcomes.find(retry.statement + index) is not None}
        result.retried += sorted(done)
        result.inserted += len(done)
        return outcomes, [entry for entry in group if entry[0] not in done] if done else group

    async def _stage_inserts(
        self,
        group: list[tuple[int, DocumentKey, bytes]],
        result: InsertResult,
        problems: list[WriteProblem],
        unit: Unit,
    ) -> None:
        rules = self.rules
        for index, key, body in group:
            await unit.enter(self.keyspace, key.point, rules.record.namespace)
            _, _, (stored,) = await unit.read(self.keyspace, key.point, (key.stored,))
            try:
                if stored is not None:
                    raise duplicate(rules, None, (get_field(body, "_id"),))
                await unit.stage(DocumentChange(rules, key, None, body))
            except DuplicateKey as error:
                problems.append(WriteProblem(index, error))
                return
            result.inserted += 1

    # --- changing ---------------------------------------------------------------------------------------------------

    async def retried(self, retry: RetryToken, point: bytes) -> Document | None:
        """Return the outcome of a statement that was carried out before."""
        return (await self._outcomes(retry, point)).find(retry.statement)

    async def retried_anywhere(self, retry: RetryToken) -> Document | None:
        """Return the outcome of a statement that was carried out before, at a point that the caller does not know."""
        return await find_anywhere(self._services.router, self.keyspace, retry)

    async def change(
        self,
        keys: Sequence[DocumentKey],
        decide: Decide,
        *,
        retry: RetryToken | None = None,
        unit: Unit | None = None,
        spent: Spent | None = None,
    ) -> list[Change] | RetriedStatement:
        """Decide on documents as they are now, and carry the decisions out: those of one logical partition together.

        `decide` gets the body, None for a document that is gone, and is called again when the document has changed.
        Raises DuplicateKey, and whatever `decide` raises; then nothing of that logical partition was written.
        """
        done: list[Change] = []
        for group in runs_of(keys):
            try:
                outcome = await self._change_group(group, decide, retry=retry, unit=unit, spent=spent)
            except OwnerNotFound as gone:
                raise NoSuchCollection(gone.name) from None
            if isinstance(outcome, RetriedStatement):
                return outcome
            done += outcome
        return done

    async def _change_group(
        self,
        keys: Sequence[DocumentKey],
        decide: Decide,
        *,
        retry: RetryToken | None,
        unit: Unit | None,
        spent: Spent | None,
    ) -> list[Change] | RetriedStatement:
        point = keys[0].point
        stored_keys = [key.stored for key in keys]
        if unit is not None:
            return await self._stage_changes(keys, stored_keys, decide, unit)
        if retry is not None:
            stored_keys.append(SessionOutcomes.key_of(retry, point))
        queue_key = stored_keys[0] if len(keys) == 1 else None
        async for attempt in self._services.writer_queues.attempts(self.keyspace, point, queue_key):
            with attempt:
                rules = await self._writable_rules()
                settings = self.keyspace.record.settings
                _, _, values = await self._services.router.read(self.keyspace, point, stored_keys)
                outcomes = None
                if retry is not None:
                    outcomes = SessionOutcomes(retry, point, values.pop())
                    known = outcomes.find(retry.statement)
                    if known is not None:
                        return RetriedStatement(known)
                decisions, changes = decide_all(rules, keys, values, decide)
                planned = self._services.planner.plan(changes)
                if outcomes is not None and retry is not None:
                    outcome = {retry.statement: retry.outcome(decisions)}
                    outcomes.plan(planned.batch, outcome, now=self._services.wall_milliseconds())
                if not changes and outcomes is None:
                    return decisions
                try:
                    await self._commit(point, planned, settings, spent)
                except ExpectationFailed as failed:
                    blamed = planned.blame.get(failed.key)
                    if blamed is not None and blamed[2] is not None:
                        raise duplicate(blamed[1], blamed[2], blamed[3]) from None
                    raise
                return decisions
        raise TooMuchContention

    async def _stage_changes(
        self, keys: Sequence[DocumentKey], stored_keys: Sequence[bytes], decide: Decide, unit: Unit
    ) -> list[Change]:
        rules = self.rules
        await unit.enter(self.keyspace, keys[0].point, rules.record.namespace)
        _, _, values = await unit.read(self.keyspace, keys[0].point, stored_keys)
        decisions, changes = decide_all(rules, keys, values, decide)
        for change in changes:
            await unit.stage(change)
        return decisions

    async def commit_unit(self, unit: Unit, retry: RetryToken | None = None, *, spent: Spent | None = None) -> None:
        """Write the changes of a transaction; the storage contract's ExpectationFailed if it was overtaken."""
        changes = list(unit.staged.values())
        with self.keyspace.in_flight:
            settings = self.keyspace.record.settings
            transaction = None if retry is None else {"s": retry.session, "n": retry.number}
            planned = self._services.planner.plan(changes, transaction)
            if retry is not None:
                outcomes = await self._outcomes(retry, unit.point)
                if outcomes.find(retry.statement) is not None:
                    return
                outcomes.plan(planned.batch, {retry.statement: COMMITTED}, now=self._services.wall_milliseconds())
            await self._commit(unit.point, planned, settings, spent)

    async def apply_copies(self, point: bytes, changes: Sequence[DocumentChange], settings: Mapping[str, Any]) -> None:
        """Write documents of another place of the collection; they cost nothing. PlanOutdated if other settings are in
        force by now, DuplicateKey, and the storage contract's ExpectationFailed."""
        planned = self._services.planner.plan(changes)
        planned.cost = 0.0
        try:
            await self._commit(point, planned, settings, None)
        except PlanOutdated:
            raise
        except ExpectationFailed as failed:
            blamed = planned.blame.get(failed.key)
            if blamed is not None and blamed[2] is not None:
                raise duplicate(blamed[1], blamed[2], blamed[3]) from None
            raise

    async def _outcomes(self, retry: RetryToken, point: bytes) -> SessionOutcomes:
        return await read_outcomes(self._services.router, self.keyspace, retry, point)

    async def _commit(
        self, point: bytes, planned: PlannedChanges, settings: Mapping[str, Any], spent: Spent | None
    ) -> PartitionRange:
        batch = planned.batch
        bytes_delta, items_delta = planned.sizes.pop(point, (0, 0))
        for other, deltas in planned.sizes.items():
            # Only transactions change several logical partitions, all of one physical partition.
            batch.adds.append(Add(LOGICAL_SIZES + other, deltas, self._services.limits.logical_partition_bytes_max))
            batch.adds.append(Add(TOTALS_KEY, deltas))
        partition, _ = await self._committer.commit(
            point,
            batch,
            bytes_delta=bytes_delta,
            items_delta=items_delta,
            cost=planned.cost,
            planned_under=settings,
            spent=spent,
        )
        self._services.signal.notify()
        return partition
