"""Sessions: windows, delivery ids, and links by their handles.

A client's own arithmetic of windows is never enforced, as some clients count messages where others count frames. The
number of frames that it announces to take is kept to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.engine.attach import AttachFields, parse_attach
from asterism.apis.amqp.engine.incoming_link import IncomingLink
from asterism.apis.amqp.engine.links import Link
from asterism.apis.amqp.engine.outcomes import described_error, state_of
from asterism.apis.amqp.engine.outgoing_link import OutgoingLink
from asterism.apis.amqp.engine.performatives import Performative, encode_performative, is_uint, is_uint_or_null
from asterism.apis.amqp.engine.requests import RequestNodes
from asterism.apis.amqp.engine.transfer_codec import (
    continuation_payload_bytes_max,
    decode_disposition,
    decode_transfer,
    encode_continuation,
    encode_disposition,
    encode_transfer,
    transfer_payload_bytes_max,
)
from asterism.apis.amqp.nodes import RESOURCE_LIMIT, UNAUTHORIZED, AmqpError
from asterism.values.amqp.types import InvalidAmqp, UInt, UShort

if TYPE_CHECKING:
    from asterism.apis.amqp.engine.connection import Connection

HANDLE_IN_USE: Final = "amqp:session:handle-in-use"
UNATTACHED_HANDLE: Final = "amqp:session:unattached-handle"
NOT_IMPLEMENTED: Final = "amqp:not-implemented"
FRAMING_ERROR: Final = "amqp:connection:framing-error"

_MASK: Final = 0xFFFFFFFF


class SessionFailure(AmqpError):
    """An error of the client that ends its session and not the connection."""


@dataclass(slots=True)
class _Queued:
    """A delivery that waits for the client's window, from `offset` on; or an act that keeps its place behind others."""

    link: OutgoingLink
    payload: bytes = b""
    tag: bytes = b""
    is_settled: bool = True
    mark: Any = None
    keeps_state: bool = False
    offset: int = 0
    act: Callable[[], None] | None = None


