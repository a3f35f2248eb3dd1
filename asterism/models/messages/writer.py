"""The writer of a fragment: operations that come while a batch is on its way form the next batch together.

So a single process makes few batches however many callers it has, and never meets itself: the batches of a fragment
follow each other. Other processes are met through expectations; then everything is read and planned again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from asterism.clock import Clock
from asterism.errors import (
    AsterismError,
    LogicalPartitionFull,
    OwnerNotFound,
    ResourceNotFound,
    StorageFull,
    StorageUnavailable,
    TooMuchContention,
)
from asterism.keyspaces.routing.commit import Committer
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.limits import MIB
from asterism.models.messages.draft import Draft, NextBatch
from asterism.models.messages.layout import TAIL
from asterism.models.messages.messages import Failure, MessagingRefused
from asterism.models.messages.operations import Operation, Value
from asterism.models.messages.terms import EntityTerms
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import ExpectationFailed

_log = logging.getLogger(__name__)

# A batch of so many messages is planned in some milliseconds, for which the event loop is held.
BATCH_MESSAGES_MAX: Final = 1000
BATCH_BYTES_MAX: Final = 4 * MIB
# Each attempt but the last was overtaken by another process. The wait grows, so that a long batch also has its turn.
ATTEMPTS_MAX: Final = 100
_WAIT_SECONDS: Final = 0.0005
_WAIT_SECONDS_MAX: Final = 0.02


class FixedPartitions:
    """The growth of entities: their partitions are never split (`Growth`)."""

    def notice_growth(self, keyspace: Keyspace, partition: PartitionRange, bytes_delta: int, /) -> None:
        """Count nothing."""

    async def make_room(self, keyspace: Keyspace, point: bytes, /) -> bool:  # noqa: ARG002 - the promise of `Growth`
        return False


_FIXED: Final = FixedPartitions()


class FragmentWriter:
    """Carries out the operations of a fragment, batch by batch."""

    def __init__(
        self,
        keyspace: Keyspace,
        router: PartitionRouter,
        clock: Clock,
        *,
        point: bytes,
        fragment: int,
        terms: Callable[[], EntityTerms],
        applied: Callable[[Draft], None],
        doubtful: Callable[[], None],
    ) -> None:
        """`applied` is called when a batch is durable, before its operations end; `doubtful` when it is unknown if a
        batch was applied: everything that is known of the fragment must be forgotten (M8)."""
        self._keyspace = keyspace
        self._router = router
        self._clock = clock
        self._point = point
        self._fragment = fragment
        self._terms = terms
        self._applied = applied
        self._doubtful = doubtful
        self._pending: deque[Operation] = deque()
        self._task: asyncio.Task[None] | None = None
        # The tail as it is stored; b"" if there is no tail yet, None if it has to be read.
        self._tail: bytes | None = None

    @property
    def is_idle(self) -> bool:
        return self._task is None

    def submit(self, operation: Operation) -> asyncio.Future[Any]:
        """Put an operation into the next batch. It is carried out even if its caller is canceled."""
        self._pending.append(operation)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return operation.future

    def withdraw(self, operation: Operation) -> bool:
        """Take back an operation that is in no batch yet; False if it is too late."""
        try:
            self._pending.remove(operation)
        except ValueError:
            return False
        operation.ended()
        operation.future.cancel()
        return True

    async def idle(self) -> None:
        """Return when no operation is left."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while self._pending:
                operations = self._next_operations()
                try:
                    await self._carry_out(operations)
                except Exception as error:
                    # A defect, or a plan that met damage: those who wait must be answered.
                    self._tail = None
                    self._doubtful()
                    _fail(operations, error)
                    if not isinstance(error, AsterismError):
                        _log.exception("a batch of messages has failed")
        finally:
            self._task = None

    def _next_operations(self) -> list[Operation]:
        pending = self._pending
        chosen: list[Operation] = []
        messages = size = 0
        while pending:
            operation = pending[0]
            messages += operation.messages
            size += operation.size
            if chosen and (messages > BATCH_MESSAGES_MAX or size > BATCH_BYTES_MAX):
                break
            chosen.append(pending.popleft())
        return chosen

    async def _carry_out(self, operations: list[Operation]) -> None:
        keyspace = self._keyspace
        for attempt in range(ATTEMPTS_MAX):
            if not operations:
                return
            if attempt:
                await asyncio.sleep(min(_WAIT_SECONDS * (attempt - 1), _WAIT_SECONDS_MAX))
            with keyspace.in_flight:
                try:
                    draft, operations = await self._planned(operations)
                    tail = draft.finish()
                    if not draft.is_empty:
                        await self._commit(draft, grows=any(operation.grows for operation in operations))
                except ExpectationFailed:
                    self._tail = None
                    for operation in operations:
                        operation.overtaken += 1
                    continue
                except LogicalPartitionFull:
                    operations = _refuse_growth(
                        operations, MessagingRefused(Failure.ENTITY_FULL, "The entity is full.")
                    )
                    continue
                except StorageFull as full:
                    if not any(operation.grows for operation in operations):
                        raise
                    operations = _refuse_growth(operations, full)
                    continue
                except OwnerNotFound as gone:
                    _fail(operations, ResourceNotFound(kind="entity", name=gone.name))
                    return
                except StorageUnavailable as unavailable:
                    self._tail = None
                    self._doubtful()
                    _fail(operations, unavailable)
                    return
            self._tail = b"" if tail is None else tail
            self._applied(draft)
            for operation in operations:
                operation.committed()
                operation.ended()
                if not operation.future.done():
                    operation.future.set_result(operation.result())
            return
        _fail(operations, TooMuchContention())

    async def _planned(self, operations: list[Operation]) -> tuple[Draft, list[Operation]]:
        """Return a draft with the operations that could be planned. The others are refused, or wait for the next
        batch."""
        while True:
            terms, now_ms = self._terms(), int(self._clock.wall_seconds() * 1000)
            values = await self._read(self._new_draft(terms, now_ms), operations)
            draft = self._new_draft(terms, now_ms)
            planned: list[Operation] = []
            later: list[Operation] = []
            is_spoiled = False
            for operation, read in zip(operations, values, strict=True):
                if isinstance(read, AsterismError):
                    _fail([operation], read)
                    continue
                try:
                    operation.plan(draft, read)
                except NextBatch:
                    # There is always something that it can wait for.
                    assert planned, "an operation is in its own way"
                    later.append(operation)
                except AsterismError as refusal:
                    _fail([operation], refusal)
                else:
                    planned.append(operation)
                    continue
                if operation.is_composite:
                    # A part of it may be in the draft.
                    is_spoiled = True
                    break
            self._pending.extendleft(reversed(later))
            if not is_spoiled:
                return draft, planned
            done = set(planned)
            failed_at = operations.index(operation)
            operations = [each for each in operations[:failed_at] if each in done] + operations[failed_at + 1 :]

    def _new_draft(self, terms: EntityTerms, now_ms: int) -> Draft:
        return Draft(
            terms,
            point=self._point,
            fragment=self._fragment,
            tail=self._tail or None,
            now_ms=now_ms,
            is_shared=self._router.has_others,
        )

    async def _read(self, draft: Draft, operations: Sequence[Operation]) -> list[Sequence[Value] | AsterismError]:
        """Return the values that each operation needs, or the reason why it is refused; all in one read."""
        keys: list[bytes] = []
        parts: list[tuple[int, int] | AsterismError] = []
        for operation in operations:
            try:
                wanted = operation.keys(draft)
            except AsterismError as refusal:
                parts.append(refusal)
                continue
            parts.append((len(keys), len(keys) + len(wanted)))
            keys += wanted
        needs_tail = self._tail is None
        values: list[Value] = []
        if keys or needs_tail:
            _, _, values = await self._router.read(self._keyspace, self._point, [*keys, TAIL + self._point])
            if needs_tail:
                self._tail = values[-1] or b""
        return [part if isinstance(part, AsterismError) else values[part[0] : part[1]] for part in parts]

    async def _commit(self, draft: Draft, *, grows: bool) -> None:
        committer = Committer(
            self._keyspace,
            self._router,
            _FIXED,
            logical_bytes_max=draft.terms.description.max_size_mb * MIB if grows else None,
            physical_bytes_max=None,
        )
        draft.batch.may_use_reserve = not grows
        await committer.commit(
            self._point,
            draft.batch,
            bytes_delta=draft.bytes_delta,
            items_delta=draft.items_delta,
            cost=draft.cost,
            planned_under=draft.terms.settings,
        )


def _fail(operations: Sequence[Operation], error: Exception) -> None:
    for operation in operations:
        operation.ended()
        if not operation.future.done():
            operation.future.set_exception(error)
            # Its caller may be gone: the event loop need not report the error.
            operation.future.exception()


def _refuse_growth(operations: Sequence[Operation], error: Exception) -> list[Operation]:
    """Refuse the operations that make the entity larger, and return the others."""
    _fail([operation for operation in operations if operation.grows], error)
    return [operation for operation in operations if not operation.grows]
