"""Messages for the tests of rules, and rules in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.bus_sql.rules import RuleCompiler
from asterism.models.messages.descriptions import FilterDescription, RuleDescription, TypedProperty
from asterism.models.messages.rules import CompiledRules, Envelope
from asterism.values.amqp.message import (
    Message,
    Properties,
    encode_annotations,
    encode_application_properties,
    encode_properties,
    encode_value_body,
)

ENVELOPE = Envelope(
    sequence_number=7, enqueued_ms=1_700_000_000_000, expires_ms=1_700_000_060_000, ttl_ms=60_000, delivery_count=0
)
BODY = encode_value_body("hello")


def message(user: Mapping[str, Any] | None = None, /, **system: Any) -> Message:
    """Return a message with properties that its sender chose, and with those of the system."""
    parts = [encode_annotations({"x-opt-partition-key": "blue"})]
    if system:
        parts.append(encode_properties(Properties(**system)))
    if user is not None:
        parts.append(encode_application_properties(user))
    return Message.parse(b"".join([*parts, BODY]))


def random_bytes(count: int) -> bytes:
    return bytes(range(count))


def compile_rules(*rules: RuleDescription) -> CompiledRules:
    return RuleCompiler(random_bytes)(rules)


def sql(expression: str, *, action: str | None = None, **parameters: Any) -> RuleDescription:
    """Return a rule with a SQL filter; parameters of filter and action by their names, as type and text."""
    typed = typed_properties(parameters)
    return RuleDescription(
        "rule",
        FilterDescription("sql", expression, parameters=typed),
        action_sql=action,
        action_parameters=typed if action else (),
    )


def correlation(
    properties: Mapping[str, tuple[str, str]] | None = None, *, action: str | None = None, **fields: Any
) -> RuleDescription:
    given = FilterDescription("correlation", properties=typed_properties(properties or {}), **fields)
    return RuleDescription("rule", given, action_sql=action)


def typed_properties(given: Mapping[str, tuple[str, str]]) -> tuple[TypedProperty, ...]:
    return tuple(TypedProperty(name, kind, text) for name, (kind, text) in given.items())


def selected(rules: Sequence[RuleDescription], wanted: Message) -> list[bytes | None]:
    return compile_rules(*rules).select(wanted, ENVELOPE)


def matches(expression: str, wanted: Message, /, **parameters: Any) -> bool:
    return selected([sql(expression, **parameters)], wanted) == [None]
