"""A table's stored access policies, which shared access signatures may name instead of telling all their fields."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any, Final, cast

from asterism.access.shared_access import Policy
from asterism.apis.http import Response
from asterism.apis.table import headers
from asterism.apis.table.context import Call
from asterism.apis.table.errors import Refusal, not_permitted
from asterism.apis.table.store_contract import StoreLike, TableLike
from asterism.apis.table.xml_text import (
    DECLARATION,
    children,
    invalid_document,
    leaf,
    local_name,
    node,
    read_document,
    text_of,
)
from asterism.values.json_text import dumps, loads_stored

ACL_DOCUMENT: Final = "acl"
# The service's limits.
POLICIES_MAX: Final = 5
IDENTIFIER_CHARACTERS_MAX: Final = 64
_FIELDS: Final = ("Start", "Expiry", "Permission")

# The identifier -> the fields that the policy has; None when it has no policy at all, only the identifier.
StoredPolicies = dict[str, dict[str, str] | None]


async def get_policies(call: Call) -> Response:
    table = _table(call)
    stored = await load_policies(call.context.store, call.account.name, table)
    signed = "".join(_write(identifier, fields) for identifier, fields in stored.items())
    return Response(200, list(headers.XML_HEADERS), (DECLARATION + node("SignedIdentifiers", signed)).encode())


async def set_policies(call: Call) -> Response:
    table = _table(call)
    policies = _read(call.request.body) if call.request.body.strip() else {}
    await call.context.store.put_document(call.account.name, table, ACL_DOCUMENT, dumps(policies))
    return Response(204, [])


def _table(call: Call) -> TableLike:
    if call.context.is_cosmos:
        raise Refusal(400, "NotImplemented", "Cosmos DB for Table has no access policies.", is_xml=True)
    if call.grant is not None:
        # Whoever holds a signature may not make others.
        raise not_permitted()
    return call.table(call.resource.table)


async def load_policies(store: StoreLike, account: str, table: TableLike) -> StoredPolicies:
    content = await store.get_document(account, table, ACL_DOCUMENT)
    return cast("StoredPolicies", loads_stored(content)) if content else {}


async def signing_policies(store: StoreLike, account: str, table_name: str) -> Mapping[str, Policy]:
    """The policies of a table as signatures use them."""
    table = store.find_table(account, table_name)
    if table is None:
        return {}
    stored = await load_policies(store, account, table)
    return {identifier: _policy(fields or {}) for identifier, fields in stored.items()}


def _policy(fields: Mapping[str, Any]) -> Policy:
    return Policy(
        start=fields.get("Start", ""), expiry=fields.get("Expiry", ""), permissions=fields.get("Permission", "")
    )


def _read(body: bytes) -> StoredPolicies:
    root = read_document(body, "SignedIdentifiers")
    if len(root) > POLICIES_MAX:
        raise invalid_document("A table has at most five access policies.")
    policies: StoredPolicies = {}
    for element in root:
        if local_name(element) != "SignedIdentifier":
            raise invalid_document()
        told = children(element)
        identifier = text_of(told.get("Id"))
        if not 0 < len(identifier) <= IDENTIFIER_CHARACTERS_MAX or identifier in policies:
            raise invalid_document("An access policy needs an identifier of its own, of at most 64 characters.")
        policies[identifier] = _read_fields(told["AccessPolicy"]) if "AccessPolicy" in told else None
    return policies


def _read_fields(element: ElementTree.Element) -> dict[str, str]:
    told = children(element)
    return {name: text_of(told[name]) for name in _FIELDS if text_of(told.get(name))}


def _write(identifier: str, fields: Mapping[str, str] | None) -> str:
    policy = "" if not fields else node("AccessPolicy", "".join(leaf(*field) for field in fields.items()))
    return node("SignedIdentifier", leaf("Id", identifier) + policy)
