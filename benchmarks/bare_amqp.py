"""The limit for the AMQP door: uvloop, its codec of frames and the LMDB engine, with nothing between them.

A queue keeps a record for each message, a hub one for each read of its socket. Each read is one batch, which is durable
before its messages are accepted. Receivers get what comes behind the message that was last delivered; completing
deletes, and so does delivering to a receiver that wants it. No checks, no locks, no partitions.

`python -m benchmarks.bare_amqp PORT FOLDER`
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

import uvloop

from asterism.apis.amqp.engine.frame_codec import FrameCodec, ProtocolHeader
from asterism.apis.amqp.engine.transfer_codec import (
    decode_disposition,
    decode_transfer,
    encode_disposition,
    encode_transfer,
)
from asterism.storage.contract import Batch, Fence, Span
from asterism.storage.lmdb import LmdbEngine
from asterism.values.amqp.types import Symbol, UByte, UInt, ULong, UShort
from asterism.values.amqp.value_codec import decode_value
from asterism.values.identifiers import Epoch, PartitionNumber
from benchmarks import amqp_frames
from benchmarks.amqp_frames import SASL_HEADER, frame

PARTITION, EPOCH = PartitionNumber(1), Epoch(1)
CREDIT = 1_000
WINDOW = 1 << 20
FRAME_BYTES_MAX = 1 << 16
HUB_PREFIX = "hub"
_ACCEPTED = bytes((0, 0x53, amqp_frames.ACCEPTED, 0x45))
_UNLIMITED = 1 << 31


class Entity:
    """The messages under one address, in the order of their numbers."""

    def __init__(self, name: str) -> None:
        self.is_hub = name.startswith(HUB_PREFIX)
        self.prefix = name.encode() + b"\0"
        # Of the next message, and of the next one that is delivered.
        self.next_number = self.next_delivered = 0

    def key(self, number: int) -> bytes:
        return self.prefix + number.to_bytes(8, "big")

    def batch_of(self, payloads: list[bytes]) -> Batch:
        first = self.next_number
        self.next_number += len(payloads)
        if self.is_hub:
            return Batch(puts=[(self.key(first), b"".join(payloads))])
        return Batch(puts=[(self.key(first + index), payload) for index, payload in enumerate(payloads)])


class Server:
    def __init__(self, engine: LmdbEngine) -> None:
        self.engine = engine
        self._entities: dict[str, Entity] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def entity(self, name: str) -> Entity:
        return self._entities.setdefault(name, Entity(name))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Connection(asyncio.Protocol):
    """A connection with one session and one link, both with the number 0."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._codec = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX)
        self._entity = Entity("")
        self._delivered = self._taken = self._credit_end = self._credit_at = 0
        self._is_delivering = self._deletes = False
        # The keys of messages by their delivery id.
        self._locked: dict[int, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        payloads: list[bytes] = []
        completed: list[int] = []
        for received in self._codec.receive(data):
            if isinstance(received, ProtocolHeader):
                self._greet(received.content)
                continue
            body = received.body
            code = body[2] if body else -1
            if code == amqp_frames.TRANSFER:
                payloads.append(decode_transfer(body).payload)
            elif code == amqp_frames.DISPOSITION:
                disposition = decode_disposition(body)
                completed += range(disposition.first, disposition.last + 1)
            elif code >= 0:
                self._answer(code, decode_value(body)[0].value)
        if payloads:
            first = self._taken
            self._taken += len(payloads)
            self._server.run(self._store(self._entity.batch_of(payloads), first, self._taken - 1))
        if completed:
            self._server.run(self._complete(completed))

    def _greet(self, header: bytes) -> None:
        if header == SASL_HEADER:
            self.write(header + frame(amqp_frames.SASL_MECHANISMS, [Symbol("PLAIN")], kind=amqp_frames.SASL_FRAME))
        else:
            self.write(header)

    def _answer(self, code: int, fields: list[Any]) -> None:
        match code:
            case amqp_frames.SASL_INIT:
                self.write(frame(amqp_frames.SASL_OUTCOME, [UByte(0), None], kind=amqp_frames.SASL_FRAME))
            case amqp_frames.OPEN:
                self.write(frame(code, ["bare", None, UInt(FRAME_BYTES_MAX), UShort(10), None, *[None] * 5]))
            case amqp_frames.BEGIN:
                self.write(frame(code, [UShort(0), UInt(0), UInt(WINDOW), UInt(WINDOW), UInt(10), *[None] * 3]))
            case amqp_frames.ATTACH:
                self._attach(fields)
            case amqp_frames.FLOW:
                if fields[4] is not None:
                    self._credit_end = (fields[5] or 0) + fields[6]
                    self._deliver_soon()

    def _attach(self, fields: list[Any]) -> None:
        receives = bool(fields[2])
        self._entity = self._server.entity(str(fields[5 if receives else 6].value[0]))
        self._deletes = receives and fields[3] == 1
        reply = [fields[0], UInt(0), not receives, fields[3], fields[4], fields[5], fields[6], None, None, UInt(0)]
        self.write(frame(amqp_frames.ATTACH, [*reply, ULong(1 << 20), None, None, None]))
        if not receives:
            self._give_credit()

    def _give_credit(self) -> None:
        session = [UInt(self._taken), UInt(WINDOW), UInt(0), UInt(WINDOW)]
        link = [UInt(0), UInt(self._taken), UInt(CREDIT), None, False, False, None]
        self.write(frame(amqp_frames.FLOW, [*session, *link]))
        self._credit_at = self._taken + CREDIT // 2

    async def _store(self, batch: Batch, first: int, last: int) -> None:
        await self._server.engine.apply(PARTITION, EPOCH, batch)
        self.write(_disposition(first, last, is_receiver=True))
        if last >= self._credit_at:
            self._give_credit()

    def _deliver_soon(self) -> None:
        if not self._is_delivering:
            self._is_delivering = True
            self._server.run(self._deliver())

    async def _deliver(self) -> None:
        """Send messages while there are some, and credit for them."""
        entity = self._entity
        while (credit := self._credit_end - self._delivered) > 0:
            start = entity.next_delivered
            end = min(start + credit, entity.next_number)
            if start == end:
                break
            entity.next_delivered = end
            span = Span(entity.key(start), entity.key(end))
            page = await self._server.engine.scan(PARTITION, EPOCH, span, limit=end - start, bytes_max=_UNLIMITED)
            if self._deletes:
                batch = Batch(deletes=[key for key, _ in page.entries])
                await self._server.engine.apply(PARTITION, EPOCH, batch)
            frames = []
            for key, payload in page.entries:
                number = self._delivered
                self._delivered += 1
                tag = b"" if self._deletes else key[-8:]
                if not self._deletes:
                    self._locked[number] = key
                frames.append(
                    encode_transfer(
                        0, 0, delivery_id=number, tag=tag, is_settled=self._deletes, has_more=False, payload=payload
                    )
                )
            self.write(b"".join(frames))
        self._is_delivering = False

    async def _complete(self, delivery_ids: list[int]) -> None:
        batch = Batch(deletes=[self._locked.pop(number) for number in delivery_ids])
        await self._server.engine.apply(PARTITION, EPOCH, batch)
        frames, first = [], 0
        for index in range(1, len(delivery_ids) + 1):
            if index == len(delivery_ids) or delivery_ids[index] != delivery_ids[index - 1] + 1:
                frames.append(_disposition(delivery_ids[first], delivery_ids[index - 1], is_receiver=False))
                first = index
        self.write(b"".join(frames))


def _disposition(first: int, last: int, *, is_receiver: bool) -> bytes:
    return encode_disposition(0, is_from_receiver=is_receiver, first=first, last=last, state=_ACCEPTED)


async def main() -> None:
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    engine = LmdbEngine.open(folder)
    await engine.create_partition(PARTITION, Fence(EPOCH))
    server = Server(engine)
    listener = await asyncio.get_running_loop().create_server(lambda: Connection(server), "127.0.0.1", port)
    async with listener:
        await listener.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