class Session:
    """One session of a connection, which calls it with frames."""

    def __init__(self, connection: Connection, channel: int, fields: Sequence[Any]) -> None:
        _, next_outgoing_id, incoming_window, _, *_ = fields
        if not is_uint(next_outgoing_id) or not isinstance(incoming_window, int):
            raise InvalidAmqp("the begin lacks an id or a window")
        self.connection = connection
        self.channel = channel
        self.links: dict[int, Link] = {}
        self.requests = RequestNodes(connection)
        self._next_incoming_id = next_outgoing_id
        # How many frames the client has been told that it may still send.
        self._incoming_window = connection.settings.incoming_window
        self._next_outgoing_id = 0
        self._next_delivery_id = 0
        self._remote_window = incoming_window
        self._frame_bytes_max = connection.frame_bytes_max
        # Of the payload and the tag of a delivery that is sent in one frame.
        self._whole_bytes_max = transfer_payload_bytes_max(connection.frame_bytes_max, b"")
        # Deliveries that were sent and not settled.
        self._unsettled: dict[int, tuple[OutgoingLink, bytes, Any]] = {}
        self._queue: deque[_Queued] = deque()
        self._is_ended = False

    def begin(self) -> None:
        settings = self.connection.settings
        self.send(
            Performative.BEGIN,
            [
                UShort(self.channel),
                UInt(self._next_outgoing_id),
                UInt(settings.incoming_window),
                UInt(settings.incoming_window),
                UInt(settings.handle_max),
            ],
        )

    def end(self) -> None:
        """End all links without a word, as the session or its connection has ended."""
        self._is_ended = True
        self._queue.clear()
        self._unsettled.clear()
        links = list(self.links.values())
        self.links.clear()
        for link in links:
            link.abandon()
        self.connection.add_links(-len(links))

    def fail(self, error: AmqpError) -> None:
        """End the session from this side."""
        self.send(Performative.END, [described_error(error)])
        self.end()

    # --- sending ---

    def send(self, code: Performative, fields: Sequence[Any]) -> None:
        if not self._is_ended:
            self.connection.write(encode_performative(self.channel, code, fields))

    def send_flow(
        self, handle: int | None, *, delivery_count: int = 0, credit: int = 0, is_draining: bool = False
    ) -> None:
        """Send the state of the session, and with a handle that of a link."""
        self._incoming_window = self.connection.settings.incoming_window
        session_fields = [
            UInt(self._next_incoming_id),
            UInt(self._incoming_window),
            UInt(self._next_outgoing_id),
            UInt(self.connection.settings.incoming_window),
        ]
        if handle is None:
            self.send(Performative.FLOW, session_fields)
            return
        link_fields = [UInt(handle), UInt(delivery_count), UInt(credit), None, is_draining, False]
        self.send(Performative.FLOW, session_fields + link_fields)

    def send_disposition(self, first: int, last: int, state: bytes, *, is_from_receiver: bool) -> None:
        if not self._is_ended:
            self.connection.write(
                encode_disposition(self.channel, is_from_receiver=is_from_receiver, first=first, last=last, state=state)
            )

    @property
    def is_writable(self) -> bool:
        return not self._queue and self._remote_window > 0 and self.connection.is_writable

    def send_delivery(
        self, link: OutgoingLink, payload: bytes, tag: bytes, is_settled: bool, mark: Any, keeps_state: bool
    ) -> None:
        if self._queue or self._remote_window <= 0 or len(payload) + len(tag) > self._whole_bytes_max:
            self._queue.append(_Queued(link, payload, tag, is_settled, mark, keeps_state))
            self._send_queue()
            return
        self._begin_delivery(link, payload, tag, is_settled, mark, keeps_state, False)

    def send_in_order(self, link: OutgoingLink, act: Callable[[], None]) -> None:
        """Act when every delivery that was sent before has left."""
        if self._queue:
            self._queue.append(_Queued(link, act=act))
        else:
            act()

    def _begin_delivery(
        self,
        link: OutgoingLink,
        payload: bytes,
        tag: bytes,
        is_settled: bool,
        mark: Any,
        keeps_state: bool,
        has_more: bool,
    ) -> None:
        """Send the first frame of a delivery. Ids are given to frames that leave, so that they have no gaps."""
        delivery_id = self._next_delivery_id
        self._next_delivery_id = (delivery_id + 1) & _MASK
        if keeps_state and not is_settled:
            unsettled = self._unsettled
            unsettled[delivery_id] = (link, tag, mark)
            if len(unsettled) > self.connection.settings.unsettled_max:
                # The oldest: its lock has expired long ago.
                del unsettled[next(iter(unsettled))]
        self._next_outgoing_id = (self._next_outgoing_id + 1) & _MASK
        self._remote_window -= 1
        connection = self.connection
        connection.counters.transfers_sent += 1
        connection.write(
            encode_transfer(
                self.channel,
                link.handle,
                delivery_id=delivery_id,
                tag=tag,
                is_settled=is_settled,
                has_more=has_more,
                payload=payload,
            )
        )

    def _send_queue(self) -> None:
        """Send what the client's window has room for, a frame at a time."""
        queue = self._queue
        while queue and not self._is_ended:
            queued = queue[0]
            if queued.act is not None:
                queue.popleft()
                queued.act()
            elif self._remote_window <= 0:
                return
            elif self._send_frame(queued):
                queue.popleft()
        self.connection.changed()

    def _send_frame(self, queued: _Queued) -> bool:
        """Send the next frame of a delivery; True if it was the last."""
        link, payload, start = queued.link, queued.payload, queued.offset
        if start == 0:
            end = transfer_payload_bytes_max(self._frame_bytes_max, queued.tag)
            has_more = end < len(payload)
            self._begin_delivery(
                link,
                payload[:end],
                queued.tag,
                queued.is_settled,
                queued.mark,
                queued.keeps_state,
                has_more,
            )
        else:
            end = start + continuation_payload_bytes_max(self._frame_bytes_max)
            has_more = end < len(payload)
            self._next_outgoing_id = (self._next_outgoing_id + 1) & _MASK
            self._remote_window -= 1
            self.connection.write(
                encode_continuation(
                    self.channel,
                    link.handle,
                    is_settled=queued.is_settled,
                    has_more=has_more,
                    payload=payload[start:end],
                )
            )
        queued.offset = end
        return not has_more

    def forget_deliveries(self, link: OutgoingLink) -> None:
        """Forget everything about the deliveries of a link, those that have not left included."""
        if self._queue:
            self._queue = deque(queued for queued in self._queue if queued.link is not link)
        self._unsettled = {key: value for key, value in self._unsettled.items() if value[0] is not link}

    # --- frames of the client ---

    def on_transfer(self, body: bytes) -> None:
        transfer = decode_transfer(body)
        self._next_incoming_id = (self._next_incoming_id + 1) & _MASK
        self._incoming_window -= 1
        link = self.links.get(transfer.handle)
        if type(link) is not IncomingLink:
            raise SessionFailure(UNATTACHED_HANDLE, f"Handle {transfer.handle} is not that of a sender.")
        link.on_transfer(transfer)
        if self._incoming_window <= self.connection.settings.incoming_window // 2:
            self.send_flow(None)

    def on_disposition(self, body: bytes) -> None:
        disposition = decode_disposition(body)
        if not disposition.is_from_receiver:
            # About the client's own deliveries, which are settled already.
            return
        state, is_settled = state_of(disposition.state), disposition.is_settled
        if state.outcome is None and not is_settled:
            return
        first, last = disposition.first, disposition.last
        for delivery_id in (first,) if first == last else self._in_range(first, last):
            # Those that are unknown are settled, or their link is gone: clients send both.
            delivery = self._unsettled.pop(delivery_id, None)
            if delivery is not None:
                link, tag, mark = delivery
                link.on_settled(delivery_id, tag, mark, state, is_settled)

    def _in_range(self, first: int, last: int) -> Sequence[int]:
        """Return the ids of a range that may be of unsettled deliveries, however large the range is."""
        span = (last - first) & _MASK
        if span == 0:
            return (first,)
        if span < len(self._unsettled):
            return [(first + step) & _MASK for step in range(span + 1)]
        return [delivery_id for delivery_id in self._unsettled if (delivery_id - first) & _MASK <= span]

    def on_flow(self, fields: Sequence[Any]) -> None:
        next_incoming_id, incoming_window, _, _, handle, delivery_count, credit, _, drain, echo, _ = fields
        numbers = (next_incoming_id, handle, delivery_count, credit)
        if not isinstance(incoming_window, int) or not all(map(is_uint_or_null, numbers)):
            raise InvalidAmqp("a field of the flow does not have its type")
        # A client that has not seen the first frame counts from the beginning.
        sent = (self._next_outgoing_id - (next_incoming_id or 0)) & _MASK
        self._remote_window = incoming_window - sent
        self._send_queue()
        if handle is None:
            if echo is True:
                self.send_flow(None)
            return
        link = self.links.get(handle)
        if link is not None:
            link.on_flow(
                delivery_count=delivery_count, credit=credit, is_draining=drain is True, wants_echo=echo is True
            )

    def on_attach(self, fields: list[Any]) -> None:
        attach = parse_attach(fields)
        settings = self.connection.settings
        if attach.handle > settings.handle_max:
            raise AmqpError(FRAMING_ERROR, f"Handle {attach.handle} is above handle-max.")
        held = self.links.get(attach.handle)
        if held is not None and not held.is_detached:
            raise SessionFailure(HANDLE_IN_USE, f"Handle {attach.handle} is attached already.")
        link = self._link_of(attach)
        if held is None:
            refusal = self._refusal_of_another_link()
            if refusal is not None:
                # It is not remembered: a client may go on and on.
                link.refuse(refusal)
                return
            self.connection.add_links(1)
        self.links[attach.handle] = link
        if attach.is_dynamic:
            link.refuse(AmqpError(NOT_IMPLEMENTED, "Nodes without an address are not made for clients."))
            return
        link.open()

    def _refusal_of_another_link(self) -> AmqpError | None:
        """Return why the connection can have no more links than it has, or None."""
        connection, settings = self.connection, self.connection.settings
        if connection.link_count >= settings.links_per_connection_max:
            return AmqpError(RESOURCE_LIMIT, f"A connection has at most {settings.links_per_connection_max} links.")
        if connection.link_count >= settings.links_without_token_max and connection.peer.tokens.is_unused:
            sentence = f"A connection without a token has at most {settings.links_without_token_max} links."
            return AmqpError(UNAUTHORIZED, f"{sentence} Put a token to $cbs first.")
        return None

    def _link_of(self, attach: AttachFields) -> Link:
        """Return the link of the right kind for an attach: to an entity, or to a node that answers requests."""
        host = self.connection.host
        is_request_node = not attach.is_for_coordinator and self.requests.serves(attach.address)
        if is_request_node and attach.is_receiver:
            return OutgoingLink(self, attach, self.requests.open_responses, is_of_entity=False)
        if is_request_node:
            return IncomingLink(self, attach, self.requests.open_requests, is_of_entity=False)
        if attach.is_receiver:
            return OutgoingLink(self, attach, lambda link: host.open_outlet(link.request(), link))
        if attach.is_for_coordinator:
            return IncomingLink(self, attach, lambda link: host.open_coordinator(link.request()))
        return IncomingLink(self, attach, lambda link: host.open_intake(link.request()))

    def on_detach(self, fields: Sequence[Any]) -> None:
        handle, closed, _ = fields
        link = self.links.get(handle) if isinstance(handle, int) else None
        if link is not None:
            link.client_detached(has_closed=closed is True)

    def forget(self, link: Link) -> None:
        """Free the handle of a link that both sides have detached."""
        if self.links.get(link.handle) is link:
            del self.links[link.handle]
            self.connection.add_links(-1)
