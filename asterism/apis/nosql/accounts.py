"""The accounts that the door serves, and the choice among them for a request.

A request names its account by its host (`blue.localhost:8081`), or else by the key that signed it: every account has
keys of its own, so that the same endpoint serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asterism.access.account_settings import COSMOS
from asterism.access.keys import AccountKeys
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.session import ConsistencyRules
from asterism.keyspaces.catalog.accounts import AccountRecord, Accounts


class CosmosAccounts:
    """The default account, which configuration gives, and those of the catalog."""

    __slots__ = ("_by_name", "_default", "_records", "every")

    def __init__(self, default: Context, records: Accounts) -> None:
        self._default = default
        self._records = records
        self._by_name: dict[str, Context] = {}
        # All accounts, the default first.
        self.every: tuple[Context, ...] = (default,)
        records.listeners.append(self._renew)
        for record in records.of_kind(COSMOS):
            self._renew(record.name)

    def candidates(self, authority: str) -> Sequence[Context]:
        """Return the accounts whose keys may have signed a request to this host, the likeliest first."""
        if len(self.every) == 1:
            return self.every
        label = authority.partition(".")[0].lower()
        if label == self._default.account:
            return (self._default,)
        named = self._by_name.get(label)
        return self.every if named is None else (named,)

    def _renew(self, name: str) -> None:
        record = self._records.find(name)
        if record is not None and record.kind == COSMOS and name != self._default.account:
            self._by_name[name] = self._context_of(record)
        else:
            self._by_name.pop(name, None)
        self.every = (self._default, *self._by_name.values())

    def _context_of(self, record: AccountRecord) -> Context:
        return replace(
            self._default,
            account=record.name,
            keys=AccountKeys.complete(primary=record.primary_key, secondary=record.secondary_key),
            consistency=record.consistency,
            consistency_rules=ConsistencyRules(record.consistency),
        )
