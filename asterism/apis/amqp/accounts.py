"""The namespaces of messaging: accounts of the configuration, and those of the catalog. Their keys are texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from asterism.access.account_settings import MESSAGING
from asterism.apis.settings import StartRefused

if TYPE_CHECKING:
    # The specs of doors read this module, and it has to load quickly.
    from asterism.keyspaces.catalog.accounts import Accounts as CatalogAccounts

# The vendor's emulators have this key.
PUBLIC_KEY: Final = "SAS_KEY_VALUE"
DEFAULT_NAMESPACE: Final = "asterism"
# The first label of a host name.
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class NamespaceAccount:
    name: str
    # The primary one first.
    keys: tuple[str, ...] = field(repr=False)

    @property
    def is_public(self) -> bool:
        """True if a key of the namespace is printed in documentation."""
        return PUBLIC_KEY in self.keys


class NamespaceAccounts:
    """The namespaces of a server, which stay up to date."""

    def __init__(self, configured: Mapping[str, NamespaceAccount], records: CatalogAccounts) -> None:
        """`configured` has at least one; the first of them is the default."""
        self._configured = configured
        self._records = records
        self._accounts = dict(configured)
        self.default = next(iter(configured))
        records.listeners.append(self._renew)
        for record in records.of_kind(MESSAGING):
            self._renew(record.name)

    def find(self, name: str) -> NamespaceAccount | None:
        return self._accounts.get(name)

    def keys_of(self, name: str) -> Sequence[str] | None:
        """Return the keys of a namespace, the primary one first; None if there is no such namespace."""
        account = self._accounts.get(name)
        return None if account is None else account.keys

    def is_public(self, name: str) -> bool:
        account = self._accounts.get(name)
        return account is not None and account.is_public

    def _renew(self, name: str) -> None:
        if name in self._configured:
            return
        record = self._records.find(name)
        if record is not None and record.kind == MESSAGING:
            self._accounts[name] = NamespaceAccount(name, (record.primary_key, record.secondary_key))
        else:
            self._accounts.pop(name, None)


def parse_namespace(text: str) -> NamespaceAccount:
    """Parse `NAME:KEY`, or `NAME:KEY1;KEY2` while keys are rotated; ValueError says what is wrong."""
    name, colon, keys = text.partition(":")
    if not colon or not _NAME.fullmatch(name):
        raise ValueError("write NAME:KEY, with a name of small letters, digits and hyphens")
    if not all(keys.split(";")):
        raise ValueError(f"a key of the namespace {name!r} is empty")
    return NamespaceAccount(name, tuple(keys.split(";")))


def parse_namespaces(given: Sequence[str]) -> tuple[NamespaceAccount, ...]:
    try:
        accounts = tuple(map(parse_namespace, given))
    except ValueError as error:
        raise StartRefused(f"a namespace cannot be used: {error}") from None
    names = [account.name for account in accounts]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise StartRefused(f"the namespace {repeated!r} is given twice; two keys of one are NAME:KEY1;KEY2")
    return accounts
