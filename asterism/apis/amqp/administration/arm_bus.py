"""Queues, topics, subscriptions and rules in the form of the resource manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asterism.apis.amqp.administration import properties
from asterism.apis.amqp.administration.arm_json import json_response, read_properties
from asterism.apis.amqp.administration.properties import Kind, Property
from asterism.apis.amqp.administration.rule_json import read_rule, write_rule
from asterism.apis.amqp.administration.runtime import EntityRuntime, runtime_of, runtimes_of
from asterism.apis.amqp.administration.validation import AnyDescription, check_part_name
from asterism.apis.transports.http import Response
from asterism.errors import ResourceNotFound
from asterism.models.messages.descriptions import RuleDescription

if TYPE_CHECKING:
    from asterism.apis.amqp.administration.arm_resource import Resource
    from asterism.apis.amqp.administration.call import AdministrationCall, AdministrationServices
    from asterism.apis.amqp.administration.operations import BusKind
    from asterism.models.messages.descriptions import SubscriptionDescription
    from asterism.models.messages.entity import Entity

_KINDS: Final[dict[str, BusKind]] = {"queues": "queue", "topics": "topic"}
_TABLES: Final = {"queue": properties.QUEUE, "topic": properties.TOPIC}


def required_entity(services: AdministrationServices, resource: Resource) -> Entity:
    return services.bus.required(resource.namespace, resource.names[0], _KINDS[resource.types[0]])


# --- queues and topics ----------------------------------------------------------------------------------------------


async def list_entities(services: AdministrationServices, resource: Resource, call: AdministrationCall) -> Response:
    kind = _KINDS[resource.types[0]]
    skip, top = call.page()
    shown = []
    for record in services.bus.records(resource.namespace, kind)[skip : skip + top]:
        entity = services.bus.find(resource.namespace, record.name, kind)
        if entity is not None:
            shown.append(await _shown_entity(resource, entity))
    return json_response(200, {"value": shown})


async def get_entity(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    return json_response(200, await _shown_entity(resource, required_entity(services, resource)))


async def put_entity(services: AdministrationServices, resource: Resource, call: AdministrationCall) -> Response:
    """Create an entity, or change the properties of one that are given."""
    kind = _KINDS[resource.types[0]]
    fields = _read(_TABLES[kind], read_properties(call.request.body))
    entity = services.bus.find(resource.namespace, resource.name)
    if entity is None:
        entity = await services.bus.create(resource.namespace, resource.name, kind, fields)
    else:
        await services.bus.update(entity, fields, is_complete=False, kind=kind)
    return json_response(200, await _shown_entity(resource, entity))


async def delete_entity(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    await services.bus.store.delete(required_entity(services, resource))
    return Response(200, [])


async def _shown_entity(resource: Resource, entity: Entity) -> dict[str, Any]:
    table = _TABLES[_KINDS[resource.types[0]]]
    return resource.shown(entity.name, _shown(table, entity.description, await runtime_of(entity)))


# --- subscriptions --------------------------------------------------------------------------------------------------


async def list_subscriptions(
    services: AdministrationServices, resource: Resource, call: AdministrationCall
) -> Response:
    topic = required_entity(services, resource)
    skip, top = call.page()
    known = services.bus.topic_of(topic).subscriptions
    runtimes = await runtimes_of(topic)
    shown = [
        _shown_subscription(resource, known[name], runtimes.get(known[name].number, EntityRuntime()))
        for name in sorted(known)[skip : skip + top]
    ]
    return json_response(200, {"value": shown})


async def get_subscription(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    topic = required_entity(services, resource)
    return await _answer_subscription(resource, topic, services.bus.subscription_of(topic, resource.names[1]))


async def put_subscription(services: AdministrationServices, resource: Resource, call: AdministrationCall) -> Response:
    topic = required_entity(services, resource)
    fields = _read(properties.SUBSCRIPTION, read_properties(call.request.body))
    if services.bus.topic_of(topic).find(resource.name) is None:
        rules = (RuleDescription(created_ms=services.now_ms()),)
        subscription = await services.bus.create_subscription(topic, resource.name, fields, rules)
    else:
        subscription = await services.bus.update_subscription(topic, resource.name, fields, is_complete=False)
    return await _answer_subscription(resource, topic, subscription)


async def delete_subscription(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    await services.bus.delete_subscription(required_entity(services, resource), resource.name)
    return Response(200, [])


async def _answer_subscription(resource: Resource, topic: Entity, subscription: SubscriptionDescription) -> Response:
    runtime = (await runtimes_of(topic)).get(subscription.number, EntityRuntime())
    return json_response(200, _shown_subscription(resource, subscription, runtime))


def _shown_subscription(
    resource: Resource, subscription: SubscriptionDescription, runtime: EntityRuntime
) -> dict[str, Any]:
    return resource.shown(subscription.name, _shown(properties.SUBSCRIPTION, subscription, runtime))


# --- rules ----------------------------------------------------------------------------------------------------------


async def list_rules(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    rules = _subscription(services, resource).rules
    return json_response(200, {"value": [resource.shown(rule.name, write_rule(rule)) for rule in rules]})


async def get_rule(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    rule = services.bus.rule_of(_subscription(services, resource), resource.name)
    return json_response(200, resource.shown(rule.name, write_rule(rule)))


async def put_rule(services: AdministrationServices, resource: Resource, call: AdministrationCall) -> Response:
    check_part_name("rule", resource.name)
    rule = read_rule(resource.name, read_properties(call.request.body), now_ms=services.now_ms())
    topic = required_entity(services, resource)
    try:
        rule = await services.bus.update_rule(topic, resource.names[1], rule)
    except ResourceNotFound as missing:
        if missing.kind != "rule":
            raise
        rule = await services.bus.create_rule(topic, resource.names[1], rule)
    return json_response(200, resource.shown(rule.name, write_rule(rule)))


async def delete_rule(services: AdministrationServices, resource: Resource, _: AdministrationCall) -> Response:
    await services.bus.delete_rule(required_entity(services, resource), resource.names[1], resource.name)
    return Response(200, [])


def _subscription(services: AdministrationServices, resource: Resource) -> SubscriptionDescription:
    return services.bus.subscription_of(required_entity(services, resource), resource.names[1])


# --- values ---------------------------------------------------------------------------------------------------------


def _read(table: tuple[Property, ...], given: dict[str, Any]) -> dict[str, Any]:
    names = {row.json_name: row.name for row in table}
    return properties.read_values(table, {names[name]: value for name, value in given.items() if name in names})


def _shown(table: tuple[Property, ...], description: AnyDescription, runtime: EntityRuntime) -> dict[str, Any]:
    calculated = runtime.values(description)
    shown: dict[str, Any] = {}
    for row in table:
        if row.kind is not Kind.COMPOUND:
            value = properties.shown(row, getattr(description, row.field)) if row.field else calculated[row.name]
            if value is not None:
                shown[row.json_name] = value
    counts = {f"{name[0].lower()}{name[1:]}": count for name, count in runtime.count_details().items()}
    return {**shown, "countDetails": counts}
