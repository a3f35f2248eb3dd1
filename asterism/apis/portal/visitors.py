"""The accounts whose keys open the portal, and the keys that sign requests on behalf of a visitor."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from asterism.access.account_settings import COSMOS, STORAGE
from asterism.access.keys import AccountKeys, Grant
from asterism.apis.peers import Peers
from asterism.keyspaces.catalog.accounts import Accounts


@dataclass(frozen=True, slots=True)
class VisitorAccount:
    name: str
    kind: str
    keys: AccountKeys

    @property
    def session_key(self) -> bytes:
        return self.keys.decoded[0][0]

    def key(self, grant: Grant) -> bytes:
        """Return the key that signs requests with this grant."""
        return next(key for key, granted in self.keys.decoded if granted is grant)

    def key_text(self, grant: Grant) -> str:
        return self.keys.primary if grant is Grant.FULL else self.keys.primary_readonly


class VisitorAccounts:
    """The server's own account, whose holders are operators, and those of the catalog and of the doors' settings."""

    def __init__(self, operator: str, keys: AccountKeys, records: Accounts, peers: Peers) -> None:
        self._operator = VisitorAccount(operator, COSMOS, keys)
        self._records = records
        self._peers = peers

    @property
    def operator(self) -> VisitorAccount:
        return self._operator

    def find(self, name: str) -> VisitorAccount | None:
        if name == self._operator.name:
            return self._operator
        record = self._records.find(name)
        if record is not None:
            keys = AccountKeys.complete(primary=record.primary_key, secondary=record.secondary_key)
            return VisitorAccount(name, record.kind, keys)
        key = self._peers.configured_keys.get(name)
        if key is None:
            return None
        return VisitorAccount(name, STORAGE, AccountKeys.complete(primary=base64.b64encode(key).decode("ascii")))

    def all(self) -> list[VisitorAccount]:
        names = [*(record.name for record in self._records.all()), *sorted(self._peers.configured_keys)]
        others = (self.find(name) for name in names if name != self._operator.name)
        return [self._operator, *(account for account in others if account is not None)]

    def sign_in(self, key_text: str) -> tuple[VisitorAccount, Grant] | None:
        """Return the account that has this key, and what the key grants; None if no account has it."""
        given = key_text.strip().encode("utf-8", "surrogatepass")
        # All are compared, so that the time says nothing about which account has a similar key.
        granted = [(account, account.keys.grant_of(given)) for account in self.all()]
        return next(((account, grant) for account, grant in granted if grant is not None), None)
