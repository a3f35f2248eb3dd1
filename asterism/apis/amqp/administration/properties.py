"""The properties of queues, topics and subscriptions: a row each, for Atom, for JSON and for Config.json.

The order of a table is that of the elements in Atom, on which clients and service insist. Rows without a field of the
description are calculated, and only given back.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.amqp.administration.durations import read_duration, write_duration
from asterism.errors import MalformedRequest

STATUSES: Final = ("Active", "Disabled", "SendDisabled", "ReceiveDisabled")
# Durations that can be without limit.
_UNLIMITED: Final = ("DefaultMessageTimeToLive", "AutoDeleteOnIdle")
_TEXT_SHOWN_MAX: Final = 40


class Kind(enum.Enum):
    DURATION = "duration"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    TEXT = "text"
    STATUS = "status"
    # The address of an entity; the description has its name.
    ENTITY = "entity"
    # Several elements: authorization rules, counts, a default rule.
    COMPOUND = "compound"


@dataclass(frozen=True, slots=True)
class Property:
    # As in Atom and in Config.json.
    name: str
    kind: Kind
    # The field of the description; empty for a value that is calculated.
    field: str = ""
    # The oldest version of the interface that has it.
    since: str = ""

    @property
    def json_name(self) -> str:
        """The name in the interface of the resource manager."""
        return self.name[0].lower() + self.name[1:]


_LOCK: Final = Property("LockDuration", Kind.DURATION, "lock_ms")
_SIZE: Final = Property("MaxSizeInMegabytes", Kind.INTEGER, "max_size_mb")
_DUPLICATES: Final = Property("RequiresDuplicateDetection", Kind.BOOLEAN, "requires_duplicate_detection")
_SESSION: Final = Property("RequiresSession", Kind.BOOLEAN, "requires_session")
_TTL: Final = Property("DefaultMessageTimeToLive", Kind.DURATION, "default_ttl_ms")
_EXPIRED: Final = Property("DeadLetteringOnMessageExpiration", Kind.BOOLEAN, "dead_letters_expired")
_WINDOW: Final = Property("DuplicateDetectionHistoryTimeWindow", Kind.DURATION, "duplicate_window_ms")
_DELIVERIES: Final = Property("MaxDeliveryCount", Kind.INTEGER, "max_delivery_count")
_BATCHED: Final = Property("EnableBatchedOperations", Kind.BOOLEAN, "batched")
_BYTES: Final = Property("SizeInBytes", Kind.INTEGER)
_COUNT: Final = Property("MessageCount", Kind.INTEGER)
_ANONYMOUS: Final = Property("IsAnonymousAccessible", Kind.BOOLEAN)
_RULES: Final = Property("AuthorizationRules", Kind.COMPOUND, "authorization_rules")
_STATUS: Final = Property("Status", Kind.STATUS, "status")
_TIMES: Final = tuple(Property(name, Kind.TEXT) for name in ("CreatedAt", "UpdatedAt", "AccessedAt"))
_COUNTS: Final = Property("CountDetails", Kind.COMPOUND)
_AUTO_DELETE: Final = Property("AutoDeleteOnIdle", Kind.DURATION, "auto_delete_ms")
_PARTITIONED: Final = Property("EnablePartitioning", Kind.BOOLEAN, "is_partitioned")
_AVAILABILITY: Final = Property("EntityAvailabilityStatus", Kind.TEXT)
_EXPRESS: Final = Property("EnableExpress", Kind.BOOLEAN, "is_express")
_FORWARD: Final = Property("ForwardTo", Kind.ENTITY, "forward_to")
_METADATA: Final = Property("UserMetadata", Kind.TEXT, "user_metadata")
_FORWARD_DEAD: Final = Property("ForwardDeadLetteredMessagesTo", Kind.ENTITY, "forward_dead_letters_to")
_MESSAGE_SIZE: Final = Property("MaxMessageSizeInKilobytes", Kind.INTEGER, "max_message_kb", since="2021-05")

QUEUE: Final = (
    _LOCK,
    _SIZE,
    _DUPLICATES,
    _SESSION,
    _TTL,
    _EXPIRED,
    _WINDOW,
    _DELIVERIES,
    _BATCHED,
    _BYTES,
    _COUNT,
    _ANONYMOUS,
    _RULES,
    _STATUS,
    *_TIMES,
    Property("SupportOrdering", Kind.BOOLEAN),
    _COUNTS,
    _AUTO_DELETE,
    _PARTITIONED,
    _AVAILABILITY,
    _EXPRESS,
    _FORWARD,
    _METADATA,
    _FORWARD_DEAD,
    _MESSAGE_SIZE,
)
TOPIC: Final = (
    _TTL,
    _SIZE,
    _DUPLICATES,
    _WINDOW,
    _BATCHED,
    _BYTES,
    Property("FilteringMessagesBeforePublishing", Kind.BOOLEAN, "filters_before_publishing"),
    _ANONYMOUS,
    _RULES,
    _STATUS,
    *_TIMES,
    Property("SupportOrdering", Kind.BOOLEAN, "supports_ordering"),
    _COUNTS,
    Property("SubscriptionCount", Kind.INTEGER),
    Property("SqlFilterCount", Kind.INTEGER, since="2024-05"),
    Property("CorrelationFilterCount", Kind.INTEGER, since="2024-05"),
    _AUTO_DELETE,
    _PARTITIONED,
    _AVAILABILITY,
    Property("EnableSubscriptionPartitioning", Kind.BOOLEAN),
    _EXPRESS,
    _METADATA,
    _MESSAGE_SIZE,
)
SUBSCRIPTION: Final = (
    _LOCK,
    _SESSION,
    _TTL,
    _EXPIRED,
    Property("DeadLetteringOnFilterEvaluationExceptions", Kind.BOOLEAN, "dead_letters_filter_errors"),
    _COUNT,
    _DELIVERIES,
    _BATCHED,
    _STATUS,
    _FORWARD,
    *_TIMES,
    _COUNTS,
    _FORWARD_DEAD,
    _AUTO_DELETE,
    _AVAILABILITY,
    _METADATA,
)
# Properties that a complete description without them takes away; all others keep their values.
CLEARED_IF_ABSENT: Final = ("forward_to", "forward_dead_letters_to", "user_metadata")


def read_values(table: tuple[Property, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of fields from texts or JSON values by the names of properties; MalformedRequest for a value that
    is not of its type. Calculated properties are left out, as clients send back whole descriptions."""
    values: dict[str, Any] = {}
    for row in table:
        value = given.get(row.name)
        if row.field and row.kind is not Kind.COMPOUND and value is not None:
            values[row.field] = _READERS[row.kind](row.name, value)
    return values


