"""The operations of administration in Atom, one line each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from asterism.apis.amqp.administration import atom_entities as entities
from asterism.apis.amqp.administration import atom_subscriptions as subscriptions
from asterism.apis.amqp.administration.address import Form
from asterism.apis.amqp.administration.call import AdministrationCall, AdministrationServices
from asterism.apis.transports.http import Response

Handler = Callable[[AdministrationServices, AdministrationCall], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    operation: str
    handle: Handler
    help: str


# A PUT with If-Match changes what exists; any other creates.
UPDATE: Final = "PUT with If-Match"

ROUTES: Final[Mapping[tuple[str, Form], Route]] = {
    ("GET", Form.NAMESPACE_INFO): Route("get_namespace", entities.get_namespace, "The namespace itself."),
    ("GET", Form.QUEUES): Route("list_queues", entities.list_queues, "The queues, in pages."),
    ("GET", Form.TOPICS): Route("list_topics", entities.list_topics, "The topics, in pages."),
    ("GET", Form.ENTITY): Route("get_entity", entities.get_entity, "A queue or topic."),
    ("PUT", Form.ENTITY): Route("create_entity", entities.create_entity, "Create a queue or topic."),
    (UPDATE, Form.ENTITY): Route("update_entity", entities.update_entity, "Change a queue or topic."),
    ("DELETE", Form.ENTITY): Route("delete_entity", entities.delete_entity, "Delete it with its messages."),
    ("GET", Form.SUBSCRIPTIONS): Route(
        "list_subscriptions", subscriptions.list_subscriptions, "The subscriptions of a topic, in pages."
    ),
    ("GET", Form.SUBSCRIPTION): Route("get_subscription", subscriptions.get_subscription, "A subscription."),
    ("PUT", Form.SUBSCRIPTION): Route(
        "create_subscription", subscriptions.create_subscription, "Create a subscription with its first rule."
    ),
    (UPDATE, Form.SUBSCRIPTION): Route(
        "update_subscription", subscriptions.update_subscription, "Change a subscription."
    ),
    ("DELETE", Form.SUBSCRIPTION): Route(
        "delete_subscription", subscriptions.delete_subscription, "Delete it with its messages."
    ),
    ("GET", Form.RULES): Route("list_rules", subscriptions.list_rules, "The rules of a subscription, in pages."),
    ("GET", Form.RULE): Route("get_rule", subscriptions.get_rule, "A rule."),
    ("PUT", Form.RULE): Route("create_rule", subscriptions.create_rule, "Add a rule."),
    (UPDATE, Form.RULE): Route("update_rule", subscriptions.update_rule, "Replace a rule."),
    ("DELETE", Form.RULE): Route("delete_rule", subscriptions.delete_rule, "Delete a rule."),
}
