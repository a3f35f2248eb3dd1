"""A queue, a topic or a subscription: settings, counts, fragments, rules; and fragments that an operator closes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.messaging.counts import (
    ChannelCounts,
    counts_of,
    describe_channels,
    describe_counts,
    describe_rule,
    total_of,
)
from asterism.apis.admin.messaging.fields import Place, flag, optional_number, place_of
from asterism.apis.admin.messaging.partitions import describe_point
from asterism.apis.admin.parameters import body_object, query_parameters, whole_number_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.models.messages.descriptions import Description, TopicDescription
from asterism.models.messages.messages import FragmentState
from asterism.values.json.text import dumps

# Of a topic, in one answer.
SUBSCRIPTIONS_DEFAULT: Final = 200
SUBSCRIPTIONS_MAX: Final = 2000
_RULES_MAX: Final = 200
_FRAGMENT_MAX: Final = 2**16 - 1
# Parts of a description that are shown in other places, or to no reader.
_SHOWN_ELSEWHERE: Final = frozenset(
    {
        "authorization_rules",
        "closed_fragments",
        "subscriptions",
        "next_subscription_number",
        "removed_subscriptions",
        "rules",
        "number",
        "name",
        "status",
    }
)


async def show_entity(services: AdminServices, request: Request) -> Response:
    parameters = query_parameters(request)
    place = place_of(services, parameters)
    limit = whole_number_of(
        parameters, "subscriptions", default=SUBSCRIPTIONS_DEFAULT, minimum=0, maximum=SUBSCRIPTIONS_MAX
    )
    return Response(200, JSON_HEADERS, dumps(await _described(services, place, limit)))


async def change_fragment(services: AdminServices, request: Request) -> Response:
    """Close a fragment, so that senders and receivers go around it, or open it again."""
    fields = body_object(request)
    place = place_of(services, fields)
    fragment = optional_number(fields, "fragment", minimum=0, maximum=_FRAGMENT_MAX)
    is_closed = flag(fields, "is_closed")
    if place.subscription is not None:
        raise MalformedRequest(reason="The fragments are those of the topic, for all of its subscriptions.")
    if fragment is None or fragment >= place.entity.fragment_count:
        raise ResourceNotFound(kind="fragment", name=f"{place.path}/{fragment}")

    def changed(description: Description) -> Description:
        closed = description.closed_fragments - {fragment}
        return replace(description, closed_fragments=closed | {fragment} if is_closed else closed)

    await services.messages.update(place.entity, changed)
    return Response(200, JSON_HEADERS, dumps(await _described(services, place_of(services, fields), 0)))


async def _described(services: AdminServices, place: Place, subscriptions_max: int) -> dict[str, Any]:
    entity = place.entity
    description = entity.description if place.subscription is None else place.description_of_subscription
    counts = await counts_of(entity)
    described: dict[str, Any] = {
        "namespace": entity.namespace,
        "kind": place.kind,
        "path": place.path,
        "status": description.status,
        "is_partitioned": entity.is_partitioned,
        "requires_session": getattr(description, "requires_session", False),
        "settings": {name: _plain(value) for name, value in vars(description).items() if name not in _SHOWN_ELSEWHERE},
        "counts": describe_counts(place, counts),
        "fragments": await _fragments(services, place),
        "subscriptions": [],
        "subscriptions_total": 0,
        "rules": [],
    }
    if place.subscription is not None:
        described["rules"] = [describe_rule(rule) for rule in place.description_of_subscription.rules[:_RULES_MAX]]
    elif isinstance(entity.description, TopicDescription):
        described |= _subscriptions(entity.description, counts, subscriptions_max)
    return described


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _subscriptions(topic: TopicDescription, counts: ChannelCounts | None, limit: int) -> dict[str, Any]:
    ordered = sorted(topic.subscriptions.values(), key=lambda each: each.name.lower())
    return {
        "subscriptions_total": len(ordered),
        "subscriptions": [
            {
                "name": each.name,
                "status": each.status,
                "counts": None if counts is None else describe_channels(counts, each.number),
                "rules": [rule.name for rule in each.rules[:_RULES_MAX]],
            }
            for each in ordered[:limit]
        ],
    }


async def _fragments(services: AdminServices, place: Place) -> list[dict[str, Any]]:
    """Describe the fragments, with the messages of all subscriptions and dead letters; those away have no counts."""
    entity = place.entity
    record = services.namespaces.find(entity.namespace, entity.name)
    if record is None:
        raise ResourceNotFound(kind=place.kind, name=place.path)
    described = []
    for fragment in await entity.fragments():
        counts = None if fragment.state is FragmentState.DOWN else fragment.counts
        described.append(
            {
                "id": fragment.number,
                "state": fragment.state.value,
                **describe_point(services, record.keyspace, fragment.number),
                "messages": None if counts is None else total_of(counts),
                "bytes": None if counts is None else counts.bytes,
            }
        )
    return described
