"""The entities of a Config.json, created where they do not exist yet."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from asterism.errors import ResourceExists
from asterism.models.event_logs.description import ConsumerGroup, HubDescription
from asterism.models.messages.descriptions import RuleDescription

if TYPE_CHECKING:
    from asterism.apis.amqp.administration.call import AdministrationServices
    from asterism.apis.amqp.administration.config_file import (
        EntityConfig,
        HubConfig,
        MessagingConfig,
        SubscriptionConfig,
    )
    from asterism.apis.amqp.administration.operations import BusKind
    from asterism.models.messages.entity import Entity

_LOG = logging.getLogger("asterism.messaging")
# Set when all entities exist: an entity may forward to a later one of the file.
_FORWARDS: Final = ("forward_to", "forward_dead_letters_to")
_KINDS: Final[dict[str, BusKind]] = {"queue": "queue", "topic": "topic"}


async def create_configured_entities(
    config: MessagingConfig, services: AdministrationServices, *, default_namespace: str
) -> Sequence[str]:
    """Create the entities that are missing, and return counts for the operator, such as `3 queues`.

    Entities that exist stay as they are. A namespace that the server does not have stands for the default one, as the
    emulators have a single namespace with a fixed name.
    """
    for warning in config.warnings:
        _LOG.warning("%s", warning)
    counts: Counter[str] = Counter()
    for given in config.namespaces:
        namespace = given.name.lower() if services.rules.is_namespace(given.name.lower()) else default_namespace
        creator = _Creator(services, namespace, counts)
        for hub in given.hubs:
            await creator.create_hub(hub)
        created = [(entity, await creator.create_entity(entity)) for entity in given.entities]
        for entity, is_new in created:
            await creator.complete(entity, is_new=is_new)
    return [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items()]


class _Creator:
    def __init__(self, services: AdministrationServices, namespace: str, counts: Counter[str]) -> None:
        self._services = services
        self._namespace = namespace
        self._counts = counts

    async def create_hub(self, given: HubConfig) -> None:
        if self._is_taken(given.name, "hub"):
            return
        groups = {name.lower(): ConsumerGroup(name, self._services.now_ms()) for name in given.groups}
        description = HubDescription(given.partition_count, 0, 0, consumer_groups=groups)
        try:
            await self._services.hubs.create_hub(self._namespace, given.name, description)
        except ResourceExists:
            return
        self._counts["hub"] += 1

    async def create_entity(self, given: EntityConfig) -> bool:
        """Create a queue or topic, as yet without subscriptions and without forwarding; False if it exists."""
        if self._is_taken(given.name, given.kind):
            return False
        fields = {name: value for name, value in given.fields.items() if name not in _FORWARDS}
        try:
            await self._services.bus.create(self._namespace, given.name, _KINDS[given.kind], fields)
        except ResourceExists:
            return False
        self._counts[given.kind] += 1
        return True

    async def complete(self, given: EntityConfig, *, is_new: bool) -> None:
        entity = self._services.bus.find(self._namespace, given.name, _KINDS[given.kind])
        if entity is None:
            return
        forwards = {name: given.fields[name] for name in _FORWARDS if name in given.fields}
        if is_new and forwards:
            await self._services.bus.update(entity, forwards, is_complete=False)
        for subscription in given.subscriptions:
            await self._create_subscription(entity, subscription)

    async def _create_subscription(self, topic: Entity, given: SubscriptionConfig) -> None:
        if self._services.bus.topic_of(topic).find(given.name) is not None:
            return
        rules = given.rules or (RuleDescription(created_ms=self._services.now_ms()),)
        try:
            await self._services.bus.create_subscription(topic, given.name, given.fields, rules)
        except ResourceExists:
            return
        self._counts["subscription"] += 1

    def _is_taken(self, name: str, kind: str) -> bool:
        known = self._services.bus.store.namespaces.find(self._namespace, name)
        if known is not None and known.kind != kind:
            _LOG.warning(
                "the %s %r of the messaging configuration is not created: there is a %s", kind, name, known.kind
            )
        return known is not None
