"""Stored access policies of a table, queue or container, which shared access signatures may name instead of carrying
all their fields."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any, Final, cast

from asterism.access.sas_grants import Policy
from asterism.access.shared_access import moment_of
from asterism.apis.storage.refusals import invalid_xml_document, invalid_xml_value
from asterism.apis.storage.xml_text import children, leaf, local_name, node, read_document, text_of
from asterism.errors import Unauthorized
from asterism.values.json.text import dumps, loads_stored

# The service's limits.
POLICIES_MAX: Final = 5
IDENTIFIER_CHARACTERS_MAX: Final = 64
_FIELDS: Final = ("Start", "Expiry", "Permission")
# The letters of all services.
_PERMISSIONS: Final = frozenset("acdefilmoprtuwxy")
_ROOT: Final = "SignedIdentifiers"

# The identifier -> the fields of its policy; None if it has an identifier and no policy.
StoredPolicies = dict[str, dict[str, str] | None]


def load_policies(content: bytes | None) -> StoredPolicies:
    return cast("StoredPolicies", loads_stored(content)) if content else {}


def dump_policies(policies: StoredPolicies) -> bytes:
    return dumps(policies)


def policies_for_signing(stored: StoredPolicies) -> dict[str, Policy]:
    """Return the policies as signatures use them."""
    return {identifier: _policy(fields or {}) for identifier, fields in stored.items()}


def _policy(fields: Mapping[str, Any]) -> Policy:
    return Policy(
        start=fields.get("Start", ""), expiry=fields.get("Expiry", ""), permissions=fields.get("Permission", "")
    )


def read_policies(body: bytes) -> StoredPolicies:
    """Read a document of policies; an empty body has none."""
    if not body.strip():
        return {}
    root = read_document(body, _ROOT)
    if len(root) > POLICIES_MAX:
        raise invalid_xml_document("There are at most five access policies.")
    policies: StoredPolicies = {}
    for element in root:
        if local_name(element) != "SignedIdentifier":
            raise invalid_xml_document()
        parts = children(element)
        identifier = text_of(parts.get("Id"))
        if not 0 < len(identifier) <= IDENTIFIER_CHARACTERS_MAX or identifier in policies:
            raise invalid_xml_document("An access policy needs a unique identifier of at most 64 characters.")
        policies[identifier] = _read_fields(parts["AccessPolicy"]) if "AccessPolicy" in parts else None
    return policies


def _read_fields(element: ElementTree.Element) -> dict[str, str]:
    parts = children(element)
    fields = {name: text_of(parts[name]) for name in _FIELDS if text_of(parts.get(name))}
    for name, text in fields.items():
        if not (_PERMISSIONS.issuperset(text) if name == "Permission" else _is_moment(text)):
            raise invalid_xml_value(name, text)
    return fields


def _is_moment(text: str) -> bool:
    try:
        moment_of(text)
    except Unauthorized:
        return False
    return True


def write_policies(policies: StoredPolicies) -> str:
    return node(_ROOT, "".join(_write(identifier, fields) for identifier, fields in policies.items()))


def _write(identifier: str, fields: Mapping[str, str] | None) -> str:
    policy = "" if not fields else node("AccessPolicy", "".join(leaf(*field) for field in fields.items()))
    return node("SignedIdentifier", leaf("Id", identifier) + policy)
