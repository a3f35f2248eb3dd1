"""The links of this process by the entity that they are attached to: detached when it is deleted or disabled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from asterism.apis.amqp.nodes import RESOURCE_LIMIT, AmqpError


@dataclass(eq=False, slots=True)
class RegisteredLink:
    """A link of an entity, and the way to end it."""

    namespace: str
    entity: str
    subscription: str | None
    is_receiver: bool
    end: Callable[[AmqpError], None]


@dataclass(slots=True)
class _Place:
    links: set[RegisteredLink] = field(default_factory=set)
    receivers: dict[str | None, int] = field(default_factory=dict)


class LinkRegistry:
    """Links by namespace and entity, without regard to the case of names."""

    def __init__(self, receivers_max: int) -> None:
        self._receivers_max = receivers_max
        self._places: dict[tuple[str, str], _Place] = {}

    def add(self, link: RegisteredLink) -> None:
        """Enter a link; AmqpError when the entity has as many receivers as it may have."""
        place = self._places.setdefault((link.namespace, link.entity.lower()), _Place())
        if link.is_receiver:
            subscription = _lower(link.subscription)
            count = place.receivers.get(subscription, 0)
            if count >= self._receivers_max:
                raise AmqpError(
                    RESOURCE_LIMIT, f"The entity has {self._receivers_max} receivers, as many as it may have."
                )
            place.receivers[subscription] = count + 1
        place.links.add(link)

    def remove(self, link: RegisteredLink) -> None:
        key = (link.namespace, link.entity.lower())
        place = self._places.get(key)
        if place is None or link not in place.links:
            return
        place.links.remove(link)
        if link.is_receiver:
            place.receivers[_lower(link.subscription)] -= 1
        if not place.links:
            del self._places[key]

    def links_of(self, namespace: str, entity: str) -> list[RegisteredLink]:
        place = self._places.get((namespace, entity.lower()))
        return [] if place is None else list(place.links)


def _lower(name: str | None) -> str | None:
    return None if name is None else name.lower()
