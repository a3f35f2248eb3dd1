"""Accounts that were created by command, as the catalog keeps them: their keys, consistency and quotas.

An account owns databases by its name, so that a record is all that a further account needs. Accounts given by
configuration (the default one among them) have no record and no quotas.

A record is replaced only by a process that has seen its present version. A change that a quota limits also writes the
account's record again: of two processes that would pass the limit together, the second decides on fresh data.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from asterism.errors import QuotaExceeded, ResourceExists, ResourceNotFound
from asterism.storage.contract import LSN_BYTES, Batch, Expectation
from asterism.values.identifiers import Lsn
from asterism.values.records import StoredRecord

ACCOUNT = b"A"

_Result = TypeVar("_Result")


class _Decide(Protocol):
    def __call__(self, attempt: Callable[[], Awaitable[_Result]]) -> Awaitable[_Result]: ...


@dataclass(frozen=True, slots=True)
class AccountQuotas:
    """Limits of one account; None for those it does not have."""

    databases_max: int | None = None
    containers_max: int | None = None
    # Of all offers of the account together; of autoscale the maximum counts.
    ru_per_second_max: int | None = None


@dataclass(frozen=True, slots=True)
class AccountRecord(StoredRecord):
    name: str
    # Which doors serve it; a door's spec names the kinds it serves.
    kind: str
    # Base64 texts.
    primary_key: str = field(repr=False)
    secondary_key: str = field(repr=False)
    consistency: str
    changed_at: int
    quotas: AccountQuotas = AccountQuotas()
    # Its databases are being deleted, and the record after them; nothing is created in it any more.
    is_closing: bool = False


class Accounts:
    """The records in memory, and their changes. Memory follows only after the batch is durable."""

    def __init__(self, *, decide: _Decide, change: Callable[[Batch], Awaitable[Lsn]]) -> None:
        """`decide` repeats a decision on fresh data when another process was faster."""
        self._decide = decide
        self._change = change
        self._records: dict[str, AccountRecord] = {}
        # The versions that a change of a record must still find in the store.
        self._versions: dict[str, bytes] = {}
        # Called with the name of an account whose record has changed or gone, by whichever process.
        self.listeners: list[Callable[[str], None]] = []

    # --- following the store ----------------------------------------------------------------------------------------

    def known_keys(self) -> set[bytes]:
        return {_key(name) for name in self._records}

    def follow(self, key: bytes, value: bytes | None) -> None:
        """Take over the value that the store has under the key of an account."""
        if value is None:
            self._forget(key[len(ACCOUNT) :].decode())
        else:
            self._remember(AccountRecord.from_bytes(value[LSN_BYTES:]), value[:LSN_BYTES])

    # --- looking up -------------------------------------------------------------------------------------------------

    def find(self, name: str) -> AccountRecord | None:
        return self._records.get(name)

    def of_kind(self, kind: str) -> list[AccountRecord]:
        return [record for record in self.all() if record.kind == kind]

    def all(self) -> list[AccountRecord]:
        return [self._records[name] for name in sorted(self._records)]

    # --- changing ---------------------------------------------------------------------------------------------------

    async def create(self, record: AccountRecord) -> AccountRecord:
        async def attempt() -> AccountRecord:
            if record.name in self._records:
                raise ResourceExists(kind="account", name=record.name)
            return await self._put(record, Expectation(_key(record.name), None))

        return await self._decide(attempt)

    async def update(self, name: str, change: Callable[[AccountRecord], AccountRecord]) -> AccountRecord:
        """Replace a record by the result of `change` on the present one."""

        async def attempt() -> AccountRecord:
            return await self._put(change(self._required(name)), self._unchanged(name))

        return await self._decide(attempt)

    async def close(self, name: str) -> AccountRecord:
        """Let nothing be created in an account any more, so that its databases can be deleted one by one."""
        return await self.update(name, lambda record: replace(record, is_closing=True))

    async def delete(self, name: str) -> None:
        """Delete the record of an account that is closing and has no databases."""

        async def attempt() -> None:
            self._required(name)
            await self._change(Batch(expectations=[self._unchanged(name)], deletes=[_key(name)]))
            self._forget(name)

        await self._decide(attempt)

    # --- quotas -----------------------------------------------------------------------------------------------------

    def admit(self, name: str, batch: Batch, **totals: int) -> Callable[[Lsn], None]:
        """Refuse a change that would pass a quota of the account (totals after it, by the quota's name), and let the
        batch change the account's version. Call the returned function with the LSN of the applied batch."""
        record = self._records.get(name)
        if record is None:
            return _nothing
        if record.is_closing:
            raise ResourceNotFound(kind="account", name=name)
        for quota, total in totals.items():
            limit = getattr(record.quotas, quota)
            if limit is not None and total > limit:
                raise QuotaExceeded(account=name, quota=quota, limit=limit, total=total)
        batch.expectations.append(self._unchanged(name))
        batch.versioned_puts.append((_key(name), record.to_bytes()))
        return lambda lsn: self._remember(record, lsn.to_bytes(LSN_BYTES, "big"))

    # --- the parts --------------------------------------------------------------------------------------------------

    async def _put(self, record: AccountRecord, expectation: Expectation) -> AccountRecord:
        batch = Batch(expectations=[expectation], versioned_puts=[(_key(record.name), record.to_bytes())])
        lsn = await self._change(batch)
        self._remember(record, lsn.to_bytes(LSN_BYTES, "big"))
        return record

    def _required(self, name: str) -> AccountRecord:
        record = self._records.get(name)
        if record is None:
            raise ResourceNotFound(kind="account", name=name)
        return record

    def _unchanged(self, name: str) -> Expectation:
        return Expectation(_key(name), self._versions[name])

    def _remember(self, record: AccountRecord, version: bytes) -> None:
        known = self._records.get(record.name)
        self._versions[record.name] = version
        self._records[record.name] = record
        if record != known:
            self._notify(record.name)

    def _forget(self, name: str) -> None:
        self._versions.pop(name, None)
        if self._records.pop(name, None) is not None:
            self._notify(name)

    def _notify(self, name: str) -> None:
        for listener in self.listeners:
            listener(name)


def account_of(owner: str) -> str:
    """Return the account of a database by its owner's name: documents lie under ACCOUNT, the data of another model
    under MODEL:ACCOUNT, where its door alone lists it. No account has a colon in its name."""
    return owner.rpartition(":")[2]


def _key(name: str) -> bytes:
    return ACCOUNT + name.encode()


def _nothing(_: Lsn) -> None:
    """Remember nothing: an account without a record has no version."""
