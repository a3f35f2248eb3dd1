"""Shared access signatures: a URL that carries a permission, signed with the account's key.

Two kinds reach tables. One of an account grants kinds of operations on kinds of resources; one of a table grants
operations on that table, maybe only on a range of its keys, maybe by a policy stored with the table.
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

# From this version on an account's signature covers the encryption scope too.
_VERSION_WITH_ENCRYPTION_SCOPE = "2020-12-06"

Key = tuple[str, str]


class ResourceType(Enum):
    SERVICE = "s"
    CONTAINER = "c"
    OBJECT = "o"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a table keeps for signatures that only name it."""

    start: str = ""
    expiry: str = ""
    permissions: str = ""


@dataclass(frozen=True, slots=True)
class SasGrant:
    """What a good signature permits."""

    permissions: str
    # Of an account's signature: the kinds of resources; None for one of a table.
    resource_types: str | None
    # Of a table's signature: its name in lower case; None for one of an account.
    table: str | None
    # The keys that may be touched, ends included; None is no end.
    first: tuple[str, str | None] | None = None
    last: tuple[str, str | None] | None = None

    def allows(self, permissions: str, resource_type: ResourceType, table: str | None) -> bool:
        """Whether each of the permissions is there, for this kind of resource and this table."""
        if self.table is not None and (table is None or table.lower() != self.table):
            return False
        if self.resource_types is not None and resource_type.value not in self.resource_types:
            return False
        return all(one in self.permissions for one in permissions)

    def covers(self, key: Key) -> bool:
        return self.begins_before(key) and self.ends_after(key)

    def begins_before(self, key: Key) -> bool:
        if self.first is None:
            return True
        partition_key, row_key = self.first
        return _order(key) >= _order((partition_key, row_key or ""))

    def ends_after(self, key: Key) -> bool:
        if self.last is None:
            return True
        partition_key, row_key = self.last
        if row_key is None:
            return ordered_text(key[0]) <= ordered_text(partition_key)
        return _order(key) <= _order((partition_key, row_key))

    @property
    def has_range(self) -> bool:
        return self.first is not None or self.last is not None


def _order(key: Key) -> tuple[bytes, bytes]:
    """Keys lie in a table by their UTF-16 code units, which is not how Python compares texts."""
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
    """The grant of a signature; Unauthorized when it is not the account's, is over, or has not begun."""
    told = dict(parameters)
    table = told.get("tn")
    text = _account_text(told, account) if table is None else _table_text(told, account, table)
    given = told["sig"].replace(" ", "+")
    if not any(hmac.compare_digest(shared_key_signature(key, text).encode(), given.encode()) for key in keys):
        raise Unauthorized(reason="Signature did not match.")
    if table is not None:
        _add_policy(told, policies)
    _check_circumstances(told, scheme=scheme, client_address=client_address, now_wall_seconds=now_wall_seconds)
    if table is None:
        return _account_grant(told)
    return _table_grant(told, table)


def _account_text(told: Mapping[str, str], account: str) -> str:
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
    if told.get("sv", "") >= _VERSION_WITH_ENCRYPTION_SCOPE:
        names.append("ses")
    return "".join(f"{one}\n" for one in (account, *(told.get(name, "") for name in names)))


def _table_text(told: Mapping[str, str], account: str, table: str) -> str:
    def part(name: str) -> str:
        return told.get(name, "")

    resource = f"/table/{account}/{table.lower()}"
    parts = [part("sp"), part("st"), part("se"), resource, *(part(name) for name in ("si", "sip", "spr", "sv"))]
    return "\n".join([*parts, *(part(name) for name in ("spk", "srk", "epk", "erk"))])


def _add_policy(told: dict[str, str], policies: Mapping[str, Policy]) -> None:
    identifier = told.get("si")
    if identifier is None:
        return
    policy = policies.get(identifier)
    if policy is None:
        raise Unauthorized(reason="The signature names a policy that the table does not have.")
    for name, value in (("st", policy.start), ("se", policy.expiry), ("sp", policy.permissions)):
        if value and told.get(name):
            raise Unauthorized(reason=f"The field {name} is in the signature and in its policy.")
        if value:
            told[name] = value


def _check_circumstances(told: Mapping[str, str], *, scheme: str, client_address: str, now_wall_seconds: float) -> None:
    expiry = told.get("se")
    if not expiry:
        raise Unauthorized(reason="The signature has no time of expiry.")
    if now_wall_seconds >= moment_of(expiry):
        raise Unauthorized(reason=f"The signature expired at {expiry}.")
    if told.get("st") and now_wall_seconds < moment_of(told["st"]):
        raise Unauthorized(reason=f"The signature is not valid before {told['st']}.")
    if told.get("spr") and scheme not in told["spr"].split(","):
        raise Forbidden(reason=f"The signature is for {told['spr']} only.")
    if told.get("sip") and not address_within(client_address, told["sip"]):
        raise Forbidden(reason="The signature is not for this address.")


def _account_grant(told: Mapping[str, str]) -> SasGrant:
    if "t" not in told.get("ss", ""):
        raise Forbidden(reason="The signature is not for tables.")
    return SasGrant(told.get("sp", ""), told.get("srt", ""), None)


def _table_grant(told: Mapping[str, str], table: str) -> SasGrant:
    for row_key, partition_key in (("srk", "spk"), ("erk", "epk")):
        if row_key in told and partition_key not in told:
            # Left aside it would grant more than was meant.
            raise Unauthorized(reason=f"The signature has {row_key} without {partition_key}.")
    first = (told["spk"], told.get("srk")) if "spk" in told else None
    last = (told["epk"], told.get("erk")) if "epk" in told else None
    return SasGrant(told.get("sp", ""), None, table.lower(), first, last)


def moment_of(text: str) -> float:
    """Seconds since 1970 of a date or a moment in UTC; Unauthorized for a text that is neither."""
    cut = text.strip().removesuffix("Z")
    try:
        moment = datetime.fromisoformat(cut[:26])
    except ValueError:
        raise Unauthorized(reason="A time in the signature cannot be read.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def address_within(address: str, allowed: str) -> bool:
    """Whether the address is the allowed one, or in the allowed range `first-last`."""
    first, _, last = allowed.partition("-")
    try:
        asked = ipaddress.ip_address(address)
        lowest, highest = ipaddress.ip_address(first.strip()), ipaddress.ip_address((last or first).strip())
    except ValueError:
        return False
    if asked.version != lowest.version or lowest.version != highest.version:
        return False
    return int(lowest) <= int(asked) <= int(highest)
