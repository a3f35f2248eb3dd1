"""Put Blob: a block blob with its data, or an empty append blob; page blobs are made in `pages.py`."""

from __future__ import annotations

from dataclasses import replace

from asterism.apis.blob.blobs import pages
from asterism.apis.blob.blobs.new_blobs import BLOB_TYPE, read_new_blob, store_blob
from asterism.apis.blob.context import BlobCall, blob_container_of
from asterism.apis.blob.receiving import body_length, receive
from asterism.apis.blob.record_headers import written_headers
from asterism.apis.storage.refusals import invalid_header_value, md5_mismatch, missing_header
from asterism.apis.transports.http import Response
from asterism.models.blobs.record import BlobKind


async def put_blob(call: BlobCall) -> Response:
    """Make a blob of the type that the request names."""
    kind = call.headers.get(BLOB_TYPE)
    if kind is None:
        raise missing_header(BLOB_TYPE)
    match kind.lower():
        case "blockblob":
            return await put_block_blob(call)
        case "appendblob":
            return await put_append_blob(call)
        case "pageblob":
            return await pages.create_page_blob(call)
        case _:
            raise invalid_header_value(BLOB_TYPE, kind)


async def put_block_blob(call: BlobCall) -> Response:
    container = blob_container_of(call)
    new = read_new_blob(call, container, BlobKind.BLOCK, is_body_of_blob=True)
    async with container.begin_upload(call.resource.name) as upload:
        limit = call.context.settings.blob_upload_bytes_max
        received = await receive(call, upload, bytes_max=limit, stores_md5=True)
        if new.content_md5 is None:
            new = replace(new, content_md5=received.md5)
        elif new.content_md5 != received.md5:
            raise md5_mismatch()
        record = await store_blob(call, container, upload, new)
    return Response(201, written_headers(record) + received.headers)


async def put_append_blob(call: BlobCall) -> Response:
    container = blob_container_of(call)
    length = body_length(call.headers)
    if length:
        raise invalid_header_value("content-length", str(length), "An append blob begins empty.")
    new = read_new_blob(call, container, BlobKind.APPEND, is_body_of_blob=False)
    return Response(201, written_headers(await store_blob(call, container, None, new)))
