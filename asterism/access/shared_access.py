"""Shared access signatures: a URL that carries a permission, signed with the account's key.

Two kinds are valid for tables. One of an account grants kinds of operations on kinds of resources; one of a table
grants operations on that table, maybe only on a range of its keys, maybe by a policy stored with the table.

Fields of the URL: sp permissions, st start, se expiry, sip client addresses, spr protocols, sv version, sig signature;
of an account ss services, srt resource types, ses encryption scope; of a table tn name, si policy, spk and srk the
first partition and row key, epk and erk the last.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from asterism.access.shared_key import shared_key_signature
from asterism.errors import Forbidden, Unauthorized
from asterism.values.ordered_text import ordered_text

# From this version on, an account's signature covers the encryption scope too.
_VERSION_WITH_ENCRYPTION_SCOPE = "2020-12-06"

TableKey = tuple[str, str]


class ResourceType(Enum):
    SERVICE = "s"
    CONTAINER = "c"
    OBJECT = "o"


@dataclass(frozen=True, slots=True)
class Policy:
    """Policy stored with a table, for signatures that refer to it by name."""

    start: str = ""
    expiry: str = ""
    permissions: str = ""


@dataclass(frozen=True, slots=True)
class SasGrant:
    """Permission of a valid signature."""

    permissions: str
    # The kinds of resources of an account's signature; None for a table's.
    resource_types: str | None
    # The table's name in lower case; None for an account's signature.
    table: str | None
    # The range of permitted keys, ends included; None is unbounded.
    first: tuple[str, str | None] | None = None
    last: tuple[str, str | None] | None = None

    def allows(self, permissions: str, resource_type: ResourceType, table: str | None) -> bool:
        """Return True if all of the permissions are granted, for this kind of resource and this table."""
        if self.table is not None and (table is None or not self.is_about(table)):
            return False
        if self.resource_types is not None and resource_type.value not in self.resource_types:
            return False
        return all(permission in self.permissions for permission in permissions)

    def is_about(self, table: str) -> bool:
        return self.table is None or table.lower() == self.table

    def covers(self, key: TableKey) -> bool:
        return self.begins_before(key) and self.ends_after(key)

    def begins_before(self, key: TableKey) -> bool:
        if self.first is None:
            return True
        partition_key, row_key = self.first
        return _order(key) >= _order((partition_key, row_key or ""))

    def ends_after(self, key: TableKey) -> bool:
        if self.last is None:
            return True
        partition_key, row_key = self.last
        if row_key is None:
            return ordered_text(key[0]) <= ordered_text(partition_key)
        return _order(key) <= _order((partition_key, row_key))

    @property
    def has_range(self) -> bool:
        return self.first is not None or self.last is not None


def _order(key: TableKey) -> tuple[bytes, bytes]:
    """Return the sort key of an entity: tables sort by UTF-16 code units, unlike Python's strings."""
    return ordered_text(key[0]), ordered_text(key[1])


def is_shared_access(parameters: Mapping[str, str]) -> bool:
    return "sig" in parameters and ("sv" in parameters or "se" in parameters or "si" in parameters)


def check_shared_access(
    keys: Sequence[bytes],
    parameters: Mapping[str, str],
    *,
    account: str,
    policies: Mapping[str, Policy],
    scheme: str,
    client_address: str,
    now_wall_seconds: float,
) -> SasGrant:
    """Return the grant of a signature; Unauthorized if it is not the account's, has expired, or is not valid yet."""
    fields = dict(parameters)
    table = fields.get("tn")
    text = _account_text(fields, account) if table is None else _table_text(fields, account, table)
    given = fields["sig"].replace(" ", "+")
    if not any(hmac.compare_digest(shared_key_signature(key, text).encode(), given.encode()) for key in keys):
        raise Unauthorized(reason="Signature did not match.")
    if table is not None:
        _add_policy(fields, policies)
    _check_circumstances(fields, scheme=scheme, client_address=client_address, now_wall_seconds=now_wall_seconds)
    if table is None:
        return _account_grant(fields)
    return _table_grant(fields, table)


