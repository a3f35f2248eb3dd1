"""The rules for entities and their names: the only place that decides whether a description is allowed.

Atom, the resource manager's JSON and Config.json all lead here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from asterism.errors import MalformedRequest, QuotaExceeded
from asterism.limits import KIB
from asterism.models.messages.descriptions import (
    QueueDescription,
    RuleDescription,
    SubscriptionDescription,
    TopicDescription,
)
from asterism.models.messages.rules import CompileRules
from asterism.models.namespaces.authorization import checked_rules

_SECOND_MS: Final = 1_000
_MINUTE_MS: Final = 60 * _SECOND_MS
_DAY_MS: Final = 24 * 60 * _MINUTE_MS
ENTITY_NAME_CHARACTERS_MAX: Final = 260
# Of subscriptions and rules.
PART_NAME_CHARACTERS_MAX: Final = 50
_ENTITY_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._/~-]*[A-Za-z0-9_])?", re.ASCII)
_PART_NAME: Final = re.compile(r"[$A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?", re.ASCII)
_METADATA_CHARACTERS_MAX: Final = 1024
_DELIVERIES_MAX: Final = 2_000
_LOCK_MS_MAX: Final = 5 * _MINUTE_MS
_AUTO_DELETE_MS_MIN: Final = 5 * _MINUTE_MS
_WINDOW_MS_MIN: Final = 20 * _SECOND_MS
_WINDOW_MS_MAX: Final = 7 * _DAY_MS
# Properties that are settled when an entity is created.
_FIXED: Final = {
    "requires_session": "RequiresSession",
    "is_partitioned": "EnablePartitioning",
    "requires_duplicate_detection": "RequiresDuplicateDetection",
}

AnyDescription = QueueDescription | TopicDescription | SubscriptionDescription


class EntityLimits(Protocol):
    """The limits of a namespace, as the settings have them."""

    @property
    def partitioned_auto_delete_refused(self) -> bool: ...
    @property
    def bus_entities_max(self) -> int: ...
    @property
    def bus_partitioned_entities_max(self) -> int: ...
    @property
    def bus_subscriptions_max(self) -> int: ...
    @property
    def bus_sql_filters_max(self) -> int: ...
    @property
    def bus_correlation_filters_max(self) -> int: ...
    @property
    def bus_entity_megabytes_max(self) -> int: ...
    @property
    def bus_message_bytes_max(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Validator:
    limits: EntityLimits
    compile_rules: CompileRules

    def check(
        self,
        wanted: AnyDescription,
        *,
        before: AnyDescription | None,
        is_target: Callable[[str], bool],
    ) -> None:
        """Refuse a description (MalformedRequest); `before` is the one in force, None for a new entity. `is_target`
        tells whether messages can be forwarded to an entity."""
        _check_lock(wanted)
        _check_times(wanted)
        if wanted.user_metadata is not None and len(wanted.user_metadata) > _METADATA_CHARACTERS_MAX:
            _refuse(f"UserMetadata has more than {_METADATA_CHARACTERS_MAX:,} characters.")
        if not isinstance(wanted, TopicDescription):
            _check_between("MaxDeliveryCount", wanted.max_delivery_count, 1, _DELIVERIES_MAX)
            for property, target in (
                ("ForwardTo", wanted.forward_to),
                ("ForwardDeadLetteredMessagesTo", wanted.forward_dead_letters_to),
            ):
                _check_target(property, target, is_target)
        if not isinstance(wanted, SubscriptionDescription):
            self._check_entity(wanted)
        if before is not None:
            _check_fixed(wanted, before)

    def check_topic(self, namespace: str, topic: TopicDescription) -> None:
        """Refuse a topic with too many subscriptions or filters (QuotaExceeded)."""
        subscriptions = topic.subscriptions.values()
        sql, correlation = filter_counts(subscriptions)
        for quota, total, most in (
            ("subscriptions of a topic", len(subscriptions), self.limits.bus_subscriptions_max),
            ("SQL filters of a topic", sql, self.limits.bus_sql_filters_max),
            ("correlation filters of a topic", correlation, self.limits.bus_correlation_filters_max),
        ):
            check_quota(namespace, quota, total, most)

    def check_rules(self, rules: Sequence[RuleDescription]) -> None:
        """Refuse rules that do not compile, and names that two of them have (MalformedRequest)."""
        if len({rule.name.lower() for rule in rules}) != len(rules):
            _refuse("Two rules of the subscription have the same name.")
        for rule in rules:
            check_part_name("rule", rule.name)
        self.compile_rules(rules)

    def check_room(self, namespace: str, wanted: QueueDescription | TopicDescription, others: Iterable[Any]) -> None:
        """Refuse one more entity where a namespace has as many as it may have (QuotaExceeded); `others` are entities
        with the property `is_partitioned`."""
        known = list(others)
        check_quota(namespace, "queues and topics", len(known) + 1, self.limits.bus_entities_max)
        if wanted.is_partitioned:
            partitioned = sum(entity.is_partitioned for entity in known) + 1
            check_quota(
                namespace, "partitioned queues and topics", partitioned, self.limits.bus_partitioned_entities_max
            )

    def _check_entity(self, wanted: QueueDescription | TopicDescription) -> None:
        _check_between("MaxSizeInMegabytes", wanted.max_size_mb, 1, self.limits.bus_entity_megabytes_max)
        message_kb_max = self.limits.bus_message_bytes_max // KIB
        if not 1 <= wanted.max_message_kb <= max(1, message_kb_max):
            _refuse(
                f"MaxMessageSizeInKilobytes is {wanted.max_message_kb:,}; it can be at most {message_kb_max:,}, as in "
                "the Standard tier. Raise the limit bus_message_bytes_max of the server for larger messages."
            )
        if wanted.is_express and wanted.requires_duplicate_detection:
            _refuse("EnableExpress and RequiresDuplicateDetection cannot be enabled together.")
        if wanted.is_partitioned and wanted.auto_delete_ms is not None and self.limits.partitioned_auto_delete_refused:
            _refuse("A partitioned entity cannot be deleted automatically on idle.")
        checked_rules(wanted.authorization_rules)


def check_entity_name(name: str) -> None:
    if len(name) > ENTITY_NAME_CHARACTERS_MAX or not _ENTITY_NAME.fullmatch(name) or "//" in name:
        _refuse(
            f"'{name[:60]}' cannot be the name of an entity: it has 1 to {ENTITY_NAME_CHARACTERS_MAX} letters, digits, "
            "periods, hyphens, underscores and slashes, and begins and ends with a letter or digit."
        )


def check_part_name(kind: str, name: str) -> None:
    """Check the name of a subscription or rule."""
    if len(name) > PART_NAME_CHARACTERS_MAX or not _PART_NAME.fullmatch(name):
        _refuse(
            f"'{name[:60]}' cannot be the name of a {kind}: it has 1 to {PART_NAME_CHARACTERS_MAX} letters, digits, "
            "periods, hyphens and underscores, and begins and ends with a letter or digit."
        )


def check_quota(namespace: str, quota: str, total: int, most: int) -> None:
    if total > most:
        raise QuotaExceeded(account=namespace, quota=quota, limit=most, total=total)


def filter_counts(subscriptions: Iterable[SubscriptionDescription]) -> tuple[int, int]:
    """Return the numbers of SQL filters, those of constants included, and of correlation filters."""
    kinds = [rule.filter.kind for subscription in subscriptions for rule in subscription.rules]
    correlation = kinds.count("correlation")
    return len(kinds) - correlation, correlation


def _check_lock(wanted: AnyDescription) -> None:
    if not isinstance(wanted, TopicDescription) and not _SECOND_MS <= wanted.lock_ms <= _LOCK_MS_MAX:
        _refuse("LockDuration is between PT1S and PT5M.")


def _check_times(wanted: AnyDescription) -> None:
    if wanted.default_ttl_ms is not None and wanted.default_ttl_ms < 1:
        _refuse("DefaultMessageTimeToLive must be longer than nothing.")
    if wanted.auto_delete_ms is not None and wanted.auto_delete_ms < _AUTO_DELETE_MS_MIN:
        _refuse("AutoDeleteOnIdle must be at least PT5M.")
    if isinstance(wanted, SubscriptionDescription):
        return
    if not _WINDOW_MS_MIN <= wanted.duplicate_window_ms <= _WINDOW_MS_MAX:
        _refuse("DuplicateDetectionHistoryTimeWindow is between PT20S and P7D.")


def _check_between(property: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        _refuse(f"{property} is {value:,}; it is between {least:,} and {most:,}.")


def _check_target(property: str, target: str | None, is_target: Callable[[str], bool]) -> None:
    # An entity may forward to itself, as on the service: the number of hops ends it.
    if target is not None and not is_target(target):
        _refuse(f"{property} is '{target[:60]}', which is not a queue or topic of the namespace.")


def _check_fixed(wanted: AnyDescription, before: AnyDescription) -> None:
    for field, property in _FIXED.items():
        if getattr(wanted, field, None) != getattr(before, field, None):
            _refuse(f"{property} cannot be changed after the entity was created.")


def _refuse(reason: str) -> None:
    raise MalformedRequest(reason=reason)
