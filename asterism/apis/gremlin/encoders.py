"""Answers as bytes: results one by one, so that messages can be cut by their size, and messages around them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol
from uuid import UUID

from asterism.apis.gremlin.cosmos_json import PlainShapes
from asterism.apis.gremlin.frames import Format
from asterism.apis.gremlin.graphbinary.writing import BinaryShapes, write_bare_text, write_int
from asterism.apis.gremlin.graphson.typed import TypedShapes, Version
from asterism.apis.gremlin.malformed import ResultRefused
from asterism.errors import MalformedRequest
from asterism.values.json.text import dumps_parsed

_TOO_LARGE: Final = "A number among the results is too large for its type."
_TOO_DEEP: Final = "A result is nested too deep to be sent."


class Encoder(Protocol):
    """Writes the answers to one kind of request."""

    # Of an answer over HTTP.
    content_type: str
    # The client gets a result once, with its bulk; otherwise as often as it counts.
    wraps_traversers: bool

    def item(self, value: Any, bulk: int, /) -> bytes:
        """Write one result. Raises ResultRefused."""
        ...

    def message(
        self, request_id: str, code: int, text: str, attributes: Mapping[str, Any], items: Sequence[bytes], /
    ) -> bytes: ...


class PlainJson:
    """The service's dialect: JSON without types."""

    content_type = "application/json"
    wraps_traversers = False

    def __init__(self, *, materializes_properties: bool) -> None:
        self._shape = PlainShapes(materializes_properties=materializes_properties).shape

    def item(self, value: Any, bulk: int, /) -> bytes:  # noqa: ARG002 - the caller repeats the result
        try:
            return dumps_parsed(self._shape(value))
        except (MalformedRequest, RecursionError, OverflowError):
            raise ResultRefused(_TOO_DEEP) from None

    def message(
        self, request_id: str, code: int, text: str, attributes: Mapping[str, Any], items: Sequence[bytes], /
    ) -> bytes:
        head = dumps_parsed(
            {"requestId": request_id, "status": {"code": code, "message": text, "attributes": attributes}}
        )
        return b'%b,"result":{"data":[%b],"meta":{}}}' % (head[:-1], b",".join(items))


class TypedJson:
    """GraphSON 2 or 3."""

    def __init__(self, version: Version, *, wraps_traversers: bool, materializes_properties: bool) -> None:
        self.content_type = f"application/vnd.gremlin-v{version}.0+json"
        self.wraps_traversers = wraps_traversers
        self._shapes = TypedShapes(version, materializes_properties=materializes_properties)
        is_3 = version == 3
        self._before = b'{"@type":"g:List","@value":[' if is_3 else b"["
        self._after = b']},"meta":{"@type":"g:Map","@value":[]}}}' if is_3 else b'],"meta":{}}}'

    def item(self, value: Any, bulk: int, /) -> bytes:
        shapes = self._shapes
        try:
            return dumps_parsed(shapes.traverser(value, bulk) if self.wraps_traversers else shapes.shape(value))
        except (MalformedRequest, RecursionError, OverflowError):
            raise ResultRefused(_TOO_DEEP) from None

    def message(
        self, request_id: str, code: int, text: str, attributes: Mapping[str, Any], items: Sequence[bytes], /
    ) -> bytes:
        shown = self._shapes.map(dict(attributes))
        head = dumps_parsed({"requestId": request_id, "status": {"code": code, "message": text, "attributes": shown}})
        return b'%b,"result":{"data":%b%b%b' % (head[:-1], self._before, b",".join(items), self._after)


class Binary:
    """GraphBinary 1."""

    content_type = Format.GRAPHBINARY.value

    def __init__(self, *, wraps_traversers: bool, materializes_properties: bool) -> None:
        self.wraps_traversers = wraps_traversers
        self._shapes = BinaryShapes(materializes_properties=materializes_properties)

    def item(self, value: Any, bulk: int, /) -> bytes:
        out = bytearray()
        try:
            if self.wraps_traversers:
                self._shapes.write_traverser(out, value, bulk)
            else:
                self._shapes.write(out, value)
        except RecursionError:
            raise ResultRefused(_TOO_DEEP) from None
        except struct.error:
            raise ResultRefused(_TOO_LARGE) from None
        return bytes(out)

    def message(
        self, request_id: str, code: int, text: str, attributes: Mapping[str, Any], items: Sequence[bytes], /
    ) -> bytes:
        # The version; the id, which is not null; the status; the message, which is not null either.
        out = bytearray(b"\x81\x00" + UUID(request_id).bytes)
        write_int(out, code)
        out.append(0)
        write_bare_text(out, text)
        self._shapes.write_bare_map(out, attributes)
        # No metadata, and the results as a list.
        out += b"\x00\x00\x00\x00\x09\x00"
        write_int(out, len(items))
        out += b"".join(items)
        return bytes(out)


class EncoderChoice(Protocol):
    """The encoders of answers to one kind of request: with the properties of elements, or without."""

    def __call__(self, *, materializes: bool) -> Encoder: ...


@lru_cache(maxsize=64)
def encoder_for(
    format_: Format, *, is_untyped: bool, is_bytecode: bool, asks_types: bool = False, materializes: bool = True
) -> Encoder:
    """Return the encoder of answers to a kind of request.

    Scripts in JSON or GraphSON 2 are the service's dialect, whose answers have no types, unless the request asks for
    them. Bytecode is answered with types always.
    """
    if format_ is Format.GRAPHBINARY:
        return Binary(wraps_traversers=is_bytecode, materializes_properties=materializes)
    if is_bytecode or asks_types or (format_ is Format.GRAPHSON_3 and not is_untyped):
        # Version 1 has no types to speak of; servers of today take plain JSON for version 3.
        version: Version = 2 if format_ is Format.GRAPHSON_2 else 3
        return TypedJson(version, wraps_traversers=is_bytecode, materializes_properties=materializes)
    return PlainJson(materializes_properties=materializes)
