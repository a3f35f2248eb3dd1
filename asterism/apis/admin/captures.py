"""Captures of the requests on a container: begin, end and read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object, query_parameters, text_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.captures.captures import Captures
from asterism.apis.transports.http import Request, Response, StreamedResponse
from asterism.errors import CaptureRefused, MalformedRequest
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.limits import GIB, MIB
from asterism.values.json.text import dumps

SAMPLING_DEFAULT: Final = 0.1
BYTES_DEFAULT: Final = 64 * MIB
# Less would hold some requests only.
BYTES_MIN: Final = 64 * 1024
BYTES_MAX: Final = 100 * GIB
SECONDS_DEFAULT: Final = 3600
# A capture is for a look at a workload, of a week at most, and not a log of everything.
SECONDS_MAX: Final = 7 * 86_400

_LINES_HEADERS: Final = [("content-type", "application/x-ndjson"), ("cache-control", "no-store")]


async def start_capture(services: AdminServices, request: Request) -> Response:
    body = body_object(request)
    keyspace = _named(services, body)
    values = body.get("values", "digests")
    if values not in ("digests", "plain"):
        raise MalformedRequest(reason="'values' must be 'digests' or 'plain'.")
    sampling = _number(body, "sampling", default=SAMPLING_DEFAULT, maximum=1)
    if sampling <= 0:
        raise MalformedRequest(reason="'sampling' must be above 0: the fraction of requests to keep.")
    captures = _captures(services)
    await captures.start(
        keyspace,
        sampling=sampling,
        bytes_max=int(_number(body, "bytes_max", default=BYTES_DEFAULT, minimum=BYTES_MIN, maximum=BYTES_MAX)),
        seconds_max=_number(body, "seconds_max", default=SECONDS_DEFAULT, minimum=1, maximum=SECONDS_MAX),
        keeps_values=values == "plain",
    )
    return await _shown(services, captures, keyspace, status=201)


async def stop_capture(services: AdminServices, request: Request) -> Response:
    keyspace, captures = _named(services, body_object(request)), _captures(services)
    await captures.stop(keyspace)
    return await _shown(services, captures, keyspace, status=200)


async def show_captures(services: AdminServices, request: Request) -> Response:
    """Return the captures of the account, or that of one container."""
    captures, parameters = _captures(services), query_parameters(request)
    if parameters:
        return await _shown(services, captures, _named(services, parameters), status=200)
    ordered = [
        keyspace for keyspace in services.store.catalog.keyspaces.values() if keyspace.record.capture is not None
    ]
    described = [await _described(services, captures, keyspace) for keyspace in ordered]
    shown = sorted(
        (found for found in described if found is not None),
        key=lambda capture: (capture["database"], capture["container"]),
    )
    return Response(200, JSON_HEADERS, dumps({"captures": shown}))


async def show_capture_records(services: AdminServices, request: Request) -> StreamedResponse:
    """Return the records as they are stored, a JSON text in each line."""
    keyspace, captures = _named(services, query_parameters(request)), _captures(services)
    # Refused here, while the answer can still say so.
    captures.order_of(keyspace)
    chunks: AsyncIterator[bytes] = captures.pieces(keyspace)
    return StreamedResponse(200, list(_LINES_HEADERS), chunks)


async def show_capture_salt(services: AdminServices, request: Request) -> Response:
    """Return the key of the digests, by which the holder of an account key finds the items that requests named."""
    order = _captures(services).order_of(_named(services, query_parameters(request)))
    return Response(200, JSON_HEADERS, dumps({"salt": order.salt.hex()}))


def _captures(services: AdminServices) -> Captures:
    if services.captures is None:
        raise CaptureRefused(reason="This server captures no requests.")
    return services.captures


def _named(services: AdminServices, fields: dict[str, Any]) -> Keyspace:
    # Not the keyspace of a table or a collection: their doors capture nothing.
    return services.container(text_of(fields, "database"), text_of(fields, "container")).keyspace


async def _shown(services: AdminServices, captures: Captures, keyspace: Keyspace, *, status: int) -> Response:
    return Response(status, JSON_HEADERS, dumps({"capture": await _described(services, captures, keyspace)}))


async def _described(services: AdminServices, captures: Captures, keyspace: Keyspace) -> dict[str, Any] | None:
    names = services.names_of(keyspace.record.rid)
    if names is None:
        return None
    found = await captures.status(keyspace)
    order = found.order
    return {
        "id": order.id,
        "database": names[0],
        "container": names[1],
        "is_running": found.is_running,
        "ended_because": found.ended_because,
        "started_at": order.started_at,
        "ends_at": order.ends_at,
        "sampling": order.sampling,
        "values": "plain" if order.keeps_values else "digests",
        "bytes": found.size_bytes,
        "bytes_max": order.bytes_max,
    }


def _number(body: dict[str, Any], name: str, *, default: float, minimum: int = 0, maximum: int) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
        raise MalformedRequest(reason=f"'{name}' must be a number from {minimum:,} to {maximum:,}.")
    return float(value)
