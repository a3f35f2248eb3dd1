"""Raw AMQP clients for loads: one connection with one session and one link, and a window of deliveries under way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from benchmarks import amqp_frames
from benchmarks.amqp_frames import (
    AMQP_HEADER,
    BODY_AT,
    CODE_AT,
    HEADER_BYTES,
    SASL_HEADER,
    TransferTemplate,
    acceptances,
    disposition_range,
    fields_of,
    split_frames,
    transfer_id,
)
from benchmarks.wire import UnexpectedAnswer

ANSWER_SECONDS_MAX = 60.0
LOAD_SECONDS_MAX = 300.0
# Of our side of the session: more than any load has under way.
WINDOW = 1_000_000


@dataclass(frozen=True)
class Login:
    """The user, and the host name that says which namespace is meant."""

    user: str
    password: str
    host: str = "localhost"


async def _ended(load: asyncio.Future[None]) -> None:
    async with asyncio.timeout(LOAD_SECONDS_MAX):
        await load


class AmqpLink(asyncio.Protocol):
    """A connection with its only link. Subclasses take the frames that come often."""

    receives: bool
    # Messages are settled when they are sent.
    is_settled = False

    def __init__(self, address: str, login: Login) -> None:
        loop = asyncio.get_running_loop()
        self._address = address
        self._login = login
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._headers = [SASL_HEADER, AMQP_HEADER]
        self._attached: asyncio.Future[None] = loop.create_future()
        # Of the load that is under way.
        self._finished: asyncio.Future[None] | None = None

    async def attached(self) -> None:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            await self._attached

    async def close(self) -> None:
        transport = self._out
        transport.write(amqp_frames.frame(amqp_frames.CLOSE, [None]))
        # Before the other side is gone, an entity may still count the link.
        await asyncio.sleep(0)
        transport.close()

    @property
    def _out(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    # --- calls of the event loop --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._out.write(SASL_HEADER)

    def connection_lost(self, _: Exception | None) -> None:
        self._fail("the server closed the connection")

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        try:
            if self._headers and data.startswith(AMQP_HEADER[:4]):
                # A header of a protocol stands before the frames of it.
                if data[:HEADER_BYTES] != self._headers.pop(0):
                    raise UnexpectedAnswer(f"the server begins with {data[:HEADER_BYTES]!r}")
                data = data[HEADER_BYTES:]
            frames, rest = split_frames(data)
            self._rest = data[rest:]
            self._take(data, frames)
        except UnexpectedAnswer as problem:
            self._fail(str(problem))

    def _take(self, data: bytes, frames: Sequence[tuple[int, int]]) -> None:
        for start, end in frames:
            if end - start > BODY_AT:
                self._take_frame(data[start + CODE_AT], data, start, end)

    def _take_frame(self, code: int, data: bytes, start: int, end: int) -> None:
        del end
        match code:
            case amqp_frames.SASL_MECHANISMS:
                self._out.write(amqp_frames.sasl_plain(self._login.user, self._login.password))
            case amqp_frames.SASL_OUTCOME:
                if fields_of(data, start)[0] != 0:
                    raise UnexpectedAnswer("the login was refused")
                self._begin()
            case amqp_frames.FLOW:
                self._take_flow(fields_of(data, start))
            case amqp_frames.ATTACH:
                fields = fields_of(data, start)
                if fields[5 if self.receives else 6] is not None and not self._attached.done():
                    self._attached.set_result(None)
            case amqp_frames.DETACH | amqp_frames.END | amqp_frames.CLOSE:
                raise UnexpectedAnswer(f"the server ended the link: {fields_of(data, start)}"[:300])

    def _begin(self) -> None:
        name = f"bench-{id(self):x}-{time.monotonic_ns():x}"
        frames = [
            AMQP_HEADER,
            amqp_frames.open_frame(name, self._login.host),
            amqp_frames.begin_frame(WINDOW),
            amqp_frames.attach_frame(name, self._address, receives=self.receives, is_settled=self.is_settled),
        ]
        self._out.write(b"".join(frames))

    def _take_flow(self, fields: list[object]) -> None:
        """Take the credit that the server gives, or asks for."""

    # --- the load -----------------------------------------------------------------------------------------------------

    def _start(self) -> asyncio.Future[None]:
        self._finished = asyncio.get_running_loop().create_future()
        return self._finished

    def _finish(self) -> None:
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(None)

    def _fail(self, why: str) -> None:
        for future in (self._attached, self._finished):
            if future is not None and not future.done():
                future.set_exception(UnexpectedAnswer(f"{self._address}: {why}"))


class Sender(AmqpLink):
    receives = False

    def __init__(self, address: str, login: Login) -> None:
        super().__init__(address, login)
        self._template = TransferTemplate(b"")
        self._sent = self._window = self._last = self._settled = 0
        # The delivery up to which the other side takes them.
        self._credit_end = self._session_end = 0

    async def send(self, template: TransferTemplate, count: int, *, window: int) -> None:
        """Send so many messages, of which so many may be under way, and wait until all are accepted."""
        finished = self._start()
        self._template, self._window, self._last = template, window, self._sent + count
        self._pump()
        await _ended(finished)

    def _pump(self) -> None:
        end = min(self._last, self._settled + self._window, self._credit_end, self._session_end)
        count = end - self._sent
        if count > 0:
            self._out.write(self._template.frames(self._sent, count))
            self._sent = end

    def _take(self, data: bytes, frames: Sequence[tuple[int, int]]) -> None:
        """Acceptances count; every other frame is as rare as a renewal of credit."""
        for start, end in frames:
            if end - start <= BODY_AT:
                continue
            code = data[start + CODE_AT]
            if code == amqp_frames.DISPOSITION:
                first, last, is_accepted = disposition_range(data, start, end)
                if not is_accepted:
                    raise UnexpectedAnswer(f"a message was refused: {fields_of(data, start)}"[:300])
                self._settled += last - first + 1
            else:
                self._take_frame(code, data, start, end)
        if self._settled < self._last:
            self._pump()
        else:
            self._finish()

    def _take_flow(self, fields: list[object]) -> None:
        incoming, window = cast(int | None, fields[0]), cast(int, fields[1])
        self._session_end = (incoming or 0) + window
        if len(fields) > 6 and fields[4] is not None:
            self._credit_end = cast(int | None, fields[5]) or 0
            self._credit_end += cast(int | None, fields[6]) or 0


class Receiver(AmqpLink):
    """A receiver that locks messages and, if it is to, completes each with a disposition of its own.

    With `deletes`, messages are gone when they are sent.
    """

    receives = True

    def __init__(self, address: str, login: Login, *, deletes: bool) -> None:
        super().__init__(address, login)
        self.is_settled = deletes
        # Delivery ids that were received and not completed.
        self.unsettled: list[int] = []
        self._received = self._completed = 0
        # The goals of the load that is under way, as counts since the link began.
        self._window = self._last_received = self._last_completed = 0
        self._take_deliveries: Callable[[list[int]], None] = self.unsettled.extend
        self._go_on: Callable[[], None] = lambda: None

    async def receive(self, count: int, *, window: int) -> None:
        """Receive so many messages; the credit is always the window, or what is missing.

        Messages that are not deleted stay locked.
        """
        finished = self._start()
        self._window, self._last_received = window, self._received + count
        self._take_deliveries = self._keep
        self._give_credit(min(window, count))
        await _ended(finished)

    async def complete(self, *, window: int) -> None:
        """Complete all messages that are locked, so many at a time."""
        if not self.unsettled:
            return
        finished = self._start()
        self._window, self._last_completed = window, self._completed + len(self.unsettled)
        # The last is completed first: taking it off a list costs nothing.
        self.unsettled.reverse()
        self._go_on = self._send_completions
        self._send_completions()
        await _ended(finished)

    async def receive_and_complete(self, count: int, *, window: int) -> None:
        """Receive and complete so many messages, of which so many may be locked at a time."""
        finished = self._start()
        self._window = window
        self._last_received, self._last_completed = self._received + count, self._completed + count
        self._take_deliveries = lambda ids: self._out.write(acceptances(ids))
        self._go_on = self._renew_credit
        self._renew_credit()
        await _ended(finished)

    def wait_for_messages(self, *, credit: int) -> None:
        """Give credit without a load, as an idle consumer does."""
        self._give_credit(credit)

    def _keep(self, ids: list[int]) -> None:
        if not self.is_settled:
            self.unsettled += ids
        if self._received >= self._last_received:
            self._finish()
        else:
            self._give_credit(min(self._window, self._last_received - self._received))

    def _give_credit(self, credit: int) -> None:
        received = self._received
        flow = amqp_frames.flow_frame(window=WINDOW, received=received, sent=0, deliveries=received, credit=credit)
        self._out.write(flow)

    def _renew_credit(self) -> None:
        """Let as many come that the window of locked messages is full."""
        locked = self._received - self._completed
        self._give_credit(max(min(self._window - locked, self._last_received - self._received), 0))

    def _send_completions(self) -> None:
        """Send as many dispositions that the window of those without an answer is full."""
        unanswered = self._last_completed - self._completed - len(self.unsettled)
        count = self._window - unanswered
        if count > 0 and self.unsettled:
            chosen = self.unsettled[-count:]
            del self.unsettled[-count:]
            self._out.write(acceptances(chosen[::-1]))

    def _take(self, data: bytes, frames: Sequence[tuple[int, int]]) -> None:
        received, completed = [], 0
        for start, end in frames:
            if end - start <= BODY_AT:
                continue
            code = data[start + CODE_AT]
            if code == amqp_frames.TRANSFER:
                number = transfer_id(data, start)
                if number is not None:
                    received.append(number)
            elif code == amqp_frames.DISPOSITION:
                first, last, is_accepted = disposition_range(data, start, end)
                if not is_accepted:
                    raise UnexpectedAnswer(f"a completion was refused: {fields_of(data, start)}"[:300])
                completed += last - first + 1
            else:
                self._take_frame(code, data, start, end)
        if received:
            self._received += len(received)
            self._take_deliveries(received)
        if completed:
            self._completed += completed
            if self._completed >= self._last_completed:
                self._finish()
            else:
                self._go_on()


Link = TypeVar("Link", bound=AmqpLink)


async def open_sender(port: int, address: str, login: Login) -> Sender:
    return await _opened(port, Sender(address, login))


async def open_receiver(port: int, address: str, login: Login, *, deletes: bool = False) -> Receiver:
    return await _opened(port, Receiver(address, login, deletes=deletes))


async def _opened(port: int, link: Link) -> Link:
    await asyncio.get_running_loop().create_connection(lambda: link, "127.0.0.1", port)
    await link.attached()
    return link
