"""The convention for codecs: bytes in, messages out, and nothing that waits.

A codec is an object per connection that keeps the bytes of an incomplete message between calls. Encoders need no state
and are plain functions from a message to bytes. `messages.serve_messages` runs a codec over a connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

Message_co = TypeVar("Message_co", covariant=True)


class MalformedBytes(Exception):
    """The bytes are not of the protocol, or announce a message that is too large; nothing behind them can be read."""


class Codec(Protocol[Message_co]):
    """Turns the bytes of one connection into messages.

    However the bytes are divided into calls of `receive`, the messages are the same.
    """

    @property
    def pending_bytes(self) -> int:
        """Return the size of the message that has begun to arrive, as far as it is known; 0 between messages."""
        ...

    def receive(self, data: bytes) -> Iterator[Message_co]:
        """Yield the messages that are complete with these bytes, in order.

        The caller takes all of them before it calls again. Raises MalformedBytes behind the last good message, also
        when a message is announced that is larger than the codec accepts: its bytes are not waited for.
        """
        ...


class ByteBuffer:
    """The bytes of a connection that no message was made of yet: appended at the end, taken from the front."""

    __slots__ = ("_bytes", "_start")

    # The front is dropped when it is this long, not with every message: dropping moves what is behind it.
    _DROPPED_BYTES_MIN = 64 * 1024

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._start = 0

    def __len__(self) -> int:
        return len(self._bytes) - self._start

    def append(self, data: bytes) -> None:
        if self._start == len(self._bytes):
            self._bytes.clear()
            self._start = 0
        elif self._start >= self._DROPPED_BYTES_MIN:
            del self._bytes[: self._start]
            self._start = 0
        self._bytes += data

    def peek(self, size: int, *, offset: int = 0) -> bytes:
        """Return up to `size` bytes behind the first `offset`, and leave them in place."""
        start = self._start + offset
        return bytes(memoryview(self._bytes)[start : start + size])

    def find(self, wanted: bytes, *, offset: int = 0) -> int:
        """Return where `wanted` begins, counted from the front, looking behind the first `offset` bytes; or -1."""
        found = self._bytes.find(wanted, self._start + offset)
        return -1 if found < 0 else found - self._start

    def take(self, size: int) -> bytes:
        """Return the first `size` bytes, which must have arrived, and forget them."""
        assert size <= len(self), "take only what has arrived"
        taken = self.peek(size)
        self._start += size
        return taken

    def skip(self, size: int) -> None:
        """Forget the first `size` bytes, which must have arrived."""
        assert size <= len(self), "skip only what has arrived"
        self._start += size
