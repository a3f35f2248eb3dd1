"""A client of AMQP made of the server's own codecs, for frames that no library would send."""

from __future__ import annotations

import base64
import hmac
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote_plus

from asterism.apis.amqp.engine.frame_codec import (
    AMQP_HEADER,
    SASL_FRAME,
    SASL_HEADER,
    Frame,
    FrameCodec,
    ProtocolHeader,
)
from asterism.apis.amqp.engine.performatives import Performative, decode_performative, encode_performative
from asterism.values.amqp.message import (
    Message,
    Properties,
    encode_application_properties,
    encode_data_body,
    encode_properties,
    encode_value_body,
)
from asterism.values.amqp.types import Described, Symbol, UByte, UInt, ULong
from tests.clients.messaging_server import KEY, KEY_NAME
from tests.support.raw import connect

FRAME_BYTES_MAX = 64 * 1024
ACCEPTED = Described(ULong(0x24), [])
# Handles of the links for requests.
_REQUESTS, _ANSWERS = 253, 252


def token_for(
    path: str, *, key: str = KEY, key_name: str = KEY_NAME, lives_seconds: float = 3600, host: str = "localhost"
) -> str:
    """Return a shared access signature for a path of the namespace."""
    uri = quote_plus(f"sb://{host}/{path}")
    expiry = int(time.time() + lives_seconds)
    digest = hmac.digest(key.encode(), f"{uri}\n{expiry}".encode(), "sha256")
    return f"SharedAccessSignature sr={uri}&sig={quote_plus(base64.b64encode(digest))}&se={expiry}&skn={key_name}"


def message_of(body: bytes, **properties: Any) -> bytes:
    """Return an encoded message."""
    return (encode_properties(Properties(**properties)) if properties else b"") + encode_data_body(body)


class ConnectionEnded(Exception):
    """The server has closed the connection."""


