"""The accounts whose keys open graphs: the one of the configuration, and those of the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from asterism.access.account_settings import COSMOS
from asterism.access.keys import AccountKeys
from asterism.keyspaces.catalog.accounts import Accounts


@dataclass(frozen=True, slots=True)
class GraphAccount:
    name: str
    keys: AccountKeys = field(repr=False)


class GraphAccounts:
    """Finds the accounts that a login may be for: by the host name (`blue.localhost`), or else all of them."""

    __slots__ = ("_by_name", "_default", "_records", "version")

    def __init__(self, default: GraphAccount, records: Accounts) -> None:
        self._default = default
        self._records = records
        self._by_name: dict[str, GraphAccount] = {}
        # Counts changes, after which logins are checked again.
        self.version = 0
        records.listeners.append(self._renew)
        for record in records.of_kind(COSMOS):
            self._renew(record.name)

    def candidates(self, authority: str) -> Sequence[GraphAccount]:
        if not self._by_name:
            return (self._default,)
        label = authority.partition(".")[0].lower()
        if label == self._default.name:
            return (self._default,)
        named = self._by_name.get(label)
        return (self._default, *self._by_name.values()) if named is None else (named,)

    def _renew(self, name: str) -> None:
        self.version += 1
        record = self._records.find(name)
        if record is not None and record.kind == COSMOS and name != self._default.name:
            keys = AccountKeys.complete(primary=record.primary_key, secondary=record.secondary_key)
            self._by_name[name] = GraphAccount(name, keys)
        else:
            self._by_name.pop(name, None)