def shown(row: Property, value: Any) -> Any:
    """Return the value of a field as texts and JSON have it."""
    return write_duration(value) if row.kind is Kind.DURATION else value


def entity_name(address: str) -> str | None:
    """Return the name of an entity out of its address, such as `sb://host/queue`; None without one."""
    path = address.partition("://")[2].partition("/")[2] if "://" in address else address
    return path.strip("/") or None


def _duration(name: str, value: Any) -> int | None:
    if not isinstance(value, str):
        _refuse(name, value, "a duration such as PT1M")
    milliseconds = read_duration(name, value)
    if milliseconds is None and name not in _UNLIMITED:
        _refuse(name, value, "a time that ends")
    return milliseconds


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "1": True, "false": False, "0": False}
    found = known.get(value.strip().lower()) if isinstance(value, str) else None
    return _refuse(name, value, "true or false") if found is None else found


def _integer(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else ""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        return int(_refuse(name, value, "a whole number"))
    return int(text)


def _text(name: str, value: Any) -> str:
    return value if isinstance(value, str) else str(_refuse(name, value, "a text"))


def _status(name: str, value: Any) -> str:
    for status in STATUSES:
        if isinstance(value, str) and value.strip().lower() == status.lower():
            return status
    return str(_refuse(name, value, f"one of {', '.join(STATUSES)}"))


def _entity(name: str, value: Any) -> str | None:
    return entity_name(_text(name, value).strip())


def _refuse(name: str, value: Any, wanted: str) -> Any:
    raise MalformedRequest(reason=f"The value of {name} is not {wanted}: '{str(value)[:_TEXT_SHOWN_MAX]}'.")


_READERS: Final[Mapping[Kind, Callable[[str, Any], Any]]] = {
    Kind.DURATION: _duration,
    Kind.BOOLEAN: _boolean,
    Kind.INTEGER: _integer,
    Kind.TEXT: _text,
    Kind.STATUS: _status,
    Kind.ENTITY: _entity,
}
