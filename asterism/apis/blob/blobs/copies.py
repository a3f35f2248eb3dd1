"""Copies of whole blobs: Copy Blob, which may end later, Copy Blob From URL, which has ended with its answer, and the
incremental copy of a page blob's snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from asterism.apis.blob.blobs.from_url import (
    put_blob_from_url,
    with_source_metadata,
    with_source_properties,
    with_source_tags,
)
from asterism.apis.blob.blobs.new_blobs import BLOB_TYPE, read_new_blob, store_blob
from asterism.apis.blob.context import BlobCall, blob_container_of, now_ticks
from asterism.apis.blob.copy_source import CopySource, open_source_data
from asterism.apis.blob.record_headers import written_headers
from asterism.apis.transports.http import HeaderList, Response
from asterism.limits import MIB
from asterism.models.blobs.record import BlobKind, BlobRecord, CopyState

REQUIRES_SYNC: Final = "x-ms-requires-sync"
# The service's limit of a copy that ends with its answer.
SYNC_COPY_BYTES_MAX: Final = 256 * MIB
_SUCCESS: Final = "success"


async def put_from_source(call: BlobCall) -> Response:
    """Make a blob of another: the request is a copy unless it names the type of the blob."""
    if call.headers.get(BLOB_TYPE) is not None:
        return await put_blob_from_url(call)
    return await copy_from_url(call)


async def copy_from_url(call: BlobCall) -> Response:
    """Copy a blob to a block blob before the answer."""
    container = blob_container_of(call)
    new = read_new_blob(call, container, BlobKind.BLOCK, is_body_of_blob=False)
    data = await open_source_data(call, bytes_max=SYNC_COPY_BYTES_MAX)
    source = data.source
    new = with_source_properties(new, source.record)
    new = with_source_tags(call.headers, with_source_metadata(new, source.record), source.record)
    state = _finished_copy(call, source)
    new = replace(new, content_md5=source.record.content_md5, copy_state=state)
    async with container.begin_upload(call.resource.name) as upload:
        await data.write_to(upload)
        record = await store_blob(call, container, upload, new)
    return Response(202, copy_answer(record, state) + data.answer_headers())


def _finished_copy(call: BlobCall, source: CopySource) -> CopyState:
    size = source.record.size
    return CopyState(call.context.new_id(), source.url, _SUCCESS, size, size, completed_at=now_ticks(call))


def copy_answer(record: BlobRecord, state: CopyState) -> HeaderList:
    return [*written_headers(record), ("x-ms-copy-id", state.copy_id), ("x-ms-copy-status", state.status)]
