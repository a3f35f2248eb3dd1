"""The operations on queues, topics, subscriptions and rules, which all forms of administration share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from asterism.apis.amqp.administration.properties import CLEARED_IF_ABSENT
from asterism.apis.amqp.administration.validation import (
    AnyDescription,
    Validator,
    check_entity_name,
    check_part_name,
)
from asterism.errors import MalformedRequest, ResourceExists, ResourceNotFound
from asterism.models.messages.descriptions import (
    QueueDescription,
    RuleDescription,
    SubscriptionDescription,
    TopicDescription,
)

if TYPE_CHECKING:
    from asterism.clock import Clock
    from asterism.models.messages.entity import Entity
    from asterism.models.messages.store import MessageStore
    from asterism.models.namespaces.store import EntityRecord

BusKind = Literal["queue", "topic"]
KINDS: Final[tuple[BusKind, ...]] = ("queue", "topic")
_NEW: Final = {"queue": QueueDescription, "topic": TopicDescription}

_Described = TypeVar("_Described", bound=AnyDescription)


@dataclass(frozen=True, slots=True)
class BusAdministration:
    """Creates, changes and deletes the entities of Service Bus. `fields` are values by the fields of descriptions."""

    store: MessageStore
    validator: Validator
    clock: Clock

    def now_ms(self) -> int:
        return int(self.clock.wall_seconds() * 1000)

    # --- finding ----------------------------------------------------------------------------------------------------

    def find(self, namespace: str, name: str, kind: BusKind | None = None) -> Entity | None:
        entity = self.store.find(namespace, name)
        if entity is None or entity.kind not in KINDS or kind not in (None, entity.kind):
            return None
        return entity

    def required(self, namespace: str, name: str, kind: BusKind | None = None) -> Entity:
        entity = self.find(namespace, name, kind)
        if entity is None:
            raise ResourceNotFound(kind=kind or "entity", name=name)
        return entity

    def records(self, namespace: str, *kinds: BusKind) -> list[EntityRecord]:
        """List the entities of some kinds in the order of their names."""
        return self.store.namespaces.entities_of(namespace, *kinds)

    def topic_of(self, entity: Entity) -> TopicDescription:
        if not isinstance(entity.description, TopicDescription):
            raise ResourceNotFound(kind="topic", name=entity.name)
        return entity.description

    def subscription_of(self, entity: Entity, name: str) -> SubscriptionDescription:
        found = self.topic_of(entity).find(name)
        if found is None:
            raise ResourceNotFound(kind="subscription", name=f"{entity.name}/subscriptions/{name}")
        return found

    def rule_of(self, subscription: SubscriptionDescription, name: str) -> RuleDescription:
        for rule in subscription.rules:
            if rule.name.lower() == name.lower():
                return rule
        raise ResourceNotFound(kind="rule", name=name)

    def is_target(self, namespace: str) -> Callable[[str], bool]:
        """Return a test for names to which messages of a namespace can be forwarded."""
        return lambda name: self.find(namespace, name) is not None

    # --- queues and topics ------------------------------------------------------------------------------------------

    async def create(self, namespace: str, name: str, kind: BusKind, fields: Mapping[str, Any]) -> Entity:
        check_entity_name(name)
        now = self.now_ms()
        description = _NEW[kind](**{**fields, "created_ms": now, "updated_ms": now})
        self.validator.check(description, before=None, is_target=self.is_target(namespace))
        if self.store.namespaces.find(namespace, name) is not None:
            raise ResourceExists(kind=kind, name=name)
        others = [_Known(record.partition_count > 1) for record in self.records(namespace, *KINDS)]
        self.validator.check_room(namespace, description, others)
        if isinstance(description, QueueDescription):
            return await self.store.create_queue(namespace, name, description)
        return await self.store.create_topic(namespace, name, description)

    async def update(
        self, entity: Entity, fields: Mapping[str, Any], *, is_complete: bool, kind: BusKind | None = None
    ) -> Entity:
        """Change the given fields; of a complete description, texts that are not given are taken away."""
        if kind not in (None, entity.kind):
            raise MalformedRequest(reason=f"'{entity.name}' is a {entity.kind}, not a {kind}.")

        def change(before: QueueDescription | TopicDescription) -> QueueDescription | TopicDescription:
            wanted = _changed(before, fields, is_complete=is_complete, now_ms=self.now_ms())
            self.validator.check(wanted, before=before, is_target=self.is_target(entity.namespace))
            return wanted

        await self.store.update(entity, change)
        return entity

    # --- subscriptions ----------------------------------------------------------------------------------------------

    async def create_subscription(
        self, entity: Entity, name: str, fields: Mapping[str, Any], rules: Sequence[RuleDescription]
    ) -> SubscriptionDescription:
        check_part_name("subscription", name)
        now = self.now_ms()
        wanted = SubscriptionDescription(
            **{**fields, "name": name, "rules": tuple(rules), "created_ms": now, "updated_ms": now}
        )
        topic = self.topic_of(entity)
        if topic.find(name) is not None:
            raise ResourceExists(kind="subscription", name=name)
        self._check_subscription(entity, wanted, before=None)
        self.validator.check_rules(wanted.rules)
        self.validator.check_topic(entity.namespace, topic.with_subscription(wanted))
        await self.store.create_subscription(entity, wanted)
        return self.subscription_of(entity, name)

    async def update_subscription(
        self, entity: Entity, name: str, fields: Mapping[str, Any], *, is_complete: bool
    ) -> SubscriptionDescription:
        self.subscription_of(entity, name)

        def change(before: SubscriptionDescription) -> SubscriptionDescription:
            wanted = _changed(before, fields, is_complete=is_complete, now_ms=self.now_ms())
            self._check_subscription(entity, wanted, before=before)
            return wanted

        await self.store.update_subscription(entity, name, change)
        return self.subscription_of(entity, name)

    async def delete_subscription(self, entity: Entity, name: str) -> None:
        await self.store.delete_subscription(entity, self.subscription_of(entity, name).name)

    def _check_subscription(
        self, entity: Entity, wanted: SubscriptionDescription, *, before: SubscriptionDescription | None
    ) -> None:
        self.validator.check(wanted, before=before, is_target=self.is_target(entity.namespace))

    # --- rules ------------------------------------------------------------------------------------------------------

    async def create_rule(self, entity: Entity, subscription: str, rule: RuleDescription) -> RuleDescription:
        self.validator.check_rules((rule,))

        def change(rules: tuple[RuleDescription, ...]) -> tuple[RuleDescription, ...]:
            if any(known.name.lower() == rule.name.lower() for known in rules):
                raise ResourceExists(kind="rule", name=rule.name)
            return (*rules, rule)

        await self._change_rules(entity, subscription, change)
        return rule

    async def update_rule(self, entity: Entity, subscription: str, rule: RuleDescription) -> RuleDescription:
        """Replace the rule of this name; ResourceNotFound if it does not exist."""
        known = self.rule_of(self.subscription_of(entity, subscription), rule.name)
        self.validator.check_rules((rule,))
        wanted = replace(rule, name=known.name, created_ms=known.created_ms)
        await self._change_rules(
            entity,
            subscription,
            lambda rules: tuple(wanted if each.name.lower() == wanted.name.lower() else each for each in rules),
        )
        return wanted

    async def delete_rule(self, entity: Entity, subscription: str, name: str) -> None:
        def change(rules: tuple[RuleDescription, ...]) -> tuple[RuleDescription, ...]:
            rest = tuple(rule for rule in rules if rule.name.lower() != name.lower())
            if len(rest) == len(rules):
                raise ResourceNotFound(kind="rule", name=name)
            return rest

        await self._change_rules(entity, subscription, change)

    async def _change_rules(
        self,
        entity: Entity,
        subscription: str,
        change: Callable[[tuple[RuleDescription, ...]], tuple[RuleDescription, ...]],
    ) -> None:
        topic = self.topic_of(entity)
        name = self.subscription_of(entity, subscription).name

        def changed(before: SubscriptionDescription) -> SubscriptionDescription:
            wanted = replace(before, rules=change(before.rules), updated_ms=self.now_ms())
            self.validator.check_topic(entity.namespace, topic.with_subscription(wanted))
            return wanted

        await self.store.update_subscription(entity, name, changed)


@dataclass(frozen=True, slots=True)
class _Known:
    is_partitioned: bool


def _changed(before: _Described, fields: Mapping[str, Any], *, is_complete: bool, now_ms: int) -> _Described:
    cleared = {name: None for name in CLEARED_IF_ABSENT if is_complete and name not in fields and hasattr(before, name)}
    return replace(before, **{**cleared, **fields, "updated_ms": now_ms})
