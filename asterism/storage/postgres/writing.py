"""Writes to a partition: one order at a time, and the batches that wait meanwhile share the next.

An order is one call of a function in the database, and thus one transaction. It carries the gateway's number and a
rising token; the partition's row stores the last token of each gateway. If the connection is lost before the answer
arrives, `resolve` asks under the row's lock whether the order was carried out, and if not, makes sure that it never
will be. Orders of one gateway to one partition are sequential, so that its last token is sufficient.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import asyncpg

from asterism.storage.contract import Batch, EngineFailed, EpochFenced, PartitionUnknown, StorageRefusal
from asterism.storage.postgres.connections import Link, seconds_until
from asterism.storage.postgres.database_errors import ConnectionLost, TransientError, translate
from asterism.storage.postgres.groups import Group, WaitingBatch, fail_all
from asterism.storage.postgres.layout import (
    CANNOT_TELL,
    DONE,
    FENCED,
    NEEDS_JOURNAL,
    NOT_DONE,
    NOT_THERE,
    REFUSED,
    UNKNOWN_PARTITION,
)
from asterism.storage.postgres.node import PostgresNode
from asterism.storage.postgres.statements import RESOLVE, SET_FENCE, statements
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

# Number of batches that may be skipped in the search for further members of a group.
LOOK_AHEAD = 256


@dataclass(slots=True, eq=False)
class ExclusiveOrder:
    """An order that must not run together with batches: a change of the fence, or copied entries."""

    statement: str
    # Arguments before and after the gateway and the token.
    head: tuple[Any, ...]
    tail: tuple[Any, ...]
    future: asyncio.Future[Any]
    # Start of waiting, as a time of the event loop.
    since: float


class PartitionWriter:
    """The queue of one partition in this engine, and the task that processes it while it is not empty."""

    def __init__(self, node: PostgresNode, partition: PartitionNumber, on_idle: Callable[[], None]) -> None:
        self._node = node
        self._partition = partition
        self._on_idle = on_idle
        self._waiting: deque[WaitingBatch | ExclusiveOrder] = deque()
        self._task: asyncio.Task[None] | None = None
        self._statements = statements(partition)
        # The last known state of the partition's journaling.
        self._journaling = False
        # Preferred, because its statements and the plans of its functions are prepared.
        self._last_link: Link | None = None

    @property
    def is_idle(self) -> bool:
        return self._task is None

    def apply(self, epoch: Epoch, batch: Batch) -> asyncio.Future[Lsn]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Lsn] = loop.create_future()
        self._submit(WaitingBatch(epoch, batch, future, loop.time()))
        return future

    def set_fence(self, arguments: tuple[Any, ...]) -> asyncio.Future[int]:
        """Set the fence; the result is the LSN, or one of the negative numbers of the layout."""
        return self._order(SET_FENCE, (self._partition,), arguments)

    def copy(self, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        """Copy entries; the result is the function's answer, or the LSN if only the outcome could be resolved."""
        return self._order(self._statements.copy, (), arguments)

    def _order(self, statement: str, head: tuple[Any, ...], tail: tuple[Any, ...]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._submit(ExclusiveOrder(statement, head, tail, future, loop.time()))
        return future

    def _submit(self, waiting: WaitingBatch | ExclusiveOrder) -> None:
        self._waiting.append(waiting)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                first = self._waiting[0]
                if isinstance(first, ExclusiveOrder):
                    self._waiting.popleft()
                    await self._send_order(first)
                else:
                    await self._send_group(self._take_group(first.epoch))
        finally:
            self._task = None
            self._on_idle()

    # --- batches --------------------------------------------------------------------------------------------------

    def _take_group(self, epoch: Epoch) -> Group:
        group = Group(epoch)
        skipped: list[WaitingBatch | ExclusiveOrder] = []
        waiting = self._waiting
        while waiting and len(skipped) < LOOK_AHEAD and not isinstance(waiting[0], ExclusiveOrder):
            candidate = waiting.popleft()
            assert isinstance(candidate, WaitingBatch)
            if candidate.future.done() or self._is_overdue(candidate):
                continue
            if group.admits(candidate):
                group.add(candidate)
            else:
                skipped.append(candidate)
        waiting.extendleft(reversed(skipped))
        return group

    async def _send_group(self, group: Group) -> None:
        """Send a group until each of its members is applied, refused, or back at the head of the queue."""
        while group.members:
            group = await self._send_once(group)

    async def _send_once(self, group: Group) -> Group:
        """Send a group and return the group that is left to send. If the database refuses some of the members, it has
        changed nothing, and the others are left."""
        members, nothing_left = group.members, Group(group.epoch)
        try:
            arguments = group.arguments(journaling=self._journaling)
            answer = await self._carry_out(self._statements.apply, (), arguments)
        except Exception as error:
            self._retry_one_by_one(members, error)
            return nothing_left
        if isinstance(answer, int):
            # The answer was lost, and the order resolved: only the LSN before the group is known.
            self._acknowledge(members, lsn_before=answer)
            return nothing_left
        status, *details = answer
        if status == DONE:
            lsn_before, journaling = details
            self._journaling = bool(journaling)
            self._acknowledge(members, lsn_before)
        elif status == REFUSED:
            _, journaling, *failed_conditions = details
            self._journaling = bool(journaling)
            others, retries = group.split_off(failed_conditions)
            self._waiting.extendleft(reversed(retries))
            return others
        elif status == NEEDS_JOURNAL:
            self._journaling = True
            return group
        elif status == FENCED:
            fail_all(members, EpochFenced(self._partition))
        elif status == UNKNOWN_PARTITION:
            fail_all(members, PartitionUnknown(self._partition))
        else:
            fail_all(members, EngineFailed(f"the database refused the group with status {status}"))
        return nothing_left

    def _acknowledge(self, members: list[WaitingBatch], lsn_before: int) -> None:
        self._node.commits += 1
        for lsn, waiting in enumerate(members, lsn_before + 1):
            if not waiting.future.done():
                waiting.future.set_result(Lsn(lsn))

    def _retry_one_by_one(self, members: list[WaitingBatch], error: Exception) -> None:
        """Queue each member again as a group of its own: the database rolled the group back, or it could not be sent,
        and only then the member that caused it is known."""
        if isinstance(error, StorageRefusal) or len(members) == 1:
            fail_all(members, translate(error))
            return
        for waiting in members:
            waiting.alone = True
        self._waiting.extendleft(reversed(members))

    # --- orders ---------------------------------------------------------------------------------------------------

    async def _send_order(self, order: ExclusiveOrder) -> None:
        if order.future.done() or self._is_overdue(order):
            return
        try:
            answer = await self._carry_out(order.statement, order.head, order.tail)
        except Exception as error:
            if not order.future.done():
                order.future.set_exception(translate(error))
            return
        self._node.commits += 1
        if not order.future.done():
            order.future.set_result(answer)

    def _is_overdue(self, waiting: WaitingBatch | ExclusiveOrder) -> bool:
        """Fail an order that has waited too long for an unreachable node, so that it need not wait as long again."""
        if not self._node.writers.is_overdue(waiting.since):
            return False
        waiting.future.set_exception(EngineFailed("the node does not answer"))
        return True

    async def _carry_out(self, statement: str, head: tuple[Any, ...], tail: tuple[Any, ...]) -> Any:
        """Return the function's answer, or the LSN at the start of a resolved order, if the answer was lost.

        Raises the database's error if it rolled the order back, and `EngineFailed` if the time limit is exceeded.
        """
        node = self._node
        deadline = node.writers.deadline()
        while True:
            link = await node.writers.acquire(deadline, self._last_link)
            token = node.next_token()
            warnings = link.warnings
            link.written_to.add(self._partition)
            try:
                seconds = seconds_until(deadline, node.timeouts.commit_seconds)
                row = await link.ask(seconds, statement, *head, node.gateway, token, *tail)
                self._last_link = link
                # The only possible warning of a commit: it was canceled while it waited for its standby.
                if link.warnings == warnings:
                    return row[0]
            except ConnectionLost:
                node.writers.suspect()
            except TransientError as error:
                node.writers.check_time(deadline, error)
                await asyncio.sleep(0.01)
                continue
            except asyncpg.UndefinedFunctionError as error:
                node.writers.check_time(deadline, error)
                await node.make_functions(self._partition, link)
                continue
            finally:
                node.writers.release(link)
            outcome = await self._resolve(token, deadline)
            if outcome != NOT_DONE:
                return outcome

    async def _resolve(self, token: int, deadline: float) -> int:
        node = self._node
        while True:
            try:
                link = await node.writers.acquire(deadline)
            except EngineFailed as error:
                raise EngineFailed(f"the outcome of the write is unknown: {error}") from error
            try:
                seconds = seconds_until(deadline, node.timeouts.commit_seconds)
                row = await link.ask(seconds, RESOLVE, self._partition, node.gateway, token)
            except (ConnectionLost, TransientError) as error:
                node.writers.suspect()
                node.writers.check_time(deadline, error)
                await asyncio.sleep(0.01)
                continue
            finally:
                node.writers.release(link)
            outcome: int = row[0]
            if outcome == NOT_THERE:
                raise PartitionUnknown(self._partition)
            if outcome == CANNOT_TELL:
                raise EngineFailed("the outcome of the write is unknown: too many gateways")
            return outcome
