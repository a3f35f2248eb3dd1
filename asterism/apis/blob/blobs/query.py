"""Quick query: the records that an expression selects, in an answer that is written while the blob is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from asterism.apis.blob.context import BlobCall, blob_container_of, key_for_read, now_ticks, which_of
from asterism.apis.blob.query_answer import QUERY_CONTENT_TYPE, QueryAnswer
from asterism.apis.blob.query_request import read_query_request
from asterism.apis.blob.record_headers import blob_headers
from asterism.apis.blob.request_headers import read_conditions
from asterism.apis.transports.chunks import close_chunks
from asterism.apis.transports.http import StreamedResponse
from asterism.limits import KIB
from asterism.models.blobs.container import Container
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.tiers import ARCHIVE

# As much as is scanned at once, while other requests wait: some milliseconds.
_PIECE_BYTES: Final = 64 * KIB
_SYNC_BYTES: Final = 16
# Of the blob, and not of the answer.
_BLOB_CONTENT_TYPE: Final = "content-type"


async def query_blob(call: BlobCall) -> StreamedResponse:
    container = blob_container_of(call)
    asked = read_query_request(call.request.body)
    conditions, key = read_conditions(call.headers), key_for_read(call)
    record = await container.find(call.resource.name, which_of(call), conditions, key)
    if record.kind is not BlobKind.BLOCK:
        raise BlobRefused(BlobFailure.WRONG_KIND)
    if record.tier == ARCHIVE:
        raise BlobRefused(BlobFailure.ARCHIVED)
    # Separates the blocks of the answer, which are distinct by their place: any bytes will do.
    sync = record.etag.to_bytes(_SYNC_BYTES, "big")
    answer = QueryAnswer(asked, blob_bytes=record.size, sync=sync)
    headers = blob_headers(record, now_ticks(call), {})
    headers = [(name, value) for name, value in headers if name != _BLOB_CONTENT_TYPE]
    headers.append((_BLOB_CONTENT_TYPE, QUERY_CONTENT_TYPE))
    return StreamedResponse(200, headers, _run(answer, container, record))


async def _run(answer: QueryAnswer, container: Container, record: BlobRecord) -> AsyncIterator[bytes]:
    yield answer.start()
    pieces = container.read(record, 0, record.size)
    try:
        async for piece in pieces:
            for at in range(0, len(piece), _PIECE_BYTES):
                written = answer.feed(memoryview(piece)[at : at + _PIECE_BYTES])
                if written:
                    yield written
                else:
                    # A query that selects nothing has no other place where it would let others run.
                    await asyncio.sleep(0)
                if answer.is_finished:
                    break
            if answer.is_finished:
                break
    finally:
        await close_chunks(pieces)
    yield answer.finish()
