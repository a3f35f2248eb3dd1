"""Descriptions of queues, topics and subscriptions as XML, after the tables of properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.administration import properties
from asterism.apis.amqp.administration.atom import described, text_of
from asterism.apis.amqp.administration.durations import write_moment
from asterism.apis.amqp.administration.properties import Kind, Property
from asterism.apis.amqp.administration.runtime import EntityRuntime
from asterism.apis.amqp.administration.validation import AnyDescription
from asterism.apis.storage.xml_text import children, leaf, local_name, node, xml_safe
from asterism.errors import MalformedRequest
from asterism.models.messages.descriptions import QueueDescription, SubscriptionDescription
from asterism.models.namespaces.authorization import AuthorizationRule

if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.etree.ElementTree import Element

# The element -> its properties.
TABLES: Final[Mapping[str, tuple[Property, ...]]] = {
    "QueueDescription": properties.QUEUE,
    "TopicDescription": properties.TOPIC,
    "SubscriptionDescription": properties.SUBSCRIPTION,
}
_COUNTS: Final = "http://schemas.microsoft.com/netservices/2011/06/servicebus"


@dataclass(frozen=True, slots=True)
class Shown:
    """The circumstances under which a description is shown."""

    # The address of the namespace for links to entities, as `sb://host/`.
    address: str
    api_version: str


def element_name(description: AnyDescription) -> str:
    if isinstance(description, QueueDescription):
        return "QueueDescription"
    return "SubscriptionDescription" if isinstance(description, SubscriptionDescription) else "TopicDescription"


# --- reading --------------------------------------------------------------------------------------------------------


def read_fields(element: Element, new_key: Callable[[], str], now_ms: int) -> dict[str, Any]:
    """Return the fields of a description that its element sets."""
    table = TABLES[local_name(element)]
    parts = children(element)
    given = {name: text_of(part) for name, part in parts.items() if not len(part)}
    fields = properties.read_values(table, {name: text for name, text in given.items() if text.strip()})
    rules = parts.get("AuthorizationRules")
    if rules is not None:
        fields["authorization_rules"] = tuple(_read_rule(rule, new_key, now_ms) for rule in rules)
    return fields


def _read_rule(element: Element, new_key: Callable[[], str], now_ms: int) -> AuthorizationRule:
    parts = children(element)
    texts = {name: text_of(part).strip() for name, part in parts.items()}
    rights = parts.get("Rights")
    if not texts.get("KeyName"):
        raise MalformedRequest(reason="An authorization rule has no KeyName.")
    return AuthorizationRule(
        texts["KeyName"],
        frozenset(text_of(right).strip() for right in rights) if rights is not None else frozenset(),
        texts.get("PrimaryKey") or new_key(),
        texts.get("SecondaryKey") or new_key(),
        now_ms,
        now_ms,
    )


# --- writing --------------------------------------------------------------------------------------------------------


def write_description(description: AnyDescription, runtime: EntityRuntime, shown: Shown) -> str:
    name = element_name(description)
    calculated = runtime.values(description)
    content = "".join(
        _element(row, description, calculated, runtime, shown)
        for row in TABLES[name]
        if not row.since or shown.api_version >= row.since
    )
    return described(name, content)


def _element(
    row: Property, description: AnyDescription, calculated: Mapping[str, Any], runtime: EntityRuntime, shown: Shown
) -> str:
    if row.name == "AuthorizationRules":
        rules = getattr(description, row.field)
        return node(row.name, "".join(map(_write_rule, rules)))
    if row.name == "CountDetails":
        return _write_counts(runtime)
    value = properties.shown(row, getattr(description, row.field)) if row.field else calculated[row.name]
    if value is None:
        return ""
    if row.kind is Kind.ENTITY:
        value = f"{shown.address}{value}"
    return leaf(row.name, xml_safe(value) if isinstance(value, str) else value)


def _write_counts(runtime: EntityRuntime) -> str:
    counts = "".join(leaf(f"d:{name}", count) for name, count in runtime.count_details().items())
    return f'<CountDetails xmlns:d="{_COUNTS}">{counts}</CountDetails>'


def _write_rule(rule: AuthorizationRule) -> str:
    content = (
        leaf("ClaimType", "SharedAccessKey"),
        leaf("ClaimValue", "None"),
        node("Rights", "".join(leaf("AccessRights", right) for right in rule.ordered_rights)),
        leaf("CreatedTime", write_moment(rule.created_ms)),
        leaf("ModifiedTime", write_moment(rule.updated_ms)),
        leaf("KeyName", xml_safe(rule.name)),
        leaf("PrimaryKey", xml_safe(rule.primary_key)),
        leaf("SecondaryKey", xml_safe(rule.secondary_key)),
    )
    return f'<AuthorizationRule i:type="SharedAccessAuthorizationRule">{"".join(content)}</AuthorizationRule>'
