"""Writing to one partition: one order at a time, and what waits meanwhile shares the next.

An order is one call of a function in the database, and so one transaction. It carries the gateway's name and a token
that rises; the partition's row remembers the last token of each gateway. If the connection is lost before the answer
comes, `resolve` asks under the row's lock whether the order was carried out, and if not, sees to it that it never will
be. Orders of one gateway to one partition follow one another, so that its last token is all there is to remember.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import asyncpg

from asterism.storage.contract import Batch, EngineFailed, EpochFenced, PartitionUnknown, StorageRefusal
from asterism.storage.postgres.connections import ConnectionLost, Link, TryAgain, seconds_until, translate
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
from asterism.storage.postgres.node import Node
from asterism.storage.postgres.statements import RESOLVE, SET_FENCE, statements
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber

# How far behind the head of the queue a batch is looked for that can join a group.
LOOK_AHEAD = 256


@dataclass(slots=True, eq=False)
class Order:
    """Something other than batches that must not meet them: a change of the fence, entries that are copied."""

    statement: str
    # Before and after the gateway and the token.
    head: tuple[Any, ...]
    tail: tuple[Any, ...]
    future: asyncio.Future[Any]
    # When it was asked for, as a time of the event loop.
    since: float


class PartitionWriter:
    """The queue of one partition in this engine, and the task that works it off while there is something in it."""

    def __init__(self, node: Node, partition: PartitionNumber, on_idle: Callable[[], None]) -> None:
        self._node = node
        self._partition = partition
        self._on_idle = on_idle
        self._waiting: deque[WaitingBatch | Order] = deque()
        self._task: asyncio.Task[None] | None = None
        self._statements = statements(partition)
        # Whether the partition was journaling when it was last heard of.
        self._journaling = False
        # Its statements are prepared there, and the plans of its functions are made.
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
        """The LSN, or one of the negative numbers of the layout."""
        return self._order(SET_FENCE, (self._partition,), arguments)

    def copy(self, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        """The function's answer, or the LSN if only the outcome could be found out."""
        return self._order(self._statements.copy, (), arguments)

    def _order(self, statement: str, head: tuple[Any, ...], tail: tuple[Any, ...]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._submit(Order(statement, head, tail, future, loop.time()))
        return future

    def _submit(self, waiting: WaitingBatch | Order) -> None:
        self._waiting.append(waiting)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                first = self._waiting[0]
                if isinstance(first, Order):
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
        passed_over: list[WaitingBatch | Order] = []
        waiting = self._waiting
        while waiting and len(passed_over) < LOOK_AHEAD and not isinstance(waiting[0], Order):
            one = waiting.popleft()
            assert isinstance(one, WaitingBatch)
            if one.future.done() or self._is_overdue(one):
                continue
            if group.admits(one):
                group.add(one)
            else:
                passed_over.append(one)
        waiting.extendleft(reversed(passed_over))
        return group

    async def _send_group(self, group: Group) -> None:
        """Sends a group until each of its members is applied, refused, or back at the head of the queue."""
        while group.members:
            group = await self._send_once(group)

    async def _send_once(self, group: Group) -> Group:
        """Sends a group; if the database refuses some of its members, it has done nothing, and the group of the others
        is returned."""
        members, nobody = group.members, Group(group.epoch)
        try:
            arguments = group.arguments(journaling=self._journaling)
            answer = await self._carry_out(self._statements.apply, (), arguments)
        except Exception as error:
            self._part_after_failure(members, error)
            return nobody
        status = DONE if isinstance(answer, int) else answer[0]
        if status == DONE:
            self._acknowledge(members, answer if isinstance(answer, int) else answer[1])
            if not isinstance(answer, int):
                self._journaling = bool(answer[2])
        elif status == REFUSED:
            self._journaling = bool(answer[2])
            others, again = group.part_with(answer[3:])
            self._waiting.extendleft(reversed(again))
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
        return nobody

    @staticmethod
    def _acknowledge(members: list[WaitingBatch], lsn_before: int) -> None:
        for lsn, waiting in enumerate(members, lsn_before + 1):
            if not waiting.future.done():
                waiting.future.set_result(Lsn(lsn))

    def _part_after_failure(self, members: list[WaitingBatch], error: Exception) -> None:
        """The database undid the group, or it could not even be sent: only one by one can tell whose fault it was."""
        if isinstance(error, StorageRefusal) or len(members) == 1:
            fail_all(members, translate(error))
            return
        for waiting in members:
            waiting.alone = True
        self._waiting.extendleft(reversed(members))

    # --- orders ---------------------------------------------------------------------------------------------------

    async def _send_order(self, order: Order) -> None:
        if order.future.done() or self._is_overdue(order):
            return
        try:
            answer = await self._carry_out(order.statement, order.head, order.tail)
        except Exception as error:
            if not order.future.done():
                order.future.set_exception(translate(error))
            return
        if not order.future.done():
            order.future.set_result(answer)

    def _is_overdue(self, waiting: WaitingBatch | Order) -> bool:
        """Who waited behind others for a node that is away is not made to wait as long again."""
        if not self._node.writers.is_overdue(waiting.since):
            return False
        waiting.future.set_exception(EngineFailed("the node does not answer"))
        return True

    async def _carry_out(self, statement: str, head: tuple[Any, ...], tail: tuple[Any, ...]) -> Any:
        """The function's answer; the LSN that a resolved order began with, if the answer was lost.

        Raises what the database raised if it undid the order, and `EngineFailed` if the time is over.
        """
        node = self._node
        deadline = node.writers.deadline()
        while True:
            link = await node.writers.acquire(deadline, self._last_link)
            token = node.next_token()
            warnings = link.warnings
            link.written_to.add(self._partition)
            try:
                seconds = seconds_until(deadline, node.patience.commit_seconds)
                row = await link.ask(seconds, statement, *head, node.gateway, token, *tail)
                self._last_link = link
                # The one warning a commit can bring: it was told not to wait for its standby any longer.
                if link.warnings == warnings:
                    return row[0]
            except ConnectionLost:
                node.writers.suspect()
            except TryAgain as error:
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
                raise EngineFailed(f"it is not known whether the write was done: {error}") from error
            try:
                seconds = seconds_until(deadline, node.patience.commit_seconds)
                row = await link.ask(seconds, RESOLVE, self._partition, node.gateway, token)
            except (ConnectionLost, TryAgain) as error:
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
                raise EngineFailed("it is not known whether the write was done: too many gateways")
            return outcome
