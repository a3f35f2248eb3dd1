"""Keys for user delegation: a client with a bearer token gets one, and signs shared access signatures with it.

A key is derived from a key of the account and the fields that stand in every signature made with it. So the server
stores none, and knows the key of a signature when it sees it; a new account key revokes all of them.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

_LABEL: Final = "asterism user delegation 1"
# The service's limit.
DELEGATION_DAYS_MAX: Final = 7


class DelegationFields(NamedTuple):
    """The fields of a key: in its answer, and by other names in every signature."""

    object_id: str
    tenant_id: str
    start: str
    expiry: str
    # The letter of the service.
    service: str
    version: str
    # The tenant of the user whose token a signature needs besides; empty without.
    delegated_tenant_id: str = ""


def fields_of_signature(parameters: Mapping[str, str]) -> DelegationFields:
    names = ("skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid")
    return DelegationFields(*(parameters.get(name, "") for name in names))


def user_delegation_key(account_key: bytes, fields: DelegationFields) -> bytes:
    # The length of each field keeps two lists of fields from having one text.
    text = "".join(f"{len(field)}:{field}\n" for field in (_LABEL, *fields))
    return hmac.digest(account_key, text.encode("utf-8", "replace"), "sha256")
