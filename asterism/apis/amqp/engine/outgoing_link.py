"""Links on which the client receives: deliveries within its credit, and what becomes of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.engine.attach import AttachFields
from asterism.apis.amqp.engine.links import Link
from asterism.apis.amqp.engine.outcomes import ACCEPTED_BYTES, ClientState, encoded_state
from asterism.apis.amqp.engine.performatives import Performative
from asterism.apis.amqp.nodes import (
    ACCEPTED,
    INTERNAL_ERROR,
    RELEASED,
    AmqpError,
    Outcome,
    Outlet,
    Rejected,
    Settlement,
)

if TYPE_CHECKING:
    from asterism.apis.amqp.engine.session import Session

_COUNT_MASK: Final = 0xFFFFFFFF
_COUNT_HALF: Final = 0x80000000


class OutgoingLink(Link):
    """The engine's side of a link on which the client receives; the `OutgoingLink` of the nodes."""

    def __init__(
        self,
        session: Session,
        fields: AttachFields,
        open_outlet: Callable[[OutgoingLink], Awaitable[Outlet]],
        *,
        is_of_entity: bool = True,
    ) -> None:
        super().__init__(session, fields, is_of_entity=is_of_entity)
        self._open_outlet = open_outlet
        self._outlet: Outlet | None = None
        self.credit = 0
        self.is_draining = False
        self._delivery_count = 0
        self._settlements: list[Settlement] = []
        self._settled_ids: list[int] = []

    async def _open_node(self) -> None:
        self._outlet = await self._open_outlet(self)

    def _agree(self) -> None:
        assert self._outlet is not None
        self.session.send(Performative.ATTACH, self.fields.answer(self._outlet.reply))
        self._outlet.start()
        if self.credit or self.is_draining:
            # The flow came before the answer.
            self._tell_credit()

    # --- for the node ---

    def send(self, payload: bytes, *, tag: bytes, is_settled: bool, mark: Any = None, keeps_state: bool = True) -> None:
        if self.is_closed:
            return
        self.credit -= 1
        self._delivery_count = (self._delivery_count + 1) & _COUNT_MASK
        self.session.send_delivery(self, payload, tag, is_settled, mark, keeps_state)

    async def writable(self) -> None:
        while not self.is_closed and not self.session.is_writable:
            await self.connection.change()

    def drained(self) -> None:
        if self.is_closed or not self.is_draining:
            return
        self._delivery_count = (self._delivery_count + max(self.credit, 0)) & _COUNT_MASK
        self.credit = 0
        self.is_draining = False
        # Behind the deliveries that still wait for the client's window.
        self.session.send_in_order(self, lambda: self._send_flow(is_draining=True))

    # --- frames ---

    def on_flow(self, *, delivery_count: int | None, credit: int | None, is_draining: bool, wants_echo: bool) -> None:
        if self.is_closed:
            return
        if credit is not None:
            # Before the client knows of a count it has none: what was sent since the beginning comes off.
            ahead = (self._delivery_count - (delivery_count or 0)) & _COUNT_MASK
            # The client's count is never ahead; if it says so it gets the credit that it names.
            self.credit = max(credit - ahead, 0) if ahead < _COUNT_HALF else credit
        self.is_draining = is_draining
        if is_draining and not self.credit and self._is_open:
            self.drained()
        elif wants_echo and self._is_open:
            self._send_flow(is_draining=False)
        if self._is_open:
            self._tell_credit()

    def _tell_credit(self) -> None:
        assert self._outlet is not None
        try:
            self._outlet.credit_changed()
        except Exception as error:
            self.detach(self.connection.failure_of(error))

    def on_settled(self, delivery_id: int, tag: bytes, mark: Any, state: ClientState, is_settled: bool) -> None:
        """Take in the outcome of a delivery, which is no longer remembered."""
        outcome = RELEASED if state.outcome is None else state.outcome
        self._settlements.append(Settlement(tag, outcome, is_settled, state.transaction, mark))
        self._settled_ids.append(delivery_id)
        self.connection.waiting_count += 1
        if not self._is_touched:
            self.touch()

    # --- work ---

    def _has_work(self) -> bool:
        return bool(self._settlements)

    def _drop_work(self) -> None:
        # Settlements count, whichever side has ended the link: the client has seen these messages.
        return

    async def _work_once(self) -> None:
        settlements, delivery_ids = self._settlements, self._settled_ids
        self._settlements, self._settled_ids = [], []
        self.connection.counters.settlements += len(settlements)
        try:
            outcomes = await self._settle(settlements)
        finally:
            self.connection.add_waiting(-len(settlements), 0)
        self._answer(settlements, delivery_ids, outcomes)

    async def _settle(self, settlements: list[Settlement]) -> Sequence[Outcome]:
        assert self._outlet is not None
        try:
            outcomes = await self._outlet.settle(settlements)
        except Exception as error:
            return [Rejected(self.connection.failure_of(error))] * len(settlements)
        if len(outcomes) != len(settlements):
            sentence = "The server did not answer every settlement. Receive the messages again."
            return [Rejected(AmqpError(INTERNAL_ERROR, sentence))] * len(settlements)
        return outcomes

    def _answer(self, settlements: list[Settlement], delivery_ids: list[int], outcomes: Sequence[Outcome]) -> None:
        """Echo what the client waits for: a disposition for every range of one outcome."""
        first = last = -1
        state = b""
        for settlement, delivery_id, outcome in zip(settlements, delivery_ids, outcomes, strict=True):
            if settlement.is_settled:
                continue
            if outcome is ACCEPTED and settlement.transaction is None:
                its_state = ACCEPTED_BYTES
            else:
                its_state = encoded_state(outcome, settlement.transaction)
            if delivery_id == last + 1 and its_state == state:
                last = delivery_id
                continue
            if first >= 0:
                self.session.send_disposition(first, last, state, is_from_receiver=False)
            first = last = delivery_id
            state = its_state
        if first >= 0:
            self.session.send_disposition(first, last, state, is_from_receiver=False)

    def _send_flow(self, *, is_draining: bool) -> None:
        self.session.send_flow(
            self.handle, delivery_count=self._delivery_count, credit=self.credit, is_draining=is_draining
        )

    # --- the end ---

    def _client_gone(self) -> None:
        self.credit = 0
        self.session.forget_deliveries(self)
        self.connection.changed()

    def _close_node(self) -> None:
        if self._outlet is not None:
            self._outlet.closed()
