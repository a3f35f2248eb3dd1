"""The accounts of storage: those of the configuration, and those of the catalog."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from asterism.access.account_settings import STORAGE
from asterism.access.checked_signatures import CheckedSignatures
from asterism.access.keys import PUBLIC_KEYS
from asterism.apis.settings import StartRefused

if TYPE_CHECKING:
    # The specs of doors read this module, and it has to load quickly.
    from asterism.keyspaces.catalog.accounts import Accounts as CatalogAccounts

_PUBLIC_KEYS: Final = frozenset(map(base64.b64decode, PUBLIC_KEYS))

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


def parse_accounts(given: Sequence[str]) -> tuple[Account, ...]:
    try:
        accounts = tuple(parse_account(text) for text in given)
    except ValueError as error:
        raise StartRefused(f"a storage account cannot be used: {error}") from None
    names = [account.name for account in accounts]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise StartRefused(f"the storage account {repeated!r} is given twice; two keys of one are NAME:KEY1;KEY2")
    return accounts
