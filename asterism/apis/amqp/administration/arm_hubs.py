"""Hubs and consumer groups in the form of the resource manager."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.administration.arm_json import json_response, read_properties
from asterism.apis.amqp.administration.durations import write_moment
from asterism.apis.amqp.administration.properties import STATUSES
from asterism.apis.transports.http import Response
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.models.event_logs.description import DAY_MS, HOUR_MS, HubDescription
from asterism.models.event_logs.store import DEFAULT_PARTITION_COUNT

if TYPE_CHECKING:
    from asterism.apis.amqp.administration.arm_resource import Resource
    from asterism.apis.amqp.administration.call import AdministrationCall, AdministrationServices
    from asterism.models.event_logs.description import ConsumerGroup
    from asterism.models.event_logs.hub import Hub

_METADATA_CHARACTERS_MAX: Final = 1024


def required_hub(services: AdministrationServices, resource: Resource) -> Hub:
    hub = services.hubs.find(resource.namespace, resource.names[0])
    if hub is None:
        raise ResourceNotFound(kind="hub", name=resource.names[0])
    return hub


# --- hubs -----------------------------------------------------------------------------------------------------------


async def list_hubs(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    hubs = services.hubs.hubs(resource.namespace)
    return json_response(200, {"value": [resource.shown(hub.name, _shown(hub.description)) for hub in hubs]})


async def get_hub(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    return _answer(resource, required_hub(services, resource))


async def put_hub(services: AdministrationServices, resource: Resource, call: AdministrationCall) -> Response:
    """Create a hub, or change the properties of one that are given."""
    changes = _read(read_properties(call.request.body))
    hub = services.hubs.find(resource.namespace, resource.name)
    if hub is None:
        description = HubDescription(**{"partition_count": DEFAULT_PARTITION_COUNT, **_NEW, **changes})
        hub = await services.hubs.create_hub(resource.namespace, resource.name, description)
    else:
        await services.hubs.update(hub, lambda before: replace(before, **changes))
    return _answer(resource, hub)


async def delete_hub(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    await services.hubs.delete(required_hub(services, resource))
    return Response(200, [])


# The store sets the times.
_NEW: Final = {"created_ms": 0, "updated_ms": 0}


def _read(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a description that properties set."""
    fields: dict[str, Any] = {}
    if properties.get("partitionCount") is not None:
        fields["partition_count"] = _whole_number("partitionCount", properties["partitionCount"])
    retention = properties.get("retentionDescription") or {}
    if isinstance(retention, dict) and retention.get("retentionTimeInHours") is not None:
        hours = _whole_number("retentionTimeInHours", retention["retentionTimeInHours"])
        fields["retention_ms"] = hours * HOUR_MS
    elif properties.get("messageRetentionInDays") is not None:
        days = _whole_number("messageRetentionInDays", properties["messageRetentionInDays"])
        fields["retention_ms"] = days * DAY_MS
    if "throughputUnits" in properties:
        units = properties["throughputUnits"]
        fields["throughput_units"] = None if units is None else _whole_number("throughputUnits", units)
    if properties.get("status") is not None:
        if properties["status"] not in STATUSES:
            raise MalformedRequest(reason=f"The status of a hub is one of {', '.join(STATUSES)}.")
        fields["status"] = properties["status"]
    if "userMetadata" in properties:
        fields["user_metadata"] = read_metadata(properties)
    return fields


def _shown(description: HubDescription) -> dict[str, Any]:
    hours = description.retention_ms // HOUR_MS
    return {
        "partitionCount": description.partition_count,
        "partitionIds": [str(number) for number in range(description.partition_count)],
        "messageRetentionInDays": -(-hours // 24),
        "retentionDescription": {"cleanupPolicy": "Delete", "retentionTimeInHours": hours},
        "status": description.status,
        "createdAt": write_moment(description.created_ms),
        "updatedAt": write_moment(description.updated_ms),
        **({} if description.user_metadata is None else {"userMetadata": description.user_metadata}),
        # The resource manager has these of a namespace; here a hub may have its own.
        **({} if description.throughput_units is None else {"throughputUnits": description.throughput_units}),
    }


def _answer(resource: Resource, hub: Hub) -> Response:
    return json_response(200, resource.shown(hub.name, _shown(hub.description)))


# --- consumer groups ------------------------------------------------------------------------------------------------


async def list_groups(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    groups = required_hub(services, resource).description.consumer_groups
    shown = [resource.shown(groups[name].name, _shown_group(groups[name])) for name in sorted(groups)]
    return json_response(200, {"value": shown})


async def get_group(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    group = required_hub(services, resource).description.group(resource.name)
    if group is None:
        raise ResourceNotFound(kind="consumer group", name=resource.name)
    return _answer_group(resource, group)


async def put_group(services: AdministrationServices, resource: Resource, call: AdministrationCall) -> Response:
    metadata = read_metadata(read_properties(call.request.body))
    group = await services.hubs.replace_group(required_hub(services, resource), resource.name, metadata)
    return _answer_group(resource, group)


async def delete_group(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    await services.hubs.delete_group(required_hub(services, resource), resource.name)
    return Response(200, [])


def _shown_group(group: ConsumerGroup) -> dict[str, Any]:
    return {
        "createdAt": write_moment(group.created_ms),
        "updatedAt": write_moment(group.updated_ms or group.created_ms),
        **({} if group.metadata is None else {"userMetadata": group.metadata}),
    }


def _answer_group(resource: Resource, group: ConsumerGroup) -> Response:
    return json_response(200, resource.shown(group.name, _shown_group(group)))


# --- values ---------------------------------------------------------------------------------------------------------


def read_metadata(properties: dict[str, Any]) -> str | None:
    metadata = properties.get("userMetadata")
    if metadata is not None and (not isinstance(metadata, str) or len(metadata) > _METADATA_CHARACTERS_MAX):
        raise MalformedRequest(reason=f"userMetadata is not a text of at most {_METADATA_CHARACTERS_MAX} characters.")
    return metadata


def _whole_number(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**31:
        raise MalformedRequest(reason=f"{name} is not a whole number above 0.")
    return value
