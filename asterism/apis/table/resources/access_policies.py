"""Stored access policies of a table, which shared access signatures may name instead of carrying all their fields."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any, Final, cast

from asterism.access.shared_access import Policy
from asterism.apis.table import headers
from asterism.apis.table.context import Call
from asterism.apis.table.errors import Refusal, not_permitted
from asterism.apis.table.resources.xml_text import (
    DECLARATION,
    children,
    invalid_document,
    leaf,
    local_name,
    node,
    read_document,
    text_of,
)
from asterism.apis.transports.http import Response
from asterism.models.tables.store import TableStore
from asterism.models.tables.table import Table
from asterism.values.json.text import dumps, loads_stored

ACL_DOCUMENT: Final = "acl"
# The service's limits.
POLICIES_MAX: Final = 5
IDENTIFIER_CHARACTERS_MAX: Final = 64
_FIELDS: Final = ("Start", "Expiry", "Permission")

# The identifier -> the fields of its policy; None if it has an identifier and no policy.
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


def _table(call: Call) -> Table:
    if call.context.is_cosmos:
        raise Refusal(400, "NotImplemented", "Cosmos DB for Table has no access policies.", is_xml=True)
    if call.grant is not None:
        # The holder of a signature may not create others.
        raise not_permitted()
    return call.table(call.resource.table)


async def load_policies(store: TableStore, account: str, table: Table) -> StoredPolicies:
    content = await store.get_document(account, table, ACL_DOCUMENT)
    return cast("StoredPolicies", loads_stored(content)) if content else {}


async def signing_policies(store: TableStore, account: str, table_name: str) -> Mapping[str, Policy]:
    """Return the policies of a table as signatures use them."""
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
        parts = children(element)
        identifier = text_of(parts.get("Id"))
        if not 0 < len(identifier) <= IDENTIFIER_CHARACTERS_MAX or identifier in policies:
            raise invalid_document("An access policy needs a unique identifier of at most 64 characters.")
        policies[identifier] = _read_fields(parts["AccessPolicy"]) if "AccessPolicy" in parts else None
    return policies


def _read_fields(element: ElementTree.Element) -> dict[str, str]:
    parts = children(element)
    return {name: text_of(parts[name]) for name in _FIELDS if text_of(parts.get(name))}


def _write(identifier: str, fields: Mapping[str, str] | None) -> str:
    policy = "" if not fields else node("AccessPolicy", "".join(leaf(*field) for field in fields.items()))
    return node("SignedIdentifier", leaf("Id", identifier) + policy)
