"""Connections in memory: the two ends of a ByteStream, and a client that speaks frames."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, TypeVar

from asterism.apis.amqp.engine.frame_codec import (
    AMQP_HEADER,
    SASL_FRAME,
    SASL_HEADER,
    Frame,
    FrameCodec,
    ProtocolHeader,
)
from asterism.apis.amqp.engine.performatives import Performative, decode_performative, encode_performative
from asterism.apis.amqp.engine.serve import Engine
from asterism.apis.transports.http import ClientGone
from asterism.values.amqp.message import Message, Properties, encode_application_properties, encode_properties
from asterism.values.amqp.message import encode_value_body as value_body
from asterism.values.amqp.types import Described, Symbol, UByte, UInt, ULong

Result = TypeVar("Result")

# For a machine that has much else to do.
WAIT_SECONDS_MAX = 60.0
FRAME_BYTES_MAX = 65_536
ACCEPTED_STATE = Described(ULong(0x24), [])


class MemoryStream:
    """A ByteStream whose other end is in the same process."""

    def __init__(self) -> None:
        self.peer_address = "127.0.0.1:1"
        self.local_address = "127.0.0.1:2"
        self.is_tls = False
        self.server_name: str | None = None
        self.idle_seconds_max: float | None = None
        self.is_gone = False
        # Unset: the client does not take what is sent.
        self.is_taking = asyncio.Event()
        self.is_taking.set()
        self.pending_bytes = 0
        self.sent = asyncio.Queue[bytes]()
        self._received: list[bytes] = []
        self._is_ended = False
        self._draining = asyncio.Event()
        self._arrived = asyncio.Event()

    def feed(self, data: bytes) -> None:
        self._received.append(data)
        self._arrived.set()

    def feed_eof(self) -> None:
        self._is_ended = True
        self._arrived.set()

    def drain(self) -> None:
        self._draining.set()
        self._arrived.set()

    async def read(self, *, pending_bytes: int = 0) -> bytes:
        self.pending_bytes = pending_bytes
        while not self._received:
            if self._is_ended or (self.is_draining and not pending_bytes):
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        data = b"".join(self._received)
        self._received.clear()
        return data

    @property
    def has_unread(self) -> bool:
        return bool(self._received)

    async def write(self, data: bytes) -> None:
        if self.is_gone:
            raise ClientGone
        self.sent.put_nowait(data)
        await self.is_taking.wait()

    async def while_connected(self, work: Awaitable[Result]) -> Result:
        return await work

    @property
    def is_draining(self) -> bool:
        return self._draining.is_set()

    async def until_draining(self) -> None:
        await self._draining.wait()

    async def close(self) -> None:
        self.is_gone = True


class WireClient:
    """The other end of a connection: sends performatives, and receives those of the server in order."""

    def __init__(self, engine: Engine) -> None:
        self.stream = MemoryStream()
        self.serving = asyncio.create_task(engine.serve(self.stream))
        self._codec = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX)
        self._received: list[ProtocolHeader | Frame] = []

    # --- raw ---

    def send_bytes(self, data: bytes) -> None:
        self.stream.feed(data)

    async def receive(self) -> ProtocolHeader | Frame | None:
        """Return the next header or frame that is not empty; None when the server has ended the connection."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while True:
                while self._received:
                    message = self._received.pop(0)
                    if not isinstance(message, Frame) or message.body:
                        return message
                if self.serving.done() and self.stream.sent.empty():
                    return None
                getting = asyncio.ensure_future(self.stream.sent.get())
                await asyncio.wait({getting, self.serving}, return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    self._received += self._codec.receive(getting.result())
                else:
                    getting.cancel()

    async def ended(self) -> None:
        """Wait for the server to end the connection."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            await asyncio.wait({self.serving})
            self.serving.result()

    # --- performatives ---

    def send(
        self, code: Performative, fields: Sequence[Any], *, channel: int = 0, kind: int = 0, payload: bytes = b""
    ) -> None:
        self.send_bytes(encode_performative(channel, code, fields, kind=kind, payload=payload))

    async def expect(self, code: Performative) -> list[Any]:
        """Return the fields of the next performative, which is of a kind; those of a transfer end with the payload."""
        message = await self.receive()
        assert isinstance(message, Frame), message
        found, fields, end = decode_performative(message.body)
        assert found == code, (Performative(found), fields)
        return [*fields, message.body[end:]] if code == Performative.TRANSFER else fields

    async def open(
        self,
        *,
        mechanism: str = "ANONYMOUS",
        response: bytes | None = None,
        hostname: str = "localhost",
        frame_bytes_max: int = FRAME_BYTES_MAX,
        incoming_window: int = 1000,
    ) -> None:
        """Go through the headers and SASL, open, and begin a session on channel 0."""
        self.send_bytes(SASL_HEADER)
        assert await self.receive() == ProtocolHeader(SASL_HEADER)
        await self.expect(Performative.SASL_MECHANISMS)
        self.send(Performative.SASL_INIT, [Symbol(mechanism), response, hostname], kind=SASL_FRAME)
        assert await self.expect(Performative.SASL_OUTCOME) == [UByte(0), None]
        self.send_bytes(AMQP_HEADER)
        assert await self.receive() == ProtocolHeader(AMQP_HEADER)
        self.send(Performative.OPEN, ["client", hostname, UInt(frame_bytes_max)])
        await self.expect(Performative.OPEN)
        await self.begin(incoming_window=incoming_window)

    async def begin(self, *, channel: int = 0, incoming_window: int = 1000) -> None:
        self.send(Performative.BEGIN, [None, UInt(0), UInt(incoming_window), UInt(1000)], channel=channel)
        await self.expect(Performative.BEGIN)

    def send_attach(
        self,
        handle: int,
        address: str | None,
        *,
        is_receiver: bool,
        target: str | None = "here",
        sender_mode: int | None = None,
        source: Described | None = None,
        properties: dict[str, Any] | None = None,
    ) -> None:
        if is_receiver:
            source = source or Described(ULong(0x28), [address])
            termini = [source, Described(ULong(0x29), [target])]
        else:
            termini = [Described(ULong(0x28), ["there"]), Described(ULong(0x29), [address])]
        mode = None if sender_mode is None else UByte(sender_mode)
        fields = [f"link-{handle}", UInt(handle), is_receiver, mode, None, *termini, None, None, UInt(0)]
        self.send(
            Performative.ATTACH, [*fields, None, None, None, {Symbol(k): v for k, v in (properties or {}).items()}]
        )

    async def attach_sender(self, handle: int, address: str) -> list[Any]:
        """Attach, and return the answer and behind it the flow with its credit."""
        self.send_attach(handle, address, is_receiver=False)
        answer = await self.expect(Performative.ATTACH)
        await self.expect(Performative.FLOW)
        return answer

    async def attach_receiver(self, handle: int, address: str, **options: Any) -> list[Any]:
        self.send_attach(handle, address, is_receiver=True, **options)
        return await self.expect(Performative.ATTACH)

    def send_transfer(
        self,
        handle: int,
        delivery_id: int | None,
        payload: bytes,
        *,
        is_settled: bool = False,
        has_more: bool = False,
        state: Any = None,
        is_aborted: bool = False,
        message_format: int = 0,
    ) -> None:
        tag = None if delivery_id is None else delivery_id.to_bytes(4, "big")
        number = None if delivery_id is None else UInt(delivery_id)
        fields = [UInt(handle), number, tag, UInt(message_format), is_settled, has_more, None, state, None, is_aborted]
        self.send(Performative.TRANSFER, fields, payload=payload)

    def send_flow(
        self,
        handle: int | None,
        *,
        credit: int = 0,
        delivery_count: int | None = 0,
        is_draining: bool = False,
        wants_echo: bool = False,
        next_incoming_id: int = 0,
        incoming_window: int = 1000,
    ) -> None:
        session = [UInt(next_incoming_id), UInt(incoming_window), UInt(0), UInt(1000)]
        count = None if delivery_count is None else UInt(delivery_count)
        link = [None] if handle is None else [UInt(handle), count, UInt(credit), None]
        self.send(Performative.FLOW, [*session, *(link if handle is not None else [None] * 4), is_draining, wants_echo])

    def send_disposition(self, first: int, last: int | None, state: Any, *, is_settled: bool = False) -> None:
        number = None if last is None else UInt(last)
        self.send(Performative.DISPOSITION, [True, UInt(first), number, is_settled, state])

    # --- requests ---

    async def attach_requests(self, address: str, *, handle: int = 200, target: str = "answers") -> None:
        """Attach both links to a node that answers requests, and give credit for answers."""
        await self.attach_sender(handle, address)
        await self.attach_receiver(handle + 1, address, target=target)
        self.send_flow(handle + 1, credit=100)

    async def ask(
        self,
        properties: dict[str, Any],
        body: Any,
        *,
        handle: int = 200,
        delivery_id: int = 0,
        message_id: Any = "request",
        reply_to: str | None = None,
    ) -> Message:
        """Send a request and return the answer."""
        payload = (
            encode_properties(Properties(message_id=message_id, reply_to=reply_to))
            + encode_application_properties(properties)
            + value_body(body)
        )
        self.send_transfer(handle, delivery_id, payload)
        assert (await self.expect(Performative.DISPOSITION))[:5] == [
            True,
            delivery_id,
            delivery_id,
            True,
            ACCEPTED_STATE,
        ]
        return Message.parse((await self.expect(Performative.TRANSFER))[-1])


@contextlib.asynccontextmanager
async def wire_client(engine: Engine) -> AsyncIterator[WireClient]:
    """A connection that ends with the block."""
    client = WireClient(engine)
    try:
        yield client
    finally:
        client.stream.feed_eof()
        client.stream.is_taking.set()
        await client.ended()
