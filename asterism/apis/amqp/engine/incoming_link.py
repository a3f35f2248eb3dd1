"""Links on which the client sends: frames are put together to deliveries, which the node takes over in turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from asterism.apis.amqp.engine.attach import AttachFields
from asterism.apis.amqp.engine.links import Link
from asterism.apis.amqp.engine.outcomes import ACCEPTED_BYTES, encoded_state, state_of
from asterism.apis.amqp.engine.performatives import Performative
from asterism.apis.amqp.engine.transfer_codec import Transfer
from asterism.apis.amqp.nodes import (
    INTERNAL_ERROR,
    INVALID_FIELD,
    SIZE_EXCEEDED,
    Accepted,
    AmqpError,
    Delivery,
    Intake,
    Outcome,
    Rejected,
)

if TYPE_CHECKING:
    from asterism.apis.amqp.engine.session import Session

_COUNT_MASK: Final = 0xFFFFFFFF


class IncomingLink(Link):
    """The engine's side of a link on which the client sends.

    Credit is no back-pressure, as some clients go on without any: more of it is given when half is used and its node
    has taken what came; a sender that is too fast is slowed down by its socket.
    """

    def __init__(
        self,
        session: Session,
        fields: AttachFields,
        open_intake: Callable[[IncomingLink], Awaitable[Intake]],
        *,
        is_of_entity: bool = True,
    ) -> None:
        super().__init__(session, fields, is_of_entity=is_of_entity)
        self._open_intake = open_intake
        self._intake: Intake | None = None
        self._message_bytes_max = self.connection.settings.message_bytes_max
        self._delivery_count = 0
        self._credit = 0
        # The first frame of a delivery whose rest has not arrived, and the payload so far; None while a delivery that
        # is too large is skipped.
        self._first: Transfer | None = None
        self._partial: bytearray | None = None
        self._partial_bytes = 0
        # Whole deliveries, with the ids that they are answered by.
        self._deliveries: list[Delivery] = []
        self._delivery_ids: list[int] = []
        self._waiting_bytes = 0

    async def _open_node(self) -> None:
        self._intake = await self._open_intake(self)
        self._message_bytes_max = self._intake.reply.max_message_bytes or self._message_bytes_max

    def _agree(self) -> None:
        assert self._intake is not None
        self.session.send(Performative.ATTACH, self.fields.answer(self._intake.reply))
        self._give_credit()

    # --- frames ---

    def on_flow(self, *, delivery_count: int | None, credit: int | None, is_draining: bool, wants_echo: bool) -> None:  # noqa: ARG002 - the sender's own counts say nothing here
        if wants_echo and self._is_open and not self.is_closed:
            self._send_flow()

    def on_transfer(self, transfer: Transfer) -> None:
        """Take in one frame of a delivery. Raises InvalidAmqp."""
        if self.is_closed:
            return
        if self._first is not None:
            self._continue(transfer)
        elif transfer.has_more or transfer.is_aborted:
            self._begin(transfer)
        else:
            self._complete(transfer, transfer.payload)

    def _begin(self, transfer: Transfer) -> None:
        if transfer.is_aborted:
            self._count_delivery()
            return
        self._first = transfer._replace(payload=b"")
        # One buffer: a list would take more than the payloads themselves when a client sends them byte by byte.
        self._partial = bytearray()
        self._collect(transfer.payload)

    def _continue(self, transfer: Transfer) -> None:
        # Some clients repeat the id and the tag in every frame.
        first = self._first
        assert first is not None
        if transfer.delivery_id is not None and transfer.delivery_id != first.delivery_id:
            self._forget_partial()
            self.detach(AmqpError(INVALID_FIELD, "A delivery began before the last one was whole."))
            return
        if not transfer.is_aborted:
            self._collect(transfer.payload)
            if transfer.has_more:
                return
        partial = self._partial
        self._forget_partial()
        if transfer.is_aborted:
            self._count_delivery()
        elif partial is None:
            self._count_delivery()
            self._refuse_size(first, first.is_settled or transfer.is_settled)
        else:
            # The state and `settled` of any frame hold for the whole.
            state = transfer.state if first.state is None else first.state
            whole = first._replace(is_settled=first.is_settled or transfer.is_settled, state=state)
            self._complete(whole, bytes(partial))

    def _collect(self, payload: bytes) -> None:
        if self._partial is None:
            return
        self._partial_bytes += len(payload)
        self.connection.add_partial_bytes(len(payload))
        if self._partial_bytes > self._message_bytes_max:
            # The rest of it is skipped.
            self.connection.add_partial_bytes(-self._partial_bytes)
            self._partial_bytes = 0
            self._partial = None
        else:
            self._partial += payload

    def _forget_partial(self) -> None:
        self.connection.add_partial_bytes(-self._partial_bytes)
        self._partial_bytes = 0
        self._partial = None
        self._first = None

    def _complete(self, transfer: Transfer, payload: bytes) -> None:
        self._delivery_count = (self._delivery_count + 1) & _COUNT_MASK
        self._credit -= 1
        if transfer.delivery_id is None:
            self.detach(AmqpError(INVALID_FIELD, "The first frame of a delivery has no delivery-id."))
            return
        size = len(payload)
        if size > self._message_bytes_max:
            self._refuse_size(transfer, transfer.is_settled)
            return
        transaction = None if transfer.state is None else state_of(transfer.state).transaction
        self._deliveries.append(
            Delivery(payload, transfer.format, transfer.tag or b"", transfer.is_settled, transaction)
        )
        self._delivery_ids.append(transfer.delivery_id)
        self._waiting_bytes += size
        self.connection.add_waiting(1, size)
        if not self._is_touched:
            self.touch()

    def _count_delivery(self) -> None:
        self._delivery_count = (self._delivery_count + 1) & _COUNT_MASK
        self._credit -= 1

    def _refuse_size(self, transfer: Transfer, is_settled: bool) -> None:
        if not is_settled and transfer.delivery_id is not None:
            sentence = f"The message is larger than the {self._message_bytes_max} bytes that the link allows."
            state = encoded_state(Rejected(AmqpError(SIZE_EXCEEDED, sentence)))
            self.session.send_disposition(transfer.delivery_id, transfer.delivery_id, state, is_from_receiver=True)
        self._renew_credit()

    # --- work ---

    def _has_work(self) -> bool:
        return bool(self._deliveries)

    def _drop_work(self) -> None:
        self.connection.add_waiting(-len(self._deliveries), -self._waiting_bytes)
        self._deliveries, self._delivery_ids, self._waiting_bytes = [], [], 0

    async def _work_once(self) -> None:
        deliveries, delivery_ids, size = self._deliveries, self._delivery_ids, self._waiting_bytes
        self._deliveries, self._delivery_ids, self._waiting_bytes = [], [], 0
        try:
            outcomes = await self._take(deliveries)
        finally:
            self.connection.add_waiting(-len(deliveries), -size)
        if outcomes is not None:
            self._answer(deliveries, delivery_ids, outcomes)
            self._renew_credit()

    async def _take(self, deliveries: list[Delivery]) -> Sequence[Outcome] | None:
        assert self._intake is not None
        try:
            outcomes = await self._intake.take(deliveries)
        except AmqpError as error:
            self.detach(error)
            return None
        except Exception as error:
            # The store's errors pass, most of them: the client sends these deliveries again over the same link.
            return [Rejected(self.connection.failure_of(error))] * len(deliveries)
        if len(outcomes) != len(deliveries):
            sentence = "The server did not answer every delivery. Send again."
            return [Rejected(AmqpError(INTERNAL_ERROR, sentence))] * len(deliveries)
        return outcomes

    def _answer(self, deliveries: list[Delivery], delivery_ids: list[int], outcomes: Sequence[Outcome]) -> None:
        """Settle what the client has not settled itself: a disposition for every range of one outcome."""
        first = last = -1
        state = b""
        for delivery, delivery_id, outcome in zip(deliveries, delivery_ids, outcomes, strict=True):
            if delivery.is_settled:
                continue
            if delivery.transaction is None and type(outcome) is Accepted:
                its_state = ACCEPTED_BYTES
            else:
                its_state = encoded_state(outcome, delivery.transaction)
            if delivery_id == last + 1 and its_state == state:
                last = delivery_id
                continue
            if first >= 0:
                self.session.send_disposition(first, last, state, is_from_receiver=True)
            first = last = delivery_id
            state = its_state
        if first >= 0:
            self.session.send_disposition(first, last, state, is_from_receiver=True)

    # --- credit ---

    def _renew_credit(self) -> None:
        if self._credit <= self.connection.settings.credit // 2 and self._is_open and not self.is_closed:
            self._give_credit()

    def _give_credit(self) -> None:
        self._credit = self.connection.settings.credit
        self._send_flow()

    def _send_flow(self) -> None:
        self.session.send_flow(self.handle, delivery_count=self._delivery_count, credit=max(self._credit, 0))

    # --- the end ---

    def _client_gone(self) -> None:
        # A delivery that has not arrived whole never will.
        self._forget_partial()
        self.connection.changed()

    def _close_node(self) -> None:
        if self._intake is not None:
            self._intake.closed()
