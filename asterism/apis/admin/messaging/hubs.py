"""A hub as operators see it: partitions with their positions and sizes, consumer groups, receivers, events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.messaging.fields import flag, namespace_of, optional_number
from asterism.apis.admin.messaging.message_form import id_text, listed, read_event
from asterism.apis.admin.messaging.message_view import describe_sections
from asterism.apis.admin.messaging.partitions import describe_point
from asterism.apis.admin.parameters import body_object, query_parameters, text_of, whole_number_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import (
    AsterismError,
    MalformedRequest,
    RequestRateTooLarge,
    ResourceNotFound,
    StorageUnavailable,
    TooLarge,
)
from asterism.limits import KIB
from asterism.models.event_logs.events import Appended, Busy, BusyReason, Event, PartitionProperties
from asterism.models.event_logs.hub import Hub
from asterism.models.event_logs.layout import NewEvent
from asterism.models.event_logs.log import PartitionLog
from asterism.partitioning.hub_partition import hub_partition
from asterism.values.json.text import dumps

# The most that a hub can have, in an answer.
PARTITIONS_MAX: Final = 2000
EVENTS_DEFAULT: Final = 20
EVENTS_MAX: Final = 100
_EVENTS_BYTES_MAX: Final = 512 * KIB
_SEQUENCE_MAX: Final = 10**15
# A node that takes longer to answer counts as unreachable.
_ANSWER_SECONDS_MAX: Final = 3.0
# Reads of partitions on other machines hide each other's round trips.
_PARTITIONS_AT_ONCE: Final = 16


def hub_of(services: AdminServices, fields: Mapping[str, Any]) -> Hub:
    namespace, name = namespace_of(services, fields), text_of(dict(fields), "hub")
    hub = services.event_logs.find(namespace, name)
    if hub is None:
        raise ResourceNotFound(kind="hub", name=name)
    return hub


# --- partitions -----------------------------------------------------------------------------------------------------


async def show_hub(services: AdminServices, request: Request) -> Response:
    """Describe a hub with its partitions from ?offset= on; those whose node is away have no figures."""
    parameters = query_parameters(request)
    hub = hub_of(services, parameters)
    offset = whole_number_of(parameters, "offset", default=0, minimum=0, maximum=_SEQUENCE_MAX)
    limit = whole_number_of(parameters, "limit", default=PARTITIONS_MAX, minimum=1, maximum=PARTITIONS_MAX)
    numbers = range(hub.partition_count)[offset:][:limit]
    description = hub.description
    known = await partition_properties(hub, numbers)
    answer = {
        "namespace": hub.namespace,
        "kind": "hub",
        "path": hub.name,
        "status": description.status,
        "created_ms": description.created_ms,
        "retention_ms": description.retention_ms,
        "retention_bytes": description.retention_bytes,
        "throughput_units": hub.throughput_units,
        "partition_count": hub.partition_count,
        "now_ms": services.event_logs.services.now_ms(),
        "groups": [
            {"name": group.name, "created_ms": group.created_ms} for group in description.consumer_groups.values()
        ],
        "partitions": [_describe(services, hub, number, known[number]) for number in numbers],
    }
    return Response(200, JSON_HEADERS, dumps(answer))


async def partition_properties(hub: Hub, numbers: range) -> dict[int, PartitionProperties | None]:
    """Return the properties of partitions; None for those whose node does not answer."""
    at_once = asyncio.Semaphore(_PARTITIONS_AT_ONCE)

    async def read(log: PartitionLog) -> PartitionProperties | None:
        async with at_once:
            try:
                async with asyncio.timeout(_ANSWER_SECONDS_MAX):
                    return await log.properties()
            except (StorageUnavailable, TimeoutError):
                return None

    async with asyncio.TaskGroup() as group:
        tasks = {number: group.create_task(read(hub.log(number))) for number in numbers}
    return {number: task.result() for number, task in tasks.items()}


def _describe(services: AdminServices, hub: Hub, number: int, known: PartitionProperties | None) -> dict[str, Any]:
    return {
        "id": number,
        "state": _state(hub, number, known),
        **describe_point(services, hub.keyspace, number),
        "begin_sequence": None if known is None else known.begin_sequence,
        # -1 before the first event.
        "last_sequence": None if known is None else known.last_sequence,
        "last_enqueued_ms": None if known is None else known.last_enqueued_ms,
        "events": None if known is None else known.stored_events,
        "bytes": None if known is None else known.stored_bytes,
        # In this process; others may serve more.
        "receivers": {
            group.name: count
            for group in hub.description.consumer_groups.values()
            if (count := services.event_logs.receivers.receivers_of(hub, number, group.name))
        },
    }


def _state(hub: Hub, number: int, known: PartitionProperties | None) -> str:
    if known is None:
        return "unreachable"
    return "down" if hub.log(number).is_down else "up"


async def change_group(services: AdminServices, request: Request) -> Response:
    """Create a consumer group, or delete it."""
    fields = body_object(request)
    hub, name = hub_of(services, fields), text_of(fields, "group")
    if flag(fields, "delete"):
        await services.event_logs.delete_group(hub, name)
        return Response(200, JSON_HEADERS, dumps({"group": name}))
    group = await services.event_logs.create_group(hub, name)
    return Response(201, JSON_HEADERS, dumps({"group": group.name}))


# --- events ---------------------------------------------------------------------------------------------------------


async def show_events(services: AdminServices, request: Request) -> Response:
    """Describe events of a partition from a sequence number on; `next` is null at the end of the log."""
    parameters = query_parameters(request)
    hub = hub_of(services, parameters)
    number = whole_number_of(parameters, "partition", default=0, minimum=0, maximum=PARTITIONS_MAX)
    start = whole_number_of(parameters, "from", default=0, minimum=0, maximum=_SEQUENCE_MAX)
    count = whole_number_of(parameters, "count", default=EVENTS_DEFAULT, minimum=1, maximum=EVENTS_MAX)
    log = _log_of(hub, number)
    properties = await log.properties()
    start = max(start, properties.begin_sequence)
    events = await log.read(start, events_max=count, bytes_max=_EVENTS_BYTES_MAX)
    following = events[-1].sequence + 1 if events else start
    answer = {
        "begin_sequence": properties.begin_sequence,
        "last_sequence": properties.last_sequence,
        "events": [_describe_event(number, event) for event in events],
        "next": following if events and following <= properties.last_sequence else None,
    }
    return Response(200, JSON_HEADERS, dumps(answer))


def _log_of(hub: Hub, number: int) -> PartitionLog:
    if not hub.has_partition(number):
        raise ResourceNotFound(kind="partition", name=f"{hub.name}/{number}")
    return hub.log(number)


def _describe_event(partition: int, event: Event) -> dict[str, Any]:
    key = event.partition_key
    return {
        "partition": partition,
        "sequence_number": event.sequence,
        "offset": str(event.sequence),
        "enqueued_ms": event.enqueued_ms,
        "partition_key": None if key is None else key.decode("utf-8", "replace"),
        **describe_sections(event.content),
        "bytes": len(event.content),
    }


async def send_events(services: AdminServices, request: Request) -> Response:
    """Append events to the partition of their key, to the named one, or to the next one."""
    fields = body_object(request)
    hub = hub_of(services, fields)
    if not hub.description.takes_events:
        raise MalformedRequest(reason=f"The status of '{hub.name}' is {hub.description.status}: it takes no events.")
    key = id_text(fields, "partition_key")
    contents = [read_event(each) for each in listed(fields, "events")]
    if any(len(content) > hub.message_bytes_max for content in contents):
        raise TooLarge(what="event", bytes_max=hub.message_bytes_max)
    log = _chosen_log(hub, fields, key)
    stored_key = None if key is None else key.encode("utf-8", "surrogatepass")
    result = await log.append([NewEvent(content, stored_key) for content in contents])
    match result:
        case Appended(first_sequence):
            answer = {"partition": log.partition, "first_sequence": first_sequence, "count": len(contents)}
            return Response(201, JSON_HEADERS, dumps(answer))
        case Busy(reason, retry_after_seconds):
            raise _busy(reason, retry_after_seconds)


def _chosen_log(hub: Hub, fields: Mapping[str, Any], key: str | None) -> PartitionLog:
    number = optional_number(fields, "partition", minimum=0, maximum=PARTITIONS_MAX)
    if number is not None:
        return _log_of(hub, number)
    return hub.next_log() if key is None else hub.log(hub_partition(key, hub.partition_count))


def _busy(reason: BusyReason, retry_after_seconds: float) -> AsterismError:
    if reason is BusyReason.PARTITION_DOWN:
        return StorageUnavailable(reason=reason.value)
    return RequestRateTooLarge(retry_after_seconds)
