"""JSON in the form of the resource manager."""

from __future__ import annotations

import json
from typing import Any

from asterism.apis.transports.http import Response
from asterism.errors import MalformedRequest
from asterism.limits import MIB

_BODY_BYTES_MAX = MIB
_HEADERS = [("content-type", "application/json; charset=utf-8")]


def json_response(status: int, content: Any) -> Response:
    return Response(status, _HEADERS, json.dumps(content).encode())


def read_properties(body: bytes) -> dict[str, Any]:
    """Return the object `properties` of a body; none for an empty body."""
    content = read_object(body)
    properties = content.get("properties", {})
    if not isinstance(properties, dict):
        raise MalformedRequest(reason="The body needs an object 'properties'.")
    return properties


def read_object(body: bytes) -> dict[str, Any]:
    if len(body) > _BODY_BYTES_MAX:
        raise MalformedRequest(reason=f"The body has more than {_BODY_BYTES_MAX:,} bytes.")
    try:
        content = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise MalformedRequest(reason="The body is not a JSON object.")
    return content
