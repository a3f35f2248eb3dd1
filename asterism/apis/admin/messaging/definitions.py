"""Entities that an operator creates and deletes: hubs, queues, topics and subscriptions.

The settings here are those that people choose by hand; the administration interface of the protocol has all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.messaging.fields import (
    SUBSCRIPTIONS,
    flag,
    namespace_of,
    optional_number,
    optional_text,
    place_of,
)
from asterism.apis.admin.messaging.hubs import hub_of
from asterism.apis.admin.parameters import body_object, text_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.limits import MIB
from asterism.models.event_logs.description import HOUR_MS, ConsumerGroup, HubDescription
from asterism.models.messages.descriptions import (
    FilterDescription,
    QueueDescription,
    RuleDescription,
    SubscriptionDescription,
    TopicDescription,
)
from asterism.values.json.text import dumps

_KINDS: Final = ("hub", "queue", "topic", "subscription")
# The service's rules for names.
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/~-]*[A-Za-z0-9_])?")
_NAME_CHARACTERS_MAX: Final = 260
_SUBSCRIPTION_CHARACTERS_MAX: Final = 50
# The service's ranges: 5 seconds to 5 minutes; 20 seconds to 7 days; 1 to 2,000.
_LOCK_SECONDS: Final = (5, 300)
_DUPLICATE_SECONDS: Final = (20, 7 * 86_400)
_DELIVERIES: Final = (1, 2000)
_TTL_SECONDS: Final = (1, 100 * 366 * 86_400)
_RETENTION_HOURS: Final = (1, 90 * 24)
_RETENTION_MB: Final = (1, 2**40)
_PARTITIONS: Final = (1, 2000)
_PARTITIONS_DEFAULT: Final = 4
_RETENTION_HOURS_DEFAULT: Final = 24
_FILTER_CHARACTERS_MAX: Final = 1024


async def create_entity(services: AdminServices, request: Request) -> Response:
    fields = body_object(request)
    namespace, path = namespace_of(services, fields), text_of(fields, "entity").strip("/")
    topic, slash, subscription = path.rpartition(f"/{SUBSCRIPTIONS}")
    given = optional_text(fields, "subscription")
    if given is not None:
        topic, slash, subscription = path, "/", given
    kind = fields.get("kind", "subscription" if slash else "queue")
    if kind not in _KINDS:
        raise MalformedRequest(reason=f"'kind' must be one of {', '.join(_KINDS)}.")
    target = optional_text(fields, "forward_to")
    if target is not None and services.messages.find(namespace, target) is None:
        raise MalformedRequest(reason=f"There is no queue or topic '{target}' to forward to.")
    if kind == "subscription":
        await _create_subscription(services, namespace, topic, subscription, fields)
        path = f"{topic}/{SUBSCRIPTIONS}{subscription}"
    elif kind == "hub":
        await services.event_logs.create_hub(namespace, path, _hub(services, fields))
    elif kind == "topic":
        await services.messages.create_topic(namespace, _checked_name(path), _topic(fields))
    else:
        await services.messages.create_queue(namespace, _checked_name(path), _queue(fields))
    return Response(201, JSON_HEADERS, dumps({"kind": kind, "path": path}))


async def delete_entity(services: AdminServices, request: Request) -> Response:
    fields = body_object(request)
    if fields.get("kind") == "hub":
        hub = hub_of(services, {**fields, "hub": fields.get("entity")})
        await services.event_logs.delete(hub)
        return Response(200, JSON_HEADERS, dumps({"kind": "hub", "path": hub.name}))
    place = place_of(services, fields)
    answer = {"kind": place.kind, "path": place.path}
    if place.subscription is None:
        await services.messages.delete(place.entity)
    else:
        await services.messages.delete_subscription(place.entity, place.subscription)
    return Response(200, JSON_HEADERS, dumps(answer))


async def _create_subscription(
    services: AdminServices, namespace: str, topic: str, name: str, fields: Mapping[str, Any]
) -> None:
    entity = services.messages.find(namespace, topic)
    if entity is None or entity.kind != "topic":
        raise ResourceNotFound(kind="topic", name=topic)
    if len(name) > _SUBSCRIPTION_CHARACTERS_MAX or "/" in name or _NAME.fullmatch(name) is None:
        raise MalformedRequest(
            reason=f"The name of a subscription has 1 to {_SUBSCRIPTION_CHARACTERS_MAX} letters, digits, periods, "
            "hyphens and underscores, and begins with a letter or digit."
        )
    expression = optional_text(fields, "filter")
    if expression is not None and len(expression) > _FILTER_CHARACTERS_MAX:
        raise MalformedRequest(reason=f"A filter has at most {_FILTER_CHARACTERS_MAX:,} characters.")
    description = SubscriptionDescription(name=name, **_shared_settings(fields))
    if expression is not None:
        rule = RuleDescription(filter=FilterDescription("sql", expression))
        description = replace(description, rules=(rule,))
    await services.messages.create_subscription(entity, description)


def _hub(services: AdminServices, fields: Mapping[str, Any]) -> HubDescription:
    now_ms = services.event_logs.services.now_ms()
    retention_mb = optional_number(fields, "retention_mb", minimum=_RETENTION_MB[0], maximum=_RETENTION_MB[1])
    names = fields.get("groups", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise MalformedRequest(reason="'groups' must be a list of names.")
    partitions = _number(fields, "partitions", _PARTITIONS)
    hours = _number(fields, "retention_hours", _RETENTION_HOURS)
    return HubDescription(
        partition_count=_PARTITIONS_DEFAULT if partitions is None else partitions,
        created_ms=now_ms,
        updated_ms=now_ms,
        retention_ms=(_RETENTION_HOURS_DEFAULT if hours is None else hours) * HOUR_MS,
        retention_bytes=None if retention_mb is None else retention_mb * MIB,
        consumer_groups={name.lower(): ConsumerGroup(name, now_ms) for name in names},
    )


def _queue(fields: Mapping[str, Any]) -> QueueDescription:
    return QueueDescription(
        **_shared_settings(fields),
        **_duplicate_settings(fields),
        is_partitioned=flag(fields, "is_partitioned"),
    )


def _topic(fields: Mapping[str, Any]) -> TopicDescription:
    of_receivers = sorted(_OF_RECEIVERS & fields.keys())
    if of_receivers:
        raise MalformedRequest(reason=f"'{of_receivers[0]}' is a setting of the subscriptions of a topic.")
    return TopicDescription(
        default_ttl_ms=_milliseconds(_number(fields, "ttl_seconds", _TTL_SECONDS)),
        is_partitioned=flag(fields, "is_partitioned"),
        **_duplicate_settings(fields),
    )


_OF_RECEIVERS: Final = frozenset(
    {"requires_session", "lock_seconds", "max_delivery_count", "dead_letters_expired", "forward_to", "filter"}
)


def _shared_settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that queues and subscriptions have, as far as they are given."""
    given = {
        "lock_ms": _milliseconds(_number(fields, "lock_seconds", _LOCK_SECONDS)),
        "default_ttl_ms": _milliseconds(_number(fields, "ttl_seconds", _TTL_SECONDS)),
        "max_delivery_count": _number(fields, "max_delivery_count", _DELIVERIES),
        "requires_session": flag(fields, "requires_session") or None,
        "dead_letters_expired": flag(fields, "dead_letters_expired") or None,
        "forward_to": optional_text(fields, "forward_to"),
    }
    return {name: value for name, value in given.items() if value is not None}


def _duplicate_settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    window_ms = _milliseconds(_number(fields, "duplicate_window_seconds", _DUPLICATE_SECONDS))
    return {} if window_ms is None else {"requires_duplicate_detection": True, "duplicate_window_ms": window_ms}


def _number(fields: Mapping[str, Any], name: str, limits: tuple[int, int]) -> int | None:
    return optional_number(fields, name, minimum=limits[0], maximum=limits[1])


def _milliseconds(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1000


def _checked_name(name: str) -> str:
    if len(name) > _NAME_CHARACTERS_MAX or _NAME.fullmatch(name) is None:
        raise MalformedRequest(
            reason=f"The name of a queue or topic has 1 to {_NAME_CHARACTERS_MAX} letters, digits, periods, hyphens, "
            "underscores and slashes, and begins with a letter or digit."
        )
    return name
