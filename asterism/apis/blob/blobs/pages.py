"""Page blobs: made with a size, written and cleared by pages, resized, and asked for the pages that have data."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from asterism.apis.blob.blobs.new_blobs import read_new_blob, store_blob
from asterism.apis.blob.context import BlobCall, blob_container_of, key_for_write, which_of
from asterism.apis.blob.copy_source import SOURCE_RANGE, open_source_data
from asterism.apis.blob.etags import read_moment
from asterism.apis.blob.page_ranges_xml import page_list_xml
from asterism.apis.blob.ranges import (
    PAGE_WRITE_BYTES_MAX,
    ByteSpan,
    page_span,
    requested_range,
)
from asterism.apis.blob.receiving import body_length, receive_whole
from asterism.apis.blob.record_headers import change_headers, written_headers
from asterism.apis.blob.request_headers import read_conditions, read_number
from asterism.apis.storage.headers import read_query, read_whole
from asterism.apis.storage.refusals import (
    Refusal,
    body_too_large,
    invalid_header_value,
    invalid_query_parameter,
    invalid_range,
    missing_header,
)
from asterism.apis.storage.xml_text import xml_response
from asterism.apis.transports.http import HeaderList, Headers, Response
from asterism.models.blobs.calls import Snapshot
from asterism.models.blobs.container import Container
from asterism.models.blobs.page_maps import PAGE_BLOB_BYTES_MAX, PAGE_BYTES
from asterism.models.blobs.pages import SEQUENCE_NUMBER_MAX, SequenceAction, SequenceCondition
from asterism.models.blobs.record import BlobKind, BlobRecord

SIZE: Final = "x-ms-blob-content-length"
SEQUENCE_NUMBER: Final = "x-ms-blob-sequence-number"
SEQUENCE_ACTION: Final = "x-ms-sequence-number-action"
PAGE_WRITE: Final = "x-ms-page-write"
PREVIOUS_URL: Final = "x-ms-previous-snapshot-url"
# The service's limit of ranges in one answer.
RANGES_MAX: Final = 10_000
_MARKER_MAX: Final = PAGE_BLOB_BYTES_MAX


async def create_page_blob(call: BlobCall) -> Response:
    length = body_length(call.headers)
    if length:
        raise invalid_header_value("content-length", str(length), "A page blob begins without data.")
    container = blob_container_of(call)
    number = read_number(call.headers, SEQUENCE_NUMBER) or 0
    if number > SEQUENCE_NUMBER_MAX:
        raise invalid_header_value(SEQUENCE_NUMBER, str(number))
    new = read_new_blob(call, container, BlobKind.PAGE, is_body_of_blob=False)
    new = replace(new, size=_read_size(call.headers), sequence_number=number)
    return Response(201, written_headers(await store_blob(call, container, None, new)))


def _read_size(headers: Headers) -> int:
    size = read_number(headers, SIZE)
    if size is None:
        raise missing_header(SIZE)
    if size % PAGE_BYTES or size > PAGE_BLOB_BYTES_MAX:
        raise invalid_header_value(SIZE, str(size), "A page blob has whole pages of 512 bytes, and at most 8 TiB.")
    return size


# --- pages ----------------------------------------------------------------------------------------------------------


async def put_pages(call: BlobCall) -> Response:
    action = call.headers.get(PAGE_WRITE)
    if action is None:
        raise missing_header(PAGE_WRITE)
    container = blob_container_of(call)
    span = page_span(x_ms_range=call.headers.get("x-ms-range"), http_range=call.headers.get("range"))
    match action.lower():
        case "update":
            return await _write_pages(call, container, span)
        case "clear":
            return await _clear_pages(call, container, span)
        case _:
            raise invalid_header_value(PAGE_WRITE, action)


async def _write_pages(call: BlobCall, container: Container, span: ByteSpan) -> Response:
    if span.length > PAGE_WRITE_BYTES_MAX:
        raise body_too_large(PAGE_WRITE_BYTES_MAX)
    body, received = await receive_whole(call, bytes_max=PAGE_WRITE_BYTES_MAX)
    record = await _store_pages(call, container, span, body)
    return Response(201, _page_headers(record) + received.headers)


async def put_pages_from_url(call: BlobCall) -> Response:
    container = blob_container_of(call)
    span = page_span(x_ms_range=call.headers.get("x-ms-range"), http_range=call.headers.get("range"))
    if not call.headers.get(SOURCE_RANGE):
        raise missing_header(SOURCE_RANGE)
    if span.length > PAGE_WRITE_BYTES_MAX:
        raise body_too_large(PAGE_WRITE_BYTES_MAX)
    data = await open_source_data(call, bytes_max=PAGE_WRITE_BYTES_MAX)
    body = b"".join([piece async for piece in data.pieces()])
    record = await _store_pages(call, container, span, body)
    return Response(201, _page_headers(record) + data.answer_headers())


async def _store_pages(call: BlobCall, container: Container, span: ByteSpan, body: bytes) -> BlobRecord:
    if len(body) != span.length:
        raise Refusal(
            400,
            "InvalidHeaderValue",
            f"The range has {span.length} bytes and the data have {len(body)}.",
            fields=(("HeaderName", "x-ms-range"),),
        )
    return await container.pages.put_pages(
        call.resource.name,
        span.start,
        body,
        read_conditions(call.headers),
        sequence=read_sequence_condition(call.headers),
        key=key_for_write(call, container),
    )


async def _clear_pages(call: BlobCall, container: Container, span: ByteSpan) -> Response:
    record = await container.pages.clear_pages(
        call.resource.name,
        *span,
        read_conditions(call.headers),
        sequence=read_sequence_condition(call.headers),
        key=key_for_write(call, container),
    )
    return Response(201, _page_headers(record))


def _page_headers(record: BlobRecord) -> HeaderList:
    return [*written_headers(record), (SEQUENCE_NUMBER, str(record.sequence_number))]


def read_sequence_condition(headers: Headers) -> SequenceCondition:
    return SequenceCondition(
        at_most=read_number(headers, "x-ms-if-sequence-number-le"),
        less_than=read_number(headers, "x-ms-if-sequence-number-lt"),
        equal=read_number(headers, "x-ms-if-sequence-number-eq"),
    )


# --- size and sequence number ---------------------------------------------------------------------------------------


async def resize(call: BlobCall) -> Response:
    container = blob_container_of(call)
    size = _read_size(call.headers)
    key = key_for_write(call, container)
    record = await container.pages.resize(call.resource.name, size, read_conditions(call.headers), key=key)
    return Response(200, [*change_headers(record.etag, record.modified_at), _sequence_header(record)])


async def set_sequence_number(call: BlobCall) -> Response:
    container = blob_container_of(call)
    text = call.headers.get(SEQUENCE_ACTION) or ""
    action = next((action for action in SequenceAction if action.value == text.lower()), None)
    if action is None:
        raise invalid_header_value(SEQUENCE_ACTION, text)
    number = read_number(call.headers, SEQUENCE_NUMBER)
    if action is SequenceAction.INCREMENT:
        if number is not None:
            raise invalid_header_value(SEQUENCE_NUMBER, str(number), "An increment has no number of its own.")
        number = 0
    elif number is None:
        raise missing_header(SEQUENCE_NUMBER)
    elif number > SEQUENCE_NUMBER_MAX:
        raise invalid_header_value(SEQUENCE_NUMBER, str(number))
    conditions = read_conditions(call.headers)
    record = await container.pages.set_sequence_number(call.resource.name, action, number, conditions)
    return Response(200, [*change_headers(record.etag, record.modified_at), _sequence_header(record)])


def _sequence_header(record: BlobRecord) -> tuple[str, str]:
    return SEQUENCE_NUMBER, str(record.sequence_number)


# --- ranges ---------------------------------------------------------------------------------------------------------


async def get_page_ranges(call: BlobCall) -> Response:
    """Return the ranges that have data or, since an earlier snapshot, those that were written or cleared."""
    container = blob_container_of(call)
    query, headers = call.query, call.headers
    wanted = requested_range(x_ms_range=headers.get("x-ms-range"), http_range=headers.get("range"))
    start, end = (0, None) if wanted is None else _whole_pages(wanted.first, wanted.last)
    limit = read_whole(query, "maxresults", minimum=1, maximum=RANGES_MAX, default=RANGES_MAX) or RANGES_MAX
    resume = read_whole(query, "marker", minimum=0, maximum=_MARKER_MAX, default=0) or 0
    record, page = await container.pages.ranges(
        call.resource.name,
        which_of(call),
        read_conditions(headers),
        start=max(start, resume),
        end=end,
        limit=limit,
        previous=_previous_snapshot(call),
    )
    if wanted is not None and wanted.first >= record.size:
        raise invalid_range()
    next_marker = None if page.next is None else str(page.next)
    answer = change_headers(record.etag, record.modified_at)
    answer.append((SIZE, str(record.size)))
    return xml_response(200, page_list_xml(page.spans, next_marker), answer)


def _whole_pages(first: int, last: int | None) -> tuple[int, int | None]:
    """Return the pages that a range touches."""
    end = None if last is None else -(-(last + 1) // PAGE_BYTES) * PAGE_BYTES
    return first // PAGE_BYTES * PAGE_BYTES, end


def _previous_snapshot(call: BlobCall) -> Snapshot | None:
    text = call.query.get("prevsnapshot")
    url = call.headers.get(PREVIOUS_URL)
    if text is None and url is None:
        return None
    if text is None and url is not None:
        text = read_query(urlsplit(url).query).get("snapshot")
        if text is None:
            raise invalid_header_value(PREVIOUS_URL, url.partition("?")[0], "The URL names no snapshot.")
    ticks = read_moment(text or "")
    if ticks is None:
        raise invalid_query_parameter("prevsnapshot", text or "", "The value is not the time of a snapshot.")
    return Snapshot(ticks)
