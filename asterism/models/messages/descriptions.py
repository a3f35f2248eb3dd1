"""The descriptions of queues, topics, subscriptions and rules, and their JSON in the settings of a keyspace.

Times are milliseconds since 1970, durations are milliseconds, and None is unlimited. The JSON has the fields that
differ from their defaults, by the names of the fields; fields that a later version may have added are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeVar, cast

from asterism.models.namespaces.authorization import AuthorizationRule

MINUTE_MS: Final = 60_000
# The service has a fixed number of fragments in a partitioned entity of the Standard tier (contract H, S2).
FRAGMENTS_OF_PARTITIONED: Final = 16
DEFAULT_RULE: Final = "$Default"

FilterKind = Literal["sql", "correlation", "true", "false"]

_Description = TypeVar("_Description", bound="_Stored")


@dataclass(frozen=True)
class _Stored:
    """A description that is kept as JSON."""

    def to_json(self) -> dict[str, Any]:
        return {
            each.name: _ENCODERS.get(each.name, _plain)(value)
            for each in fields(self)
            if (value := getattr(self, each.name)) != _default_of(each)
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        known = {each.name for each in fields(cls)}
        given = {name: _DECODERS.get(name, _plain)(value) for name, value in stored.items() if name in known}
        return cls(**given)


# --- rules ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TypedProperty(_Stored):
    """A property or parameter of a filter: the name of its type and its text, as the administration interface has
    them."""

    name: str
    type: str = "string"
    text: str = ""


@dataclass(frozen=True)
class FilterDescription(_Stored):
    kind: FilterKind = "true"
    expression: str | None = None
    parameters: tuple[TypedProperty, ...] = ()
    # The rest belongs to correlation filters.
    properties: tuple[TypedProperty, ...] = ()
    correlation_id: str | None = None
    message_id: str | None = None
    to: str | None = None
    reply_to: str | None = None
    label: str | None = None
    session_id: str | None = None
    reply_to_session_id: str | None = None
    content_type: str | None = None


@dataclass(frozen=True)
class RuleDescription(_Stored):
    name: str = DEFAULT_RULE
    filter: FilterDescription = FilterDescription()
    action_sql: str | None = None
    action_parameters: tuple[TypedProperty, ...] = ()
    created_ms: int = 0
    # Text of the request that created the rule, to be given back as it was sent.
    xml: str | None = None


# --- entities -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SubscriptionDescription(_Stored):
    name: str = ""
    # Given by the store at creation, and never again to another subscription of the topic.
    number: int = 0
    lock_ms: int = MINUTE_MS
    requires_session: bool = False
    default_ttl_ms: int | None = None
    dead_letters_expired: bool = False
    dead_letters_filter_errors: bool = True
    max_delivery_count: int = 10
    batched: bool = True
    status: str = "Active"
    auto_delete_ms: int | None = None
    forward_to: str | None = None
    forward_dead_letters_to: str | None = None
    user_metadata: str | None = None
    created_ms: int = 0
    updated_ms: int = 0
    rules: tuple[RuleDescription, ...] = (RuleDescription(),)


@dataclass(frozen=True)
class QueueDescription(_Stored):
    lock_ms: int = MINUTE_MS
    max_size_mb: int = 1024
    requires_duplicate_detection: bool = False
    requires_session: bool = False
    default_ttl_ms: int | None = None
    dead_letters_expired: bool = False
    duplicate_window_ms: int = 10 * MINUTE_MS
    max_delivery_count: int = 10
    batched: bool = True
    status: str = "Active"
    auto_delete_ms: int | None = None
    is_partitioned: bool = False
    is_express: bool = False
    user_metadata: str | None = None
    forward_to: str | None = None
    forward_dead_letters_to: str | None = None
    max_message_kb: int = 256
    authorization_rules: tuple[AuthorizationRule, ...] = ()
    created_ms: int = 0
    updated_ms: int = 0
    # Fragments that an operator has closed: they behave like fragments whose node does not answer.
    closed_fragments: frozenset[int] = frozenset()


@dataclass(frozen=True)
class TopicDescription(_Stored):
    max_size_mb: int = 1024
    requires_duplicate_detection: bool = False
    default_ttl_ms: int | None = None
    duplicate_window_ms: int = 10 * MINUTE_MS
    batched: bool = True
    status: str = "Active"
    auto_delete_ms: int | None = None
    is_partitioned: bool = False
    is_express: bool = False
    supports_ordering: bool = True
    filters_before_publishing: bool = False
    user_metadata: str | None = None
    max_message_kb: int = 256
    authorization_rules: tuple[AuthorizationRule, ...] = ()
    created_ms: int = 0
    updated_ms: int = 0
    closed_fragments: frozenset[int] = frozenset()
    # By their names in lower case.
    subscriptions: Mapping[str, SubscriptionDescription] = field(default_factory=lambda: MappingProxyType({}))
    # Number 0 is the topic itself, whose scheduled messages lie there.
    next_subscription_number: int = 1
    # Numbers of deleted subscriptions whose messages are still to be removed.
    removed_subscriptions: frozenset[int] = frozenset()

    def find(self, name: str) -> SubscriptionDescription | None:
        return self.subscriptions.get(name.lower())

    def with_subscription(self, subscription: SubscriptionDescription) -> TopicDescription:
        """Return the topic with a subscription in place of the one of this name."""
        return replace(self, subscriptions={**self.subscriptions, subscription.name.lower(): subscription})

    def without_subscription(self, name: str) -> TopicDescription:
        """Return the topic without a subscription, whose messages are left for removal."""
        rest = dict(self.subscriptions)
        gone = rest.pop(name.lower())
        return replace(self, subscriptions=rest, removed_subscriptions=self.removed_subscriptions | {gone.number})


Description = QueueDescription | TopicDescription


# --- JSON -----------------------------------------------------------------------------------------------------------


def _default_of(each: Field[Any]) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    # A field without a default is always written.
    return each.default


def _plain(value: Any) -> Any:
    return value


def _list_of(items: Any) -> list[Any]:
    return [item.to_json() for item in items]


def _tuple_of(kind: type[_Description]) -> Callable[[Any], tuple[_Description, ...]]:
    return lambda stored: tuple(kind.from_json(item) for item in stored)


_ENCODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "parameters": _list_of,
    "properties": _list_of,
    "action_parameters": _list_of,
    "rules": _list_of,
    "authorization_rules": _list_of,
    "filter": FilterDescription.to_json,
    "subscriptions": lambda items: {name: item.to_json() for name, item in items.items()},
    "closed_fragments": sorted,
    "removed_subscriptions": sorted,
}

_DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "parameters": _tuple_of(TypedProperty),
    "properties": _tuple_of(TypedProperty),
    "action_parameters": _tuple_of(TypedProperty),
    "rules": _tuple_of(RuleDescription),
    "authorization_rules": lambda stored: tuple(AuthorizationRule.from_json(item) for item in stored),
    "filter": FilterDescription.from_json,
    "subscriptions": lambda stored: {
        name: SubscriptionDescription.from_json(cast("Mapping[str, Any]", item)) for name, item in stored.items()
    },
    "closed_fragments": frozenset,
    "removed_subscriptions": frozenset,
}
