"""Get Blob and Get Blob Properties: the data of a blob, or a range of them, and all that headers tell about it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Final

from asterism.apis.blob.context import BlobCall, blob_container_of, key_for_read, now_ticks, which_of
from asterism.apis.blob.ranges import ByteSpan, content_range, requested_range, span_of
from asterism.apis.blob.receiving import STRUCTURED_BODY, STRUCTURED_LENGTH
from asterism.apis.blob.record_headers import base64_text, blob_headers
from asterism.apis.blob.refused_input import RefusedInput
from asterism.apis.blob.request_headers import CONTENT_CRC64, CONTENT_MD5, read_conditions, read_flag
from asterism.apis.storage.refusals import Refusal, invalid_header_value, invalid_range
from asterism.apis.storage.structured_body import StructuredBodyEncoder, is_structured_body
from asterism.apis.transports.chunks import close_chunks
from asterism.apis.transports.http import Answer, HeaderList, Response, StreamedResponse
from asterism.limits import KIB, MIB
from asterism.models.blobs.container import Container
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.record import BlobRecord
from asterism.models.blobs.tiers import ARCHIVE
from asterism.values.crc64 import crc64, crc64_bytes

# The service's limit on a range with a checksum of its own.
CHECKSUM_RANGE_BYTES_MAX: Final = 4 * MIB
_MD5_WANTED: Final = "x-ms-range-get-content-md5"
_CRC64_WANTED: Final = "x-ms-range-get-content-crc64"
# Sent at once, without the steps of a stream.
_WHOLE_ANSWER_BYTES_MAX: Final = 256 * KIB


async def head_blob(call: BlobCall) -> Response:
    record = await _find(call, blob_container_of(call))
    answer = blob_headers(record, now_ticks(call), call.signed_response_headers())
    answer.append(("content-length", str(record.size)))
    if record.content_md5 is not None:
        answer.append((CONTENT_MD5, base64_text(record.content_md5)))
    return Response(200, answer)


async def get_blob(call: BlobCall) -> Answer:
    container = blob_container_of(call)
    record = await _find(call, container)
    return await answer_with_content(call, container, record)


async def answer_with_content(call: BlobCall, container: Container, record: BlobRecord) -> Answer:
    """Return the data of a record, or the range of them that the request names."""
    if record.tier == ARCHIVE:
        raise BlobRefused(BlobFailure.ARCHIVED)
    span, is_range = _span(call, record)
    answer = blob_headers(record, now_ticks(call), call.signed_response_headers())
    if is_range:
        answer.append(("content-range", content_range(span, blob_bytes=record.size)))
    if record.content_md5 is not None:
        answer.append(("x-ms-blob-content-md5" if is_range else CONTENT_MD5, base64_text(record.content_md5)))
    status = 206 if is_range else 200
    wants_md5, wants_crc64 = _wanted_checksums(call, span, is_range=is_range)
    if wants_md5 or wants_crc64:
        body = await _read_whole(container, record, span)
        if wants_md5:
            answer.append((CONTENT_MD5, base64_text(hashlib.md5(body, usedforsecurity=False).digest())))
        if wants_crc64:
            answer.append((CONTENT_CRC64, base64_text(crc64_bytes(crc64(body)))))
        return Response(status, answer, body)
    structured = call.headers.get(STRUCTURED_BODY)
    if structured:
        return _structured(structured, status, answer, container, record, span)
    if span.length <= _WHOLE_ANSWER_BYTES_MAX:
        return Response(status, answer, await _read_whole(container, record, span))
    answer.append(("content-length", str(span.length)))
    return StreamedResponse(status, answer, container.read(record, span.start, span.end))


async def _find(call: BlobCall, container: Container) -> BlobRecord:
    return await container.find(call.resource.name, which_of(call), read_conditions(call.headers), key_for_read(call))


def _span(call: BlobCall, record: BlobRecord) -> tuple[ByteSpan, bool]:
    headers = call.headers
    wanted = requested_range(x_ms_range=headers.get("x-ms-range"), http_range=headers.get("range"))
    if wanted is None:
        return ByteSpan(0, record.size), False
    try:
        return span_of(wanted, blob_bytes=record.size), True
    except RefusedInput as refused:
        if refused.status != invalid_range().status:
            raise
        # Clients learn the size of the blob from it.
        refusal = Refusal(refused.status, refused.code, refused.reason)
        refusal.more_headers = [("content-range", f"bytes */{record.size}")]
        raise refusal from None


def _wanted_checksums(call: BlobCall, span: ByteSpan, *, is_range: bool) -> tuple[bool, bool]:
    wants_md5, wants_crc64 = read_flag(call.headers, _MD5_WANTED), read_flag(call.headers, _CRC64_WANTED)
    if not wants_md5 and not wants_crc64:
        return False, False
    name = _MD5_WANTED if wants_md5 else _CRC64_WANTED
    if wants_md5 and wants_crc64:
        raise invalid_header_value(name, "true", "A request asks for an MD5 or for a CRC64, not for both.")
    if not is_range:
        raise invalid_header_value(name, "true", "A checksum is computed for a range only: send x-ms-range.")
    if span.length > CHECKSUM_RANGE_BYTES_MAX:
        raise Refusal(
            416,
            "InvalidRange",
            "A range with a checksum has at most 4 MiB.",
            fields=(("HeaderName", name),),
        )
    return wants_md5, wants_crc64


async def _read_whole(container: Container, record: BlobRecord, span: ByteSpan) -> bytes:
    if not span.length:
        return b""
    inline = record.content.inline
    if inline is not None:
        # A small blob is read with its record.
        return inline[span.start : span.end]
    return b"".join([piece async for piece in container.read(record, span.start, span.end)])


# --- structured bodies ----------------------------------------------------------------------------------------------


def _structured(
    asked: str, status: int, answer: HeaderList, container: Container, record: BlobRecord, span: ByteSpan
) -> StreamedResponse:
    """Return an answer whose body has checksums between its segments."""
    if not is_structured_body(asked):
        raise invalid_header_value(STRUCTURED_BODY, asked)
    encoder = StructuredBodyEncoder(span.length)
    answer += [
        (STRUCTURED_BODY, asked),
        (STRUCTURED_LENGTH, str(span.length)),
        ("content-length", str(encoder.body_bytes)),
    ]
    return StreamedResponse(status, answer, _encoded(encoder, container.read(record, span.start, span.end)))


async def _encoded(encoder: StructuredBodyEncoder, content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for piece in content:
            yield b"".join(encoder.encode(piece))
        yield encoder.finish()
    finally:
        await close_chunks(content)
