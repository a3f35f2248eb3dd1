"""The loop that a door of messages needs: a codec over a connection, answers in the order of their requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

from asterism.apis.transports.chunks import close_chunks
from asterism.apis.transports.codec import Codec, MalformedBytes
from asterism.apis.transports.tcp import ByteStream

Message = TypeVar("Message")
Message_contra = TypeVar("Message_contra", contravariant=True)

# Messages that are answered without a wait before others have their turn.
_TURN_MESSAGES = 64

# The bytes of an answer, empty for a message without an answer; or its parts, for one that is too large for memory or
# that goes on while the client listens.
Reply = bytes | AsyncIterator[bytes]


class LastReply(Exception):
    """Raised by a handler to close the connection behind its answer."""

    def __init__(self, reply: bytes = b"") -> None:
        super().__init__()
        self.reply = reply


class MessageHandler(Protocol[Message_contra]):
    """A door's side of one connection: made for each of them, with its state, and given its messages."""

    async def answer(self, message: Message_contra) -> Reply:
        """Carry out a message and return its answer. Runs to its end although the client goes away meanwhile."""
        ...

    def refuse(self, error: MalformedBytes) -> bytes:
        """Return the last words to a client whose bytes cannot be read."""
        ...


async def serve_messages(stream: ByteStream, codec: Codec[Message], handler: MessageHandler[Message]) -> None:
    """Answer the messages of a connection one after the other, until the client goes or the server stops.

    A client may send the next messages before it has the answer to the first: they wait in the connection's buffer,
    which is bounded, and the answers to messages that came together leave together.
    """
    while data := await stream.read(pending_bytes=codec.pending_bytes):
        try:
            for count, message in enumerate(codec.receive(data), 1):
                if count % _TURN_MESSAGES == 0:
                    await asyncio.sleep(0)
                reply = await handler.answer(message)
                if isinstance(reply, bytes):
                    if reply:
                        await stream.write(reply)
                else:
                    await _write_parts(stream, reply)
        except MalformedBytes as error:
            await stream.write(handler.refuse(error))
            return
        except LastReply as last:
            await stream.write(last.reply)
            return


async def _write_parts(stream: ByteStream, parts: AsyncIterator[bytes]) -> None:
    try:
        async for part in parts:
            await stream.write(part)
    finally:
        await close_chunks(parts)
