"""Links on which clients receive from a queue, a subscription or a sub-queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.bus.outgoing import encode_delivery, tag_of
from asterism.apis.amqp.bus.settlement import COMPLETE, UNLOCK, action_of
from asterism.apis.amqp.bus.transactions import TransactionBook
from asterism.apis.amqp.errors import words, words_of_failure
from asterism.apis.amqp.nodes import (
    ACCEPTED,
    INTERNAL_ERROR,
    AmqpError,
    AttachReply,
    Outcome,
    OutgoingLink,
    Rejected,
    Settlement,
)
from asterism.errors import AsterismError
from asterism.models.messages.messages import Action, Received

if TYPE_CHECKING:
    from asterism.models.messages.channel import Channel
    from asterism.models.messages.sessions import SessionHold

_LOG = logging.getLogger(__name__)

# Messages of one call of the model; the client may have given more credit.
_PAGE_MESSAGES_MAX: Final = 250
_NOT_SETTLED: Final = Rejected()
_TOKEN_BYTES: Final = 16


class Receiver:
    """The node's side of a link on which a client receives; an `Outlet`.

    A task sends as long as there is credit. It ends without credit and is begun again with the next; while it waits
    for messages it may be canceled, as the model gives back whatever it had taken for it.
    """

    def __init__(
        self,
        link: OutgoingLink,
        channel: Channel,
        transactions: TransactionBook,
        *,
        locks: bool,
        hold: SessionHold | None,
        reply: AttachReply,
        background: Callable[[Coroutine[Any, Any, None]], None],
        on_closed: Callable[[], None],
    ) -> None:
        self.reply = reply
        self._link = link
        self._channel = channel
        self._transactions = transactions
        # Without locks, messages are deleted when they are received.
        self._locks = locks
        self._hold = hold
        # Runs work to its end although the link has ended.
        self._background = background
        self._on_closed = on_closed
        self._task: asyncio.Task[None] | None = None
        # The task that is waiting for messages, and may be canceled.
        self._waiting: asyncio.Task[Any] | None = None
        self._is_started = False
        self._ended: AmqpError | None = None

    @property
    def _session_id(self) -> str | None:
        return None if self._hold is None else self._hold.session_id

    def start(self) -> None:
        self._is_started = True
        if self._ended is not None:
            self._link.detach(self._ended)
            return
        self.credit_changed()

    def end(self, error: AmqpError) -> None:
        """End the link, also if its client does not know yet that it is attached."""
        self._ended = error
        if self._is_started and not self._link.is_closed:
            self._link.detach(error)

    def credit_changed(self) -> None:
        if not self._is_started or self._link.is_closed:
            return
        task = self._task
        is_waiting = task is not None and task is self._waiting
        has_work = self._link.credit > 0 or self._link.is_draining
        if is_waiting and (not has_work or self._link.is_draining):
            assert task is not None, "it is waiting"
            task.cancel()
            task = None
        if has_work and (task is None or task.done()):
            self._task = asyncio.create_task(self._run())

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = [settlement.outcome for settlement in settlements]
        groups: dict[Any, tuple[Action, list[int]]] = {}
        completed: list[int] | None = None
        for place, settlement in enumerate(settlements):
            if len(settlement.mark or b"") != _TOKEN_BYTES:
                # Deleted when it was received: there is nothing to settle.
                continue
            if settlement.transaction is not None:
                outcomes[place] = await self._settle_in_transaction(settlement)
                continue
            if settlement.outcome is ACCEPTED:
                # As nearly all are.
                if completed is None:
                    completed = []
                    groups[COMPLETE] = COMPLETE, completed
                completed.append(place)
                continue
            action = action_of(settlement.outcome)
            # Most are completed, and share a call; others have properties of their own.
            key = action if action is COMPLETE or action is UNLOCK else place
            groups.setdefault(key, (action, []))[1].append(place)
            if isinstance(settlement.outcome, Rejected):
                # The answer to a dead letter has no error: one would say that the settlement failed [A3].
                outcomes[place] = _NOT_SETTLED
        for action, places in groups.values():
            await self._settle_group(settlements, action, places, outcomes)
        return outcomes

    def closed(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._hold is not None:
            self._background(self._hold.release())
        self._on_closed()

    async def _settle_group(
        self, settlements: Sequence[Settlement], action: Action, places: Sequence[int], outcomes: list[Outcome]
    ) -> None:
        tokens = [settlements[place].mark for place in places]
        try:
            failures = await self._channel.settle(tokens, action, session_id=self._session_id)
        except AsterismError as error:
            refused = Rejected(words(error))
            for place in places:
                outcomes[place] = refused
            return
        for place, failure in zip(places, failures, strict=True):
            if failure is not None:
                outcomes[place] = Rejected(words_of_failure(failure))

    async def _settle_in_transaction(self, settlement: Settlement) -> Outcome:
        assert settlement.transaction is not None, "the caller has looked"
        try:
            (failure,) = await self._transactions.settle(
                settlement.transaction,
                self._channel,
                [settlement.mark],
                action_of(settlement.outcome),
                session_id=self._session_id,
            )
        except AmqpError as error:
            return Rejected(error)
        except AsterismError as error:
            return Rejected(words(error))
        if failure is not None:
            return Rejected(words_of_failure(failure))
        return _NOT_SETTLED if isinstance(settlement.outcome, Rejected) else settlement.outcome

    # --- the task ---------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await self._send_pages()
        except asyncio.CancelledError:
            raise
        except AsterismError as error:
            self._fail(words(error))
        except Exception:
            _LOG.exception("a receiver of %s failed", self._channel.path)
            self._fail(AmqpError(INTERNAL_ERROR, "The server failed; its log has the reason."))

    async def _send_pages(self) -> None:
        link = self._link
        while not link.is_closed:
            if link.credit <= 0:
                if link.is_draining:
                    link.drained()
                return
            page = await self._receive(min(link.credit, _PAGE_MESSAGES_MAX), wait=not link.is_draining)
            if not page and link.is_draining:
                link.drained()
                return
            unsent = self._send(page)
            if unsent:
                self._background(self._unlock(unsent))
            await link.writable()

    async def _receive(self, count: int, *, wait: bool) -> list[Received]:
        current = asyncio.current_task()
        self._waiting = current if wait else None
        try:
            return await self._channel.receive(count, lock=self._locks, session=self._hold, wait=wait)
        finally:
            if self._waiting is current:
                self._waiting = None

    def _send(self, page: Sequence[Received]) -> list[bytes]:
        """Send messages, and return the tokens of those that the client does not take any more."""
        link = self._link
        if not self._locks:
            for received in page:
                link.send(encode_delivery(received), tag=b"", is_settled=True)
            return []
        for place, received in enumerate(page):
            if link.is_closed or link.credit <= 0:
                return [late.lock_token for late in page[place:] if late.lock_token is not None]
            token = received.lock_token
            assert token is not None, "it was received under a lock"
            link.send(encode_delivery(received), tag=tag_of(token), is_settled=False, mark=token)
        return []

    async def _unlock(self, tokens: Sequence[bytes]) -> None:
        await self._channel.settle(tokens, UNLOCK, session_id=self._session_id)

    def _fail(self, error: AmqpError) -> None:
        if not self._link.is_closed:
            self._link.detach(error)
