"""Rules of subscriptions as JSON: as the resource manager has them, and as Config.json has them.

The two differ in the case of their names and in the words for the types of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from asterism.apis.amqp.administration.durations import write_moment
from asterism.errors import MalformedRequest
from asterism.models.messages.descriptions import FilterDescription, RuleDescription, TypedProperty

_CORRELATION_FIELDS: Final = {
    "correlationId": "correlation_id",
    "messageId": "message_id",
    "to": "to",
    "replyTo": "reply_to",
    "label": "label",
    "sessionId": "session_id",
    "replyToSessionId": "reply_to_session_id",
    "contentType": "content_type",
}
# Names that the resource manager and Config.json have beside those.
_ALIASES: Final = {"subject": "label"}
_FIELDS_BY_NAME: Final = {
    **{name.lower(): field for name, field in _CORRELATION_FIELDS.items()},
    **_ALIASES,
}
RULE_PROPERTIES: Final = frozenset(("filtertype", "sqlfilter", "correlationfilter", "action"))
_INT_MAX: Final = 2**31 - 1
_JSON_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "boolean": lambda text: text == "true",
    "int": int,
    "long": int,
    "double": float,
}


def read_rule(name: str, properties: Mapping[str, Any], *, now_ms: int) -> RuleDescription:
    """Return the rule in an object of JSON; MalformedRequest if it has no filter that can be understood."""
    given = _folded(properties)
    kind = str(given.get("filtertype") or _kind_by_content(given)).lower().removesuffix("filter")
    action = _folded(_object(given, "action"))
    expression = action.get("sqlexpression")
    return RuleDescription(
        name,
        _read_filter(name, kind, given),
        _text("SqlExpression", expression) if expression else None,
        (),
        now_ms,
    )


def _kind_by_content(given: Mapping[str, Any]) -> str:
    return "correlation" if given.get("correlationfilter") else "sql" if given.get("sqlfilter") else "true"


def _read_filter(name: str, kind: str, given: Mapping[str, Any]) -> FilterDescription:
    match kind:
        case "true":
            return FilterDescription("true")
        case "false":
            return FilterDescription("false")
        case "sql":
            expression = _folded(_object(given, "sqlfilter")).get("sqlexpression")
            return FilterDescription("sql", _text("SqlExpression", expression))
        case "correlation":
            return _read_correlation(name, _object(given, "correlationfilter"))
        case _:
            raise MalformedRequest(
                reason=f"The rule '{name}' has the filter type '{kind[:40]}'; there are Sql and Correlation."
            )


def _read_correlation(name: str, given: Mapping[str, Any]) -> FilterDescription:
    fields: dict[str, Any] = {}
    properties: tuple[TypedProperty, ...] = ()
    for key, value in given.items():
        field = _FIELDS_BY_NAME.get(key.lower())
        if value is None:
            continue
        if field is not None:
            fields[field] = _text(key, value)
        elif key.lower() == "properties":
            properties = tuple(_typed(each, wanted) for each, wanted in _object(given, key).items())
        elif key.lower() != "requirespreprocessing":
            raise MalformedRequest(
                reason=f"'{key[:40]}' is not a field of the correlation filter of the rule '{name}'."
            )
    return FilterDescription("correlation", properties=properties, **fields)


def _typed(name: str, value: Any) -> TypedProperty:
    match value:
        case bool():
            return TypedProperty(name, "boolean", "true" if value else "false")
        case int():
            return TypedProperty(name, "int" if -_INT_MAX <= value <= _INT_MAX else "long", str(value))
        case float():
            return TypedProperty(name, "double", repr(value))
        case str():
            return TypedProperty(name, "string", value)
        case _:
            raise MalformedRequest(reason=f"The property '{name[:40]}' of a filter is not a text, number or Boolean.")


def write_rule(rule: RuleDescription) -> dict[str, Any]:
    """Return the properties of a rule for the resource manager."""
    filter_names = {
        "sql": "SqlFilter",
        "correlation": "CorrelationFilter",
        "true": "TrueFilter",
        "false": "FalseFilter",
    }
    shown: dict[str, Any] = {
        "filterType": filter_names[rule.filter.kind],
        "action": {} if rule.action_sql is None else {"sqlExpression": rule.action_sql, "compatibilityLevel": 20},
        "createdAt": write_moment(rule.created_ms),
    }
    if rule.filter.kind == "correlation":
        fields = {name: getattr(rule.filter, field) for name, field in _CORRELATION_FIELDS.items()}
        shown["correlationFilter"] = {name: value for name, value in fields.items() if value is not None} | {
            "properties": {each.name: _json_value(each) for each in rule.filter.properties}
        }
    elif rule.filter.kind == "sql":
        shown["sqlFilter"] = {"sqlExpression": rule.filter.expression, "compatibilityLevel": 20}
    return shown


def _json_value(value: TypedProperty) -> Any:
    return _JSON_READERS.get(value.type, str)(value.text)


def _folded(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower(): value for key, value in given.items()}


def _object(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedRequest(reason=f"'{name}' of a rule is not an object.")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise MalformedRequest(reason=f"'{name}' of a rule is not a text.")
    return value
