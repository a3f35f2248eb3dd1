"""Open transactions of this process, by session, and the outcomes of those that have ended.

A transaction is a unit of the model, which holds a snapshot and the staged changes; it is ended at its deadline, so
that no client can keep a snapshot open for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.results import RetryToken, TransactionOvertaken
from asterism.models.collections.store import CollectionStore
from asterism.models.collections.unit import Unit

LIFETIME_SECONDS = 60.0
TRANSIENT = ("TransientTransactionError",)
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
    deadline: float
    state: TransactionState = TransactionState.OPEN
    # One statement at a time.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class TransactionRegistry:
    def __init__(self, store: CollectionStore, monotonic_seconds: Callable[[], float]) -> None:
        self._store = store
        self._monotonic_seconds = monotonic_seconds
        self._by_session: dict[bytes, OpenTransaction] = {}

    def __len__(self) -> int:
        """Return how many transactions are open."""
        return sum(known.state is TransactionState.OPEN for known in self._by_session.values())

    async def begin(self, session: bytes, number: int) -> OpenTransaction:
        """Open a transaction; one of the session that is still open is aborted, as the client has left it."""
        await self.expire()
        known = self._by_session.get(session)
        if known is not None:
            if known.number > number:
                raise MongoFailure(225, f"Cannot start transaction {number}: a newer transaction has already started")
            if known.number == number:
                raise MongoFailure(50911, f"Cannot start a transaction at given transaction number {number}: it exists")
            await self._end(known, TransactionState.ABORTED)
        deadline = self._monotonic_seconds() + LIFETIME_SECONDS
        opened = OpenTransaction(session, number, self._store.new_unit(), deadline)
        self._by_session.pop(session, None)
        self._by_session[session] = opened
        return opened

    async def find(self, session: bytes, number: int) -> OpenTransaction:
        """Return the open transaction of a statement; NoSuchTransaction if it has ended or never was."""
        await self.expire()
        known = self._by_session.get(session)
        if known is None or known.number != number or known.state is not TransactionState.OPEN:
            raise _no_such(number, known)
        return known

    async def commit(self, session: bytes, number: int) -> None:
        """Commit; a commit that is repeated is answered alike."""
        await self.expire()
        known = self._by_session.get(session)
        if known is None or known.number != number or known.state is TransactionState.ABORTED:
            raise _no_such(number, known)
        if known.state is TransactionState.COMMITTED:
            return
        async with known.lock:
            try:
                await self._store.commit_unit(known.unit, RetryToken(session, number))
            except TransactionOvertaken:
                await self._end(known, TransactionState.ABORTED)
                raise MongoFailure(
                    112,
                    "Caused by :: Write conflict during plan execution and yielding is disabled. "
                    "Please retry your operation or multi-document transaction.",
                    labels=TRANSIENT,
                ) from None
            except Exception:
                await self._end(known, TransactionState.ABORTED)
                raise
            await self._end(known, TransactionState.COMMITTED)

    async def abort(self, session: bytes, number: int) -> None:
        await self.expire()
        known = self._by_session.get(session)
        if known is None or known.number != number or known.state is TransactionState.ABORTED:
            raise _no_such(number, known)
        if known.state is TransactionState.COMMITTED:
            raise MongoFailure(256, f"Transaction {number} has been committed.")
        await self._end(known, TransactionState.ABORTED)

    async def fail(self, transaction: OpenTransaction) -> None:
        """End a transaction of which a statement has failed."""
        await self._end(transaction, TransactionState.ABORTED)

    async def end_session(self, session: bytes) -> None:
        known = self._by_session.pop(session, None)
        if known is not None:
            await self._end(known, TransactionState.ABORTED)

    async def expire(self) -> None:
        """End transactions that have expired, and forget the oldest that have ended."""
        now = self._monotonic_seconds()
        over = [known for known in self._by_session.values() if known.deadline <= now]
        for known in over:
            if known.state is TransactionState.OPEN:
                await self._end(known, TransactionState.ABORTED)
        while len(self._by_session) > _REMEMBERED_MAX:
            oldest = next(iter(self._by_session))
            await self.end_session(oldest)

    async def _end(self, transaction: OpenTransaction, state: TransactionState) -> None:
        if transaction.state is TransactionState.OPEN:
            transaction.state = state
            await transaction.unit.close()


def _no_such(number: int, known: OpenTransaction | None) -> MongoFailure:
    if known is not None and known.number > number:
        return MongoFailure(225, f"Transaction {number} is older than the session's last one", labels=TRANSIENT)
    return MongoFailure(
        251, f"Given transaction number {number} does not match any in-progress transactions.", labels=TRANSIENT
    )
