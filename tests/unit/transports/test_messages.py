"""The loop of a door of messages, over a stream that is not a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from asterism.apis.transports.codec import MalformedBytes
from asterism.apis.transports.http import ClientGone
from asterism.apis.transports.messages import LastReply, Reply, serve_messages
from asterism.apis.transports.tcp import ByteStream
from tests.toy_door.echo import LengthPrefixedCodec, encode


class ScriptedStream:
    """A connection whose client sends these pieces, and leaves after so many answers."""

    def __init__(self, *pieces: bytes, answers_max: int = 100) -> None:
        self._pieces = [*pieces, b""]
        self._answers_max = answers_max
        self.pending: list[int] = []
        self.written: list[bytes] = []

    async def read(self, *, pending_bytes: int = 0) -> bytes:
        self.pending.append(pending_bytes)
        return self._pieces.pop(0)

    async def write(self, data: bytes) -> None:
        if len(self.written) == self._answers_max:
            raise ClientGone
        self.written.append(data)


class Handler:
    def __init__(self) -> None:
        self.parts_closed = 0

    async def answer(self, message: bytes) -> Reply:
        if message == b"parts":
            return self._parts()
        if message == b"quit":
            raise LastReply(b"bye")
        return b"" if message == b"silent" else message.upper()

    def refuse(self, error: MalformedBytes) -> bytes:
        return b"refused"

    async def _parts(self) -> AsyncIterator[bytes]:
        try:
            for part in range(5):
                yield b"part %d" % part
        finally:
            self.parts_closed += 1


async def served(stream: ScriptedStream, *, message_bytes_max: int = 100) -> Handler:
    handler = Handler()
    codec = LengthPrefixedCodec(message_bytes_max=message_bytes_max)
    await serve_messages(cast(ByteStream, stream), codec, handler)
    return handler


def together(*messages: bytes) -> bytes:
    return b"".join(map(encode, messages))


async def test_answers_come_in_the_order_of_their_messages() -> None:
    stream = ScriptedStream(together(b"a", b"b"), together(b"c"))
    await served(stream)
    assert stream.written == [b"A", b"B", b"C"]


async def test_a_message_without_an_answer_sends_nothing() -> None:
    stream = ScriptedStream(together(b"silent", b"a"))
    await served(stream)
    assert stream.written == [b"A"]


async def test_the_stream_hears_how_much_of_a_message_is_outstanding() -> None:
    whole = together(b"a" * 50)
    stream = ScriptedStream(whole[:10], whole[10:])
    await served(stream)
    assert stream.pending == [0, 54, 0]


async def test_bytes_that_cannot_be_read_get_last_words_behind_the_answers_before_them() -> None:
    stream = ScriptedStream(together(b"a", bytes(101)), together(b"b"))
    await served(stream)
    assert stream.written == [b"A", b"refused"]


async def test_a_handler_can_close_the_connection_behind_an_answer() -> None:
    stream = ScriptedStream(together(b"quit", b"a"))
    await served(stream)
    assert stream.written == [b"bye"]


async def test_many_messages_that_come_together_let_others_run() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    stream = ScriptedStream(together(*[b"a"] * 1000), answers_max=1000)
    await served(stream)
    counting.cancel()
    assert (len(stream.written), turns > 10) == (1000, True)


async def test_an_answer_in_parts_is_written_part_by_part() -> None:
    stream = ScriptedStream(together(b"parts", b"a"))
    await served(stream)
    assert stream.written == [*(b"part %d" % part for part in range(5)), b"A"]


async def test_an_answer_in_parts_ends_when_its_client_goes() -> None:
    stream = ScriptedStream(together(b"parts"), answers_max=2)
    handler = Handler()
    with pytest.raises(ClientGone):
        await serve_messages(cast(ByteStream, stream), LengthPrefixedCodec(), handler)
    assert (len(stream.written), handler.parts_closed) == (2, 1)
