"""`$batch` on the wire: a change set inside a batch, each a multipart body, and its answer in the same form.

Lenient in what it reads (line feeds alone, headers in any case, no nesting), exact in what it writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from asterism.apis.table.errors import invalid_input
from asterism.apis.transports.http import HeaderList
from asterism.limits import KIB

OPERATIONS_MAX: Final = 100
# The rest is not examined: the limit of operations is passed long before.
_DELIMITERS_MAX: Final = 10 * OPERATIONS_MAX

_BOUNDARY: Final = re.compile(r"""boundary\s*=\s*(?:"([^"]+)"|([^\s;,"]+))""", re.IGNORECASE)
_REQUEST_LINE: Final = re.compile(r"([A-Za-z]+) +(\S+)(?: +HTTP/[\d.]+)?\s*\Z")
_DELIMITER_END: Final = re.compile(rb"(?:--)?[ \t]*\r?(?:\n|\Z)")
_BLANK_LINE: Final = re.compile(rb"\r?\n\r?\n")
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
# As many as a request of its own may have.
_HEAD_BYTES_MAX: Final = 64 * KIB


@dataclass(slots=True)
class PartRequest:
    """An operation. `headers` have lower-case names, so that they are read as those of a request."""

    method: str
    # The last segment of the path, percent-decoded: `table(PartitionKey='p',RowKey='r')`.
    target: str
    query_string: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class PartResponse:
    status: int
    headers: HeaderList
    body: bytes = b""


def malformed(reason: str) -> Exception:
    return invalid_input(f"The batch request is malformed: {reason}.")


def boundary_of(content_type: str | None) -> bytes:
    found = _BOUNDARY.search(content_type or "")
    if found is None:
        raise malformed("its Content-Type has no boundary")
    return (found[1] or found[2]).encode("latin-1", "replace")


def read_batch(content_type: str | None, body: bytes) -> list[PartRequest]:
    """Read the operations of a batch, in their order; of too many, only the first beyond the limit."""
    operations: list[PartRequest] = []
    has_change_set = False
    for head, content in _parts(boundary_of(content_type), body):
        if "multipart/mixed" in head.get("content-type", ""):
            if has_change_set:
                # Two would be two transactions; the service accepts only one as well.
                raise malformed("it has more than one change set")
            has_change_set = True
            inner = boundary_of(head["content-type"])
            parts: Iterable[bytes] = (part for _, part in _parts(inner, content))
        else:
            parts = (content,)
        for part in parts:
            operations.append(_operation(part))
            if len(operations) > OPERATIONS_MAX:
                # A body has room for half a million, and none of them will be applied.
                return operations
    return operations


def _parts(boundary: bytes, body: bytes) -> Iterator[tuple[dict[str, str], bytes]]:
    pieces = _pieces(b"\n--" + boundary, b"\n" + body)
    if len(pieces) < 2:
        raise malformed("its boundary does not occur")
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            return
        # The line end before the delimiter belongs to the delimiter; its line feed went with the split.
        content = piece[:-1] if piece.endswith(b"\r") else piece
        yield _head_and_body(content.lstrip(b" \t"))
    raise malformed("it ends in the middle")


def _pieces(delimiter: bytes, body: bytes) -> list[bytes]:
    """Split a body at its delimiters. A delimiter followed by more text on its line belongs to another boundary that
    begins with this one, such as that of a change set within its batch."""
    first, *rest = body.split(delimiter, _DELIMITERS_MAX)
    pieces: list[bytes] = []
    together = [first]
    for piece in rest:
        if _DELIMITER_END.match(piece):
            pieces.append(delimiter.join(together))
            together = [piece]
        else:
            together.append(piece)
    pieces.append(delimiter.join(together))
    return pieces


def _head_and_body(part: bytes) -> tuple[dict[str, str], bytes]:
    # First drop the rest of the delimiter's own line.
    line_end = part.find(b"\n")
    part = part[line_end + 1 :]
    if part.startswith((b"\r\n", b"\n")):
        return {}, part[2:] if part.startswith(b"\r\n") else part[1:]
    found = _BLANK_LINE.search(part)
    if found is None:
        return _headers(part), b""
    return _headers(part[: found.start()]), part[found.end() :]


def _headers(head: bytes) -> dict[str, str]:
    if len(head) > _HEAD_BYTES_MAX:
        raise malformed("an operation has too many headers")
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return headers


def _operation(content: bytes) -> PartRequest:
    line, _, rest = content.partition(b"\n")
    found = _REQUEST_LINE.match(line.decode("utf-8", "replace")) if len(line) <= _HEAD_BYTES_MAX else None
    if found is None:
        raise malformed("an operation has no request line")
    if rest.startswith((b"\r\n", b"\n")):
        headers, body = {}, rest.lstrip(b"\r\n")
    else:
        blank = _BLANK_LINE.search(rest)
        headers = _headers(rest if blank is None else rest[: blank.start()])
        body = b"" if blank is None else rest[blank.end() :]
    method = found[1].upper()
    override = headers.get("x-http-method")
    path, _, query_string = found[2].partition("?")
    segment = path.rpartition("/")[2]
    target = unquote(segment) if "%" in segment else segment
    return PartRequest(
        method if override is None or method != "POST" else override.upper(), target, query_string, headers, body
    )


# --- the answer -----------------------------------------------------------------------------------------------------


def write_batch(responses: Sequence[PartResponse], *, guid: str, is_change_set: bool = True) -> tuple[str, bytes]:
    """Return the Content-Type of the answer, and its body."""
    outer, inner = f"batchresponse_{guid}", f"changesetresponse_{guid}"
    content_type = f"multipart/mixed; boundary={outer}"
    delimiter = b"--%b\r\n" % (inner if is_change_set else outer).encode()
    parts = [_part(delimiter, response) for response in responses]
    if not is_change_set:
        return content_type, b"".join([*parts, b"--%b--\r\n" % outer.encode()])
    head = b"--%b\r\nContent-Type: multipart/mixed; boundary=%b\r\n\r\n" % (outer.encode(), inner.encode())
    tail = b"--%b--\r\n--%b--\r\n" % (inner.encode(), outer.encode())
    return content_type, b"".join([head, *parts, tail])


def _part(delimiter: bytes, response: PartResponse) -> bytes:
    lines = [f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, '')}"]
    lines += [f"{name}: {value}" for name, value in response.headers]
    return b"%bContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n%b\r\n\r\n%b\r\n" % (
        delimiter,
        "\r\n".join(lines).encode("utf-8", "replace"),
        response.body,
    )
