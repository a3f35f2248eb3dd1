"""Queues, topics and subscriptions of messaging namespaces: created, found, changed and deleted. One per process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal, TypeVar, cast

from asterism.clock import Clock
from asterism.errors import ResourceExists, ResourceNotFound
from asterism.keyspaces.catalog.memory import CatalogChanges
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.messages.channel import Channel
from asterism.models.messages.descriptions import (
    FRAGMENTS_OF_PARTITIONED,
    Description,
    QueueDescription,
    SubscriptionDescription,
    TopicDescription,
)
from asterism.models.messages.entity import Entity
from asterism.models.messages.forwarding import Forwarder
from asterism.models.messages.messages import SubQueue
from asterism.models.messages.rules import CompileRules
from asterism.models.messages.services import MessageServices
from asterism.models.namespaces.store import EntityRecord, NamespaceStore

# The store may not answer.
_BATCHES_SECONDS_MAX: Final = 5.0

_Described = TypeVar("_Described", bound=Description)

BusKind = Literal["queue", "topic"]

# Called with the namespace, the name of the entity, and the name of the subscription if the news is about one.
Listener = Callable[[str, str, str | None], None]


class MessageStore:
    """See the module. Entities are looked up in memory; changing one is one durable batch in the catalog."""

    def __init__(
        self,
        namespaces: NamespaceStore,
        router: PartitionRouter,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        compile_rules: CompileRules,
    ) -> None:
        self.namespaces = namespaces
        self.services = MessageServices(router, clock, random_bytes, compile_rules)
        self.services.forwarding = Forwarder(self.find)
        # By the resource ids of their keyspaces; only those that were used in this process.
        self._entities: dict[bytes, Entity] = {}
        # Their descriptions as they were last seen, by which news is told.
        self._seen: dict[bytes, Description] = {}
        # Something was deleted; something was changed so that links may have to end. In every process.
        self.deletion_listeners: list[Listener] = []
        self.change_listeners: list[Listener] = []
        namespaces.catalog.listeners.append(self._take_over)

    async def stop(self) -> None:
        """End what works in the background, and wait a while for batches on their way."""
        await self.services.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_BATCHES_SECONDS_MAX):
                for entity in list(self._entities.values()):
                    await entity.idle()

    # --- finding ----------------------------------------------------------------------------------------------------

    def find(self, namespace: str, name: str) -> Entity | None:
        """Return a queue or topic; None if no entity has this name."""
        record = self.namespaces.find(namespace, name)
        return None if record is None or record.kind == "hub" else self.entity_of(record)

    def entities(self, namespace: str, kind: BusKind | None = None) -> list[Entity]:
        """List the queues and topics of a namespace in the order of their names."""
        kinds: tuple[BusKind, ...] = ("queue", "topic") if kind is None else (kind,)
        return [self.entity_of(record) for record in self.namespaces.entities_of(namespace, *kinds)]

    def entity_of(self, record: EntityRecord) -> Entity:
        """Return the queue or topic of a record of the registry."""
        rid = record.keyspace.record.rid
        entity = self._entities.get(rid)
        if entity is None or entity.keyspace is not record.keyspace:
            entity = self._entities[rid] = Entity(record, self.services)
            self._seen[rid] = entity.description
        return entity

    def entity_of_keyspace(self, rid: bytes) -> Entity | None:
        """Return the entity of a keyspace; None if it was deleted."""
        entity = self._entities.get(rid)
        if entity is not None:
            return None if entity.is_gone else entity
        records = self.namespaces.all("queue", "topic")
        return next((self.entity_of(record) for record in records if record.keyspace.record.rid == rid), None)

    def channel(self, entity: Entity, subscription: str | None, sub_queue: SubQueue = SubQueue.MAIN) -> Channel:
        """Return the channel of a queue, or of a subscription of a topic; ResourceNotFound if it does not exist."""
        return entity.channel(subscription, sub_queue)

    # --- queues and topics ------------------------------------------------------------------------------------------

    async def create_queue(self, namespace: str, name: str, description: QueueDescription) -> Entity:
        """Create a queue; ResourceExists if the name is taken, by whatever kind of entity."""
        return await self._create(namespace, name, "queue", description)

    async def create_topic(self, namespace: str, name: str, description: TopicDescription) -> Entity:
        for subscription in description.subscriptions.values():
            self.services.compile_rules(subscription.rules)
        return await self._create(namespace, name, "topic", description)

    async def _create(self, namespace: str, name: str, kind: BusKind, description: Description) -> Entity:
        now_ms = self.services.now_ms()
        described = replace(
            description, created_ms=description.created_ms or now_ms, updated_ms=description.updated_ms or now_ms
        )
        record = await self.namespaces.create(
            namespace,
            name,
            kind,
            points=FRAGMENTS_OF_PARTITIONED if description.is_partitioned else 1,
            description=described.to_json(),
        )
        return self.entity_of(record)

    async def update(self, entity: Entity, change: Callable[[_Described], _Described]) -> Entity:
        """Replace the description by what `change` makes of the present one, again if another process was faster.
        Whether an entity is partitioned cannot be changed."""
        kind = QueueDescription if entity.kind == "queue" else TopicDescription

        def changed(before: _Described) -> _Described:
            after = change(before)
            return replace(after, updated_ms=self.services.now_ms(), is_partitioned=before.is_partitioned)

        record = self._record_of(entity)
        await self.namespaces.change(
            record, lambda stored: changed(cast("_Described", kind.from_json(stored))).to_json()
        )
        self._notice(entity)
        return entity

    async def delete(self, entity: Entity) -> None:
        """Delete a queue or topic with all its messages; ResourceNotFound if it is gone already."""
        await self.namespaces.delete(self._record_of(entity))
        self._notice(entity)

    def _record_of(self, entity: Entity) -> EntityRecord:
        return EntityRecord(entity.namespace, entity.name, entity.kind, {}, entity.keyspace)

    # --- subscriptions ----------------------------------------------------------------------------------------------

    async def create_subscription(
        self, topic: Entity, subscription: SubscriptionDescription
    ) -> SubscriptionDescription:
        """Create a subscription, which gets the messages that are sent from now on; ResourceExists if the topic has one
        of this name."""
        self.services.compile_rules(subscription.rules)
        now_ms = self.services.now_ms()

        def change(before: TopicDescription) -> TopicDescription:
            if before.find(subscription.name) is not None:
                raise ResourceExists(kind="subscription", name=subscription.name)
            number = before.next_subscription_number
            created = replace(
                subscription,
                number=number,
                created_ms=subscription.created_ms or now_ms,
                updated_ms=subscription.updated_ms or now_ms,
            )
            return replace(before.with_subscription(created), next_subscription_number=number + 1)

        await self.update(_topic(topic), change)
        return self._subscription(topic, subscription.name)

    async def update_subscription(
        self, topic: Entity, name: str, change: Callable[[SubscriptionDescription], SubscriptionDescription]
    ) -> SubscriptionDescription:
        """Replace a subscription, its rules included, by what `change` makes of it; its name and number stay."""

        def changed(before: TopicDescription) -> TopicDescription:
            found = before.find(name)
            if found is None:
                raise ResourceNotFound(kind="subscription", name=name)
            after = replace(change(found), name=found.name, number=found.number, updated_ms=self.services.now_ms())
            if after.rules is not found.rules:
                self.services.compile_rules(after.rules)
            return before.with_subscription(after)

        await self.update(_topic(topic), changed)
        return self._subscription(topic, name)

    async def delete_subscription(self, topic: Entity, name: str) -> None:
        """Delete a subscription; its messages are removed in the background."""

        def change(before: TopicDescription) -> TopicDescription:
            if before.find(name) is None:
                raise ResourceNotFound(kind="subscription", name=name)
            return before.without_subscription(name)

        await self.update(_topic(topic), change)

    def _subscription(self, topic: Entity, name: str) -> SubscriptionDescription:
        found = topic.topic.find(name)
        if found is None:
            # Another call has deleted it meanwhile.
            raise ResourceNotFound(kind="subscription", name=name)
        return found

    # --- news -------------------------------------------------------------------------------------------------------

    def _take_over(self, changes: CatalogChanges) -> None:
        """Notice changes of other processes."""
        changed = {keyspace.record.rid for keyspace in changes.keyspaces}
        for rid, entity in list(self._entities.items()):
            if rid in changed or entity.keyspace.deleted:
                self._notice(entity)

    def _notice(self, entity: Entity) -> None:
        """Tell callers and listeners what has become of an entity."""
        rid = entity.keyspace.record.rid
        before = self._seen.get(rid)
        if entity.is_gone:
            if self._entities.get(rid) is entity:
                del self._entities[rid]
                self._seen.pop(rid, None)
            entity.changed()
            _tell(self.deletion_listeners, entity, None)
            return
        after = self._seen[rid] = entity.description
        entity.changed()
        self.services.forwarding.wake_all(entity)
        if before is None:
            return
        if before.status != after.status or _target_of(before) != _target_of(after):
            _tell(self.change_listeners, entity, None)
        if isinstance(before, TopicDescription) and isinstance(after, TopicDescription):
            self._notice_subscriptions(entity, before, after)

    def _notice_subscriptions(self, entity: Entity, before: TopicDescription, after: TopicDescription) -> None:
        for key, old in before.subscriptions.items():
            new = after.subscriptions.get(key)
            if new is None or new.number != old.number:
                _tell(self.deletion_listeners, entity, old.name)
            elif new.status != old.status or _target_of(new) != _target_of(old):
                _tell(self.change_listeners, entity, old.name)


def _topic(entity: Entity) -> Entity:
    if entity.kind != "topic":
        raise ResourceNotFound(kind="topic", name=entity.name)
    return entity


def _target_of(description: Description | SubscriptionDescription) -> tuple[str | None, str | None]:
    if isinstance(description, TopicDescription):
        return None, None
    return description.forward_to, description.forward_dead_letters_to


def _tell(listeners: list[Listener], entity: Entity, subscription: str | None) -> None:
    for listener in list(listeners):
        listener(entity.namespace, entity.name, subscription)
