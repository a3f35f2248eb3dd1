"""Requests: id, operation, processor and arguments, from GraphSON of any version or GraphBinary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from asterism.apis.gremlin.frames import Format, Frame
from asterism.apis.gremlin.graphbinary.types import open_reader, read_map
from asterism.apis.gremlin.graphson.reading import parse_json, read_value
from asterism.apis.gremlin.malformed import MalformedMessage

# The id of answers to messages whose own id could not be read.
NO_ID = "00000000-0000-0000-0000-000000000000"
# The version of GraphBinary, with the first bit set.
_BINARY_VERSION = 0x81


@dataclass(slots=True)
class Request:
    """A request of a client. `problem` says why its arguments could not be read; it is then answered with that."""

    format: Format
    is_untyped: bool
    request_id: str = NO_ID
    operation: str = ""
    processor: str = ""
    arguments: dict[Any, Any] = field(default_factory=dict)
    problem: MalformedMessage | None = None
    # Of its message, to bound what waits.
    size_bytes: int = 0


def read_request(frame: Frame) -> Request:
    """Read a message as far as it goes, so that the refusal of a bad one still names its request."""
    request = Request(frame.format, frame.is_untyped, size_bytes=len(frame.body))
    try:
        if frame.format is Format.GRAPHBINARY:
            _read_binary(frame.body, request)
        else:
            _read_json(frame.body, request)
    except MalformedMessage as problem:
        request.problem = problem
    return request


def _read_json(body: bytes, request: Request) -> None:
    message = parse_json(body)
    if isinstance(message, dict) and "@type" in message:
        message = read_value(message)
    if not isinstance(message, dict):
        raise MalformedMessage("A request is a JSON object with requestId, op, processor and args.")
    request.request_id = _request_id(message.get("requestId"))
    request.operation = _name(message.get("op"), "op")
    request.processor = _name(message.get("processor", ""), "processor")
    arguments = read_value(message.get("args", {}))
    if not isinstance(arguments, dict):
        raise MalformedMessage("The args of a request are a map.")
    request.arguments = arguments


def _request_id(given: Any) -> str:
    found = read_value(given)
    if isinstance(found, UUID):
        return str(found)
    try:
        # Written as clients wrote it, who compare texts.
        return found if isinstance(found, str) and UUID(found) else _refuse_id()
    except ValueError:
        return _refuse_id()


def _refuse_id() -> str:
    raise MalformedMessage("The requestId of a request is a UUID.")


def _name(given: Any, what: str) -> str:
    if given is None:
        return ""
    if not isinstance(given, str):
        raise MalformedMessage(f"The {what} of a request is a text.")
    return given


def _read_binary(body: bytes, request: Request) -> None:
    reader = open_reader(body)
    version = reader.unsigned_byte()
    if version != _BINARY_VERSION:
        raise MalformedMessage(f"The version of GraphBinary is 0x81, not 0x{version:02x}.")
    request.request_id = str(reader.uuid())
    request.operation = reader.text()
    request.processor = reader.text()
    request.arguments = read_map(reader)
    if reader.left:
        raise MalformedMessage("The message goes on after its arguments.")
