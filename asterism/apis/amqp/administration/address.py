"""The resource that a path names: an entity, a part of one, a list, or a resource of the resource manager."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


class Form(Enum):
    HEALTH = "health"
    NAMESPACE_INFO = "namespace info"
    QUEUES = "queues"
    TOPICS = "topics"
    ENTITY = "entity"
    SUBSCRIPTIONS = "subscriptions"
    SUBSCRIPTION = "subscription"
    RULES = "rules"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class Address:
    form: Form
    # Of the queue or topic.
    entity: str = ""
    subscription: str = ""
    rule: str = ""

    @property
    def path(self) -> str:
        """The path below the namespace."""
        parts = {
            Form.QUEUES: "$Resources/queues",
            Form.TOPICS: "$Resources/topics",
            Form.NAMESPACE_INFO: "$namespaceinfo",
            Form.HEALTH: "health",
            Form.ENTITY: self.entity,
            Form.SUBSCRIPTIONS: f"{self.entity}/subscriptions",
            Form.SUBSCRIPTION: f"{self.entity}/subscriptions/{self.subscription}",
            Form.RULES: f"{self.entity}/subscriptions/{self.subscription}/rules",
            Form.RULE: f"{self.entity}/subscriptions/{self.subscription}/rules/{self.rule}",
        }
        return parts[self.form]


_PART: Final = re.compile(
    r"(?P<entity>.+)/subscriptions(?:/(?P<subscription>[^/]*)(?P<rules>/rules(?:/(?P<rule>[^/]*))?)?)?",
    re.IGNORECASE | re.DOTALL,
)
_FIXED: Final = {
    "health": Form.HEALTH,
    "$namespaceinfo": Form.NAMESPACE_INFO,
    "$resources/queues": Form.QUEUES,
    "$resources/topics": Form.TOPICS,
}


def parse_address(path: str, is_entity: Callable[[str], bool]) -> Address:
    """Return the address in a path. `is_entity` tells whether an entity of a name exists: names have slashes too, and
    the longest one that exists counts."""
    path = path.removeprefix("/")
    fixed = _FIXED.get(path.rstrip("/").lower())
    if fixed is not None and not is_entity(path):
        return Address(fixed)
    found = _PART.fullmatch(path)
    if found is None or is_entity(path):
        return Address(Form.ENTITY, path.rstrip("/"))
    entity, subscription, rule = found["entity"], found["subscription"], found["rule"]
    if subscription is None:
        return Address(Form.SUBSCRIPTIONS, entity)
    if found["rules"] is None:
        return Address(Form.SUBSCRIPTION, entity, subscription)
    if rule is None:
        return Address(Form.RULES, entity, subscription)
    return Address(Form.RULE, entity, subscription, rule)
