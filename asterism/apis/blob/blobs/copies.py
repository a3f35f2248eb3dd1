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
from asterism.apis.blob.blobs.new_blobs import BLOB_TYPE, read_new_blob, store_blob, write_conditions
from asterism.apis.blob.context import BlobCall, blob_container_of, now_ticks, unauthorized_overwrite
from asterism.apis.blob.copy_source import SOURCE_RANGE, open_source, open_source_data
from asterism.apis.blob.record_headers import change_headers, written_headers
from asterism.apis.blob.request_headers import read_conditions, read_flag, read_lease_id
from asterism.apis.storage.refusals import (
    invalid_header_value,
    missing_header,
    missing_query_parameter,
    unsupported_header,
)
from asterism.apis.transports.http import HeaderList, Response
from asterism.limits import MIB
from asterism.models.blobs.copy_job import CopySource
from asterism.models.blobs.failures import BlobFailure, BlobRefused
from asterism.models.blobs.incremental_copies import copy_incrementally
from asterism.models.blobs.record import PENDING, SUCCESS, BlobKind, BlobRecord, CopyState
from asterism.models.blobs.tiers import ARCHIVE

REQUIRES_SYNC: Final = "x-ms-requires-sync"
COPY_ACTION: Final = "x-ms-copy-action"
SEAL: Final = "x-ms-seal-blob"
_ABORT: Final = "abort"
# The service's limit of a copy that ends with its answer.
SYNC_COPY_BYTES_MAX: Final = 256 * MIB


async def put_from_source(call: BlobCall) -> Response:
    """Make a blob of another: the request is a copy unless it names the type of the blob."""
    if call.headers.get(BLOB_TYPE) is not None:
        return await put_blob_from_url(call)
    if call.headers.get(SOURCE_RANGE):
        # A copy has the properties of the whole source, its MD5 among them.
        raise unsupported_header(SOURCE_RANGE)
    return await (copy_from_url(call) if read_flag(call.headers, REQUIRES_SYNC) else copy_blob(call))


async def copy_blob(call: BlobCall) -> Response:
    """Copy a blob of any type; a large one is copied after the answer, which says that the copy is pending."""
    container = blob_container_of(call)
    source = await open_source(call, is_copy=True)
    record = source.record
    new = read_new_blob(call, container, record.kind, is_body_of_blob=False)
    if record.tier == ARCHIVE and new.tier in (None, ARCHIVE):
        raise BlobRefused(BlobFailure.ARCHIVED)
    new = with_source_tags(call.headers, with_source_metadata(with_source_properties(new, record), record), record)
    new = replace(new, content_md5=record.content_md5, is_sealed=_seals(call, record))
    conditions, may_overwrite = write_conditions(call)
    rules = await call.context.rule_book.rules_of(call.account.name)
    try:
        copied = await call.context.store.copies.copy(container, call.resource.name, source, new, conditions, rules)
    except BlobRefused as refused:
        if refused.failure is BlobFailure.EXISTS and not may_overwrite:
            raise unauthorized_overwrite() from None
        raise
    return Response(202, copy_answer(copied))


def _seals(call: BlobCall, source: BlobRecord) -> bool:
    """Return whether the copy of an append blob is sealed: as the source is, unless the request says otherwise."""
    return source.is_sealed if call.headers.get(SEAL) is None else read_flag(call.headers, SEAL)


async def copy_snapshot(call: BlobCall) -> Response:
    """Copy what differs in a snapshot of a page blob from the one that was copied before."""
    container = blob_container_of(call)
    source = await open_source(call, is_copy=True)
    copied = await copy_incrementally(container, call.resource.name, source, read_conditions(call.headers))
    state = copied.copy_state
    assert state is not None
    # The service's answer is always that the copy goes on; here it has ended, as the properties of the blob show.
    answer = [*change_headers(copied.etag, copied.modified_at), ("x-ms-copy-id", state.copy_id)]
    return Response(202, [*answer, ("x-ms-copy-status", PENDING)])


async def abort_copy(call: BlobCall) -> Response:
    copy_id = call.query.get("copyid")
    if not copy_id:
        raise missing_query_parameter("copyid")
    action = call.headers.get(COPY_ACTION)
    if action is None:
        raise missing_header(COPY_ACTION)
    if action.lower() != _ABORT:
        raise invalid_header_value(COPY_ACTION, action)
    container = blob_container_of(call)
    await call.context.store.copies.abort(container, call.resource.name, copy_id, read_lease_id(call.headers))
    return Response(204, [])


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
    return Response(202, copy_answer(record) + data.answer_headers())


def _finished_copy(call: BlobCall, source: CopySource) -> CopyState:
    size = source.record.size
    return CopyState(call.context.new_id(), source.url, SUCCESS, size, size, completed_at=now_ticks(call))


def copy_answer(record: BlobRecord) -> HeaderList:
    answer = written_headers(record)
    state = record.copy_state
    if state is not None:
        answer += [("x-ms-copy-id", state.copy_id), ("x-ms-copy-status", state.status)]
    return answer
