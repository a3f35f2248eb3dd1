"""Collections on their way to another shard key, while clients go on (spec C18).

A job is recorded in the settings of the database's home, by any process; the leader carries it out. The position in the
source's log is noted, all documents are copied to the target, then the log is followed. When little is left, writers
wait, the rest is followed, and one change of the home puts the target in the source's place: writers that waited find
it there. The source is kept for a while, for readers that have begun, and then removed.

A job that a crash interrupts is resumed where it was recorded last: copying a document once more does no harm.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from asterism.errors import AsterismError, ResourceExists, ResourceNotFound
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.collections.catalog_log import change_of
from asterism.models.collections.changes import ChangeLog, ChangePosition, ChangeSource, LoggedChange
from asterism.models.collections.collection import Collection
from asterism.models.collections.layout import DocumentKey, document_key
from asterism.models.collections.records import HOME_DEFINITION, CollectionRecord, HomeSettings
from asterism.models.collections.rekey.copier import DocumentCopier
from asterism.models.collections.rekey.job import CollectionRekeyJob, CollectionRekeyPhase, CollectionRekeyStep
from asterism.models.collections.results import (
    DuplicateKey,
    NoSuchCollection,
    RekeyFailed,
    RekeyProblem,
    RekeyUnderWay,
    ShardKeyProblem,
)
from asterism.models.collections.rules import CollectionRules
from asterism.models.collections.scans import ScanQuery
from asterism.models.collections.store import ACCOUNT_PREFIX, CollectionStore
from asterism.storage.contract import StorageRefusal
from asterism.throughput.budgets import Throughput

_log = logging.getLogger(__name__)

# Cursors that were open when the source was replaced go on with it for so long.
RETAINED_SECONDS = 60
_RETRY_SECONDS = 1.0
_POLL_SECONDS = 0.05
# A source that is written to faster than it is followed is frozen after so many pages all the same.
_PAGES_MAX = 5000
# After a page of less than this, writers are made to wait for the rest.
_NEARLY_DONE_CHANGES = 64
_ID_BYTES = 6


@dataclass(slots=True)
class RekeyProgress:
    """A job as operators and `currentOp` see it."""

    job: CollectionRekeyJob
    database: str
    copied: int = 0
    total: int = 0
    followed: int = 0


class CollectionRekeyer:
    """The re-keying jobs of a process."""

    def __init__(self, store: CollectionStore, *, retained_seconds: float = RETAINED_SECONDS) -> None:
        self._store = store
        self._services = store.services
        self._retained_seconds = retained_seconds
        self._catalog = store.catalog
        self._changes = ChangeLog(store.services.router)
        self.on_step: Callable[[CollectionRekeyStep], None] = lambda step: None  # noqa: ARG005
        self._running: dict[tuple[bytes, str], asyncio.Task[None]] = {}
        self._progress: dict[str, RekeyProgress] = {}
        self._is_at_work = False

    # --- starting and stopping --------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._is_at_work = True
        self.wake()

    async def stop(self) -> None:
        self._is_at_work = False
        await end_tasks(self._running.values())
        self._running.clear()
        self._progress.clear()

    def wake(self) -> None:
        """Start the jobs that are recorded, by this process or another, if this one leads."""
        if not self._is_at_work or not self._catalog.leads:
            return
        for database in list(self._catalog.databases.values()):
            home = self._store.home_of(database) if database.account.startswith(ACCOUNT_PREFIX) else None
            for job_id, job in ({} if home is None else home.jobs).items():
                key = database.rid, job_id
                is_done = job.phase is CollectionRekeyPhase.FAILED
                if not is_done and (key not in self._running or self._running[key].done()):
                    self._running[key] = asyncio.create_task(self._run(database, job_id))

    # --- requests ---------------------------------------------------------------------------------------------------

    def progress(self) -> list[RekeyProgress]:
        """Return the jobs under way. Only the process that leads knows how far they have come."""
        found = []
        for database in self._catalog.databases.values():
            home = self._store.home_of(database) if database.account.startswith(ACCOUNT_PREFIX) else None
            for job in () if home is None else home.jobs.values():
                known = self._progress.get(job.id)
                found.append(
                    RekeyProgress(job, database.name)
                    if known is None
                    else RekeyProgress(job, database.name, known.copied, known.total, known.followed)
                )
        return found

    async def rekey(
        self, account: str, target: CollectionRecord, *, throughput: Throughput | None = None
    ) -> CollectionRecord:
        """Give a collection the shard key, or none, of the record `target`; return when it has it. Its number is
        ignored. RekeyFailed, RekeyUnderWay, NoSuchCollection."""
        database = self._store.database_record(account, target.database)
        if database is None:
            raise NoSuchCollection(target.name)
        job_id = await self._ask(account, database, target, throughput)
        self.on_step(CollectionRekeyStep.ASKED)
        self.wake()
        job = await self._wait(database, job_id)
        if job is not None and job.phase is CollectionRekeyPhase.FAILED:
            await self._store.change_home(database, lambda settings: settings.with_rekey(job_id, None))
            raise RekeyFailed(job.problem or RekeyProblem.OTHER, job.reason)
        found = self._store.record(account, target.database, target.name)
        if found is None or found.shard_pattern != target.shard_pattern:
            raise RekeyFailed(RekeyProblem.DROPPED, "The collection was dropped while it got another shard key.")
        return found

    async def _ask(
        self, account: str, database: DatabaseRecord, target: CollectionRecord, throughput: Throughput | None
    ) -> str:
        job_id = self._services.random_bytes(_ID_BYTES).hex()
        store, name = self._store, target.name

        def add(settings: HomeSettings) -> HomeSettings:
            source = store.record(account, target.database, name)
            if source is None or source.is_view:
                raise NoSuchCollection(name)
            jobs = [CollectionRekeyJob.from_settings(other, stored) for other, stored in settings.rekeys.items()]
            is_building = any(not index.is_ready for index in source.indexes)
            if is_building or any(job.name == name and job.is_before_switch for job in jobs):
                raise RekeyUnderWay(name)
            # In the home the number must be a new one: what a re-keying before left behind may still be there.
            number = source.number if target.shard_key else settings.next_number
            job = CollectionRekeyJob(
                job_id,
                name,
                settings.sharded.get(name, ""),
                store.new_keyspace_key(number) if target.shard_key else "",
                source.number,
                replace(target, number=number, uuid=source.uuid, is_frozen=False, is_closed=False).to_text(),
                throughput,
            )
            next_number = max(settings.next_number, number + 1)
            return replace(settings, next_number=next_number).with_rekey(job_id, job.to_settings())

        await store.change_home(database, add)
        return job_id

    async def _wait(self, database: DatabaseRecord, job_id: str) -> CollectionRekeyJob | None:
        """Return a job when it has switched or failed; None if it is gone."""
        while True:
            home = self._store.home_of(database)
            job = None if home is None else home.jobs.get(job_id)
            if home is None or job is None or not job.is_before_switch:
                return job
            await self._services.router.follow()
            await home.keyspace.changed(seconds_max=_POLL_SECONDS)

    # --- running ----------------------------------------------------------------------------------------------------

    async def _run(self, database: DatabaseRecord, job_id: str) -> None:
        while True:
            home = self._store.home_of(database)
            job = None if home is None else home.jobs.get(job_id)
            if job is None or job.phase is CollectionRekeyPhase.FAILED:
                self._progress.pop(job_id, None)
                return
            self._progress.setdefault(job_id, RekeyProgress(job, database.name))
            try:
                await self._work(database, job)
            except DuplicateKey as found:
                fields = ", ".join(found.key_value)
                reason = f"Two documents have the same {fields} under one value of the new shard key ({found.index})."
                await self._fail(database, job, RekeyProblem.DUPLICATE, reason)
            except ShardKeyProblem as problem:
                await self._fail(database, job, RekeyProblem.SHARD_KEY, problem.reason)
            except (AsterismError, StorageRefusal, NoSuchCollection) as problem:
                _log.warning("the re-keying of %s.%s waits: %s", database.name, job.name, problem)
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception:
                _log.exception("the re-keying of %s.%s failed", database.name, job.name)
                await self._fail(database, job, RekeyProblem.OTHER, "The server failed; its log has the reason.")

    async def _work(self, database: DatabaseRecord, job: CollectionRekeyJob) -> None:
        """Do the next part of a job."""
        if job.is_before_switch and self._source(database, job) is None:
            await self._remove_target(database, job)
            await self._record(database, job, None)
            return
        match job.phase:
            case CollectionRekeyPhase.ASKED:
                await self._prepare(database, job)
            case CollectionRekeyPhase.COPYING:
                await self._copy_and_switch(database, job)
            case CollectionRekeyPhase.SWITCHED:
                wait = job.switched_at_wall_seconds + self._retained_seconds - self._services.clock.wall_seconds()
                await asyncio.sleep(max(0.0, wait))
                await self._record(database, job, replace(job, phase=CollectionRekeyPhase.REMOVING))
                self.on_step(CollectionRekeyStep.REMOVING)
            case _:
                await self._remove_source(database, job)
                await self._record(database, job, None)

    async def _record(
        self, database: DatabaseRecord, job: CollectionRekeyJob, after: CollectionRekeyJob | None
    ) -> None:
        stored = None if after is None else after.to_settings()

        def change(settings: HomeSettings) -> HomeSettings:
            # A job that is gone stays so: its database may have been dropped.
            return settings.with_rekey(job.id, stored) if job.id in settings.rekeys else settings

        await self._store.change_home(database, change)

    async def _fail(
        self, database: DatabaseRecord, job: CollectionRekeyJob, problem: RekeyProblem, reason: str
    ) -> None:
        with suppress(NoSuchCollection):
            await self._freeze(database, job, is_frozen=False)
        await self._remove_target(database, job)
        await self._record(database, job, job.failed(problem, reason))

    # --- the two places ---------------------------------------------------------------------------------------------

    def _source(self, database: DatabaseRecord, job: CollectionRekeyJob) -> Collection | None:
        """Return the collection where the job found it; None if it was dropped."""
        account = database.account[len(ACCOUNT_PREFIX) :]
        home = self._store.home_of(database)
        record = self._store.record(account, database.name, job.name)
        if home is None or record is None or record.number != job.source_number:
            return None
        if home.settings.sharded.get(job.name, "") != job.source_key:
            return None
        return self._store.find(account, database.name, job.name)

    def _target(self, database: DatabaseRecord, job: CollectionRekeyJob) -> Collection:
        key = job.target_key or "home"
        keyspace = self._catalog.find_keyspace(database.rid, key)
        if keyspace is None:
            raise NoSuchCollection(job.name)
        record = CollectionRecord.from_text(database.name, job.name, job.target_text)
        definition = keyspace.record.definition if job.target_key else HOME_DEFINITION
        rules = CollectionRules(record, definition, self._services.compile_index)
        return Collection(keyspace, lambda: rules, self._services)

    async def _prepare(self, database: DatabaseRecord, job: CollectionRekeyJob) -> None:
        source = self._source(database, job)
        assert source is not None, "it was there a moment ago"
        if job.target_key and self._catalog.find_keyspace(database.rid, job.target_key) is None:
            record = CollectionRecord.from_text(database.name, job.name, job.target_text)
            with suppress(ResourceExists):
                await self._store.create_place(database, job.target_key, record, job.throughput)
        self.on_step(CollectionRekeyStep.TARGET_MADE)
        position = await self._changes.position_now([_changes_of(source)])
        await self._record(
            database, job, replace(job, phase=CollectionRekeyPhase.COPYING, position=position.to_bytes().hex())
        )
        self.on_step(CollectionRekeyStep.PREPARED)

    async def _remove_target(self, database: DatabaseRecord, job: CollectionRekeyJob) -> None:
        if job.target_key:
            keyspace = self._catalog.find_keyspace(database.rid, job.target_key)
            if keyspace is not None:
                await self._delete(keyspace)
            return
        home = self._store.home_of(database)
        if home is not None:
            await self._store.remover.remove(home.keyspace, self._target(database, job).rules)

    async def _delete(self, keyspace: Keyspace) -> None:
        with suppress(ResourceNotFound):
            await self._catalog.delete_keyspace(keyspace)
        self._services.reshaper.collect_garbage()

    async def _remove_source(self, database: DatabaseRecord, job: CollectionRekeyJob) -> None:
        if job.source_key:
            keyspace = self._catalog.find_keyspace(database.rid, job.source_key)
            if keyspace is not None:
                await self._store.readers.drain(database.account[len(ACCOUNT_PREFIX) :], database.name)
                await self._delete(keyspace)
            return
        home = self._store.home_of(database)
        if home is not None:
            record = CollectionRecord(database.name, job.name, job.source_number, b"")
            rules = CollectionRules(record, HOME_DEFINITION, self._services.compile_index)
            await home.keyspace.earlier_work_done()
            await self._store.remover.remove(home.keyspace, rules)

    # --- copying ----------------------------------------------------------------------------------------------------

    async def _copy_and_switch(self, database: DatabaseRecord, job: CollectionRekeyJob) -> None:
        source, target = self._source(database, job), self._target(database, job)
        assert source is not None, "it was there a moment ago"
        progress = self._progress[job.id]
        progress.total, progress.copied = (await source.size()).items, 0
        copier = DocumentCopier(self._services, source, target)
        # A process that led before may have begun to switch.
        await self._freeze(database, job, is_frozen=False)
        await self._copy(source, copier, progress)
        self.on_step(CollectionRekeyStep.COPIED)
        follower = _Follower(self._changes, source, job, copier, progress)
        for _ in range(_PAGES_MAX):
            if not await follower.follow_page():
                break
        await self._freeze(database, job, is_frozen=True)
        await source.keyspace.earlier_work_done()
        self.on_step(CollectionRekeyStep.FROZEN)
        while await follower.follow_page() is not None:
            pass
        if follower.must_sweep:
            await copier.sweep()
        await copier.settle_deferred()
        self.on_step(CollectionRekeyStep.CAUGHT_UP)
        counts = (await source.size()).items, (await target.size()).items
        if counts[0] != counts[1]:
            await copier.sweep()
            counts = (await source.size()).items, (await target.size()).items
        if counts[0] != counts[1]:
            reason = f"The source has {counts[0]} documents and its copy {counts[1]}; please report this."
            await self._fail(database, job, RekeyProblem.OTHER, reason)
            return
        await self._switch(database, job, target)

    async def _copy(self, source: Collection, copier: DocumentCopier, progress: RekeyProgress) -> None:
        clock = self._services.clock
        scan = await source.open_scan(ScanQuery(hint="$natural"))
        began = clock.monotonic_seconds()
        async for found in scan.batches():
            await copier.settle([document.key for document in found])
            progress.copied += len(found)
            self.on_step(CollectionRekeyStep.SLICE_COPIED)
            # Requests come first: the walk rests half as long as it has worked.
            await asyncio.sleep((clock.monotonic_seconds() - began) / 2)
            began = clock.monotonic_seconds()

    # --- switching --------------------------------------------------------------------------------------------------

    async def _freeze(
        self, database: DatabaseRecord, job: CollectionRekeyJob, *, is_frozen: bool, is_closed: bool = False
    ) -> None:
        account = database.account[len(ACCOUNT_PREFIX) :]
        record = self._store.record(account, database.name, job.name)
        if record is None or record.number != job.source_number:
            raise NoSuchCollection(job.name)
        if (record.is_frozen, record.is_closed) != (is_frozen, is_closed):
            await self._store.change_record(
                account,
                record,
                lambda before: replace(before, is_frozen=is_frozen, is_closed=is_closed),
                is_logged=False,
                by_rekeyer=True,
            )

    async def _switch(self, database: DatabaseRecord, job: CollectionRekeyJob, target: Collection) -> None:
        if job.source_key:
            # Other processes must not answer from it once a write to the target was acknowledged.
            await self._freeze(database, job, is_frozen=True, is_closed=True)
            self.on_step(CollectionRekeyStep.CLOSED)
        if job.target_key:
            # A copy of a process that led before comes too late from here on.
            await self._catalog.change_keyspace_settings(
                target.keyspace, lambda settings: dict(settings), now=self._now()
            )
        switched = replace(
            job, phase=CollectionRekeyPhase.SWITCHED, switched_at_wall_seconds=int(self._services.clock.wall_seconds())
        )
        record = target.rules.record

        def switch(settings: HomeSettings) -> HomeSettings:
            text = settings.collections.get(job.name)
            if job.source_key:
                is_there = settings.sharded.get(job.name) == job.source_key
            else:
                number = None if text is None else CollectionRecord.from_text("", job.name, text).number
                is_there = number == job.source_number
            if job.id not in settings.rekeys or not is_there:
                raise NoSuchCollection(job.name)
            without = settings.without(job.name).with_rekey(job.id, switched.to_settings())
            if not job.target_key:
                return without.with_collection(record)
            return without.with_sharded(job.name, job.target_key, next_number=settings.next_number)

        await self._store.change_home(database, switch)
        self.on_step(CollectionRekeyStep.SWITCHED)
        home = self._store.home_of(database)
        if home is not None and record.shard_key:
            operation = "reshardCollection" if job.source_key else "shardCollection"
            change = change_of(operation, record, {"shardKey": dict(record.shard_pattern)})
            await self._store.catalog_log.write(home.keyspace, record, change)
        self._services.signal.notify()

    def _now(self) -> int:
        return self._services.clock.stored_seconds()


class _Follower:
    """Follows the changes of a source from where the job began."""

    def __init__(
        self,
        changes: ChangeLog,
        source: Collection,
        job: CollectionRekeyJob,
        copier: DocumentCopier,
        progress: RekeyProgress,
    ) -> None:
        self._changes = changes
        self._source = source
        self._uuid = source.record.uuid
        self._position = ChangePosition.from_bytes(bytes.fromhex(job.position))
        self._copier = copier
        self._progress = progress
        # True if the body before a change is not known, so that its copy cannot be found by it.
        self.must_sweep = False

    async def follow_page(self) -> int | None:
        """Follow a page of changes; return how many more there may be, None if nothing has changed since the last."""
        before = self._position
        page = await self._changes.read([_changes_of(self._source)], self._position, self._accepts, is_admitted=True)
        found, self._position = page.changes, page.position
        keys: list[DocumentKey] = []
        images: list[tuple[DocumentKey, bytes]] = []
        for change in found:
            key = document_key(change.point, change.key["_id"])
            keys.append(key)
            image = await self._changes.body_before(change)
            if image is not None:
                images.append((key, image))
            elif change.operation != "insert":
                self.must_sweep = True
        await self._copier.settle(keys, images)
        self._progress.followed += len(found)
        if not found and not page.has_more and self._position.keyspaces == before.keyspaces:
            return None
        return 0 if len(found) < _NEARLY_DONE_CHANGES else len(found)

    def _accepts(self, change: LoggedChange) -> bool:
        return change.uuid == self._uuid and change.is_of_document


def _changes_of(source: Collection) -> ChangeSource:
    return ChangeSource(source.keyspace, source.record.database)
