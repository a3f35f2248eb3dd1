"""Structured bodies, format XSM/1.0: content in numbered segments, each followed by its CRC-64, and the CRC-64 of all.

A message is a header of 13 bytes (version, length of the message, flags, number of segments), the segments and a
trailer. A segment is a header of 10 bytes (number from 1, length of its content), its content and its checksum. The
numbers are little endian; the checksums are present if the flags say so.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, Final

from asterism.errors import AsterismError, Category
from asterism.values.crc64 import CRC64_BYTES, crc64, crc64_bytes

STRUCTURED_BODY: Final = "XSM/1.0; properties=crc64"

VERSION: Final = 1
_FLAG_CRC64: Final = 1
_MESSAGE_HEADER: Final = struct.Struct("<BQHH")
_SEGMENT_HEADER: Final = struct.Struct("<HQ")
# The header of a message counts its segments in 16 bits.
_SEGMENTS_MAX: Final = 0xFFFF
# The size that the official clients choose.
SEGMENT_BYTES: Final = 4 * 1024 * 1024
_HEADER_VALUE: Final = re.compile(r"\s*XSM/1\.0\s*;\s*properties\s*=\s*crc64\s*", re.IGNORECASE)


@dataclass(eq=False)
class MalformedStructuredBody(AsterismError):
    """`reason` is a sentence about the frame that does not fit."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The structured body cannot be read."
    reason: str


