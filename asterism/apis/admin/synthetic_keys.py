"""The rules of synthetic partition keys, explained before a container has them. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS, message_of
from asterism.apis.admin.parameters import body_object
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import AsterismError, MalformedRequest
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.models.documents.cosmos.synthetic_keys import SYNTHETIC, computed_key_of
from asterism.partitioning.computed_key import ComputedKey
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.rule_words import rule_in_words
from asterism.values.json.text import dumps
from asterism.values.undefined import UNDEFINED

# An item under a suffix may have one of a thousand keys; a few show what they look like.
KEYS_SHOWN_MAX: Final = 5


async def explain_synthetic_key(_services: AdminServices, request: Request) -> Response:
    """Explain a partition key with rules in words, and the keys that it gives to an item. A rule that cannot be is an
    answer, with its reason, as refused plans are; so is an item that the rule cannot be applied to."""
    body = body_object(request)
    try:
        definition, computed = _key_asked(body.get("partition_key"))
    except AsterismError as refusal:
        return Response(200, JSON_HEADERS, dumps({"allowed": False, "reason": message_of(refusal)}))
    item = body.get("item")
    explained = {
        "allowed": True,
        "reason": None,
        "partition_key": {**definition.to_json(), SYNTHETIC: computed.to_json()},
        "words": _words(computed),
        "item": None if item is None else _explain_item(computed, item),
    }
    return Response(200, JSON_HEADERS, dumps(explained))


def describe_synthetic(record: KeyspaceRecord) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the rules of a keyspace as an addition to its key definition, and in words by path; nothing without
    rules."""
    stored = record.settings.get("partitionKey")
    computed = computed_key_of(stored) if isinstance(stored, Mapping) else None
    return ({}, {}) if computed is None else ({SYNTHETIC: computed.to_json()}, _words(computed))


def _key_asked(given: object) -> tuple[PartitionKeyDefinition, ComputedKey]:
    if not isinstance(given, Mapping):
        raise MalformedRequest(reason="'partition_key' must be that of a container, an object.")
    definition, computed = PartitionKeyDefinition.parse(given), computed_key_of(given)
    if computed is None:
        raise MalformedRequest(reason="The 'partition_key' has no rule: add 'synthetic', an object of rules by path.")
    return definition, computed


def _words(computed: ComputedKey) -> dict[str, str]:
    return {path: rule_in_words(rule) for path, rule in computed.rules.items()}


def _explain_item(computed: ComputedKey, item: object) -> dict[str, Any]:
    try:
        if not isinstance(item, dict):
            raise MalformedRequest(reason="An item is a JSON object.")
        keys = computed.keys_of(item)
        filled = computed.fill(item, keys[0])
    except AsterismError as refusal:
        return {"reason": message_of(refusal)}
    shown: list[list[object]] = [
        [{} if value is UNDEFINED else value for value in key] for key in keys[:KEYS_SHOWN_MAX]
    ]
    return {"reason": None, "keys": shown, "key_count": len(keys), "is_drawn": computed.is_drawn, "filled": filled}
