"""Blob batches: deletions and changes of tier, each with credentials of its own, in one request."""

from __future__ import annotations

from typing import Final

from asterism.apis.blob.context import BlobCall
from asterism.apis.storage.address import decode_path
from asterism.apis.storage.multipart import (
    EmbeddedRequest,
    MalformedMultipart,
    PartResponse,
    boundary_of,
    read_parts,
    read_request,
    write_part,
)
from asterism.apis.storage.refusals import Refusal, invalid_input
from asterism.apis.transports.http import HeaderList, Request, Response
from asterism.limits import MIB

# The service's limits.
BATCH_PARTS_MAX: Final = 256
BATCH_BYTES_MAX: Final = 4 * MIB
_OPERATIONS: Final = frozenset({"delete_blob", "set_blob_tier"})
_CONTENT_ID: Final = "content-id"


async def submit_batch(call: BlobCall) -> Response:
    try:
        boundary = boundary_of(call.headers.get("content-type"))
        # Parts beyond the limit are not divided; one more tells that there are too many.
        parts = list(read_parts(boundary, call.request.body, delimiters_max=BATCH_PARTS_MAX + 2))
        embedded = [(headers.get(_CONTENT_ID), read_request(content)) for headers, content in parts]
    except MalformedMultipart as malformed:
        raise invalid_input(f"One of the request inputs is not valid: {malformed.reason}.") from None
    if not embedded or len(embedded) > BATCH_PARTS_MAX:
        raise Refusal(
            400,
            "InvalidInput" if not embedded else "ExceedsMaxBatchRequestCount",
            f"A batch has 1 to {BATCH_PARTS_MAX} operations.",
        )
    name = f"batchresponse_{call.request_id}"
    delimiter = f"--{name}\r\n".encode()
    # All are read before the first is answered: a part that is malformed leaves everything as it was.
    requests = [(content_id, _request(call, part)) for content_id, part in embedded]
    body = [await _answered(call, delimiter, content_id, request) for content_id, request in requests]
    body.append(f"--{name}--\r\n".encode())
    return Response(202, [("content-type", f"multipart/mixed; boundary={name}")], b"".join(body))


async def _answered(call: BlobCall, delimiter: bytes, content_id: str | None, request: Request) -> bytes:
    answer = await call.door.answer_part(request, within=call, operations=_OPERATIONS)
    part_headers: HeaderList = [] if content_id is None else [("Content-ID", content_id)]
    headers = [*answer.headers, ("content-length", str(len(answer.body)))]
    return write_part(delimiter, PartResponse(answer.status, headers, answer.body), part_headers)


def _request(call: BlobCall, part: EmbeddedRequest) -> Request:
    """Return the request of a part; its path has the account, as that of a request of its own."""
    outer = call.request
    return Request(
        method=part.method,
        path=decode_path(part.path),
        query_string=part.query_string,
        headers=part.headers,
        body=part.body,
        scheme=outer.scheme,
        authority=outer.authority,
        client_address=outer.client_address,
    )
