"""Work that outlives its request, as the catalog keeps it: reshaping jobs, tasks of the floors above, re-keyings,
partitions to be dropped, and the history of finished jobs.

Any process may ask for work by writing its record; the leader does it, and its changes of such records hold only while
it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from asterism.keyspaces.catalog.store import (
    FORWARDED,
    GARBAGE,
    HISTORY,
    JOB,
    KEYSPACE,
    NEXT_TASK,
    PROMOTION,
    REKEY,
    REKEY_SWITCH,
    TASK,
    CatalogStore,
    number_in,
    numbered,
)
from asterism.storage.contract import Batch, Expectation, ExpectationFailed
from asterism.values.identifiers import PartitionNumber


class CatalogWork:
    """The records in memory, and their changes. Memory follows only after the batch is durable."""

    def __init__(self, store: CatalogStore) -> None:
        self._store = store
        self.jobs: dict[int, bytes] = {}
        self.tasks: dict[int, bytes] = {}
        self.rekeys: dict[int, bytes] = {}
        self.switches: dict[int, bytes] = {}
        self.garbage: set[PartitionNumber] = set()
        self.promotions: dict[int, bytes] = {}
        self.forwarded: dict[int, bytes] = {}
        self._kept = {
            JOB: self.jobs,
            TASK: self.tasks,
            REKEY: self.rekeys,
            REKEY_SWITCH: self.switches,
            PROMOTION: self.promotions,
            FORWARDED: self.forwarded,
        }

    # --- following the store ----------------------------------------------------------------------------------------

    async def open(self) -> None:
        for prefix, kept in self._kept.items():
            kept.clear()
            kept.update({number_in(key): value for key, value in await self._store.scan(prefix)})
        self.garbage.clear()
        self.garbage.update(PartitionNumber(number_in(key)) for key, _ in await self._store.scan(GARBAGE))

    def follow(self, key: bytes, value: bytes | None) -> bool:
        """Take over the value that the store has under a key; False if it is a key of other records."""
        kept = self._kept.get(key[:1])
        if kept is not None:
            _put(kept, number_in(key), value)
        elif key.startswith(GARBAGE):
            (self.garbage.discard if value is None else self.garbage.add)(PartitionNumber(number_in(key)))
        return kept is not None or key.startswith(GARBAGE)

    async def _keep(self, prefix: bytes, number: int, value: bytes | None, *, as_leader: bool = True) -> None:
        key = numbered(prefix, number)
        batch = Batch(deletes=[key]) if value is None else Batch(puts=[(key, value)])
        await self._store.change(batch, as_leader=as_leader)
        _put(self._kept[prefix], number, value)

    # --- partitions to be dropped -----------------------------------------------------------------------------------

    def plan_garbage(self, number: PartitionNumber, batch: Batch) -> None:
        batch.puts.append((numbered(GARBAGE, number), b""))

    async def put_garbage(self, numbers: Iterable[PartitionNumber]) -> None:
        """List partitions as garbage that were made for a change that failed."""
        batch = Batch(puts=[(numbered(GARBAGE, number), b"") for number in numbers], may_use_reserve=True)
        if batch.puts:
            await self._store.change(batch)
            self.garbage.update(numbers)

    async def forget_garbage(self, number: PartitionNumber) -> None:
        await self._store.change(Batch(deletes=[numbered(GARBAGE, number)]), as_leader=True)
        self.garbage.discard(number)

    # --- reshaping jobs ---------------------------------------------------------------------------------------------

    def plan_job(self, job_id: int, stored: bytes, batch: Batch) -> Callable[[], None]:
        """Add a job to the batch that announces it; call the result when that is durable."""
        batch.puts.append((numbered(JOB, job_id), stored))
        return lambda: _put(self.jobs, job_id, stored)

    async def put_job(self, job_id: int, stored: bytes) -> None:
        await self._keep(JOB, job_id, stored)

    async def give_up_job(self, job_id: int, targets: Iterable[PartitionNumber]) -> None:
        """End a job without a result; the partitions that it had begun to fill are garbage."""
        batch = Batch(deletes=[numbered(JOB, job_id)])
        for number in targets:
            self.plan_garbage(number, batch)
        await self._store.change(batch, as_leader=True)
        self.garbage.update(targets)
        self.jobs.pop(job_id, None)

    def plan_job_removal(self, job_id: int, batch: Batch) -> Callable[[], None]:
        batch.deletes.append(numbered(JOB, job_id))
        return lambda: _put(self.jobs, job_id, None)

    def plan_job_end(self, job_id: int, batch: Batch, *, keyspace_rid: bytes, history: bytes) -> Callable[[], None]:
        """Add the end of a job and its history to the batch that publishes the job's map."""
        batch.puts.append((numbered(HISTORY + keyspace_rid, job_id), history))
        return self.plan_job_removal(job_id, batch)

    async def history_of(self, keyspace_rid: bytes) -> list[bytes]:
        return [value for _, value in await self._store.scan(HISTORY + keyspace_rid)]

    # --- work of the floors above -----------------------------------------------------------------------------------

    async def new_task_number(self) -> int:
        return await self._store.take_numbers(NEXT_TASK, 1)

    def plan_task(self, number: int, stored: bytes, batch: Batch) -> None:
        """Add work that is resumed after a crash to the batch that requires it."""
        batch.puts.append((numbered(TASK, number), stored))

    async def ask_for_task(self, number: int, stored: bytes, *, keyspace_rid: bytes, version: bytes) -> None:
        """Store a task on a keyspace whose record is still of this version, or raise ExpectationFailed."""
        # Also when the store is full: what it asks for may be to delete.
        batch = Batch(
            expectations=[Expectation(KEYSPACE + keyspace_rid, version)],
            puts=[(numbered(TASK, number), stored)],
            may_use_reserve=True,
        )
        await self._store.change(batch)
        self.tasks[number] = stored

    async def put_task(self, number: int, stored: bytes) -> None:
        await self._keep(TASK, number, stored)

    async def forget_task(self, number: int) -> None:
        await self._keep(TASK, number, None)

    @staticmethod
    def rekey_entry(number: int, stored: bytes) -> tuple[bytes, bytes]:
        """Return the entry of a catalog batch that begins a re-keying."""
        return numbered(REKEY, number), stored

    async def put_rekey(self, number: int, stored: bytes) -> None:
        await self._keep(REKEY, number, stored)

    async def forget_rekey(self, number: int) -> None:
        await self._keep(REKEY, number, None)

    async def ask_for_switch(self, number: int) -> None:
        await self._keep(REKEY_SWITCH, number, b"", as_leader=False)

    async def forget_switch(self, number: int) -> None:
        await self._keep(REKEY_SWITCH, number, None)

    @staticmethod
    def promotion_entry(number: int, stored: bytes) -> tuple[bytes, bytes]:
        """Return the entry of a catalog batch that begins a promotion."""
        return numbered(PROMOTION, number), stored

    async def put_promotion(self, number: int, stored: bytes) -> None:
        await self._keep(PROMOTION, number, stored)

    async def forget_promotion(self, number: int) -> None:
        """Forget a promotion that is over. Any process may."""
        keys = [numbered(PROMOTION, number), numbered(FORWARDED, number)]
        await self._store.change(Batch(deletes=keys, may_use_reserve=True))
        self.promotions.pop(number, None)
        self.forwarded.pop(number, None)

    async def change_forwarded(self, number: int, change: Callable[[bytes | None], bytes]) -> None:
        """Replace the record of a rule's use, which any process adds to; `change` gets the stored one."""
        key = numbered(FORWARDED, number)
        while True:
            before, promotion = await self._store.read([key, numbered(PROMOTION, number)])
            if promotion is None:
                return
            after = change(before)
            with suppress(ExpectationFailed):
                await self._store.change(Batch(expectations=[Expectation(key, before)], puts=[(key, after)]))
                self.forwarded[number] = after
                return


def _put(kept: dict[int, bytes], number: int, value: bytes | None) -> None:
    if value is None:
        kept.pop(number, None)
    else:
        kept[number] = value
