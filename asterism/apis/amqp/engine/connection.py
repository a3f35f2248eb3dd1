"""One connection: bytes in and out, channels, the tasks that work for its links, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.engine.cbs import TokenNode
from asterism.apis.amqp.engine.frame_codec import AMQP_FRAME, Frame, FrameCodec, ProtocolHeader
from asterism.apis.amqp.engine.links import Link
from asterism.apis.amqp.engine.negotiation import Negotiation, NegotiationFailed
from asterism.apis.amqp.engine.outcomes import described_error
from asterism.apis.amqp.engine.peer import ClientPeer
from asterism.apis.amqp.engine.performatives import (
    Performative,
    decode_performative,
    encode_performative,
    performative_code,
)
from asterism.apis.amqp.engine.session import FRAMING_ERROR, Session, SessionFailure
from asterism.apis.amqp.engine.tokens import TokenTable
from asterism.apis.amqp.engine.upkeep import Upkeep
from asterism.apis.amqp.nodes import INTERNAL_ERROR, NOT_ALLOWED, RESOURCE_LIMIT, AmqpError
from asterism.apis.transports.codec import MalformedBytes
from asterism.apis.transports.http import ClientGone
from asterism.apis.transports.tcp import ByteStream
from asterism.errors import AsterismError
from asterism.values.amqp.types import InvalidAmqp

if TYPE_CHECKING:
    from asterism.apis.amqp.engine.serve import Engine

LOG = logging.getLogger("asterism.amqp")

_TRANSFER: Final = int(Performative.TRANSFER)
_DISPOSITION: Final = int(Performative.DISPOSITION)
_CODE_OF_HEAD: Final = {bytes((0, 0x53, code)): code for code in (_TRANSFER, _DISPOSITION)}

_DECODE_ERROR: Final = "amqp:decode-error"
_FORCED: Final = "amqp:connection:forced"
_ILLEGAL_STATE: Final = "amqp:illegal-state"


class Connection:
    """Serves one client from its first byte to its last.

    One task reads and hands frames to sessions, which never wait; another writes what has been collected meanwhile. The
    tasks of links run beside them.
    """

    def __init__(self, engine: Engine, stream: ByteStream) -> None:
        self.host = engine.host
        self.settings = engine.settings
        self.clock = engine.clock
        self.counters = engine.counters
        self.container_id = engine.container_id
        self.server_name = stream.server_name
        self.cbs = TokenNode(self)
        tokens = TokenTable(tokens_max=engine.settings.tokens_max)
        self.peer = ClientPeer(engine.clock, tokens, stream.peer_address)
        self.frame_bytes_max = engine.settings.frame_bytes_max
        # Links with work that came with the present read.
        self.touched: list[Link] = []
        self._engine = engine
        self._stream = stream
        self._codec = FrameCodec(frame_bytes_max=engine.settings.frame_bytes_max)
        self._negotiation: Negotiation | None = Negotiation(self)
        # This side's open has been sent, so that a close can be.
        self.is_opened = False
        self._sessions: dict[int, Session] = {}
        # Channels whose session has ended: clients still send over them.
        self._ended_channels: set[int] = set()
        self.link_count = 0
        # When a link to an entity was last opened, or has ended.
        self.last_used_monotonic_seconds: float | None = None
        # Links whose node is to be let go in the end.
        self.open_links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._openings: set[asyncio.Task[None]] = set()
        # Frames for the client, and the writer's wait for some.
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._writer_wait: asyncio.Future[None] | None = None
        self._is_finishing = False
        # Work and bytes that are held for the client.
        self.waiting_count = 0
        self._waiting_bytes = 0
        self._partial_bytes = 0
        self._change: asyncio.Future[None] | None = None
        # Why this side ends the connection, as soon as it does.
        self._ended: asyncio.Future[AmqpError | None] = asyncio.get_running_loop().create_future()
        # Since the last tick of the pulse.
        self.has_sent = False
        self.has_received = False
        self._upkeep = Upkeep(self)

    # --- the whole ---

    async def serve(self) -> None:
        self.counters.connections += 1
        self.counters.connections_opened += 1
        self._engine.pulse.add(self._upkeep)
        reader = asyncio.create_task(self._read())
        writer = asyncio.create_task(self._write())
        try:
            either: set[asyncio.Future[Any]] = {reader, self._ended}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            reader.cancel()
            await self._finish(writer)
        finally:
            self._engine.pulse.remove(self._upkeep)
            self.counters.connections -= 1
            for session in list(self._sessions.values()):
                session.end()
            for task in (reader, writer, *self._tasks, *self._openings):
                task.cancel()
            for link in list(self.open_links):
                link.let_go()
            self._ended.cancel()

    async def _finish(self, writer: asyncio.Task[None]) -> None:
        """Tell the client why the connection ends; let the work end that is under way."""
        if self._ended.done():
            error = self._ended.result()
        else:
            error = None
            if self._stream.is_draining:
                # Answers to what has arrived still reach the client.
                error = AmqpError(_FORCED, "The server stops. Connect again.")
                await self._wait_for_work()
        if self.is_opened and not writer.done():
            self.write(encode_performative(0, Performative.CLOSE, [described_error(error)]))
        self._is_finishing = True
        self._wake_writer()
        await asyncio.wait({writer}, timeout=self.settings.flush_seconds_max)
        for session in list(self._sessions.values()):
            session.end()
        self._sessions.clear()
        await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        """Wait for work that nodes have begun, for a while; not for links that are being opened."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=self.settings.finish_seconds_max)

    def end(self, error: AmqpError | None) -> None:
        """End the connection from this side, for an error or as the client wishes."""
        if not self._ended.done():
            self._ended.set_result(error)

    # --- for sessions and links ---

    def spawn(self, work: Coroutine[Any, Any, None], *, is_opening: bool = False) -> asyncio.Task[None]:
        """Run work of the connection beside its reading. The opening of a link ends with the connection."""
        task = asyncio.create_task(work)
        (self._openings if is_opening else self._tasks).add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._openings.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failure_of(error)

    def failure_of(self, error: BaseException) -> AmqpError:
        """Return an error in the words of the protocol; one that was not foreseen is logged."""
        if isinstance(error, AmqpError):
            return error
        if isinstance(error, AsterismError):
            return self._engine.words(error)
        self.counters.failures += 1
        LOG.error("a node of a connection of %s failed", self.peer.peer_address, exc_info=error)
        return AmqpError(INTERNAL_ERROR, "The server failed to carry this out. Its log has the details.")

    def note_use(self) -> None:
        """Note that a link to an entity was opened, or has ended."""
        self.last_used_monotonic_seconds = self.clock.monotonic_seconds()

    def add_links(self, count: int) -> None:
        """Count links, the closed ones included whose handles are not free yet."""
        self.link_count += count
        self.counters.links += count

    def add_waiting(self, count: int, size: int) -> None:
        """Count what waits for nodes; too much of it stops the reading."""
        self.waiting_count += count
        self._waiting_bytes += size
        self.counters.waiting_bytes += size
        if count < 0:
            self.changed()

    def add_partial_bytes(self, size: int) -> None:
        """Count the bytes of deliveries that have not arrived whole. AmqpError when they are too many."""
        self._partial_bytes += size
        if size > 0 and self._partial_bytes > self.settings.partial_bytes_max:
            raise AmqpError(RESOURCE_LIMIT, "Too many messages of the connection have arrived in part only.")

    async def change(self) -> None:
        """Return when something has left: bytes for the client, or work for nodes; or the client's window has moved."""
        if self._change is None:
            self._change = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._change)

    def changed(self) -> None:
        if self._change is not None:
            self._change.set_result(None)
            self._change = None

    # --- writing ---

    @property
    def is_writable(self) -> bool:
        return self._unsent_bytes < self.settings.unsent_bytes_soft_max

    def write(self, data: bytes) -> None:
        """Have bytes sent at the end of the turn of the event loop."""
        if self._is_finishing:
            return
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        self.has_sent = True
        if self._writer_wait is not None:
            self._wake_writer()

    def _wake_writer(self) -> None:
        if self._writer_wait is not None and not self._writer_wait.done():
            self._writer_wait.set_result(None)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                if not self._unsent:
                    if self._is_finishing:
                        return
                    self._writer_wait = loop.create_future()
                    await self._writer_wait
                    self._writer_wait = None
                    continue
                data = self._unsent[0] if len(self._unsent) == 1 else b"".join(self._unsent)
                self._unsent.clear()
                await self._stream.write(data)
                self.counters.bytes_sent += len(data)
                self._unsent_bytes -= len(data)
                self.changed()
        except ClientGone:
            self.end(None)
        except Exception as error:
            self.end(self.failure_of(error))

    # --- reading ---

    async def _read(self) -> None:
        try:
            while True:
                while self._holds_too_much():
                    await self.change()
                data = await self._stream.read(pending_bytes=self._codec.pending_bytes + self._partial_bytes)
                if not data:
                    return
                self.has_received = True
                self.counters.bytes_received += len(data)
                try:
                    await self._take(data)
                finally:
                    self._start_work()
                if self._ended.done():
                    return
        except (NegotiationFailed, ClientGone):
            return
        except MalformedBytes as error:
            self.end(AmqpError(FRAMING_ERROR, f"The bytes are not frames: {error}."))
        except InvalidAmqp as error:
            self.end(AmqpError(_DECODE_ERROR, f"A frame could not be read: {error}."))
        except Exception as error:
            self.end(self.failure_of(error))

    def _holds_too_much(self) -> bool:
        settings = self.settings
        if self.counters.waiting_bytes > settings.waiting_bytes_total_max:
            waiting_bytes_max = settings.waiting_bytes_share
        else:
            waiting_bytes_max = settings.waiting_bytes_max
        return (
            self.waiting_count > settings.waiting_count_max
            or self._waiting_bytes > waiting_bytes_max
            or self._unsent_bytes > settings.unsent_bytes_max
        )

    async def _take(self, data: bytes) -> None:
        count = 0
        for message in self._codec.receive(data):
            count += 1
            if self._negotiation is None:
                self._take_frame(message)
                if self._ended.done():
                    break
            elif await self._negotiation.advance(message):
                self._negotiation = None
        self.counters.frames_received += count

    def _start_work(self) -> None:
        if self.touched:
            touched = self.touched
            self.touched = []
            for link in touched:
                link.start_work()

    def _take_frame(self, message: ProtocolHeader | Frame) -> None:
        if type(message) is not Frame or message.kind != AMQP_FRAME:
            raise AmqpError(FRAMING_ERROR, "A frame of another layer came after the open.")
        channel, body = message.channel, message.body
        if not body:
            # It says that the client is there.
            return
        session = self._sessions.get(channel)
        # Nearly all frames are of the kinds that are known at once.
        code = _CODE_OF_HEAD.get(body[:3]) or performative_code(body)
        try:
            if session is None:
                self._take_without_session(channel, code, body)
            elif code == _TRANSFER:
                self.counters.transfers_received += 1
                session.on_transfer(body)
            elif code == _DISPOSITION:
                session.on_disposition(body)
            else:
                self._take_with_session(session, code, body)
        except SessionFailure as error:
            assert session is not None
            session.fail(error)
            self._forget_session(channel)

    def _take_with_session(self, session: Session, code: int, body: bytes) -> None:
        _, fields, _ = decode_performative(body)
        match code:
            case Performative.FLOW:
                session.on_flow(fields)
            case Performative.ATTACH:
                session.on_attach(fields)
            case Performative.DETACH:
                session.on_detach(fields)
            case Performative.END:
                session.send(Performative.END, [None])
                session.end()
                self._forget_session(session.channel)
            case Performative.CLOSE:
                self.end(None)
            case Performative.BEGIN:
                raise AmqpError(_ILLEGAL_STATE, f"Channel {session.channel} has a session already.")
            case _:
                raise AmqpError(FRAMING_ERROR, "The frame is not one of an open connection.")

    def _take_without_session(self, channel: int, code: int, body: bytes) -> None:
        if code == Performative.CLOSE:
            self.end(None)
        elif code == Performative.BEGIN:
            if channel > self.settings.channel_max:
                raise AmqpError(FRAMING_ERROR, f"Channel {channel} is above channel-max.")
            _, fields, _ = decode_performative(body)
            self._ended_channels.discard(channel)
            self._sessions[channel] = session = Session(self, channel, fields)
            session.begin()
        elif channel not in self._ended_channels:
            raise AmqpError(NOT_ALLOWED, f"Channel {channel} has no session.")

    def _forget_session(self, channel: int) -> None:
        del self._sessions[channel]
        self._ended_channels.add(channel)