class RawClient:
    """A connection of AMQP. Every wait ends with the time-out of its socket, as TimeoutError."""

    def __init__(self, port: int, *, receive_bytes: int | None = None) -> None:
        self.socket = connect(port, receive_bytes=receive_bytes)
        # Small frames, of which each has an answer that is waited for.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._codec = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX)
        self._received: list[ProtocolHeader | Frame] = []
        # Of each request link of a session, by channel.
        self._requests: dict[tuple[int, str], int] = {}
        self._delivery_ids: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    # --- bytes and frames ---

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> ProtocolHeader | Frame:
        """Return the next header or frame that is not empty."""
        while True:
            while self._received:
                message = self._received.pop(0)
                if not isinstance(message, Frame) or message.body:
                    return message
            try:
                data = self.socket.recv(256 * 1024)
            except ConnectionError as error:
                raise ConnectionEnded from error
            if not data:
                raise ConnectionEnded
            self._received += self._codec.receive(data)

    def send(
        self, code: Performative, fields: Sequence[Any], *, channel: int = 0, kind: int = 0, payload: bytes = b""
    ) -> None:
        self.send_bytes(encode_performative(channel, code, fields, kind=kind, payload=payload))

    def wait_for(self, *codes: Performative) -> list[Any]:
        """Skip to the next performative of one of these kinds; return its code, its fields and its payload."""
        while True:
            message = self.receive()
            if isinstance(message, Frame):
                code, fields, end = decode_performative(message.body)
                if code in codes:
                    return [Performative(code), *fields, message.body[end:]]

    def closing_error(self) -> tuple[str, str]:
        """Wait for the end of the connection or of a session; return the condition and the sentence."""
        _, error, _ = self.wait_for(Performative.CLOSE, Performative.END)
        return _words_of(error)

    # --- the beginning ---

    def shake_hands(self, *, response: bytes | None = None, mechanism: str = "ANONYMOUS") -> None:
        """Go through SASL."""
        self.send_bytes(SASL_HEADER)
        self.send(Performative.SASL_INIT, [Symbol(mechanism), response, "localhost"], kind=SASL_FRAME)
        assert self.wait_for(Performative.SASL_OUTCOME)[1] == 0

    def open(self, *, incoming_window: int = 2**31 - 1) -> Self:
        """Go through SASL, open, and begin a session on channel 0."""
        self.shake_hands()
        self.send_bytes(AMQP_HEADER)
        self.send(Performative.OPEN, ["raw", "localhost", UInt(FRAME_BYTES_MAX), None, None])
        self.begin(0, incoming_window=incoming_window)
        return self

    def begin(self, channel: int, *, incoming_window: int = 2**31 - 1) -> None:
        window = UInt(incoming_window)
        self.send(Performative.BEGIN, [None, UInt(0), window, UInt(5000), UInt(255)], channel=channel)
        self.wait_for(Performative.BEGIN)

    def end(self, channel: int) -> None:
        """End a session, whose channel can be used again."""
        self.send(Performative.END, [], channel=channel)
        self.wait_for(Performative.END)
        self._delivery_ids.pop(channel, None)

    # --- links ---

    def send_attach(
        self,
        handle: int,
        address: str,
        *,
        is_receiver: bool,
        channel: int = 0,
        is_presettled: bool = False,
        filters: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        target: Any = None,
    ) -> None:
        filter_map = {Symbol(key): value for key, value in filters.items()} if filters else None
        here = Described(ULong(0x28), [address, None, None, None, None, None, None, filter_map])
        if is_receiver:
            termini = [here, Described(ULong(0x29), ["answers"])]
        else:
            termini = [Described(ULong(0x28), ["raw"]), target or Described(ULong(0x29), [address])]
        sender_mode = UByte(1 if is_presettled else 0)
        receiver_mode = UByte(0 if is_presettled else 1)
        link_properties = {Symbol(key): value for key, value in (properties or {}).items()}
        fields = [str(uuid.uuid4()), UInt(handle), is_receiver, sender_mode, receiver_mode, *termini, None, None]
        count = None if is_receiver else UInt(0)
        self.send(Performative.ATTACH, [*fields, count, None, None, None, link_properties], channel=channel)

    def attach(self, handle: int, address: str, **options: Any) -> tuple[str, str] | None:
        """Attach; return condition and sentence if the link is refused."""
        self.send_attach(handle, address, **options)
        code, *fields = self.wait_for(Performative.ATTACH, Performative.END, Performative.CLOSE)
        assert code == Performative.ATTACH, _words_of(fields[0])
        is_agreed = fields[5 if options["is_receiver"] else 6] is not None
        return None if is_agreed else self.detached()

    def detached(self) -> tuple[str, str]:
        """Wait for a detach; return its condition and sentence."""
        return _words_of(self.wait_for(Performative.DETACH)[3])

    def send_transfer(
        self,
        handle: int,
        payload: bytes,
        *,
        channel: int = 0,
        is_settled: bool = False,
        has_more: bool = False,
        message_format: int = 0,
        state: Any = None,
    ) -> int:
        """Send a delivery, or its first frame; return its id."""
        delivery_id = self._next_id(channel)
        tag = delivery_id.to_bytes(4, "big")
        fields = [UInt(handle), UInt(delivery_id), tag, UInt(message_format), is_settled, has_more, None, state]
        self.send(Performative.TRANSFER, fields, channel=channel, payload=payload)
        return delivery_id

    def deliver(self, handle: int, payload: bytes, **options: Any) -> Described:
        """Send a message that fits into a frame or not; return the state that it is settled with."""
        size = FRAME_BYTES_MAX - 512
        pieces = [payload[start : start + size] for start in range(0, len(payload), size)] or [b""]
        delivery_id = self.send_transfer(handle, pieces[0], has_more=len(pieces) > 1, **options)
        for number, piece in enumerate(pieces[1:], 2):
            more = number < len(pieces)
            self.send(Performative.TRANSFER, [UInt(handle), None, None, None, False, more], payload=piece)
        while True:
            _, _, first, last, _, state, *_ = self.wait_for(Performative.DISPOSITION)
            if first <= delivery_id <= (first if last is None else last):
                assert isinstance(state, Described)
                return state

    def send_flow(self, handle: int, credit: int, *, delivery_count: int = 0, channel: int = 0, **more: Any) -> None:
        session = [UInt(0), UInt(2**31 - 1), UInt(0), UInt(5000)]
        link = [UInt(handle), UInt(delivery_count), UInt(credit), None, more.get("is_draining", False), False]
        self.send(Performative.FLOW, [*session, *link], channel=channel)

    def next_delivery(self) -> tuple[int, bytes]:
        """Wait for a delivery; return its id and its payload."""
        _, _, delivery_id, _, _, _, has_more, *_, payload = self.wait_for(Performative.TRANSFER)
        while has_more:
            *_, has_more, _, _, _, _, _, more = self.wait_for(Performative.TRANSFER)
            payload += more
        return delivery_id, payload

    def settle(self, delivery_id: int, state: Described = ACCEPTED) -> Any:
        """Settle a delivery; return the state that the server settles it with."""
        self.send(Performative.DISPOSITION, [True, UInt(delivery_id), UInt(delivery_id), False, state])
        while True:
            _, role, first, last, _, answer, *_ = self.wait_for(Performative.DISPOSITION)
            if not role and first <= delivery_id <= last:
                return answer

    # --- requests ---

    def ask(self, address: str, properties: Mapping[str, Any], body: bytes, *, channel: int = 0) -> Message:
        """Send a request to a node, with an encoded body; return the answer."""
        node = (channel, address)
        if node not in self._requests:
            place = 2 * len(self._requests)
            self._requests[node] = _REQUESTS - place
            assert self.attach(_REQUESTS - place, address, is_receiver=False, channel=channel) is None
            assert self.attach(_ANSWERS - place, address, is_receiver=True, channel=channel) is None
            self.send_flow(_ANSWERS - place, 2**31 - 1, channel=channel)
        self._send_request(node, properties, body)
        return Message.parse(self.next_delivery()[1])

    def send_request(self, address: str, operation: str, body: bytes) -> None:
        """Send another request to a node, whose answer is not waited for."""
        self._send_request((0, address), {"operation": operation}, body)

    def _send_request(self, node: tuple[int, str], properties: Mapping[str, Any], body: bytes) -> None:
        content = encode_properties(Properties(message_id=str(uuid.uuid4()), reply_to="answers"))
        content += encode_application_properties(properties) + body
        self.send_transfer(self._requests[node], content, channel=node[0])

    def put_token(self, path: str, token: str | None = None, *, channel: int = 0) -> int:
        """Put a token for a path; return the status of the answer."""
        properties = {
            "operation": "put-token",
            "type": "servicebus.windows.net:sastoken",
            "name": f"sb://localhost/{path}",
        }
        body = encode_value_body(token_for(path) if token is None else token)
        answer = self.ask("$cbs", properties, body, channel=channel)
        status = answer.application_properties["status-code"]
        assert isinstance(status, int)
        return int(status)

    def manage(self, entity: str, operation: str, body: bytes) -> tuple[int, str, str]:
        """Ask the node of an entity; return status, condition and sentence."""
        answer = self.ask(f"{entity}/$management", {"operation": f"com.microsoft:{operation}"}, body)
        properties = answer.application_properties
        return properties["statusCode"], properties.get("errorCondition", ""), properties["statusDescription"]

    def _next_id(self, channel: int) -> int:
        number = self._delivery_ids.get(channel, 0)
        self._delivery_ids[channel] = number + 1
        return number


def error_of(state: Described) -> tuple[str, str]:
    """Return condition and sentence of a state that refuses a delivery."""
    assert state.descriptor == 0x25, state
    return _words_of(state.value[0])


def _words_of(error: Any) -> tuple[str, str]:
    assert isinstance(error, Described), error
    condition, sentence, *_ = error.value
    return str(condition), sentence
