"""Shared access rules in the form of the resource manager: of namespaces, hubs, queues and topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.administration.arm_bus import required_entity
from asterism.apis.amqp.administration.arm_hubs import required_hub
from asterism.apis.amqp.administration.arm_json import json_response, read_object, read_properties
from asterism.apis.transports.http import Response
from asterism.errors import MalformedRequest, ResourceNotFound
from asterism.models.namespaces.authorization import AuthorizationRule, with_rule, without_rule

if TYPE_CHECKING:
    from asterism.apis.amqp.administration.arm_resource import Resource
    from asterism.apis.amqp.administration.call import AdministrationCall, AdministrationServices

_Rules = tuple[AuthorizationRule, ...]
_KEY_FIELDS: Final = {"primarykey": "primary_key", "secondarykey": "secondary_key"}


async def list_rules(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    rules = await _rules(services, resource)
    return json_response(200, {"value": [resource.shown(rule.name, _shown(rule)) for rule in rules]})


async def get_rule(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    rule = await _rule(services, resource)
    return json_response(200, resource.shown(rule.name, _shown(rule)))


async def put_rule(services: AdministrationServices, resource: Resource, call: AdministrationCall) -> Response:
    """Create a rule with new keys, or change the rights of one."""
    properties = read_properties(call.request.body)
    rights = properties.get("rights")
    if not isinstance(rights, list) or not all(isinstance(right, str) for right in rights):
        raise MalformedRequest(reason="A shared access rule needs a list of 'rights'.")
    now = services.now_ms()
    known = {rule.name.lower(): rule for rule in await _rules(services, resource)}.get(resource.name.lower())
    wanted = AuthorizationRule(
        resource.name,
        frozenset(rights),
        known.primary_key if known is not None else services.new_key(),
        known.secondary_key if known is not None else services.new_key(),
        known.created_ms if known is not None else now,
        now,
    )
    rule = await _store(services, resource, wanted)
    return json_response(200, resource.shown(rule.name, _shown(rule)))


async def delete_rule(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    if len(resource.types) == 1:
        await services.rules.delete(resource.namespace, resource.name)
    else:
        await _change(services, resource, lambda rules: without_rule(rules, resource.name))
    return Response(200, [])


async def list_keys(services: AdministrationServices, resource: Resource, call: AdministrationCall) -> Response:
    return _answer_keys(await _rule(services, resource), resource, call)


async def regenerate_keys(services: AdministrationServices, resource: Resource, call: AdministrationCall) -> Response:
    """Replace a key of a rule by a new one, or by one that is given."""
    content = read_object(call.request.body)
    field = _KEY_FIELDS.get(str(content.get("keyType", "")).lower())
    key = content.get("key") or services.new_key()
    if field is None or not isinstance(key, str):
        raise MalformedRequest(reason="The body needs a 'keyType' of PrimaryKey or SecondaryKey.")
    keys = {field: key}
    rule = replace(await _rule(services, resource), updated_ms=services.now_ms(), **keys)  # type: ignore[arg-type]  # texts
    return _answer_keys(await _store(services, resource, rule), resource, call)


async def _rules(services: AdministrationServices, resource: Resource) -> Sequence[AuthorizationRule]:
    if len(resource.types) == 1:
        return await services.rules.of_namespace(resource.namespace)
    if resource.types[0] == "eventhubs":
        stored = required_hub(services, resource).description.authorization_rules
        return tuple(map(AuthorizationRule.from_json, stored))
    return required_entity(services, resource).description.authorization_rules


async def _rule(services: AdministrationServices, resource: Resource) -> AuthorizationRule:
    for rule in await _rules(services, resource):
        if rule.name.lower() == resource.name.lower():
            return rule
    raise ResourceNotFound(kind="authorization rule", name=resource.name)


async def _store(services: AdministrationServices, resource: Resource, rule: AuthorizationRule) -> AuthorizationRule:
    if len(resource.types) == 1:
        return await services.rules.put(resource.namespace, rule)
    await _change(services, resource, lambda rules: with_rule(rules, rule))
    return await _rule(services, resource)


async def _change(services: AdministrationServices, resource: Resource, change: Callable[[_Rules], _Rules]) -> None:
    """Change the rules of an entity, durably."""
    if resource.types[0] == "eventhubs":
        await services.hubs.update(
            required_hub(services, resource),
            lambda before: replace(
                before,
                authorization_rules=tuple(
                    rule.to_json()
                    for rule in change(tuple(map(AuthorizationRule.from_json, before.authorization_rules)))
                ),
            ),
        )
        return
    await services.bus.store.update(
        required_entity(services, resource),
        lambda before: replace(before, authorization_rules=change(before.authorization_rules)),
    )


def _shown(rule: AuthorizationRule) -> dict[str, Any]:
    return {"rights": rule.ordered_rights}


def _answer_keys(rule: AuthorizationRule, resource: Resource, call: AdministrationCall) -> Response:
    entity = f";EntityPath={resource.names[0]}" if len(resource.types) > 1 else ""
    shown = {"primaryKey": rule.primary_key, "secondaryKey": rule.secondary_key, "keyName": rule.name}
    for name, key in (("primary", rule.primary_key), ("secondary", rule.secondary_key)):
        if key:
            shown[f"{name}ConnectionString"] = (
                f"Endpoint=sb://{call.host}/;SharedAccessKeyName={rule.name};SharedAccessKey={key}{entity}"
            )
    return json_response(200, shown)
