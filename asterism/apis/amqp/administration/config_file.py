"""Config.json of the vendor's emulators for Service Bus and Event Hubs, read and checked.

The file is JSON with comments, and one of two shapes. Everything in it is checked before the server starts; properties
that are not known here are passed over with a warning, so that files of newer emulators still work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from asterism.apis.amqp.administration import properties
from asterism.apis.amqp.administration.properties import Kind, Property
from asterism.apis.amqp.administration.rule_json import RULE_PROPERTIES, read_rule
from asterism.apis.amqp.administration.validation import Validator, check_entity_name, check_part_name
from asterism.apis.settings import StartRefused
from asterism.errors import AsterismError, MalformedRequest
from asterism.languages.bus_sql.rules import RuleCompiler
from asterism.limits import MIB
from asterism.models.event_logs.description import (
    DEFAULT_GROUP,
    ConsumerGroup,
    HubDescription,
    HubLimits,
    check_hub_name,
    with_group,
)
from asterism.models.messages.descriptions import (
    QueueDescription,
    RuleDescription,
    SubscriptionDescription,
    TopicDescription,
)

_FILE_BYTES_MAX: Final = 16 * MIB
_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA: Final = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])', re.DOTALL)
_UNLIMITED: Final = 2**62


@dataclass(frozen=True, slots=True)
class SubscriptionConfig:
    name: str
    # Values by the fields of its description.
    fields: Mapping[str, Any]
    # None: the rule that lets everything in.
    rules: tuple[RuleDescription, ...] | None


@dataclass(frozen=True, slots=True)
class EntityConfig:
    """A queue or topic."""

    kind: str
    name: str
    fields: Mapping[str, Any]
    subscriptions: tuple[SubscriptionConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class HubConfig:
    name: str
    partition_count: int
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamespaceConfig:
    name: str
    entities: tuple[EntityConfig, ...] = ()
    hubs: tuple[HubConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class MessagingConfig:
    file: str
    namespaces: tuple[NamespaceConfig, ...]
    # Sentences for the operator about properties that have no meaning here.
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _NoLimits:
    """The limits of the server are not known when the file is read; they are checked when entities are created."""

    partitioned_auto_delete_refused: bool = False
    bus_entities_max: int = _UNLIMITED
    bus_partitioned_entities_max: int = _UNLIMITED
    bus_subscriptions_max: int = _UNLIMITED
    bus_sql_filters_max: int = _UNLIMITED
    bus_correlation_filters_max: int = _UNLIMITED
    bus_entity_megabytes_max: int = _UNLIMITED
    bus_message_bytes_max: int = _UNLIMITED


def read_config(path: str) -> MessagingConfig:
    """Return the entities that a file describes; StartRefused with a line for the operator if it cannot be read, or
    has an error."""
    file = Path(path)
    try:
        size = file.stat().st_size
        text = file.read_text(encoding="utf-8-sig") if size <= _FILE_BYTES_MAX else ""
    except (OSError, UnicodeDecodeError) as problem:
        raise StartRefused(f"the messaging configuration {path} cannot be read: {problem}") from None
    if size > _FILE_BYTES_MAX:
        raise StartRefused(f"the messaging configuration {path} has more than {_FILE_BYTES_MAX:,} bytes")
    return parse_config(text, path)


def parse_config(text: str, file: str) -> MessagingConfig:
    try:
        content = json.loads(_plain_json(text))
    except (ValueError, RecursionError) as problem:
        raise StartRefused(f"the messaging configuration {file} is not JSON: {problem}") from None
    reader = _Reader(file)
    try:
        return MessagingConfig(file, reader.namespaces(content), tuple(reader.warnings))
    except AsterismError as error:
        raise StartRefused(f"the messaging configuration {file} is wrong at {reader.place}: {error.sentence}") from None


def _plain_json(text: str) -> str:
    """Return JSON without comments and commas behind the last item; strings stay as they are."""

    def keep_strings(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else " "

    return _TRAILING_COMMA.sub(keep_strings, _TOKEN.sub(keep_strings, text))


@dataclass
class _Reader:
    """Reads the parts of a configuration, and remembers the place in the file for messages."""

    file: str
    place: str = "UserConfig"
    warnings: list[str] = field(default_factory=list)
    validator: Validator = field(default_factory=lambda: Validator(_NoLimits(), RuleCompiler(bytes)))

    def namespaces(self, content: Any) -> tuple[NamespaceConfig, ...]:
        config = _folded(self._object(_folded(self._object(content)).get("userconfig")))
        self._warn_about(config, ("namespaces", "namespaceconfig", "logging", "loggingconfig"))
        found = []
        for name, read in (("Namespaces", self._bus_namespace), ("NamespaceConfig", self._hub_namespace)):
            found += self._each(config, name, read)
        return tuple(found)

    # --- Service Bus ------------------------------------------------------------------------------------------------

    def _bus_namespace(self, given: dict[str, Any]) -> NamespaceConfig:
        self._warn_about(given, ("name", "queues", "topics"))
        name = self._name(given)
        entities = (*self._each(given, "Queues", self._queue), *self._each(given, "Topics", self._topic))
        names = {entity.name.lower() for entity in entities}
        if len(names) != len(entities):
            raise MalformedRequest(reason="Two entities have the same name.")
        for entity in entities:
            self._check_targets(entity.name, entity.fields, names)
            for subscription in entity.subscriptions:
                self._check_targets(f"{entity.name}/subscriptions/{subscription.name}", subscription.fields, names)
        return NamespaceConfig(name, entities)

    def _queue(self, given: dict[str, Any]) -> EntityConfig:
        self._warn_about(given, ("name", "properties"))
        name = self._name(given)
        check_entity_name(name)
        fields = self._fields(given, properties.QUEUE)
        self.validator.check(QueueDescription(**fields), before=None, is_target=_any)
        return EntityConfig("queue", name, fields)

    def _topic(self, given: dict[str, Any]) -> EntityConfig:
        self._warn_about(given, ("name", "properties", "subscriptions"))
        name = self._name(given)
        check_entity_name(name)
        fields = self._fields(given, properties.TOPIC)
        self.validator.check(TopicDescription(**fields), before=None, is_target=_any)
        subscriptions = self._each(given, "Subscriptions", self._subscription)
        if len({subscription.name.lower() for subscription in subscriptions}) != len(subscriptions):
            raise MalformedRequest(reason=f"Two subscriptions of the topic '{name}' have the same name.")
        return EntityConfig("topic", name, fields, tuple(subscriptions))

    def _subscription(self, given: dict[str, Any]) -> SubscriptionConfig:
        self._warn_about(given, ("name", "properties", "rules"))
        name = self._name(given)
        check_part_name("subscription", name)
        fields = self._fields(given, properties.SUBSCRIPTION)
        self.validator.check(SubscriptionDescription(**fields), before=None, is_target=_any)
        rules = tuple(self._each(given, "Rules", self._rule))
        self.validator.check_rules(rules)
        return SubscriptionConfig(name, fields, rules or None)

    def _rule(self, given: dict[str, Any]) -> RuleDescription:
        self._warn_about(given, ("name", "properties"))
        own = self._object(given.get("properties") or {})
        self._warn_about(_folded(own), RULE_PROPERTIES)
        rule = read_rule(self._name(given), own, now_ms=0)
        self.validator.check_rules((rule,))
        return rule

    def _fields(self, given: dict[str, Any], table: tuple[Property, ...]) -> dict[str, Any]:
        own = _folded(self._object(given.get("properties") or {}))
        settable = {row.name.lower(): row.name for row in table if row.field and row.kind is not Kind.COMPOUND}
        self._warn_about(own, settable)
        return properties.read_values(
            table, {settable[name]: value for name, value in own.items() if name in settable and value != ""}
        )

    def _check_targets(self, name: str, fields: Mapping[str, Any], names: set[str]) -> None:
        for target in (fields.get("forward_to"), fields.get("forward_dead_letters_to")):
            if target is not None and target.lower() not in names:
                raise MalformedRequest(reason=f"'{name}' forwards to '{target}', which the file does not have.")

    # --- Event Hubs -------------------------------------------------------------------------------------------------

    def _hub_namespace(self, given: dict[str, Any]) -> NamespaceConfig:
        self._warn_about(given, ("type", "name", "entities"))
        kind = given.get("type", "EventHub")
        if not isinstance(kind, str) or kind.lower() != "eventhub":
            raise MalformedRequest(reason="The type of a namespace of hubs is EventHub.")
        name = self._name(given)
        hubs = tuple(self._each(given, "Entities", self._hub))
        if len({hub.name.lower() for hub in hubs}) != len(hubs):
            raise MalformedRequest(reason="Two hubs have the same name.")
        return NamespaceConfig(name, hubs=hubs)

    def _hub(self, given: dict[str, Any]) -> HubConfig:
        self._warn_about(given, ("name", "partitioncount", "consumergroups"))
        limits = HubLimits(partitions_max=_UNLIMITED, groups_max=_UNLIMITED)
        name = self._name(given)
        check_hub_name(name, limits)
        text = str(given.get("partitioncount", 1)).strip()
        if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= 2_000:
            raise MalformedRequest(reason=f"The PartitionCount of the hub '{name}' is not a number from 1 to 2,000.")
        groups = tuple(self._each(given, "ConsumerGroups", self._group))
        description = HubDescription(int(text), 0, 0)
        for group in groups:
            description = with_group(description, ConsumerGroup(group, 0), namespace="", limits=limits)
        return HubConfig(name, int(text), groups)

    def _group(self, given: dict[str, Any]) -> str:
        self._warn_about(given, ("name",))
        name = self._name(given)
        return DEFAULT_GROUP if name.lower() == DEFAULT_GROUP.lower() else name

    # --- parts ------------------------------------------------------------------------------------------------------

    def _each(self, given: Mapping[str, Any], name: str, read: Callable[[dict[str, Any]], Any]) -> list[Any]:
        """Read the items of a list; messages name the item that is wrong."""
        items = given.get(name.lower())
        outer = self.place
        self.place = f"{outer}.{name}"
        if items is None:
            items = []
        if not isinstance(items, list):
            raise MalformedRequest(reason="This is not a list.")
        found = []
        for number, item in enumerate(items):
            self.place = f"{outer}.{name}[{number}]"
            found.append(read(_folded(self._object(item))))
        self.place = outer
        return found

    def _object(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise MalformedRequest(reason="This is not an object.")
        return given

    def _name(self, given: Mapping[str, Any]) -> str:
        name = given.get("name")
        if not isinstance(name, str) or not name:
            raise MalformedRequest(reason="The name is missing.")
        return name

    def _warn_about(self, given: Mapping[str, Any], known: Any) -> None:
        for name in given:
            if name not in known:
                self.warnings.append(
                    f"{self.file}: the property '{name}' at {self.place} is not known and has no effect"
                )


def _folded(given: dict[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in given.items()}


def _any(_: str) -> bool:
    return True
