"""The operations of `$management` on the rules of a subscription, and the forms that rules have there.

The numbers of the descriptors differ in length; that is the service's, not a misprint [contract, section E].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from asterism.apis.amqp.bus.management.requests import Fields, Managed, done, nothing
from asterism.apis.amqp.errors import ARGUMENT_ERROR, ENTITY_EXISTS, NOT_IMPLEMENTED
from asterism.apis.amqp.nodes import NOT_ALLOWED, NOT_FOUND, AmqpError, NodeReply
from asterism.languages.bus_sql.typed_values import typed_value
from asterism.models.messages.descriptions import (
    FilterDescription,
    RuleDescription,
    SubscriptionDescription,
    TypedProperty,
)
from asterism.values.amqp.message import text_of
from asterism.values.amqp.types import (
    Byte,
    Char,
    Described,
    Float,
    Int,
    Short,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Uuid,
)

_DESCRIPTION: Final = ULong(0x13700000004)
_EMPTY_ACTION: Final = ULong(0x13700000005)
_SQL_ACTION: Final = ULong(0x13700000006)
_SQL_FILTER: Final = ULong(0x1370000006)
_TRUE_FILTER: Final = ULong(0x1370000007)
_FALSE_FILTER: Final = ULong(0x1370000008)
_CORRELATION_FILTER: Final = ULong(0x1370000009)
# The version of the language, which there has been only one of in use.
_COMPATIBILITY_LEVEL: Final = Int(20)

_RULE_NAME_CHARACTERS_MAX: Final = 50
_RULES_MAX: Final = 100

# The fields of a correlation filter in the order of its described list, and as a request names them.
_CORRELATION_FIELDS: Final = (
    ("correlation_id", "correlation-id"),
    ("message_id", "message-id"),
    ("to", "to"),
    ("reply_to", "reply-to"),
    ("label", "label"),
    ("session_id", "session-id"),
    ("reply_to_session_id", "reply-to-session-id"),
    ("content_type", "content-type"),
)


def _iso_text(value: Any) -> str:
    return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _guid_text(value: bytes) -> str:
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


# The name of a type in rules, and the text of a value of it.
_TYPES: Final[Mapping[type, tuple[str, Callable[[Any], str]]]] = {
    str: ("string", str),
    bool: ("boolean", lambda value: "true" if value else "false"),
    Byte: ("byte", str),
    Short: ("short", str),
    Int: ("int", str),
    int: ("long", str),
    UByte: ("unsignedByte", str),
    UShort: ("unsignedShort", str),
    UInt: ("unsignedInt", str),
    ULong: ("unsignedLong", str),
    Float: ("float", repr),
    float: ("double", repr),
    Char: ("char", str),
    Timestamp: ("dateTime", _iso_text),
    Uuid: ("guid", _guid_text),
}


async def add_rule(managed: Managed, fields: Fields) -> NodeReply:
    name = fields.required_text("rule-name")
    if not 1 <= len(name) <= _RULE_NAME_CHARACTERS_MAX:
        raise AmqpError(ARGUMENT_ERROR, f"The name of a rule has 1 to {_RULE_NAME_CHARACTERS_MAX} characters.")
    rule = _rule_of(name, Fields(fields.mapping("rule-description")))

    def with_rule(subscription: SubscriptionDescription) -> SubscriptionDescription:
        if _find(subscription, name) is not None:
            raise AmqpError(ENTITY_EXISTS, f"The subscription has a rule {name!r} already.")
        return replace(subscription, rules=(*subscription.rules, rule))

    await _change(managed, with_rule)
    return done()


async def remove_rule(managed: Managed, fields: Fields) -> NodeReply:
    name = fields.required_text("rule-name")

    def without_rule(subscription: SubscriptionDescription) -> SubscriptionDescription:
        found = _find(subscription, name)
        if found is None:
            raise AmqpError(NOT_FOUND, f"The subscription has no rule {name!r}.")
        return replace(subscription, rules=tuple(rule for rule in subscription.rules if rule is not found))

    await _change(managed, without_rule)
    return done()


async def enumerate_rules(managed: Managed, fields: Fields) -> NodeReply:
    skip = max(fields.number("skip", 0), 0)
    top = min(fields.number("top", _RULES_MAX), _RULES_MAX)
    rules = _subscription(managed).rules[skip : skip + max(top, 0)]
    if not rules:
        return nothing("com.microsoft:no-matching-subscription-rule")
    return done({"rules": [{"rule-description": encode_rule(rule)} for rule in rules]})


async def _change(managed: Managed, change: Callable[[SubscriptionDescription], SubscriptionDescription]) -> None:
    name = _subscription(managed).name
    await managed.store.update_subscription(managed.entity, name, change)


def _subscription(managed: Managed) -> SubscriptionDescription:
    name = managed.address.subscription
    if name is None:
        raise AmqpError(NOT_ALLOWED, "Only subscriptions have rules.")
    found = managed.entity.topic.find(name)
    if found is None:
        raise AmqpError(NOT_FOUND, f"The subscription {name!r} could not be found.")
    return found


def _find(subscription: SubscriptionDescription, name: str) -> RuleDescription | None:
    return next((rule for rule in subscription.rules if rule.name.lower() == name.lower()), None)


# --- rules of requests ----------------------------------------------------------------------------------------------


def _rule_of(name: str, fields: Fields) -> RuleDescription:
    action = fields.mapping("sql-rule-action")
    return RuleDescription(
        name=name, filter=_filter_of(fields), action_sql=None if action is None else Fields(action).text("expression")
    )


def _filter_of(fields: Fields) -> FilterDescription:
    sql, correlation = fields.mapping("sql-filter"), fields.mapping("correlation-filter")
    if sql is not None:
        return FilterDescription(kind="sql", expression=Fields(sql).required_text("expression"))
    if correlation is not None:
        given = Fields(correlation)
        properties = tuple(_typed(name, value) for name, value in (given.mapping("properties") or {}).items())
        texts: dict[str, Any] = {field: given.text(name) for field, name in _CORRELATION_FIELDS}
        return replace(FilterDescription(kind="correlation", properties=properties), **texts)
    if fields.get("true-filter") is not None:
        return FilterDescription(kind="true")
    if fields.get("false-filter") is not None:
        return FilterDescription(kind="false")
    raise AmqpError(ARGUMENT_ERROR, "The description of the rule has no filter.")


def _typed(name: Any, value: Any) -> TypedProperty:
    text = text_of(name) or ""
    if type(value) is bytes:
        value = text_of(value)
    row = _TYPES.get(type(value))
    if row is None:
        raise AmqpError(NOT_IMPLEMENTED, f"The property {text[:64]!r} is not of a type that a filter can compare.")
    kind, write = row
    return TypedProperty(name=text, type=kind, text=write(value))


# --- rules of answers -----------------------------------------------------------------------------------------------


def encode_rule(rule: RuleDescription) -> Described:
    """Return a rule as an answer carries it."""
    action = (
        Described(_SQL_ACTION, [rule.action_sql, _COMPATIBILITY_LEVEL])
        if rule.action_sql
        else Described(_EMPTY_ACTION, [])
    )
    return Described(_DESCRIPTION, [_encode_filter(rule.filter), action, rule.name])


def _encode_filter(described: FilterDescription) -> Described:
    match described.kind:
        case "true":
            return Described(_TRUE_FILTER, [])
        case "false":
            return Described(_FALSE_FILTER, [])
        case "sql":
            return Described(_SQL_FILTER, [described.expression, _COMPATIBILITY_LEVEL])
        case "correlation":
            properties = {each.name: typed_value(each.name, each.type, each.text) for each in described.properties}
            texts = [getattr(described, field) for field, _ in _CORRELATION_FIELDS]
            return Described(_CORRELATION_FILTER, [*texts, properties])