@dataclass(eq=False)
class StructuredBodyMismatch(AsterismError):
    """A checksum that differs from the content's: of a segment, or of the whole message where `segment` is None."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The content of the structured body does not match its CRC-64."
    segment: int | None
    given: bytes
    computed: bytes


def is_structured_body(header: str) -> bool:
    """Return whether a header `x-ms-structured-body` names the format of this module."""
    return _HEADER_VALUE.fullmatch(header) is not None


class _Region(Enum):
    MESSAGE_HEADER = auto()
    SEGMENT_HEADER = auto()
    CONTENT = auto()
    SEGMENT_TRAILER = auto()
    MESSAGE_TRAILER = auto()
    END = auto()


class StructuredBodyDecoder:
    """Content out of the bytes of one message, which may come in any pieces.

    Content is returned before its checksum has arrived: callers keep it provisional until `finish` has returned.
    """

    def __init__(self, *, body_bytes: int | None = None, content_bytes: int | None = None) -> None:
        """Expect a message of `body_bytes` (the Content-Length) with `content_bytes`, as far as they are known."""
        self._body_bytes = body_bytes
        self._content_bytes_expected = content_bytes
        self._region = _Region.MESSAGE_HEADER
        self._frame = bytearray()
        self._has_checksums = False
        self._message_bytes = 0
        self._bytes_read = 0
        self._segments = 0
        self._segment = 0
        self._content_left = 0
        self._segment_crc64 = 0
        self.content_bytes = 0
        self.content_crc64 = 0

    def feed(self, piece: bytes | bytearray | memoryview) -> list[memoryview]:
        """Return the content within `piece`, as views of it."""
        content: list[memoryview] = []
        rest = memoryview(piece)
        while rest:
            if self._region is _Region.END:
                raise MalformedStructuredBody("Bytes follow the end of the message.")
            if self._region is _Region.CONTENT:
                taken = rest[: self._content_left]
                self._count_content(taken)
                content.append(taken)
            else:
                taken = rest[: self._frame_bytes() - len(self._frame)]
                self._frame += taken
            self._bytes_read += len(taken)
            rest = rest[len(taken) :]
            self._pass_complete_regions()
        return content

    def finish(self) -> None:
        """Check that the message is complete."""
        if self._region is not _Region.END:
            raise MalformedStructuredBody("The body ends before the message does.")

    def _count_content(self, taken: memoryview) -> None:
        self._content_left -= len(taken)
        self.content_bytes += len(taken)
        if self._has_checksums:
            self._segment_crc64 = crc64(taken, self._segment_crc64)
            self.content_crc64 = crc64(taken, self.content_crc64)

    def _frame_bytes(self) -> int:
        match self._region:
            case _Region.MESSAGE_HEADER:
                return _MESSAGE_HEADER.size
            case _Region.SEGMENT_HEADER:
                return _SEGMENT_HEADER.size
            case _:
                return CRC64_BYTES if self._has_checksums else 0

    def _pass_complete_regions(self) -> None:
        while self._region is not _Region.END:
            if self._region is _Region.CONTENT:
                if self._content_left:
                    return
                self._region = _Region.SEGMENT_TRAILER
            elif len(self._frame) < self._frame_bytes():
                return
            else:
                frame = bytes(self._frame)
                self._frame.clear()
                self._pass_frame(frame)

    def _pass_frame(self, frame: bytes) -> None:
        match self._region:
            case _Region.MESSAGE_HEADER:
                self._read_message_header(frame)
                self._region = _Region.SEGMENT_HEADER
            case _Region.SEGMENT_HEADER:
                self._read_segment_header(frame)
                self._region = _Region.CONTENT
            case _Region.SEGMENT_TRAILER:
                self._check(frame, self._segment_crc64, self._segment)
                is_last = self._segment == self._segments
                self._region = _Region.MESSAGE_TRAILER if is_last else _Region.SEGMENT_HEADER
            case _:
                self._check(frame, self.content_crc64, None)
                self._check_lengths()
                self._region = _Region.END

    def _read_message_header(self, frame: bytes) -> None:
        version, self._message_bytes, flags, self._segments = _MESSAGE_HEADER.unpack(frame)
        if version != VERSION:
            raise MalformedStructuredBody(f"The version of the message is {version}; it must be {VERSION}.")
        if self._body_bytes is not None and self._message_bytes != self._body_bytes:
            raise MalformedStructuredBody(
                f"The message says that it has {self._message_bytes} bytes; the body has {self._body_bytes}."
            )
        if flags & ~_FLAG_CRC64:
            raise MalformedStructuredBody(f"The flags of the message are {flags}; only 0 and 1 are known.")
        if self._segments == 0:
            raise MalformedStructuredBody("The message says that it has no segments; it must have at least 1.")
        self._has_checksums = bool(flags & _FLAG_CRC64)

    def _read_segment_header(self, frame: bytes) -> None:
        number, self._content_left = _SEGMENT_HEADER.unpack(frame)
        self._segment += 1
        self._segment_crc64 = 0
        if number != self._segment:
            raise MalformedStructuredBody(f"Segment {number} stands where segment {self._segment} was expected.")
        if self._content_left > self._message_bytes - self._bytes_read:
            raise MalformedStructuredBody(f"Segment {number} is longer than the rest of the message.")

    def _check(self, frame: bytes, computed: int, segment: int | None) -> None:
        if self._has_checksums and frame != crc64_bytes(computed):
            raise StructuredBodyMismatch(segment, frame, crc64_bytes(computed))

    def _check_lengths(self) -> None:
        if self._bytes_read != self._message_bytes:
            raise MalformedStructuredBody(
                f"The message says that it has {self._message_bytes} bytes; its segments end at {self._bytes_read}."
            )
        expected = self._content_bytes_expected
        if expected is not None and self.content_bytes != expected:
            raise MalformedStructuredBody(
                f"x-ms-structured-content-length says {expected} bytes; the message has {self.content_bytes}."
            )


class StructuredBodyEncoder:
    """The bytes of one message around content that comes in any pieces."""

    def __init__(self, content_bytes: int, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._segment_bytes = max(segment_bytes, -(-content_bytes // _SEGMENTS_MAX))
        self._segments = max(1, -(-content_bytes // self._segment_bytes))
        self._content_left = content_bytes
        self._segment = 0
        self._segment_left = 0
        self._segment_crc64 = 0
        self._content_crc64 = 0
        # Known before the first piece, for Content-Length.
        self.body_bytes = structured_body_bytes(content_bytes, segments=self._segments)

    def encode(self, piece: bytes | bytearray | memoryview) -> Iterator[bytes | memoryview]:
        """Yield the bytes of the message that `piece` completes: views of it, and frames between them."""
        rest = memoryview(piece)
        if len(rest) > self._content_left:
            raise ValueError("there is more content than was announced")
        while rest:
            if not self._segment_left:
                yield self._begin_segment()
            taken = rest[: self._segment_left]
            rest = rest[len(taken) :]
            self._segment_crc64 = crc64(taken, self._segment_crc64)
            self._content_crc64 = crc64(taken, self._content_crc64)
            self._segment_left -= len(taken)
            self._content_left -= len(taken)
            yield taken
            if not self._segment_left:
                yield crc64_bytes(self._segment_crc64)

    def finish(self) -> bytes:
        """Return the end of the message, after all content."""
        if self._content_left:
            raise ValueError("there is less content than was announced")
        # Content of no bytes is one empty segment.
        empty = b"" if self._segment else self._begin_segment() + crc64_bytes(0)
        return empty + crc64_bytes(self._content_crc64)

    def _begin_segment(self) -> bytes:
        is_first = not self._segment
        self._segment += 1
        self._segment_left = min(self._segment_bytes, self._content_left)
        self._segment_crc64 = 0
        header = _SEGMENT_HEADER.pack(self._segment, self._segment_left)
        if not is_first:
            return header
        return _MESSAGE_HEADER.pack(VERSION, self.body_bytes, _FLAG_CRC64, self._segments) + header


def structured_body_bytes(content_bytes: int, *, segments: int) -> int:
    """Return the length of a message with checksums."""
    frames = _MESSAGE_HEADER.size + CRC64_BYTES + segments * (_SEGMENT_HEADER.size + CRC64_BYTES)
    return content_bytes + frames
