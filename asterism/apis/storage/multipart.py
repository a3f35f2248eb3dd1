"""Bodies of several HTTP messages (multipart/mixed), as batches of tables and of blobs have them.

Lenient in what it reads (line feeds alone, headers in any case, no nesting), exact in what it writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from asterism.apis.transports.http import HeaderList
from asterism.limits import KIB

_BOUNDARY: Final = re.compile(r"""boundary\s*=\s*(?:"([^"]+)"|([^\s;,"]+))""", re.IGNORECASE)
_REQUEST_LINE: Final = re.compile(r"([A-Za-z]+) +(\S+)(?: +HTTP/[\d.]+)?\s*\Z")
_DELIMITER_END: Final = re.compile(rb"(?:--)?[ \t]*\r?(?:\n|\Z)")
_BLANK_LINE: Final = re.compile(rb"\r?\n\r?\n")
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
# As many as a request of its own may have.
_HEAD_BYTES_MAX: Final = 64 * KIB


class MalformedMultipart(Exception):
    """The body is not what its Content-Type says. `reason` continues the sentence "The request is malformed: "."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class EmbeddedRequest:
    """A request inside a body. `headers` have lower-case names, so that they are read as those of a request."""

    method: str
    # As written, percent-encoded.
    path: str
    query_string: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class PartResponse:
    status: int
    headers: HeaderList
    body: bytes = b""


def boundary_of(content_type: str | None) -> bytes:
    found = _BOUNDARY.search(content_type or "")
    if found is None:
        raise MalformedMultipart("its Content-Type has no boundary")
    return (found[1] or found[2]).encode("latin-1", "replace")


def read_parts(boundary: bytes, body: bytes, *, delimiters_max: int) -> Iterator[tuple[dict[str, str], bytes]]:
    """Yield the headers and the content of each part. The text behind `delimiters_max` delimiters is not divided."""
    pieces = _pieces(b"\n--" + boundary, b"\n" + body, delimiters_max)
    if len(pieces) < 2:
        raise MalformedMultipart("its boundary does not occur")
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            return
        # The line end before the delimiter belongs to the delimiter; its line feed went with the split.
        content = piece[:-1] if piece.endswith(b"\r") else piece
        yield _head_and_body(content.lstrip(b" \t"))
    raise MalformedMultipart("it ends in the middle")


def read_request(content: bytes) -> EmbeddedRequest:
    line, _, rest = content.partition(b"\n")
    found = _REQUEST_LINE.match(line.decode("utf-8", "replace")) if len(line) <= _HEAD_BYTES_MAX else None
    if found is None:
        raise MalformedMultipart("an operation has no request line")
    if rest.startswith((b"\r\n", b"\n")):
        headers, body = {}, rest.lstrip(b"\r\n")
    else:
        blank = _BLANK_LINE.search(rest)
        headers = _headers(rest if blank is None else rest[: blank.start()])
        body = b"" if blank is None else rest[blank.end() :]
    path, _, query_string = found[2].partition("?")
    return EmbeddedRequest(found[1].upper(), path, query_string, headers, body)


def write_part(delimiter: bytes, response: PartResponse, headers: HeaderList) -> bytes:
    """Return a part with its delimiter line; `headers` are those of the part, such as its Content-ID."""
    lines = [f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, '')}"]
    lines += [f"{name}: {value}" for name, value in response.headers]
    return b"%bContent-Type: application/http\r\n%b\r\n%b\r\n\r\n%b\r\n" % (
        delimiter,
        "".join(f"{name}: {value}\r\n" for name, value in headers).encode("utf-8", "replace"),
        "\r\n".join(lines).encode("utf-8", "replace"),
        response.body,
    )


def _pieces(delimiter: bytes, body: bytes, delimiters_max: int) -> list[bytes]:
    """Split a body at its delimiters. A delimiter followed by more text on its line belongs to another boundary that
    begins with this one, such as that of a change set within its batch."""
    first, *rest = body.split(delimiter, delimiters_max)
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
        raise MalformedMultipart("an operation has too many headers")
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return headers
