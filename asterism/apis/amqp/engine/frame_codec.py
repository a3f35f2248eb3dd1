"""The bytes of an AMQP connection as protocol headers and frames, and frames as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from asterism.apis.transports.codec import MalformedBytes

_HEAD: Final = struct.Struct(">IBBH")
HEAD_BYTES: Final = _HEAD.size

AMQP_FRAME: Final = 0
SASL_FRAME: Final = 1
# Both kinds of connection begin with it; read as the size of a frame, it is above any limit.
_PROTOCOL: Final = b"AMQP"

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
EMPTY_FRAME: Final = b"\x00\x00\x00\x08\x02\x00\x00\x00"


class ProtocolHeader(NamedTuple):
    """The eight bytes that open a layer of the protocol."""

    content: bytes


class Frame(NamedTuple):
    """A frame without its head: a performative, and a payload behind it. Empty frames have neither."""

    kind: int
    channel: int
    body: bytes


class FrameCodec:
    """Turns the bytes of one connection into protocol headers and frames; a `Codec`."""

    def __init__(self, *, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        # The beginning of a frame, and how many bytes of it are needed to go on.
        self._rest = bytearray()
        self._needed_bytes = HEAD_BYTES

    @property
    def pending_bytes(self) -> int:
        return self._needed_bytes if self._rest else 0

    def receive(self, data: bytes) -> Iterator[ProtocolHeader | Frame]:
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed_bytes:
                return
            data = bytes(self._rest)
            self._rest.clear()
        offset, size = 0, len(data)
        while offset + HEAD_BYTES <= size:
            length, data_offset, kind, channel = _HEAD.unpack_from(data, offset)
            if length > self._frame_bytes_max:
                if data[offset : offset + 4] != _PROTOCOL:
                    raise MalformedBytes(f"a frame of {length} bytes is above the limit of {self._frame_bytes_max}")
                yield ProtocolHeader(data[offset : offset + HEAD_BYTES])
                offset += HEAD_BYTES
                continue
            start = data_offset * 4
            if not HEAD_BYTES <= start <= length:
                raise MalformedBytes("the head of a frame does not end within the frame")
            end = offset + length
            if end > size:
                self._keep(data, offset, needed_bytes=length)
                return
            yield Frame(kind, channel, data[offset + start : end])
            offset = end
        if offset < size:
            self._keep(data, offset, needed_bytes=HEAD_BYTES)

    def _keep(self, data: bytes, offset: int, *, needed_bytes: int) -> None:
        self._rest += data[offset:]
        self._needed_bytes = needed_bytes


def encode_frame(channel: int, body: bytes, *, kind: int = AMQP_FRAME) -> bytes:
    """Return the frame around a performative and its payload."""
    return _HEAD.pack(HEAD_BYTES + len(body), 2, kind, channel) + body
