"""Transactions of one connection, and the coordinator's link that declares and discharges them.

The work of a transaction is collected in memory and applied as one batch of one fragment of one entity; everything
that does not fit into that is refused when it arrives [contract, section H].
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.bus.incoming import Parcel
from asterism.apis.amqp.bus.limits import BusLimits
from asterism.apis.amqp.errors import (
    DECODE_ERROR,
    NOT_IMPLEMENTED,
    TRANSACTION_ROLLBACK,
    TRANSACTION_TIMEOUT,
    TRANSACTION_UNKNOWN,
    words,
)
from asterism.apis.amqp.nodes import (
    ACCEPTED,
    NOT_ALLOWED,
    RESOURCE_LIMIT,
    AmqpError,
    AttachReply,
    Declared,
    Delivery,
    Outcome,
    Peer,
    Rejected,
)
from asterism.errors import AsterismError
from asterism.models.messages.messages import Action, Failure
from asterism.values.amqp.message import Message
from asterism.values.amqp.types import Described, InvalidAmqp

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel
    from asterism.models.messages.entity import Entity
    from asterism.models.messages.transaction import Transaction

_SHARED_KEY: Final = "bus-transactions"
_DECLARE: Final = (0x31, "amqp:declare:list")
_DISCHARGE: Final = (0x32, "amqp:discharge:list")
_ID: Final = struct.Struct(">Q")


@dataclass(eq=False, slots=True)
class _Open:
    """A transaction between its declaration and its discharge."""

    owner: object
    ends: asyncio.TimerHandle
    entity: Entity | None = None
    work: Transaction | None = None
    message_count: int = 0


class TransactionBook:
    """The open transactions of one connection."""

    def __init__(self, limits: BusLimits) -> None:
        self._limits = limits
        self._open: dict[bytes, _Open] = {}
        # Ended by time, the oldest first: their discharge is answered with the reason.
        self._late: dict[bytes, None] = {}
        self._next_id = 1

    @classmethod
    def of(cls, peer: Peer, limits: BusLimits) -> TransactionBook:
        """Return the book of a connection."""
        book = peer.shared.get(_SHARED_KEY)
        if book is None:
            book = peer.shared[_SHARED_KEY] = cls(limits)
        assert isinstance(book, cls), "the key is this module's own"
        return book

    def declare(self, owner: object) -> bytes:
        """Begin a transaction, which ends with its owner."""
        if len(self._open) >= self._limits.transactions_per_connection_max:
            raise AmqpError(RESOURCE_LIMIT, "The connection has too many open transactions. Discharge some first.")
        identity = _ID.pack(self._next_id)
        self._next_id += 1
        timer = asyncio.get_running_loop().call_later(self._limits.transaction_seconds_max, self._expire, identity)
        self._open[identity] = _Open(owner, timer)
        return identity

    def send(self, identity: bytes, entity: Entity, parcel: Parcel) -> None:
        """Add messages that enter an entity when the transaction is committed."""
        found, work = self._work_of(identity, entity, len(parcel.messages))
        work.send(parcel.messages, key=parcel.key)
        found.message_count += len(parcel.messages)

    async def settle(
        self,
        identity: bytes,
        channel: Channel,
        tokens: Sequence[bytes],
        action: Action,
        *,
        session_id: str | None = None,
    ) -> list[Failure | None]:
        """Add settlements that are carried out when the transaction is committed; return the failures of those whose
        locks are lost already."""
        found, work = self._work_of(identity, channel.entity, len(tokens))
        failures = await work.settle(channel, tokens, action, session_id=session_id)
        found.message_count += len(tokens)
        return failures

    async def discharge(self, identity: bytes, *, fail: bool) -> None:
        """Commit a transaction, or roll it back. AmqpError says that it was rolled back instead of committed."""
        if identity in self._late:
            del self._late[identity]
            if fail:
                return
            raise AmqpError(
                TRANSACTION_TIMEOUT,
                f"The transaction was rolled back after {self._limits.transaction_seconds_max:g} seconds.",
            )
        found = self._open.pop(identity, None)
        if found is None:
            raise _unknown()
        found.ends.cancel()
        if found.work is None:
            return
        if fail:
            found.work.rollback()
            return
        try:
            await found.work.commit()
        except AsterismError as error:
            reason = words(error)
            raise AmqpError(
                TRANSACTION_ROLLBACK, f"The transaction was rolled back: {reason.description}", reason.info
            ) from error

    def end_all(self, owner: object) -> None:
        """Roll back the transactions of an owner."""
        for identity, found in list(self._open.items()):
            if found.owner is owner:
                self._drop(identity)

    def _work_of(self, identity: bytes, entity: Entity, count: int) -> tuple[_Open, Transaction]:
        found = self._open.get(identity)
        if found is None:
            raise _unknown()
        if found.message_count + count > self._limits.transaction_messages_max:
            raise AmqpError(
                RESOURCE_LIMIT, f"A transaction has at most {self._limits.transaction_messages_max} messages."
            )
        if found.work is None or found.entity is None:
            found.entity, found.work = entity, entity.transaction()
        elif found.entity is not entity:
            raise AmqpError(
                NOT_ALLOWED,
                f"The transaction is about {found.entity.name}; it cannot have messages of {entity.name} too.",
            )
        return found, found.work

    def _expire(self, identity: bytes) -> None:
        self._drop(identity)
        self._late[identity] = None
        if len(self._late) > self._limits.transactions_per_connection_max:
            del self._late[next(iter(self._late))]

    def _drop(self, identity: bytes) -> None:
        found = self._open.pop(identity)
        found.ends.cancel()
        if found.work is not None:
            found.work.rollback()


class Coordinator:
    """The node's side of a coordinator's link; an `Intake`. Its transactions end with it."""

    def __init__(self, book: TransactionBook) -> None:
        self._book = book
        self.reply = AttachReply()

    async def take(self, deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        return [await self._answer(delivery) for delivery in deliveries]

    def closed(self) -> None:
        self._book.end_all(self)

    async def _answer(self, delivery: Delivery) -> Outcome:
        try:
            body: Any = Message.parse(delivery.payload).body
            descriptor = body.descriptor if isinstance(body, Described) else None
            if descriptor in _DECLARE:
                return Declared(self._book.declare(self))
            if descriptor in _DISCHARGE:
                identity, fail = [*body.value, None, None][:2]
                if not isinstance(identity, bytes):
                    raise AmqpError(TRANSACTION_UNKNOWN, "The discharge names no transaction.")
                await self._book.discharge(bytes(identity), fail=bool(fail))
                return ACCEPTED
        except InvalidAmqp as error:
            return Rejected(AmqpError(DECODE_ERROR, f"The message cannot be decoded: {error}."))
        except AmqpError as error:
            return Rejected(error)
        return Rejected(AmqpError(NOT_IMPLEMENTED, "A coordinator takes declarations and discharges."))


def _unknown() -> AmqpError:
    return AmqpError(TRANSACTION_UNKNOWN, "There is no such transaction. It may have been rolled back.")
