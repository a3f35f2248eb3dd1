"""Databases for trials: with a lease, at whose end the server drops them."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.parameters import body_object
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.keyspaces.catalog.records import ScratchTerms
from asterism.values.json.text import dumps

# A trial takes minutes, and a crash must not leave its containers behind for a day.
LEASE_SECONDS_MAX: Final = 3600
# As many as a container of half a million RU/s; a trial shows skew with a few.
PARTITIONS_MAX: Final = 64
_NAME_PREFIX: Final = "asterism-scratch-"


async def create_scratch_database(services: AdminServices, request: Request) -> Response:
    """Create a database under a name of its own. Containers are created in it, and it is deleted, as any other."""
    body = body_object(request)
    clock = services.store.services.clock
    expires_at = clock.stored_seconds() + _whole_number(body, "lease_seconds", maximum=LEASE_SECONDS_MAX)
    terms = ScratchTerms(expires_at, _whole_number(body, "partitions", maximum=PARTITIONS_MAX))
    name = _NAME_PREFIX + services.store.services.random_bytes(8).hex()
    record = await services.store.create_scratch_database(services.account, name, terms)
    return Response(201, JSON_HEADERS, dumps({"database": record.name, "expires_at": expires_at}))


def _whole_number(body: dict[str, Any], name: str, *, maximum: int) -> int:
    value = body.get(name)
    if type(value) is not int or not 1 <= value <= maximum:
        raise MalformedRequest(reason=f"'{name}' must be a whole number from 1 to {maximum:,}.")
    return value
