"""The service itself: its properties, and the statistics of its secondary location."""

from __future__ import annotations

from asterism.access.sas_grants import ResourceType
from asterism.apis.storage.headers import XML_HEADERS
from asterism.apis.storage.refusals import Refusal
from asterism.apis.storage.service_properties import (
    change_properties,
    read_properties,
    stored_properties,
    write_properties,
)
from asterism.apis.storage.statistics import statistics_xml
from asterism.apis.storage.xml_text import xml_response
from asterism.apis.table.context import Call
from asterism.apis.table.resource_paths import Kind
from asterism.apis.transports.http import Response


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
    properties = await stored_properties(call.context.store, call.account.name, "table")
    return Response(200, list(XML_HEADERS), write_properties(properties))


async def set_properties(call: Call) -> Response:
    _refuse_elsewhere(call)
    call.allow("w", ResourceType.SERVICE, None)
    given = read_properties(call.request.body, "table")
    await change_properties(call.context.store, call.account.name, "table", given)
    return Response(202, [])


async def get_statistics(call: Call) -> Response:
    _refuse_elsewhere(call)
    call.allow("r", ResourceType.SERVICE, None)
    if not call.is_secondary:
        raise bad_query_parameter()
    return xml_response(200, statistics_xml(call.context.clock.wall_seconds()))
