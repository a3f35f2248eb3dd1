"""The lag of consumer groups: the events of a hub behind the places that clients have stored."""

from __future__ import annotations

from typing import Any

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.messaging.checkpoints import GroupPositions, PartitionPosition, read_positions
from asterism.apis.admin.messaging.hubs import hub_of, partition_properties
from asterism.apis.admin.parameters import query_parameters, text_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import ResourceNotFound
from asterism.models.event_logs.events import PartitionProperties
from asterism.models.event_logs.hub import Hub
from asterism.values.json.text import dumps


async def show_lag(services: AdminServices, request: Request) -> Response:
    """Describe the lag by consumer group, from the checkpoints in ?account=&container= of the blob door."""
    parameters = query_parameters(request)
    hub = hub_of(services, parameters)
    account, name = text_of(dict(parameters), "account"), text_of(dict(parameters), "container")
    container = services.blobs.find_container(account, name) if _may_read(services, account) else None
    if container is None:
        raise ResourceNotFound(kind="container of blobs", name=f"{account}/{name}")
    positions = await read_positions(container, hub.name, group=parameters.get("group"))
    known = await partition_properties(hub, range(hub.partition_count))
    others = {other.lower() for other in services.namespaces.namespaces()} - {hub.namespace.lower()}
    groups = [
        _describe_group(hub, found, known)
        for found in positions
        # A hub of another namespace may have the same name.
        if found.host.partition(".")[0] not in others
    ]
    answer = {"namespace": hub.namespace, "hub": hub.name, "account": account, "container": name, "groups": groups}
    return Response(200, JSON_HEADERS, dumps(answer))


def _may_read(services: AdminServices, account: str) -> bool:
    return services.scope is None or services.scope == account


def _describe_group(
    hub: Hub, positions: GroupPositions, known: dict[int, PartitionProperties | None]
) -> dict[str, Any]:
    partitions = [
        _describe_position(number, positions.by_partition.get(number, PartitionPosition()), properties)
        for number, properties in known.items()
    ]
    group = hub.description.group(positions.group)
    return {
        "host": positions.host,
        # As it was created; checkpoints have its lower case.
        "group": positions.group if group is None else group.name,
        "exists": group is not None,
        # Of the partitions whose lag is known.
        "lag": sum(partition["lag"] or 0 for partition in partitions),
        "partitions": partitions,
    }


def _describe_position(
    number: int, position: PartitionPosition, properties: PartitionProperties | None
) -> dict[str, Any]:
    return {
        "id": number,
        "sequence": None if position.sequence < 0 else position.sequence,
        "offset": position.offset,
        "stored_ms": position.stored_ms,
        "lag": None if properties is None else _lag(position.sequence, properties),
        # Events behind the checkpoint have been removed: the group has missed them.
        "has_missed": properties is not None and 0 <= position.sequence < properties.begin_sequence - 1,
        "owner": position.owner,
        "owner_seen_ms": position.owner_seen_ms,
    }


def _lag(sequence: int, properties: PartitionProperties) -> int:
    """Return the number of events that are kept behind a place; a group without a place has all before it."""
    return max(0, properties.last_sequence - max(sequence, properties.begin_sequence - 1))
