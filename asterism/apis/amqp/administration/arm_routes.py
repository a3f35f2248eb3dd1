"""The operations in the form of the resource manager, one line each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from asterism.apis.amqp.administration import arm_bus as bus
from asterism.apis.amqp.administration import arm_hubs as hubs
from asterism.apis.amqp.administration import arm_rights as rights
from asterism.apis.amqp.administration.arm_json import json_response
from asterism.apis.amqp.administration.arm_resource import Resource, parse_resource
from asterism.apis.amqp.administration.call import AdministrationCall, AdministrationServices
from asterism.apis.http_pipeline import read_body
from asterism.apis.transports.http import Response
from asterism.errors import MalformedRequest, ResourceNotFound

Handler = Callable[[AdministrationServices, Resource, AdministrationCall], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ArmRoute:
    operation: str
    handle: Handler


async def get_namespace(_: AdministrationServices, resource: Resource, __: AdministrationCall) -> Response:
    content = resource.shown(resource.namespace, {"provisioningState": "Succeeded", "status": "Active"})
    return json_response(200, {**content, "sku": {"name": "Standard", "tier": "Standard"}, "location": "local"})


# The last part of a key: LIST is about all resources of a type; otherwise it is an action, or empty for the resource.
_LIST: Final = "list"
_Key = tuple[str, str, str]


def _rights_routes(owner: str) -> dict[_Key, ArmRoute]:
    """Return the routes of the shared access rules of a kind of owner."""
    types = f"{owner}/authorizationrules".lstrip("/")
    return {
        ("GET", types, _LIST): ArmRoute("arm_list_rights", rights.list_rules),
        ("GET", types, ""): ArmRoute("arm_get_right", rights.get_rule),
        ("PUT", types, ""): ArmRoute("arm_put_right", rights.put_rule),
        ("DELETE", types, ""): ArmRoute("arm_delete_right", rights.delete_rule),
        ("POST", types, "listkeys"): ArmRoute("arm_list_keys", rights.list_keys),
        ("POST", types, "regeneratekeys"): ArmRoute("arm_regenerate_keys", rights.regenerate_keys),
    }


def _entity_routes(types: str) -> dict[_Key, ArmRoute]:
    return {
        ("GET", types, _LIST): ArmRoute("arm_list_entities", bus.list_entities),
        ("GET", types, ""): ArmRoute("arm_get_entity", bus.get_entity),
        ("PUT", types, ""): ArmRoute("arm_put_entity", bus.put_entity),
        ("DELETE", types, ""): ArmRoute("arm_delete_entity", bus.delete_entity),
    }


_HUBS: Final = "eventhubs"
_GROUPS: Final = "eventhubs/consumergroups"
_SUBSCRIPTIONS: Final = "topics/subscriptions"
_RULES: Final = "topics/subscriptions/rules"
ARM_ROUTES: Final[Mapping[_Key, ArmRoute]] = {
    ("GET", "", ""): ArmRoute("arm_get_namespace", get_namespace),
    ("GET", _HUBS, _LIST): ArmRoute("arm_list_hubs", hubs.list_hubs),
    ("GET", _HUBS, ""): ArmRoute("arm_get_hub", hubs.get_hub),
    ("PUT", _HUBS, ""): ArmRoute("arm_put_hub", hubs.put_hub),
    ("DELETE", _HUBS, ""): ArmRoute("arm_delete_hub", hubs.delete_hub),
    ("GET", _GROUPS, _LIST): ArmRoute("arm_list_groups", hubs.list_groups),
    ("GET", _GROUPS, ""): ArmRoute("arm_get_group", hubs.get_group),
    ("PUT", _GROUPS, ""): ArmRoute("arm_put_group", hubs.put_group),
    ("DELETE", _GROUPS, ""): ArmRoute("arm_delete_group", hubs.delete_group),
    **_entity_routes("queues"),
    **_entity_routes("topics"),
    ("GET", _SUBSCRIPTIONS, _LIST): ArmRoute("arm_list_subscriptions", bus.list_subscriptions),
    ("GET", _SUBSCRIPTIONS, ""): ArmRoute("arm_get_subscription", bus.get_subscription),
    ("PUT", _SUBSCRIPTIONS, ""): ArmRoute("arm_put_subscription", bus.put_subscription),
    ("DELETE", _SUBSCRIPTIONS, ""): ArmRoute("arm_delete_subscription", bus.delete_subscription),
    ("GET", _RULES, _LIST): ArmRoute("arm_list_rules", bus.list_rules),
    ("GET", _RULES, ""): ArmRoute("arm_get_rule", bus.get_rule),
    ("PUT", _RULES, ""): ArmRoute("arm_put_rule", bus.put_rule),
    ("DELETE", _RULES, ""): ArmRoute("arm_delete_rule", bus.delete_rule),
    **_rights_routes(""),
    **_rights_routes(_HUBS),
    **_rights_routes("queues"),
    **_rights_routes("topics"),
}
_KNOWN_TYPES: Final = frozenset(types for _, types, _ in ARM_ROUTES)


def find_resource(call: AdministrationCall, services: AdministrationServices) -> Resource:
    """Return the resource of a request; ResourceNotFound for an unknown namespace or type."""
    resource = parse_resource(call.request.path)
    if "/".join(resource.types) not in _KNOWN_TYPES:
        raise ResourceNotFound(kind="type of resource", name="/".join(resource.types)[:100])
    if not services.rules.is_namespace(resource.namespace):
        raise ResourceNotFound(kind="namespace", name=resource.namespace[:100])
    return resource


async def handle_resource(resource: Resource, services: AdministrationServices, call: AdministrationCall) -> Response:
    """Carry out a request about a resource; its sender must have been checked."""
    method = "GET" if call.request.method == "HEAD" else call.request.method
    part = _LIST if resource.is_list else resource.action
    route = ARM_ROUTES.get((method, "/".join(resource.types), part))
    if route is None:
        raise MalformedRequest(reason=f"The method {method[:20]} cannot be used with this resource.")
    call.operation = route.operation
    await read_body(call.request)
    return await route.handle(services, resource, call)
