"""Append blobs: blocks at their end, and the seal after which no more are taken."""

from __future__ import annotations

from asterism.apis.blob.context import BlobCall, blob_container_of, key_for_write
from asterism.apis.blob.receiving import body_length, receive
from asterism.apis.blob.record_headers import change_headers, written_headers
from asterism.apis.blob.request_headers import read_conditions, read_number
from asterism.apis.storage.refusals import invalid_header_value
from asterism.apis.transports.http import Response
from asterism.models.blobs.changes import Seal

POSITION = "x-ms-blob-condition-appendpos"
SIZE_MAX = "x-ms-blob-condition-maxsize"


async def append_block(call: BlobCall) -> Response:
    container = blob_container_of(call)
    length = body_length(call.headers)
    if not length:
        raise invalid_header_value("content-length", "0", "A block that is appended is not empty.")
    async with container.begin_upload(call.resource.name) as upload:
        received = await receive(call, upload, bytes_max=call.context.settings.blob_append_bytes_max)
        record, offset = await container.append(
            call.resource.name,
            upload,
            read_conditions(call.headers),
            position=read_number(call.headers, POSITION),
            max_size=read_number(call.headers, SIZE_MAX),
            key=key_for_write(call, container),
        )
    answer = written_headers(record) + received.headers
    answer.append(("x-ms-blob-append-offset", str(offset)))
    answer.append(("x-ms-blob-committed-block-count", str(record.committed_blocks)))
    return Response(201, answer)


async def seal_blob(call: BlobCall) -> Response:
    container = blob_container_of(call)
    rules = await call.context.rule_book.rules_of(call.account.name)
    change = Seal(read_number(call.headers, POSITION))
    record = await container.change(call.resource.name, change, conditions=read_conditions(call.headers), rules=rules)
    answer = change_headers(record.etag, record.modified_at)
    answer.append(("x-ms-blob-sealed", "true"))
    return Response(200, answer)