def _account_text(fields: Mapping[str, str], account: str) -> str:
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
    if fields.get("sv", "") >= _VERSION_WITH_ENCRYPTION_SCOPE:
        names.append("ses")
    return "".join(f"{value}\n" for value in (account, *(fields.get(name, "") for name in names)))


def _table_text(fields: Mapping[str, str], account: str, table: str) -> str:
    def part(name: str) -> str:
        return fields.get(name, "")

    resource = f"/table/{account}/{table.lower()}"
    parts = [part("sp"), part("st"), part("se"), resource, *(part(name) for name in ("si", "sip", "spr", "sv"))]
    return "\n".join([*parts, *(part(name) for name in ("spk", "srk", "epk", "erk"))])


def _add_policy(fields: dict[str, str], policies: Mapping[str, Policy]) -> None:
    identifier = fields.get("si")
    if identifier is None:
        return
    policy = policies.get(identifier)
    if policy is None:
        raise Unauthorized(reason="The signature names a policy that the table does not have.")
    for name, value in (("st", policy.start), ("se", policy.expiry), ("sp", policy.permissions)):
        if value and fields.get(name):
            raise Unauthorized(reason=f"The field {name} is in the signature and in its policy.")
        if value:
            fields[name] = value


def _check_circumstances(
    fields: Mapping[str, str], *, scheme: str, client_address: str, now_wall_seconds: float
) -> None:
    expiry = fields.get("se")
    if not expiry:
        raise Unauthorized(reason="The signature has no expiry time (se).")
    if now_wall_seconds >= moment_of(expiry):
        raise Unauthorized(reason=f"The signature expired at {expiry}.")
    if fields.get("st") and now_wall_seconds < moment_of(fields["st"]):
        raise Unauthorized(reason=f"The signature is not valid before {fields['st']}.")
    if fields.get("spr") and scheme not in fields["spr"].split(","):
        raise Forbidden(reason=f"The signature is for {fields['spr']} only.")
    if fields.get("sip") and not address_within(client_address, fields["sip"]):
        raise Forbidden(reason="The signature is not for this address.")


def _account_grant(fields: Mapping[str, str]) -> SasGrant:
    if "t" not in fields.get("ss", ""):
        raise Forbidden(reason="The signature is not for tables.")
    return SasGrant(fields.get("sp", ""), fields.get("srt", ""), None)


def _table_grant(fields: Mapping[str, str], table: str) -> SasGrant:
    for row_key, partition_key in (("srk", "spk"), ("erk", "epk")):
        if row_key in fields and partition_key not in fields:
            # Ignoring it would grant more than intended.
            raise Unauthorized(reason=f"The signature has {row_key} without {partition_key}.")
    first = (fields["spk"], fields.get("srk")) if "spk" in fields else None
    last = (fields["epk"], fields.get("erk")) if "epk" in fields else None
    return SasGrant(fields.get("sp", ""), None, table.lower(), first, last)


def moment_of(text: str) -> float:
    """Return the seconds since 1970 of a date or a time in UTC; Unauthorized for any other text."""
    cut = text.strip().removesuffix("Z")
    try:
        moment = datetime.fromisoformat(cut[:26])
    except ValueError:
        raise Unauthorized(reason="A time in the signature is malformed.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def address_within(address: str, allowed: str) -> bool:
    """Return True if the address is the allowed one, or in the allowed range `first-last`."""
    first, _, last = allowed.partition("-")
    try:
        asked = ipaddress.ip_address(address)
        lowest, highest = ipaddress.ip_address(first.strip()), ipaddress.ip_address((last or first).strip())
    except ValueError:
        return False
    if asked.version != lowest.version or lowest.version != highest.version:
        return False
    return int(lowest) <= int(asked) <= int(highest)
