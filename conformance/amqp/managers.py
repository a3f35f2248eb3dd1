"""Stand-ins for the clients of the vendor's resource manager, with which the tests prepare their entities.

Entities of Service Bus are made by its own administration client. Hubs and shared access rules have no such client:
they are made by the JSON of the resource manager, which Asterism answers on the same port.
"""

from __future__ import annotations

import json
import types
import urllib.error
import urllib.request
from typing import Any

import pytest
from azure.servicebus.management import ServiceBusAdministrationClient

from conformance.amqp.credentials import messaging_token
from conformance.amqp.namespace import HOST_NAME, KEY, NAMESPACE, RULE, connection_string

_PROVIDERS = "/subscriptions/0/resourceGroups/group/providers"
_HUBS = f"{_PROVIDERS}/Microsoft.EventHub/namespaces/{NAMESPACE}/eventhubs"
_BUS = f"{_PROVIDERS}/Microsoft.ServiceBus/namespaces/{NAMESPACE}"
_SECONDS_MAX = 30.0


class Description(types.SimpleNamespace):
    """Properties of an entity as the preparers give them; a property that was not given is None."""

    def __getattr__(self, name: str) -> None:
        return None

    def given(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


class Resource:
    """Something that a manager has made, under its name."""

    def __init__(self, name: str, id: str | None = None) -> None:
        self.name = name
        self.id = id or name


class Poller:
    """The wait for a long operation, which is over."""

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def result(self) -> Any:
        return self._value

    def wait(self, _: Any = None) -> None:
        return None

    def done(self) -> bool:
        return True


class AccessRights:
    manage, send, listen = "Manage", "Send", "Listen"


def call(method: str, path: str, body: Any = None) -> Any:
    """Send a request in the form of the resource manager; the answer's JSON, or None without one."""
    content = json.dumps(body).encode() if body is not None else b"" if method == "POST" else None
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {messaging_token().token}"}
    request = urllib.request.Request(f"https://{HOST_NAME}{path}", data=content, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=_SECONDS_MAX) as reply:
        text = reply.read()
    return json.loads(text) if text else None


def administration() -> ServiceBusAdministrationClient:
    return ServiceBusAdministrationClient.from_connection_string(connection_string())


# --- shared access rules ----------------------------------------------------------------------------------------------


def create_rule(parent: str, name: str, rule: Description) -> Resource:
    """Create a rule of the namespace (no parent) or of an entity (`queues/NAME/`); skip the test if there are none."""
    rights = [str(right) for right in rule.rights or ()]
    path = f"{_BUS}/{parent}authorizationRules/{name}"
    try:
        call("PUT", path, {"properties": {"rights": rights}})
    except urllib.error.HTTPError as problem:
        pytest.skip(f"shared access rules need the interface of the resource manager ({problem.code})")
    return Resource(name)


def keys_of_rule(parent: str, name: str, entity: str | None) -> Description:
    key = KEY if name == RULE else call("POST", f"{_BUS}/{parent}authorizationRules/{name}/listKeys")["primaryKey"]
    text = connection_string(name, key, entity)
    return Description(primary_connection_string=text, key_name=name, primary_key=key)


def delete_rule(parent: str, name: str) -> None:
    call("DELETE", f"{_BUS}/{parent}authorizationRules/{name}")


# --- entities of Service Bus ------------------------------------------------------------------------------------------


class Queues:
    def create_or_update(self, _: str, __: str, name: str, queue: Description) -> Resource:
        administration().create_queue(name, **queue.given())
        return Resource(name)

    def delete(self, _: str, __: str, name: str) -> None:
        administration().delete_queue(name)

    def create_or_update_authorization_rule(
        self, _: str, __: str, queue: str, name: str, rule: Description
    ) -> Resource:
        return create_rule(f"queues/{queue}/", name, rule)

    def list_keys(self, _: str, __: str, queue: str, name: str) -> Description:
        return keys_of_rule(f"queues/{queue}/", name, queue)

    def delete_authorization_rule(self, _: str, __: str, queue: str, name: str) -> None:
        delete_rule(f"queues/{queue}/", name)


class Topics:
    def create_or_update(self, _: str, __: str, name: str, ___: Any) -> Resource:
        administration().create_topic(name)
        return Resource(name)

    def delete(self, _: str, __: str, name: str) -> None:
        administration().delete_topic(name)


class Subscriptions:
    def create_or_update(self, _: str, __: str, topic: str, name: str, subscription: Description) -> Resource:
        administration().create_subscription(topic, name, **subscription.given())
        return Resource(name)

    def delete(self, _: str, __: str, topic: str, name: str) -> None:
        administration().delete_subscription(topic, name)


class Namespaces:
    """The namespace is always there."""

    def begin_create_or_update(self, _: str, name: str, __: Any) -> Poller:
        return Poller(Resource(name))

    def begin_delete(self, *_: Any) -> Poller:
        return Poller()

    def delete(self, *_: Any) -> None:
        return None

    def list_keys(self, _: str, __: str, rule: str) -> Description:
        return keys_of_rule("", rule, None)

    def create_or_update_authorization_rule(self, _: str, __: str, name: str, rule: Description) -> Resource:
        return create_rule("", name, rule)

    def delete_authorization_rule(self, _: str, __: str, name: str) -> None:
        delete_rule("", name)


class ServiceBusManagementClient:
    def __init__(self, *_: Any, **__: Any) -> None:
        self.queues = Queues()
        self.topics = Topics()
        self.subscriptions = Subscriptions()
        self.namespaces = Namespaces()


class ResourceGroups:
    """Groups of resources, which Asterism does not have."""

    def create_or_update(self, name: str, _: Any) -> Resource:
        return Resource(name)

    def begin_delete(self, *_: Any, **__: Any) -> Poller:
        return Poller()


class ResourceManagementClient:
    def __init__(self, *_: Any, **__: Any) -> None:
        self.resource_groups = ResourceGroups()


# --- hubs -------------------------------------------------------------------------------------------------------------

# Names of properties in the managers' Python and in their JSON, each with what a hub has by default.
_HUB_PROPERTIES = (("partition_count", "partitionCount", 2), ("message_retention_in_days", "messageRetentionInDays", 1))


class Hub(Resource):
    def __init__(self, name: str, properties: dict[str, Any]) -> None:
        super().__init__(name)
        self._properties = {name: properties.get(in_json, default) for name, in_json, default in _HUB_PROPERTIES}

    def as_dict(self) -> dict[str, Any]:
        return dict(self._properties)


class Hubs:
    def create_or_update(self, _: str, __: str, name: str, settings: dict[str, Any]) -> Hub:
        properties = {in_json: settings.get(name, default) for name, in_json, default in _HUB_PROPERTIES}
        return Hub(name, call("PUT", f"{_HUBS}/{name}", {"properties": properties})["properties"])

    def get(self, _: str, __: str, name: str) -> Hub:
        return Hub(name, call("GET", f"{_HUBS}/{name}")["properties"])

    def delete(self, _: str, __: str, name: str) -> None:
        call("DELETE", f"{_HUBS}/{name}")


class ConsumerGroups:
    def create_or_update(self, _: str, __: str, hub: str, name: str, ___: Any = None) -> Resource:
        call("PUT", f"{_HUBS}/{hub}/consumergroups/{name}", {"properties": {}})
        return Resource(name)

    def delete(self, _: str, __: str, hub: str, name: str) -> None:
        call("DELETE", f"{_HUBS}/{hub}/consumergroups/{name}")


class EventHubManagementClient:
    def __init__(self, *_: Any, **__: Any) -> None:
        self.event_hubs = Hubs()
        self.consumer_groups = ConsumerGroups()
        self.namespaces = Namespaces()
