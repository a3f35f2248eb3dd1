"""The body of a request on its way into a blob: piece by piece, with its checksums."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Protocol

from asterism.apis.blob.context import BlobCall
from asterism.apis.blob.errors import checksum_mismatch
from asterism.apis.blob.record_headers import base64_text
from asterism.apis.blob.request_headers import (
    CONTENT_CRC64,
    CONTENT_MD5,
    CRC64_BYTES,
    MD5_BYTES,
    read_digest,
    read_number,
)
from asterism.apis.storage.refusals import body_too_large, invalid_header_value, md5_mismatch, missing_length
from asterism.apis.storage.structured_body import StructuredBodyDecoder, is_structured_body
from asterism.apis.transports.http import HeaderList, Headers
from asterism.limits import KIB
from asterism.values.crc64 import crc64, crc64_bytes

STRUCTURED_BODY: Final = "x-ms-structured-body"
STRUCTURED_LENGTH: Final = "x-ms-structured-content-length"
# Read whole: one step instead of several.
_SMALL_BODY_BYTES: Final = 64 * KIB


@dataclass(frozen=True, slots=True)
class Received:
    """The body of a request that has arrived whole, and fits the checksums that the request has for it."""

    size: int
    # None where neither the request nor the blob has one.
    md5: bytes | None
    headers: HeaderList


def body_length(headers: Headers) -> int:
    length = headers.get("content-length")
    if length is None:
        raise missing_length()
    # Always digits: the HTTP server refuses any other length itself.
    return int(length)


class Sink(Protocol):
    """A place for the content of a body, such as an upload."""

    async def write(self, piece: bytes, /) -> None: ...


class _Memory:
    """Keeps the content of a short body."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    async def write(self, piece: bytes) -> None:
        self.pieces.append(piece)


async def receive_whole(call: BlobCall, *, bytes_max: int) -> tuple[bytes, Received]:
    """Return the content of a body that is short enough for memory."""
    memory = _Memory()
    received = await receive(call, memory, bytes_max=bytes_max)
    return b"".join(memory.pieces), received


async def receive(call: BlobCall, upload: Sink, *, bytes_max: int, stores_md5: bool = False) -> Received:
    """Write the body of a request into an upload; refuse it if it does not fit its checksums."""
    headers = call.headers
    expected_md5 = read_digest(headers, CONTENT_MD5, MD5_BYTES)
    expected_crc64 = read_digest(headers, CONTENT_CRC64, CRC64_BYTES)
    if expected_md5 is not None and expected_crc64 is not None:
        raise invalid_header_value(
            CONTENT_CRC64, base64_text(expected_crc64), "A request has an MD5 or a CRC64 of its body, not both."
        )
    length = body_length(headers)
    decoder = _decoder(headers, length)
    if length > bytes_max and decoder is None:
        raise body_too_large(bytes_max)
    md5 = hashlib.md5(usedforsecurity=False) if stores_md5 or expected_md5 is not None else None
    wants_crc64 = expected_crc64 is not None or not stores_md5
    checksum = size = 0
    async for piece in _pieces(call, length, decoder):
        size += len(piece)
        if size > bytes_max:
            raise body_too_large(bytes_max)
        if md5 is not None:
            md5.update(piece)
        if wants_crc64:
            checksum = crc64(piece, checksum)
        await upload.write(piece)
    found_md5 = None if md5 is None else md5.digest()
    if expected_md5 is not None and found_md5 != expected_md5:
        raise md5_mismatch()
    if expected_crc64 is not None and crc64_bytes(checksum) != expected_crc64:
        raise checksum_mismatch()
    answer: HeaderList = []
    if found_md5 is not None:
        answer.append((CONTENT_MD5, base64_text(found_md5)))
    if wants_crc64:
        answer.append((CONTENT_CRC64, base64_text(crc64_bytes(checksum))))
    if decoder is not None:
        answer.append((STRUCTURED_BODY, headers.get(STRUCTURED_BODY) or ""))
    return Received(size, found_md5, answer)


def _decoder(headers: Headers, length: int) -> StructuredBodyDecoder | None:
    structured = headers.get(STRUCTURED_BODY)
    if not structured:
        return None
    if not is_structured_body(structured):
        raise invalid_header_value(STRUCTURED_BODY, structured)
    content_length = read_number(headers, STRUCTURED_LENGTH)
    if content_length is None:
        raise invalid_header_value(STRUCTURED_LENGTH, "")
    return StructuredBodyDecoder(body_bytes=length, content_bytes=content_length)


async def _pieces(call: BlobCall, length: int, decoder: StructuredBodyDecoder | None) -> AsyncIterator[bytes]:
    """Yield the content of the body. The limit of the listener holds for its bytes, the caller's for the content."""
    request = call.request
    if length <= _SMALL_BODY_BYTES and decoder is None:
        body = request.body if request.read_body is None else await request.read_body()
        if body:
            yield body
        return
    async for piece in request.body_chunks():
        if decoder is None:
            yield piece
        else:
            for content in decoder.feed(piece):
                yield bytes(content)
    if decoder is not None:
        decoder.finish()
