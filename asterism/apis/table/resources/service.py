"""The service itself: its properties, and the statistics of its secondary location."""

from __future__ import annotations

from typing import Final

from asterism.access.shared_access import ResourceType
from asterism.apis.table import headers
from asterism.apis.table.context import Call
from asterism.apis.table.errors import Refusal
from asterism.apis.table.etags import http_date
from asterism.apis.table.resource_paths import Kind
from asterism.apis.table.resources.service_properties import (
    dump_properties,
    load_properties,
    read_properties,
    write_properties,
)
from asterism.apis.table.resources.xml_text import DECLARATION, leaf, node
from asterism.apis.transports.http import Response

PROPERTIES_DOCUMENT: Final = "properties"


def bad_query_parameter() -> Refusal:
    return Refusal(
        400,
        "InvalidQueryParameterValue",
        "Value for one of the query parameters specified in the request URI is invalid.",
        is_xml=True,
    )


def _refuse_elsewhere(call: Call) -> None:
    """Refuse requests to Cosmos DB or to a table, which have no service properties."""
    if call.context.is_cosmos:
        raise Refusal(400, "NotImplemented", "Cosmos DB for Table has no service properties.", is_xml=True)
    if call.resource.kind is not Kind.SERVICE:
        raise bad_query_parameter()


async def get_properties(call: Call) -> Response:
    _refuse_elsewhere(call)
    call.allow("r", ResourceType.SERVICE, None)
    stored = await call.context.store.get_document(call.account.name, None, PROPERTIES_DOCUMENT)
    return Response(200, list(headers.XML_HEADERS), write_properties(load_properties(stored)))


async def set_properties(call: Call) -> Response:
    _refuse_elsewhere(call)
    call.allow("w", ResourceType.SERVICE, None)
    given = read_properties(call.request.body)
    store = call.context.store
    stored = await store.get_document(call.account.name, None, PROPERTIES_DOCUMENT)
    content = dump_properties({**load_properties(stored), **given})
    await store.put_document(call.account.name, None, PROPERTIES_DOCUMENT, content)
    return Response(202, [])


async def get_statistics(call: Call) -> Response:
    _refuse_elsewhere(call)
    call.allow("r", ResourceType.SERVICE, None)
    if not call.is_secondary:
        raise bad_query_parameter()
    # Both locations are this server, so the secondary is never behind.
    synced = http_date(call.context.clock.wall_seconds())
    replication = node("GeoReplication", leaf("Status", "live") + leaf("LastSyncTime", synced))
    body = DECLARATION + node("StorageServiceStats", replication)
    return Response(200, list(headers.XML_HEADERS), body.encode())
