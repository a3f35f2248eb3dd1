"""Properties of a blob beside its data: HTTP headers, metadata, and snapshots."""

from __future__ import annotations

from asterism.apis.blob.context import BlobCall, blob_container_of, key_for_read, key_for_write, which_of
from asterism.apis.blob.etags import moment_text
from asterism.apis.blob.record_headers import change_headers, written_headers
from asterism.apis.blob.request_headers import read_conditions, read_http_properties
from asterism.apis.storage.metadata import metadata_headers, read_metadata
from asterism.apis.transports.http import HeaderList, Response
from asterism.models.blobs.changes import SetHttpHeaders, SetMetadata
from asterism.models.blobs.record import BlobKind


async def set_http_headers(call: BlobCall) -> Response:
    """Replace the headers that the blob keeps for its readers; those that the request leaves out are removed."""
    given = read_http_properties(call.headers, is_body_of_blob=False)
    change = SetHttpHeaders(
        content_type=given.content_type,
        content_encoding=given.content_encoding,
        content_language=given.content_language,
        content_disposition=given.content_disposition,
        cache_control=given.cache_control,
        content_md5=given.content_md5,
    )
    record = await blob_container_of(call).change(
        call.resource.name,
        change,
        conditions=read_conditions(call.headers),
        rules=await call.context.rule_book.rules_of(call.account.name),
    )
    answer = change_headers(record.etag, record.modified_at)
    if record.kind is BlobKind.PAGE:
        answer.append(("x-ms-blob-sequence-number", str(record.sequence_number)))
    return Response(200, answer)


async def get_metadata(call: BlobCall) -> Response:
    record = await blob_container_of(call).find(
        call.resource.name, which_of(call), read_conditions(call.headers), key_for_read(call)
    )
    return Response(200, change_headers(record.etag, record.modified_at) + metadata_headers(record.metadata))


async def set_metadata(call: BlobCall) -> Response:
    container = blob_container_of(call)
    change = SetMetadata(read_metadata(call.headers), key_for_write(call, container))
    record = await container.change(
        call.resource.name,
        change,
        conditions=read_conditions(call.headers),
        rules=await call.context.rule_book.rules_of(call.account.name),
    )
    return Response(200, written_headers(record))


async def snapshot_blob(call: BlobCall) -> Response:
    """Take a snapshot, with metadata of its own if the request brings any."""
    container = blob_container_of(call)
    record, snapshot = await container.snapshot(
        call.resource.name,
        read_metadata(call.headers) or None,
        read_conditions(call.headers),
        await call.context.rule_book.rules_of(call.account.name),
        key_for_write(call, container),
    )
    answer: HeaderList = [("x-ms-snapshot", moment_text(snapshot)), *written_headers(record)]
    return Response(201, answer)
