"""Requests to `$management`: the properties of hubs and of their partitions, at run time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.amqp.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, NOT_IMPLEMENTED, status_of, words
from asterism.apis.amqp.hubs.addresses import partition_number
from asterism.apis.amqp.nodes import (
    NOT_FOUND,
    AmqpError,
    NodeReply,
    NodeRequest,
    Peer,
    Right,
)
from asterism.errors import AsterismError
from asterism.models.event_logs.hub import Hub
from asterism.models.event_logs.store import EventLogStore
from asterism.values.amqp.message import text_of
from asterism.values.amqp.types import Array, Int, InvalidAmqp, Timestamp

HUB_TYPE: Final = "com.microsoft:eventhub"
PARTITION_TYPE: Final = "com.microsoft:partition"
# 0001-01-01, the time of an event that there has not been.
# As `answers_requests` of the door knows it.
MANAGEMENT: Final = "$management"
_NO_TIME_MS: Final = -62_135_596_800_000


async def answer(store: EventLogStore, request: NodeRequest) -> NodeReply:
    """Answer a request; every failure is a reply with its status."""
    try:
        properties = request.message.application_properties
        body = await _body(store, request.peer, {name: text_of(value) for name, value in properties.items()})
    except InvalidAmqp as invalid:
        return _refused(AmqpError(ARGUMENT_ERROR, f"The request cannot be read: {invalid}."))
    except AmqpError as error:
        return _refused(error)
    except AsterismError as error:
        return _refused(words(error))
    return NodeReply({"status-code": Int(200), "status-description": "OK"}, body)


def _refused(error: AmqpError) -> NodeReply:
    return NodeReply(
        {
            "status-code": Int(status_of(error.condition)),
            "status-description": error.description,
            # Clients in Python look for the sentence where Service Bus has it.
            "statusDescription": error.description,
            "error-condition": error.condition,
        }
    )


async def _body(store: EventLogStore, peer: Peer, properties: Mapping[str, str | None]) -> dict[str, Any]:
    kind = properties.get("type")
    if properties.get("operation") != "READ" or kind not in (HUB_TYPE, PARTITION_TYPE):
        raise AmqpError(NOT_IMPLEMENTED, f"The node answers READ of {HUB_TYPE} and {PARTITION_TYPE}.")
    name = (properties.get("name") or "").strip("/")
    require_any(peer, name)
    hub = await store.find_newest(peer.namespace, name)
    if hub is None:
        raise AmqpError(NOT_FOUND, f"There is no hub '{name}' in the namespace '{peer.namespace}'.")
    return _of_hub(hub) if kind == HUB_TYPE else await _of_partition(hub, properties.get("partition"))


def require_any(peer: Peer, path: str) -> None:
    """Check that a client has any right on a hub: those that only send ask for the partitions too.

    Clients for JavaScript sign for the node itself, and others for the hub, which the node is below.
    """
    path = f"{path}/{MANAGEMENT}"
    for right in (Right.SEND, Right.LISTEN):
        try:
            peer.require(path, right)
        except AmqpError:
            continue
        return
    peer.require(path, Right.MANAGE)


def _of_hub(hub: Hub) -> dict[str, Any]:
    return {
        "name": hub.name,
        "type": HUB_TYPE,
        "created_at": Timestamp(hub.description.created_ms),
        "partition_count": Int(hub.partition_count),
        "partition_ids": Array.of(str, [str(number) for number in range(hub.partition_count)]),
        "georeplication_factor": Int(1),
    }


async def _of_partition(hub: Hub, partition: str | None) -> dict[str, Any]:
    number = partition_number(partition or "", hub.partition_count)
    if number is None:
        raise no_partition(hub, partition or "")
    properties = await hub.log(number).properties()
    last_ms = properties.last_enqueued_ms
    return {
        "name": hub.name,
        "type": PARTITION_TYPE,
        "partition": str(number),
        "begin_sequence_number": properties.begin_sequence,
        "last_enqueued_sequence_number": properties.last_sequence,
        "last_enqueued_offset": properties.last_offset,
        "last_enqueued_time_utc": Timestamp(_NO_TIME_MS if last_ms is None else last_ms),
        "is_partition_empty": properties.is_empty,
    }


def no_partition(hub: Hub, partition: str) -> AmqpError:
    return AmqpError(
        ARGUMENT_OUT_OF_RANGE,
        f"The hub '{hub.name}' has no partition '{partition}': its partitions are 0 to {hub.partition_count - 1}.",
    )
