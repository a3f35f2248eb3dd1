"""The accounts of the door, and the account that a request addresses."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from asterism.access.account_settings import STORAGE
from asterism.access.checked_signatures import CheckedSignatures
from asterism.access.keys import PUBLIC_KEYS

if TYPE_CHECKING:
    # The spec of the door reads this module, and it has to load quickly.
    from asterism.keyspaces.catalog.accounts import Accounts as CatalogAccounts

_PUBLIC_KEYS: Final = frozenset(map(base64.b64decode, PUBLIC_KEYS))

SECONDARY_SUFFIX: Final = "-secondary"
_HOST_STYLE: Final = re.compile(r"([a-z0-9-]+)\.table\.", re.IGNORECASE)
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,61}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    keys: tuple[bytes, ...]
    checked: CheckedSignatures[None] = field(init=False, repr=False, compare=False, default_factory=CheckedSignatures)
    # True if a key of the account is printed in documentation.
    is_public: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_public", not _PUBLIC_KEYS.isdisjoint(self.keys))


Accounts = Mapping[str, Account]


def follow_accounts(configured: Accounts, records: CatalogAccounts) -> Accounts:
    """Return the accounts of the configuration and those of the catalog, which stay up to date. A plain dictionary:
    every request looks its account up."""
    accounts = dict(configured)

    def renew(name: str) -> None:
        if name in configured:
            return
        record = records.find(name)
        if record is not None and record.kind == STORAGE:
            keys = tuple(base64.b64decode(key) for key in (record.primary_key, record.secondary_key))
            accounts[name] = Account(name, keys)
        else:
            accounts.pop(name, None)

    records.listeners.append(renew)
    for record in records.of_kind(STORAGE):
        renew(record.name)
    return accounts


def parse_account(text: str) -> Account:
    """Parse `NAME:KEY`, or `NAME:KEY1;KEY2` while keys are rotated; ValueError says what is wrong."""
    name, colon, key_texts = text.partition(":")
    if not colon or not _NAME.fullmatch(name):
        raise ValueError("write NAME:KEY, with a name of small letters, digits and hyphens and a key in base64")
    try:
        keys = tuple(base64.b64decode(key, validate=True) for key in key_texts.split(";"))
    except binascii.Error:
        raise ValueError(f"a key of the account {name!r} is not base64 text") from None
    if not all(keys):
        raise ValueError(f"a key of the account {name!r} is empty")
    return Account(name, keys)


@dataclass(slots=True)
class Address:
    """The host and path of a request, parsed before anything is looked up."""

    account: str
    # The path after the account, percent-decoded, without its leading slash.
    resource: str
    is_secondary: bool
    # The decoded paths that the client may have signed, the likeliest first.
    signed_paths: tuple[str, ...]
    # The part of answers between scheme and host and the name of a table.
    base_path: str


def read_address(authority: str, path: str) -> Address:
    """Parse an address: path style (`/account/…`) unless the host names the account (`account.table.…`).

    Clients mangle a path-style secondary: they put `account-secondary` before the path that they have signed, and
    `account` before that when they return to the primary.
    """
    host = _HOST_STYLE.match(authority)
    if host is not None:
        name = host[1]
        account = name.removesuffix(SECONDARY_SUFFIX)
        return Address(account, path.removeprefix("/"), account != name, (path,), "")
    first, _, rest = path.removeprefix("/").partition("/")
    if not first.endswith(SECONDARY_SUFFIX):
        detour = f"{first}{SECONDARY_SUFFIX}/{first}/"
        if rest.startswith(detour):
            rest = rest.removeprefix(detour)
            return Address(first, rest, False, (f"/{first}/{rest}", path), f"/{first}")
        return Address(first, rest, False, (path,), f"/{first}")
    account = first.removesuffix(SECONDARY_SUFFIX)
    second, _, behind = rest.partition("/")
    if second == account:
        return Address(account, behind, True, (f"/{rest}", path), f"/{account}")
    return Address(account, rest, True, (path, f"/{account}/{rest}"), f"/{account}")
