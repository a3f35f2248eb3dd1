"""The parameters of requests about messaging: namespaces, entities by their paths, numbers and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.admin.parameters import text_of
from asterism.apis.admin.services import AdminServices
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.models.messages.channel import Channel
from asterism.models.messages.descriptions import SubscriptionDescription, TopicDescription
from asterism.models.messages.entity import Entity
from asterism.models.messages.messages import SubQueue
from asterism.models.namespaces.authorization import entity_at

# As the data doors name them; the path of a subscription is `topic/subscriptions/name`.
SUBSCRIPTIONS: Final = "subscriptions/"
SUB_QUEUES: Final = {
    "main": SubQueue.MAIN,
    "dead-letter": SubQueue.DEAD_LETTER,
    "transfer-dead-letter": SubQueue.TRANSFER_DEAD_LETTER,
}


@dataclass(frozen=True, slots=True)
class Place:
    """A queue, a topic or a subscription."""

    entity: Entity
    # In lower case; None for the queue or topic itself.
    subscription: str | None = None

    @property
    def path(self) -> str:
        if self.subscription is None:
            return self.entity.name
        return f"{self.entity.name}/{SUBSCRIPTIONS}{self.description_of_subscription.name}"

    @property
    def kind(self) -> str:
        return self.entity.kind if self.subscription is None else "subscription"

    @property
    def number(self) -> int:
        """The number of the subscription within its topic; 0 for the entity itself."""
        return 0 if self.subscription is None else self.description_of_subscription.number

    @property
    def description_of_subscription(self) -> SubscriptionDescription:
        topic = self.entity.description
        assert isinstance(topic, TopicDescription), "only topics have subscriptions"
        assert self.subscription is not None
        found = topic.subscriptions.get(self.subscription)
        if found is None:
            raise ResourceNotFound(kind="subscription", name=f"{self.entity.name}/{SUBSCRIPTIONS}{self.subscription}")
        return found


def namespace_of(services: AdminServices, fields: Mapping[str, Any]) -> str:
    """Return the namespace that a request names; ResourceNotFound if it may not reach it."""
    namespace = text_of(dict(fields), "namespace")
    if not is_in_scope(services, namespace):
        raise ResourceNotFound(kind="namespace", name=namespace)
    return namespace


def is_in_scope(services: AdminServices, namespace: str) -> bool:
    return services.scope is None or services.scope == namespace


def place_of(services: AdminServices, fields: Mapping[str, Any]) -> Place:
    """Return what `entity` names, with a `subscription` beside it or in its path. Names may have slashes: the longest
    name of an entity that exists is meant."""
    namespace, path = namespace_of(services, fields), text_of(dict(fields), "entity").strip("/")
    found = entity_at(services.namespaces, namespace, path)
    entity = None if found is None else services.messages.find(namespace, found[0].name)
    if found is None or entity is None:
        raise ResourceNotFound(kind="queue, topic or subscription", name=path)
    rest, subscription = found[1], fields.get("subscription")
    if rest:
        if subscription is not None or not rest.lower().startswith(SUBSCRIPTIONS):
            raise ResourceNotFound(kind="queue, topic or subscription", name=path)
        subscription = rest[len(SUBSCRIPTIONS) :]
    if subscription is None:
        return Place(entity)
    if not isinstance(subscription, str) or not isinstance(entity.description, TopicDescription):
        raise MalformedRequest(reason=f"'{entity.name}' is a {entity.kind}, which has no subscriptions.")
    place = Place(entity, subscription.lower())
    # Refused here if it does not exist.
    _ = place.number
    return place


def sub_queue_of(fields: Mapping[str, Any]) -> SubQueue:
    name = fields.get("queue", "main")
    if name not in SUB_QUEUES:
        raise MalformedRequest(reason=f"'queue' must be one of {', '.join(SUB_QUEUES)}.")
    return SUB_QUEUES[name]


def channel_of(services: AdminServices, place: Place, sub_queue: SubQueue) -> Channel:
    """Return the messages of a place; a topic has none but those of its subscriptions."""
    if place.kind == "topic" and sub_queue is not SubQueue.TRANSFER_DEAD_LETTER:
        raise MalformedRequest(
            reason=f"'{place.path}' is a topic: its messages are in its subscriptions, such as "
            f"{place.path}/{SUBSCRIPTIONS}NAME."
        )
    return services.messages.channel(place.entity, place.subscription, sub_queue)


def optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise MalformedRequest(reason=f"'{name}' must be a text.")
    return value


def optional_number(fields: Mapping[str, Any], name: str, *, minimum: int, maximum: int) -> int | None:
    """Return a whole number of a body, or None if it is absent or null."""
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int or not minimum <= value <= maximum:
        raise MalformedRequest(reason=f"'{name}' must be a whole number from {minimum:,} to {maximum:,}.")
    return value


def number(fields: Mapping[str, Any], name: str, *, default: int, minimum: int, maximum: int) -> int:
    found = optional_number(fields, name, minimum=minimum, maximum=maximum)
    return default if found is None else found


def flag(fields: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise MalformedRequest(reason=f"'{name}' must be true or false.")
    return value
