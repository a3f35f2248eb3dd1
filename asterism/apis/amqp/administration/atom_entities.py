"""Queues and topics in Atom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from asterism.apis.amqp.administration.atom import (
    Entry,
    Page,
    described,
    empty_feed_response,
    entry_response,
    feed_response,
    read_content,
)
from asterism.apis.amqp.administration.durations import write_moment
from asterism.apis.amqp.administration.entity_xml import read_fields, write_description
from asterism.apis.amqp.administration.operations import BusKind
from asterism.apis.amqp.administration.runtime import runtime_of
from asterism.apis.storage.xml_text import leaf, local_name
from asterism.apis.transports.http import Response
from asterism.errors import MalformedRequest

if TYPE_CHECKING:
    from typing import Any

    from asterism.apis.amqp.administration.call import AdministrationCall, AdministrationServices
    from asterism.models.messages.entity import Entity

_KINDS: dict[str, BusKind] = {"QueueDescription": "queue", "TopicDescription": "topic"}


async def get_entity(services: AdministrationServices, call: AdministrationCall) -> Response:
    """Show an entity. One that does not exist is an empty feed: clients make their error of it."""
    entity = services.bus.find(call.namespace, call.address.entity)
    if entity is None:
        return empty_feed_response(call.base, call.address.path, now_ms=services.now_ms())
    return entry_response(200, call.base, await entry_of(entity, call), call.api_version)


async def create_entity(services: AdministrationServices, call: AdministrationCall) -> Response:
    kind, fields = read_entity(services, call)
    entity = await services.bus.create(call.namespace, call.address.entity, kind, fields)
    return entry_response(201, call.base, await entry_of(entity, call), call.api_version)


async def update_entity(services: AdministrationServices, call: AdministrationCall) -> Response:
    entity = services.bus.required(call.namespace, call.address.entity)
    kind, fields = read_entity(services, call)
    await services.bus.update(entity, fields, is_complete=True, kind=kind)
    return entry_response(200, call.base, await entry_of(entity, call), call.api_version)


async def delete_entity(services: AdministrationServices, call: AdministrationCall) -> Response:
    entity = services.bus.required(call.namespace, call.address.entity)
    await services.bus.store.delete(entity)
    return Response(200, [])


async def list_queues(services: AdministrationServices, call: AdministrationCall) -> Response:
    return await _list(services, call, "queue", "Queues")


async def list_topics(services: AdministrationServices, call: AdministrationCall) -> Response:
    return await _list(services, call, "topic", "Topics")


async def get_namespace(services: AdministrationServices, call: AdministrationCall) -> Response:
    """Describe the namespace."""
    content = described(
        "NamespaceInfo",
        leaf("CreatedTime", write_moment(0))
        + leaf("MessagingSKU", "Standard")
        + leaf("ModifiedTime", write_moment(0))
        + leaf("Name", call.namespace)
        + leaf("NamespaceType", "Messaging"),
    )
    entry = Entry(call.namespace, call.address.path, content, 0, services.now_ms())
    return entry_response(200, call.base, entry, call.api_version)


def read_entity(services: AdministrationServices, call: AdministrationCall) -> tuple[BusKind, dict[str, Any]]:
    """Return the kind of the entity in the body, and the fields that it sets."""
    content = read_content(call.request.body)
    kind = _KINDS.get(local_name(content))
    if kind is None:
        raise MalformedRequest(reason=f"'{local_name(content)[:40]}' does not describe a queue or topic.")
    fields = read_fields(content, services.new_key, services.now_ms())
    if "max_message_kb" in fields and call.api_version < "2021-05":
        raise MalformedRequest(reason="MaxMessageSizeInKilobytes needs the version 2021-05 of the interface, or later.")
    return kind, fields


async def entry_of(entity: Entity, call: AdministrationCall) -> Entry:
    description = entity.description
    content = write_description(description, await runtime_of(entity), call.shown)
    return Entry(entity.name, entity.name, content, description.created_ms, description.updated_ms)


async def _list(services: AdministrationServices, call: AdministrationCall, kind: BusKind, title: str) -> Response:
    skip, top = call.page()
    names = [record.name for record in services.bus.records(call.namespace, kind)]
    entries = []
    for name in names[skip : skip + top]:
        entity = services.bus.find(call.namespace, name, kind)
        if entity is not None:
            entries.append(await entry_of(entity, call))
    return feed_response(
        call.base,
        call.address.path,
        title,
        page_of(entries, skip=skip, top=top, count=len(names)),
        call.api_version,
        now_ms=services.now_ms(),
    )


def page_of(entries: Sequence[Entry], *, skip: int, top: int, count: int) -> Page:
    """Return a part of a list of `count` entries. A page of nothing has no next one: it would have no end."""
    has_more = top > 0 and skip + top < count
    return Page(entries, skip + top if has_more else None, top)
