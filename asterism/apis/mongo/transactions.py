"""Open transactions of this process, by session, and the outcomes of those that have ended.

A transaction is a unit of the model, which holds a snapshot and the staged changes; it is ended at its deadline, so
that no client can keep a snapshot open for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from asterism.apis.mongo.arguments import as_int
from asterism.apis.mongo.errors import WRITE_CONFLICT
from asterism.errors import RequestRateTooLarge
from asterism.keyspaces.routing.keyspace import Spent
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.results import RetryToken, TransactionOvertaken
from asterism.models.collections.store import CollectionStore
from asterism.models.collections.unit import Unit

if TYPE_CHECKING:
    from asterism.apis.mongo.context import DoorContext

# Sessions whose last transaction is remembered; a commit that is repeated is answered from here or from the store.
_REMEMBERED_MAX = 10_000


class TransactionState(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class OpenTransaction:
    session: bytes
    number: int
    unit: Unit
    # In monotonic seconds.
    deadline: float
    state: TransactionState = TransactionState.OPEN
    # Held by one statement at a time, and to end the transaction.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class TransactionRegistry:
    def __init__(
        self,
        store: CollectionStore,
        monotonic_seconds: Callable[[], float],
        lifetime_seconds: Callable[[], float],
        close_cursors: Callable[[bytes, int], Awaitable[None]],
    ) -> None:
        self._store = store
        self._monotonic_seconds = monotonic_seconds
        self._lifetime_seconds = lifetime_seconds
        self._close_cursors = close_cursors
        self._by_session: dict[bytes, OpenTransaction] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at = 0.0
        self._expiring: asyncio.Task[None] | None = None

    # --- statements -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many transactions are open."""
        return sum(known.state is TransactionState.OPEN for known in self._by_session.values())

    async def begin(self, session: bytes, number: int) -> OpenTransaction:
        """Open a transaction; one of the session that is still open is aborted, as the client has left it."""
        known = self._by_session.get(session)
        if known is not None:
            if known.number > number:
                raise _too_old(number, known)
            if known.number == number:
                raise MongoFailure(50911, f"Cannot start a transaction at given transaction number {number}: it exists")
            await self._abort(known)
        deadline = self._monotonic_seconds() + self._lifetime_seconds()
        opened = OpenTransaction(session, number, self._store.units.new(), deadline)
        self._by_session.pop(session, None)
        self._by_session[session] = opened
        self._forget_oldest()
        self._wake_at(deadline)
        return opened

    async def find(self, session: bytes, number: int) -> OpenTransaction:
        """Return the open transaction of a statement; NoSuchTransaction if it has ended or never was."""
        known = self._by_session.get(session)
        if known is None or known.number != number:
            raise _no_such(number, known)
        self.check_open(known)
        return known

    def check_open(self, transaction: OpenTransaction) -> None:
        if transaction.deadline <= self._monotonic_seconds():
            # The timer closes it.
            transaction.state = _ended(transaction.state)
        if transaction.state is TransactionState.COMMITTED:
            raise MongoFailure(256, f"Transaction with {{ txnNumber: {transaction.number} }} has been committed.")
        if transaction.state is TransactionState.ABORTED:
            raise MongoFailure(251, f"Transaction with {{ txnNumber: {transaction.number} }} has been aborted.")

    async def pass_by(self, session: bytes, number: int) -> None:
        """Note a retryable write of a session: it ends an open transaction of a lower number."""
        known = self._by_session.get(session)
        if known is None:
            return
        if known.number > number:
            raise _too_old(number, known)
        if known.number == number:
            raise MongoFailure(
                50911, f"Cannot carry out a retryable write: the number {number} is that of a transaction"
            )
        await self._abort(known)

    async def fail(self, transaction: OpenTransaction) -> None:
        """End a transaction of which a statement has failed; the statement holds its lock."""
        transaction.state = _ended(transaction.state)
        await self._close(transaction)

    async def forget(self, transaction: OpenTransaction) -> None:
        """Take back a transaction whose first statement was not admitted, so that the client may repeat it."""
        await self.fail(transaction)
        self._by_session.pop(transaction.session, None)

    # --- the end ----------------------------------------------------------------------------------------------------

    async def commit(self, session: bytes, number: int, *, account: str, spent: Spent) -> None:
        """Commit; a commit that is repeated is answered alike, also by a server that was restarted."""
        known = self._by_session.get(session)
        if known is None or known.number < number:
            if await self._store.units.has_committed(account, RetryToken(session, number)):
                return
            raise _no_such(number, known)
        if known.number > number:
            raise _too_old(number, known)
        async with known.lock:
            if known.state is TransactionState.COMMITTED:
                return
            self.check_open(known)
            try:
                await self._store.units.commit(known.unit, RetryToken(session, number), spent=spent)
            except RequestRateTooLarge:
                # Nothing was written: the client repeats the commit.
                raise
            except TransactionOvertaken:
                await self.fail(known)
                raise MongoFailure(112, WRITE_CONFLICT) from None
            except Exception:
                await self.fail(known)
                raise
            known.state = TransactionState.COMMITTED
            await self._close(known)

    async def abort(self, session: bytes, number: int) -> None:
        known = self._by_session.get(session)
        if known is None or known.number != number:
            raise _no_such(number, known)
        self.check_open(known)
        await self._abort(known)

    async def end_session(self, session: bytes) -> None:
        known = self._by_session.pop(session, None)
        if known is not None:
            await self._abort(known)

    def opened(self) -> list[OpenTransaction]:
        """Return the transactions that are open."""
        return [known for known in self._by_session.values() if known.state is TransactionState.OPEN]

    async def expire(self) -> None:
        """End transactions that have expired. One whose statement is under way ends behind it."""
        now = self._monotonic_seconds()
        for known in list(self._by_session.values()):
            if known.deadline <= now and not known.unit.is_closed:
                await self._abort(known)

    async def _abort(self, transaction: OpenTransaction) -> None:
        # Marked before the lock is free, so that no further statement begins.
        transaction.state = _ended(transaction.state)
        async with transaction.lock:
            await self._close(transaction)

    async def _close(self, transaction: OpenTransaction) -> None:
        await self._close_cursors(transaction.session, transaction.number)
        await transaction.unit.close()

    def _forget_oldest(self) -> None:
        excess = len(self._by_session) - _REMEMBERED_MAX
        if excess <= 0:
            return
        over = [key for key, known in self._by_session.items() if known.state is not TransactionState.OPEN]
        for session in over[:excess]:
            del self._by_session[session]

    # --- the timer --------------------------------------------------------------------------------------------------

    def _wake_at(self, deadline: float) -> None:
        if self._timer is not None:
            if deadline >= self._wakes_at:
                return
            self._timer.cancel()
        self._wakes_at = deadline
        delay = max(0.0, deadline - self._monotonic_seconds())
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._expiring = asyncio.get_running_loop().create_task(self._expire_and_go_on())

    async def _expire_and_go_on(self) -> None:
        await self.expire()
        deadlines = [known.deadline for known in self._by_session.values() if not known.unit.is_closed]
        if deadlines:
            self._wake_at(min(deadlines))


def transaction_seconds(context: DoorContext) -> float:
    """Return how long a transaction that begins now may last: as a client has set it, or as the operator has."""
    changed = context.parameters.get("transactionLifetimeLimitSeconds")
    return float(context.settings.mongo_transaction_seconds_max if changed is None else max(1, as_int(changed)))


def _ended(state: TransactionState) -> TransactionState:
    """Return the state of a transaction that is ended without a commit of its own."""
    return TransactionState.ABORTED if state is TransactionState.OPEN else state


def _too_old(number: int, known: OpenTransaction) -> MongoFailure:
    return MongoFailure(
        225, f"Transaction {number} is too old: the session has gone on to transaction {known.number} already."
    )


def _no_such(number: int, known: OpenTransaction | None) -> MongoFailure:
    if known is not None and known.number > number:
        return _too_old(number, known)
    return MongoFailure(251, f"Given transaction number {number} does not match any in-progress transactions.")
