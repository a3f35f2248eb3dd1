"""Subscriptions and their rules in Atom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asterism.apis.amqp.administration.address import Address, Form
from asterism.apis.amqp.administration.atom import Entry, entry_response, feed_response, read_content
from asterism.apis.amqp.administration.atom_entities import create_entity, page_of
from asterism.apis.amqp.administration.entity_xml import TABLES, read_fields, write_description
from asterism.apis.amqp.administration.rule_xml import read_rule, write_rule
from asterism.apis.amqp.administration.runtime import EntityRuntime, runtimes_of
from asterism.apis.amqp.administration.validation import check_part_name
from asterism.apis.storage.xml_text import children, local_name
from asterism.apis.transports.http import Response
from asterism.errors import MalformedRequest
from asterism.models.messages.descriptions import RuleDescription

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from asterism.apis.amqp.administration.call import AdministrationCall, AdministrationServices
    from asterism.models.messages.descriptions import SubscriptionDescription
    from asterism.models.messages.entity import Entity

_SUBSCRIPTION = "SubscriptionDescription"
_RULE = "RuleDescription"


# --- subscriptions --------------------------------------------------------------------------------------------------


async def list_subscriptions(services: AdministrationServices, call: AdministrationCall) -> Response:
    topic = _topic(services, call)
    skip, top = call.page()
    known = services.bus.topic_of(topic).subscriptions
    shown = [known[name] for name in sorted(known)[skip : skip + top]]
    runtimes = await runtimes_of(topic) if shown else {}
    entries = [
        _entry(topic, subscription, runtimes.get(subscription.number, EntityRuntime()), call) for subscription in shown
    ]
    page = page_of(entries, skip=skip, top=top, count=len(known))
    return feed_response(
        call.base, call.address.path, "Subscriptions", page, call.api_version, now_ms=services.now_ms()
    )


async def get_subscription(services: AdministrationServices, call: AdministrationCall) -> Response:
    topic = _topic(services, call)
    return await _answer(200, topic, services.bus.subscription_of(topic, call.address.subscription), call)


async def create_subscription(services: AdministrationServices, call: AdministrationCall) -> Response:
    content = read_content(call.request.body)
    if local_name(content) in TABLES and local_name(content) != _SUBSCRIPTION:
        # A queue or topic with a name that could be that of a subscription.
        call.address = Address(Form.ENTITY, call.address.path)
        return await create_entity(services, call)
    topic = _topic(services, call)
    fields = _read_fields(services, content)
    default = children(content).get("DefaultRuleDescription")
    rules = (
        (RuleDescription(created_ms=services.now_ms()),)
        if default is None
        else (read_rule(default, name="", now_ms=services.now_ms()),)
    )
    created = await services.bus.create_subscription(topic, call.address.subscription, fields, rules)
    return await _answer(201, topic, created, call)


async def update_subscription(services: AdministrationServices, call: AdministrationCall) -> Response:
    topic = _topic(services, call)
    check_part_name("subscription", call.address.subscription)
    fields = _read_fields(services, read_content(call.request.body))
    updated = await services.bus.update_subscription(topic, call.address.subscription, fields, is_complete=True)
    return await _answer(200, topic, updated, call)


async def delete_subscription(services: AdministrationServices, call: AdministrationCall) -> Response:
    await services.bus.delete_subscription(_topic(services, call), call.address.subscription)
    return Response(200, [])


def _topic(services: AdministrationServices, call: AdministrationCall) -> Entity:
    return services.bus.required(call.namespace, call.address.entity, "topic")


def _read_fields(services: AdministrationServices, content: Element) -> dict[str, object]:
    if local_name(content) != _SUBSCRIPTION:
        raise MalformedRequest(reason=f"'{local_name(content)[:40]}' does not describe a subscription.")
    return read_fields(content, services.new_key, services.now_ms())


async def _answer(
    status: int, topic: Entity, subscription: SubscriptionDescription, call: AdministrationCall
) -> Response:
    runtime = (await runtimes_of(topic)).get(subscription.number, EntityRuntime())
    return entry_response(status, call.base, _entry(topic, subscription, runtime, call), call.api_version)


def _entry(
    topic: Entity, subscription: SubscriptionDescription, runtime: EntityRuntime, call: AdministrationCall
) -> Entry:
    return Entry(
        subscription.name,
        f"{topic.name}/subscriptions/{subscription.name}",
        write_description(subscription, runtime, call.shown),
        subscription.created_ms,
        subscription.updated_ms,
    )


# --- rules ----------------------------------------------------------------------------------------------------------


async def list_rules(services: AdministrationServices, call: AdministrationCall) -> Response:
    rules = _subscription(services, call).rules
    skip, top = call.page()
    entries = [_rule_entry(call, rule) for rule in rules[skip : skip + top]]
    page = page_of(entries, skip=skip, top=top, count=len(rules))
    return feed_response(call.base, call.address.path, "Rules", page, call.api_version, now_ms=services.now_ms())


async def get_rule(services: AdministrationServices, call: AdministrationCall) -> Response:
    return _answer_rule(200, services.bus.rule_of(_subscription(services, call), call.address.rule), call)


async def create_rule(services: AdministrationServices, call: AdministrationCall) -> Response:
    rule = _read_rule(services, call)
    created = await services.bus.create_rule(_topic(services, call), call.address.subscription, rule)
    return _answer_rule(201, created, call)


async def update_rule(services: AdministrationServices, call: AdministrationCall) -> Response:
    rule = _read_rule(services, call)
    updated = await services.bus.update_rule(_topic(services, call), call.address.subscription, rule)
    return _answer_rule(200, updated, call)


async def delete_rule(services: AdministrationServices, call: AdministrationCall) -> Response:
    await services.bus.delete_rule(_topic(services, call), call.address.subscription, call.address.rule)
    return Response(200, [])


def _subscription(services: AdministrationServices, call: AdministrationCall) -> SubscriptionDescription:
    return services.bus.subscription_of(_topic(services, call), call.address.subscription)


def _read_rule(services: AdministrationServices, call: AdministrationCall) -> RuleDescription:
    content = read_content(call.request.body)
    if local_name(content) != _RULE:
        raise MalformedRequest(reason=f"'{local_name(content)[:40]}' does not describe a rule.")
    check_part_name("rule", call.address.rule)
    return read_rule(content, name=call.address.rule, now_ms=services.now_ms())


def _answer_rule(status: int, rule: RuleDescription, call: AdministrationCall) -> Response:
    return entry_response(status, call.base, _rule_entry(call, rule), call.api_version)


def _rule_entry(call: AdministrationCall, rule: RuleDescription) -> Entry:
    path = f"{call.address.entity}/subscriptions/{call.address.subscription}/rules/{rule.name}"
    return Entry(rule.name, path, write_rule(rule), rule.created_ms, rule.created_ms)
