"""Queues: list, create, delete, metadata, access policies."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from asterism.apis.queue.context import Call, queue_of
from asterism.apis.queue.errors import queue_exists
from asterism.apis.storage.access_policies import dump_policies, load_policies, read_policies, write_policies
from asterism.apis.storage.headers import read_whole
from asterism.apis.storage.metadata import metadata_headers, metadata_xml, read_metadata
from asterism.apis.storage.refusals import invalid_query_parameter, not_permitted
from asterism.apis.storage.xml_text import attribute, leaf, node, xml_response, xml_safe
from asterism.apis.transports.http import Response
from asterism.models.queues.messages import Created
from asterism.models.queues.queue import Queue

# The service answers no more at once, whatever a request asks for.
PAGE_QUEUES_MAX: Final = 5000
_ASKED_MAX: Final = 2**31 - 1
_STATUS_CREATED: Final = {Created.NEW: 201, Created.SAME: 204}


async def list_queues(call: Call) -> Response:
    query = call.query
    prefix, marker = query.get("prefix", ""), query.get("marker", "")
    asked = read_whole(query, "maxresults", minimum=1, maximum=_ASKED_MAX)
    included = set(filter(None, query.get("include", "").split(",")))
    if included - {"metadata"}:
        raise invalid_query_parameter("include", query["include"])
    limit = PAGE_QUEUES_MAX if asked is None else min(asked, PAGE_QUEUES_MAX)
    # One more, where the next page begins.
    found = await call.context.store.list_queues(call.account.name, prefix=prefix, start=marker, limit=limit + 1)
    listed, rest = found[:limit], found[limit:]
    content = (
        leaf("Prefix", xml_safe(prefix))
        + (leaf("Marker", xml_safe(marker)) if marker else "")
        + ("" if asked is None else leaf("MaxResults", asked))
        + node("Queues", "".join(_listed(queue, with_metadata="metadata" in included) for queue in listed))
        + leaf("NextMarker", rest[0].name if rest else "")
    )
    endpoint = attribute(f"{call.base_url}/")
    return xml_response(200, f"<EnumerationResults ServiceEndpoint={endpoint}>{content}</EnumerationResults>")


def _listed(queue: Queue, *, with_metadata: bool) -> str:
    return node("Queue", leaf("Name", queue.name) + (metadata_xml(queue.record.metadata) if with_metadata else ""))


async def create_queue(call: Call) -> Response:
    metadata = read_metadata(call.headers)
    created = await call.context.store.create_queue(call.account.name, call.resource.container, metadata)
    if created is Created.DIFFERENT:
        raise queue_exists()
    return Response(_STATUS_CREATED[created], [])


async def delete_queue(call: Call) -> Response:
    await (await queue_of(call)).remove()
    return Response(204, [])


async def get_metadata(call: Call) -> Response:
    queue = await queue_of(call)
    count = await queue.count()
    return Response(200, [("x-ms-approximate-messages-count", str(count)), *metadata_headers(queue.record.metadata)])


async def set_metadata(call: Call) -> Response:
    metadata = read_metadata(call.headers)
    await (await queue_of(call)).change_record(lambda record: replace(record, metadata=metadata))
    return Response(204, [])


async def get_policies(call: Call) -> Response:
    _refuse_grants(call)
    policies = load_policies((await queue_of(call)).record.policies.encode())
    return xml_response(200, write_policies(policies))


async def set_policies(call: Call) -> Response:
    _refuse_grants(call)
    policies = read_policies(call.request.body)
    stored = dump_policies(policies).decode() if policies else ""
    await (await queue_of(call)).change_record(lambda record: replace(record, policies=stored))
    return Response(204, [])


def _refuse_grants(call: Call) -> None:
    """Refuse the holder of a signature, who may not create others."""
    if call.grant is not None:
        raise not_permitted()
