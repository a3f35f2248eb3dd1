"""Rules of subscriptions as XML: filters of four types, actions, and values with their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.administration.atom import SCHEMA, described, instance_type, text_of
from asterism.apis.amqp.administration.durations import write_moment
from asterism.apis.storage.xml_text import attribute, children, leaf, text_leaf, xml_safe
from asterism.errors import MalformedRequest
from asterism.models.messages.descriptions import DEFAULT_RULE, FilterDescription, RuleDescription, TypedProperty

if TYPE_CHECKING:
    from collections.abc import Iterable
    from xml.etree.ElementTree import Element

# The element of a correlation filter -> the field of its description, in the order of Atom.
_CORRELATION_FIELDS: Final = {
    "CorrelationId": "correlation_id",
    "MessageId": "message_id",
    "To": "to",
    "ReplyTo": "reply_to",
    "Label": "label",
    "SessionId": "session_id",
    "ReplyToSessionId": "reply_to_session_id",
    "ContentType": "content_type",
}
_CONSTANTS: Final = {"true": ("TrueFilter", "1=1"), "false": ("FalseFilter", "1=0")}
_LEVEL: Final = leaf("CompatibilityLevel", 20)


# --- reading --------------------------------------------------------------------------------------------------------


def read_rule(element: Element, *, name: str, now_ms: int) -> RuleDescription:
    """Return the rule in an element RuleDescription; a name in it counts only where none is given."""
    parts = children(element)
    given_name = parts.get("Name")
    action = parts.get("Action")
    sql, parameters = _read_action(action)
    return RuleDescription(
        name or (text_of(given_name).strip() if given_name is not None else "") or DEFAULT_RULE,
        _read_filter(parts.get("Filter")),
        sql,
        parameters,
        now_ms,
    )


def _read_filter(element: Element | None) -> FilterDescription:
    if element is None:
        return FilterDescription()
    parts = children(element)
    kind = instance_type(element) or ("SqlFilter" if "SqlExpression" in parts else "CorrelationFilter")
    match kind:
        case "TrueFilter":
            return FilterDescription("true")
        case "FalseFilter":
            return FilterDescription("false")
        case "SqlFilter":
            expression = parts.get("SqlExpression")
            if expression is None:
                raise MalformedRequest(reason="The filter has no SqlExpression.")
            return FilterDescription("sql", text_of(expression), parameters=_read_values(parts.get("Parameters")))
        case "CorrelationFilter":
            fields: dict[str, Any] = {
                field: text_of(parts[name]) for name, field in _CORRELATION_FIELDS.items() if name in parts
            }
            return FilterDescription("correlation", properties=_read_values(parts.get("Properties")), **fields)
        case _:
            raise MalformedRequest(reason=f"'{kind[:40]}' is not a type of filter.")


def _read_action(element: Element | None) -> tuple[str | None, tuple[TypedProperty, ...]]:
    if element is None or instance_type(element) == "EmptyRuleAction":
        return None, ()
    parts = children(element)
    expression = parts.get("SqlExpression")
    if expression is None:
        return None, ()
    return text_of(expression), _read_values(parts.get("Parameters"))


def _read_values(element: Element | None) -> tuple[TypedProperty, ...]:
    return tuple(_read_value(item) for item in element) if element is not None else ()


def _read_value(element: Element) -> TypedProperty:
    parts = children(element)
    key, value = parts.get("Key"), parts.get("Value")
    if key is None or value is None:
        raise MalformedRequest(reason="A value of the rule has no Key, or no Value.")
    return TypedProperty(text_of(key), instance_type(value) or "string", text_of(value))


# --- writing --------------------------------------------------------------------------------------------------------


def write_rule(rule: RuleDescription) -> str:
    return described(
        "RuleDescription",
        _write_filter(rule.filter)
        + _write_action(rule)
        + leaf("CreatedAt", write_moment(rule.created_ms))
        + leaf("Name", rule.name),
    )


def _write_filter(given: FilterDescription) -> str:
    match given.kind:
        case "correlation":
            fields = "".join(
                text_leaf(name, xml_safe(value))
                for name, field in _CORRELATION_FIELDS.items()
                if (value := getattr(given, field)) is not None
            )
            return (
                f'<Filter i:type="CorrelationFilter">{fields}{_write_values("Properties", given.properties)}</Filter>'
            )
        case "sql":
            expression = text_leaf("SqlExpression", xml_safe(given.expression or ""))
            parameters = _write_values("Parameters", given.parameters)
            return f'<Filter i:type="SqlFilter">{expression}{_LEVEL}{parameters}</Filter>'
        case kind:
            name, expression = _CONSTANTS[kind]
            return f'<Filter i:type="{name}">{leaf("SqlExpression", expression)}{_LEVEL}</Filter>'


def _write_action(rule: RuleDescription) -> str:
    if rule.action_sql is None:
        return '<Action i:type="EmptyRuleAction" />'
    expression = text_leaf("SqlExpression", xml_safe(rule.action_sql))
    parameters = _write_values("Parameters", rule.action_parameters)
    return f'<Action i:type="SqlRuleAction">{expression}{_LEVEL}{parameters}</Action>'


def _write_values(name: str, values: Iterable[TypedProperty]) -> str:
    items = "".join(map(_write_value, values))
    return f"<{name}>{items}</{name}>" if items else ""


def _write_value(value: TypedProperty) -> str:
    text = text_leaf("Value", xml_safe(value.text))
    # The element as clients send it: the type has a prefix of its own.
    head = f'<Value xmlns:d6p1="{SCHEMA}" i:type={attribute(f"d6p1:{value.type}")}'
    key = text_leaf("Key", xml_safe(value.name))
    return f"<KeyValueOfstringanyType>{key}{head}{text[len('<Value') :]}</KeyValueOfstringanyType>"
