"""Ranges of bytes in requests and answers: `bytes=first-last`, both inclusive, or `bytes=first-`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from asterism.apis.blob.refused_input import RefusedInput
from asterism.limits import MIB

PAGE_BYTES: Final = 512
# The most that one Put Page writes.
PAGE_WRITE_BYTES_MAX: Final = 4 * MIB

# Nineteen digits hold every offset of 63 bits.
_RANGE: Final = re.compile(r"bytes=(?P<first>[0-9]{1,19})-(?P<last>[0-9]{1,19})?")


class ByteSpan(NamedTuple):
    """Bytes from `start` to before `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


class RequestedRange(NamedTuple):
    """Bytes from `first` to `last` inclusive, or to the end of the blob where `last` is None."""

    first: int
    last: int | None


def parse_range(text: str) -> RequestedRange | None:
    """Return the range, or None where the text is not one. A count from the end (`bytes=-5`) is not supported."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        return None
    first, last = int(found["first"]), int(found["last"]) if found["last"] else None
    return None if last is not None and last < first else RequestedRange(first, last)


def requested_range(*, x_ms_range: str | None, http_range: str | None) -> RequestedRange | None:
    """Return the range of a read. `x-ms-range` goes before `Range`, which HTTP lets a server ignore if malformed."""
    if x_ms_range:
        found = parse_range(x_ms_range)
        if found is None:
            raise _invalid_header("x-ms-range", x_ms_range)
        return found
    return parse_range(http_range) if http_range else None


def span_of(wanted: RequestedRange, *, blob_bytes: int) -> ByteSpan:
    """Return the part of the range that exists; RefusedInput if the blob ends before it."""
    if wanted.first >= blob_bytes:
        raise RefusedInput(416, "InvalidRange", "The range specified is invalid for the current size of the resource.")
    end = blob_bytes if wanted.last is None else min(wanted.last + 1, blob_bytes)
    return ByteSpan(wanted.first, end)


def page_span(*, x_ms_range: str | None, http_range: str | None) -> ByteSpan:
    """Return the pages that a write of pages names: both ends are required and aligned."""
    text = x_ms_range or http_range
    if not text:
        raise RefusedInput(
            400,
            "MissingRequiredHeader",
            "An HTTP header that's mandatory for this request is not specified: x-ms-range.",
        )
    found = parse_range(text)
    if found is None or found.last is None:
        raise _invalid_header("x-ms-range" if x_ms_range else "Range", text)
    return aligned_span(found.first, found.last + 1)


def aligned_span(start: int, end: int) -> ByteSpan:
    """Return the span if it consists of whole pages."""
    if start % PAGE_BYTES or end % PAGE_BYTES or end <= start:
        raise RefusedInput(
            416,
            "InvalidPageRange",
            f"The page range specified is invalid. It must begin at a multiple of {PAGE_BYTES} and end before one.",
        )
    return ByteSpan(start, end)


def content_range(span: ByteSpan, *, blob_bytes: int) -> str:
    """Return the header `Content-Range` of an answer that holds `span`."""
    return f"bytes {span.start}-{span.end - 1}/{blob_bytes}"


def _invalid_header(name: str, value: str) -> RefusedInput:
    return RefusedInput(
        400,
        "InvalidHeaderValue",
        "The value for one of the HTTP headers is not in the correct format. "
        f"{name} is {value[:100]!r}; write bytes=0-511 or bytes=512-.",
    )
