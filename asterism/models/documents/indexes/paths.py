"""Paths of indexes: their form in policies, their values in an item, and the tokens that stand for them in keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from hashlib import blake2b
from typing import Any, Final

from asterism.errors import MalformedRequest
from asterism.values.undefined import UNDEFINED

PATH_TOKEN_BYTES = 8
ROOT_TOKEN = bytes(PATH_TOKEN_BYTES)


class ArrayElement(Enum):
    """The segment of a path that stands for every element of an array."""

    ANY = "[]"


ARRAY_ELEMENT: Final = ArrayElement.ANY
Segment = str | ArrayElement


class Coverage(Enum):
    """The values that the end of a policy's path covers."""

    SCALAR = "?"
    SUBTREE = "*"


def parse_policy_path(path: str) -> tuple[tuple[Segment, ...], Coverage]:
    """Return the segments of a policy's path such as `/a/"b c"/[]/?`, and the coverage of its end.

    Raises MalformedRequest for any other text.
    """
    # The oldest policies write "/" for the root and everything below it.
    *segments, last = _split_path(path) if path != "/" else ["/*"]
    coverage = {"/?": Coverage.SCALAR, "/*": Coverage.SUBTREE}.get(last)
    if coverage is None or any(segment in ("/?", "/*", "/") for segment in segments):
        raise MalformedRequest(
            reason=f"The indexing path '{path}' could not be accepted: it must end with /? or /*, and only there."
        )
    return tuple(_segment_of(text) for text in segments), coverage


def parse_property_path(path: str) -> tuple[Segment, ...]:
    """Return the segments of a path without an ending, as composite indexes and unique keys have them."""
    return tuple(_segment_of(text) for text in _split_path(path))


def _split_path(path: str) -> list[str]:
    """Return the segments of `path`, each with its slash and its quotes, which distinguish `"*"` from `*`."""
    segments = []
    start = 0
    while start < len(path):
        end = _segment_end(path, start=start)
        segments.append(path[start:end])
        start = end
    if not segments:
        raise MalformedRequest(reason="An indexing path must not be empty.")
    return segments


def _segment_end(path: str, *, start: int) -> int:
    if path[start] != "/":
        raise MalformedRequest(reason=f"The path '{path}' could not be accepted, failed near position '{start}'.")
    quote = path[start + 1 : start + 2]
    if quote not in ('"', "'"):
        end = path.find("/", start + 1)
        return len(path) if end < 0 else end
    end = path.find(quote, start + 2)
    while end > 0 and path[end - 1] == "\\":
        end = path.find(quote, end + 1)
    if end < 0:
        raise MalformedRequest(reason=f"The path '{path}' has a quote that does not end.")
    return end + 1


def _segment_of(text: str) -> Segment:
    if text == "/[]":
        return ARRAY_ELEMENT
    quote = text[1:2]
    if quote in ('"', "'"):
        return text[2:-1].replace("\\" + quote, quote)
    if len(text) < 2:
        raise MalformedRequest(reason="A path must not have empty segments.")
    return text[1:]


def path_token(segments: Iterable[Segment]) -> bytes:
    """Return the token that stands for a path in index keys; a digest, so its length does not depend on the path's."""
    token = ROOT_TOKEN
    for segment in segments:
        token = child_token(token, segment)
    return token


def child_token(parent: bytes, segment: Segment) -> bytes:
    # The byte between distinguishes a property named "[]" from the elements of an array.
    tail = b"\x01" if isinstance(segment, ArrayElement) else b"\x00" + segment.encode()
    return blake2b(parent + tail, digest_size=PATH_TOKEN_BYTES).digest()


def value_at(item: Mapping[str, Any], names: tuple[str, ...]) -> object:
    value: object = item
    for name in names:
        if not isinstance(value, dict):
            return UNDEFINED
        value = value.get(name, UNDEFINED)
    return value
