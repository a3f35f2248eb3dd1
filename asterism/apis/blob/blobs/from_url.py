"""Data from the URL of another blob: a block, a block that is appended, or a whole block blob."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from asterism.apis.blob.blobs.append import POSITION, SIZE_MAX
from asterism.apis.blob.blobs.blocks import block_id_of
from asterism.apis.blob.blobs.new_blobs import BLOB_TYPE, read_new_blob, store_blob
from asterism.apis.blob.context import BlobCall, blob_container_of, key_for_write
from asterism.apis.blob.copy_source import TAG_OPTION, copies_tags, open_source_data
from asterism.apis.blob.encryption import encryption_headers
from asterism.apis.blob.record_headers import written_headers
from asterism.apis.blob.request_headers import read_conditions, read_flag, read_lease_id, read_number
from asterism.apis.storage.refusals import invalid_header_value
from asterism.apis.transports.http import Headers, Response
from asterism.models.blobs.calls import NewBlob
from asterism.models.blobs.record import BlobKind, BlobRecord

COPY_PROPERTIES: Final = "x-ms-copy-source-blob-properties"
_BLOCK_BLOB: Final = "blockblob"


async def put_block_from_url(call: BlobCall) -> Response:
    container = blob_container_of(call)
    block_id = block_id_of(call)
    key = key_for_write(call, container)
    data = await open_source_data(call, bytes_max=call.context.settings.blob_block_bytes_max)
    async with container.begin_upload(call.resource.name) as upload:
        await data.write_to(upload)
        await container.put_block(call.resource.name, block_id, upload, lease_id=read_lease_id(call.headers), key=key)
    return Response(201, data.answer_headers() + encryption_headers(key.sha256, key.scope, is_write=True))


async def append_block_from_url(call: BlobCall) -> Response:
    container = blob_container_of(call)
    key = key_for_write(call, container)
    data = await open_source_data(call, bytes_max=call.context.settings.blob_append_bytes_max)
    async with container.begin_upload(call.resource.name) as upload:
        await data.write_to(upload)
        record, offset = await container.append(
            call.resource.name,
            upload,
            read_conditions(call.headers),
            position=read_number(call.headers, POSITION),
            max_size=read_number(call.headers, SIZE_MAX),
            key=key,
        )
    answer = written_headers(record) + data.answer_headers()
    answer.append(("x-ms-blob-append-offset", str(offset)))
    answer.append(("x-ms-blob-committed-block-count", str(record.committed_blocks)))
    return Response(201, answer)


async def put_blob_from_url(call: BlobCall) -> Response:
    """Make a block blob of the data and the properties of another blob."""
    kind = call.headers.get(BLOB_TYPE) or ""
    if kind.lower() != _BLOCK_BLOB:
        raise invalid_header_value(BLOB_TYPE, kind, "Only a block blob is made from a URL.")
    container = blob_container_of(call)
    new = read_new_blob(call, container, BlobKind.BLOCK, is_body_of_blob=False)
    data = await open_source_data(call, bytes_max=call.context.settings.blob_upload_bytes_max, computes_md5=True)
    source = data.source.record
    if call.headers.get(COPY_PROPERTIES) is None or read_flag(call.headers, COPY_PROPERTIES):
        new = with_source_properties(new, source)
    new = with_source_tags(call.headers, with_source_metadata(new, source), source)
    async with container.begin_upload(call.resource.name) as upload:
        await data.write_to(upload)
        if new.content_md5 is None:
            new = replace(new, content_md5=data.md5)
        record = await store_blob(call, container, upload, new)
    return Response(201, written_headers(record) + data.answer_headers())


def with_source_properties(new: NewBlob, source: BlobRecord) -> NewBlob:
    """Return a new blob with the properties of its source where the request has none of its own."""
    return replace(
        new,
        content_type=new.content_type or source.content_type,
        content_encoding=new.content_encoding or source.content_encoding,
        content_language=new.content_language or source.content_language,
        content_disposition=new.content_disposition or source.content_disposition,
        cache_control=new.cache_control or source.cache_control,
    )


def with_source_metadata(new: NewBlob, source: BlobRecord) -> NewBlob:
    """Return a new blob with the metadata of its source, unless the request has some."""
    return new if new.metadata else replace(new, metadata=dict(source.metadata))


def with_source_tags(headers: Headers, new: NewBlob, source: BlobRecord) -> NewBlob:
    """Return a new blob with the tags of its source, if the request asks for them; else it has those of the request."""
    if not copies_tags(headers):
        return new
    if new.tags:
        option = headers.get(TAG_OPTION) or ""
        raise invalid_header_value(TAG_OPTION, option, "A request copies the tags of its source or has tags, not both.")
    return replace(new, tags=dict(source.tags))
