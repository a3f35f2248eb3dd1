"""`$batch` on the wire: a change set inside a batch, each a multipart body, and its answer in the same form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from asterism.apis.storage.multipart import (
    MalformedMultipart,
    PartResponse,
    boundary_of,
    read_parts,
    read_request,
    write_part,
)
from asterism.apis.storage.refusals import invalid_input
from asterism.apis.transports.http import HeaderList

OPERATIONS_MAX: Final = 100
# The rest is not examined: the limit of operations is passed long before.
_DELIMITERS_MAX: Final = 10 * OPERATIONS_MAX
_PART_HEADERS: Final[HeaderList] = [("Content-Transfer-Encoding", "binary")]


@dataclass(slots=True)
class PartRequest:
    """An operation. `headers` have lower-case names, so that they are read as those of a request."""

    method: str
    # The last segment of the path, percent-decoded: `table(PartitionKey='p',RowKey='r')`.
    target: str
    query_string: str
    headers: dict[str, str]
    body: bytes


def read_batch(content_type: str | None, body: bytes) -> list[PartRequest]:
    """Read the operations of a batch, in their order; of too many, only the first beyond the limit."""
    try:
        return _read_batch(content_type, body)
    except MalformedMultipart as problem:
        raise invalid_input(f"The batch request is malformed: {problem.reason}.") from None


def _read_batch(content_type: str | None, body: bytes) -> list[PartRequest]:
    operations: list[PartRequest] = []
    has_change_set = False
    for head, content in read_parts(boundary_of(content_type), body, delimiters_max=_DELIMITERS_MAX):
        if "multipart/mixed" in head.get("content-type", ""):
            if has_change_set:
                # Two would be two transactions; the service accepts only one as well.
                raise MalformedMultipart("it has more than one change set")
            has_change_set = True
            inner = boundary_of(head["content-type"])
            parts: Iterable[bytes] = (part for _, part in read_parts(inner, content, delimiters_max=_DELIMITERS_MAX))
        else:
            parts = (content,)
        for part in parts:
            operations.append(_operation(part))
            if len(operations) > OPERATIONS_MAX:
                # A body has room for half a million, and none of them will be applied.
                return operations
    return operations


def _operation(content: bytes) -> PartRequest:
    request = read_request(content)
    override = request.headers.get("x-http-method")
    segment = request.path.rpartition("/")[2]
    target = unquote(segment) if "%" in segment else segment
    method = request.method if override is None or request.method != "POST" else override.upper()
    return PartRequest(method, target, request.query_string, request.headers, request.body)


# --- the answer -----------------------------------------------------------------------------------------------------


def write_batch(responses: Sequence[PartResponse], *, guid: str, is_change_set: bool = True) -> tuple[str, bytes]:
    """Return the Content-Type of the answer, and its body."""
    outer, inner = f"batchresponse_{guid}", f"changesetresponse_{guid}"
    content_type = f"multipart/mixed; boundary={outer}"
    delimiter = b"--%b\r\n" % (inner if is_change_set else outer).encode()
    parts = [write_part(delimiter, response, _PART_HEADERS) for response in responses]
    if not is_change_set:
        return content_type, b"".join([*parts, b"--%b--\r\n" % outer.encode()])
    head = b"--%b\r\nContent-Type: multipart/mixed; boundary=%b\r\n\r\n" % (outer.encode(), inner.encode())
    tail = b"--%b--\r\n--%b--\r\n" % (inner.encode(), outer.encode())
    return content_type, b"".join([head, *parts, tail])
