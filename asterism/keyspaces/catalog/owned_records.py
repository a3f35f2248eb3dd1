"""Users of a database and their permissions, as the catalog keeps them: in its partition, and in memory for reading.

The two differ only in what owns them, so one class keeps them both: a user belongs to a database, a permission to a
user, and a resource id begins with that of its owner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from asterism.errors import OwnerNotFound, ResourceExists, ResourceNotFound
from asterism.keyspaces.routing.families import after_prefix
from asterism.storage.contract import LSN_BYTES, Batch, Expectation, Span
from asterism.values.identifiers import Lsn
from asterism.values.records import StoredRecord
from asterism.values.resource_ids import CHILD_NUMBER_LIMIT, OWNED_NUMBER_LIMIT, permission_rid, user_rid


@dataclass(frozen=True, slots=True)
class OwnedRecord(StoredRecord):
    """A user or a permission. `properties` are what its owner gave it, its name aside."""

    rid: bytes
    name: str
    properties: Mapping[str, Any]
    etag: str
    changed_at: int


@dataclass(frozen=True, slots=True)
class OwnedRecordKind:
    """A kind of record: its name in errors, its prefixes in the catalog, and the form of its resource ids."""

    name: str
    record_prefix: bytes
    name_prefix: bytes
    owner_rid_bytes: int
    make_rid: Callable[[bytes, int], bytes]
    numbers: int


_PRESENT = b""

USERS = OwnedRecordKind("user", b"u", b"U", 4, user_rid, OWNED_NUMBER_LIMIT)
PERMISSIONS = OwnedRecordKind("permission", b"p", b"P", 8, permission_rid, CHILD_NUMBER_LIMIT)


_Result = TypeVar("_Result")


class _Decide(Protocol):
    def __call__(self, attempt: Callable[[], Awaitable[_Result]]) -> Awaitable[_Result]: ...


class OwnedRecords:
    """All users, or all permissions, of a node."""

    def __init__(
        self,
        kind: OwnedRecordKind,
        *,
        decide: _Decide,
        change: Callable[[Batch], Awaitable[Lsn]],
        random_bytes: Callable[[int], bytes],
        new_etag: Callable[[], str],
        owner_prefix: bytes,
        owner_exists: Callable[[bytes], bool],
    ) -> None:
        """`decide` retries a decision when another process was faster; the owner's record, which must exist, lies under
        `owner_prefix`."""
        self._kind = kind
        self._change = change
        self._decide = decide
        self._random_bytes = random_bytes
        self._new_etag = new_etag
        self._owner_prefix = owner_prefix
        self._owner_exists = owner_exists
        self._records: dict[bytes, OwnedRecord] = {}
        self._rids: dict[tuple[bytes, str], bytes] = {}

    @property
    def record_prefix(self) -> bytes:
        return self._kind.record_prefix

    def known_keys(self) -> set[bytes]:
        return {self._kind.record_prefix + rid for rid in self._records}

    def follow(self, key: bytes, value: bytes | None) -> None:
        """Take over the value that the store has under the key of a record."""
        known = self._records.get(key[len(self._kind.record_prefix) :])
        record = None if value is None else OwnedRecord.from_bytes(value[LSN_BYTES:])
        if record == known:
            return
        if known is not None:
            self._forget(known)
        if record is not None:
            self._remember(record)

    # --- looking up -------------------------------------------------------------------------------------------------

    def find(self, owner_rid: bytes, name: str) -> OwnedRecord | None:
        rid = self._rids.get((owner_rid, name))
        return None if rid is None else self._records[rid]

    def get(self, rid: bytes) -> OwnedRecord | None:
        return self._records.get(rid)

    def is_known(self, rid: bytes) -> bool:
        return rid in self._records

    def owned_by(self, owner_rid: bytes) -> list[OwnedRecord]:
        found = [record for rid, record in self._records.items() if rid.startswith(owner_rid)]
        return sorted(found, key=lambda record: record.name)

    # --- changing ---------------------------------------------------------------------------------------------------

    async def create(self, owner_rid: bytes, name: str, properties: Mapping[str, Any], *, now: int) -> OwnedRecord:
        async def attempt() -> OwnedRecord:
            if not self._owner_exists(owner_rid):
                raise OwnerNotFound(kind="owner", name=owner_rid.hex())
            if self.find(owner_rid, name) is not None:
                raise ResourceExists(kind=self._kind.name, name=name)
            record = OwnedRecord(self._new_rid(owner_rid), name, properties, self._new_etag(), now)
            name_key = self._name_key(owner_rid, name)
            batch = Batch(
                expectations=[
                    Expectation(name_key, None),
                    Expectation(self._record_key(record), None),
                    Expectation(self._owner_prefix + owner_rid, _PRESENT),
                ],
                puts=[(name_key, record.rid)],
                versioned_puts=[(self._record_key(record), record.to_bytes())],
            )
            await self._change(batch)
            self._remember(record)
            return record

        return await self._decide(attempt)

    async def replace(self, record: OwnedRecord, name: str, properties: Mapping[str, Any], *, now: int) -> OwnedRecord:
        """Give a record another name or other properties; the resource id stays."""

        async def attempt() -> OwnedRecord:
            current = self._required(record)
            changed = replace(current, name=name, properties=properties, etag=self._new_etag(), changed_at=now)
            key = self._record_key(record)
            batch = Batch(expectations=[Expectation(key, _PRESENT)], versioned_puts=[(key, changed.to_bytes())])
            if name != current.name:
                owner_rid = self._owner_of(current)
                if self.find(owner_rid, name) is not None:
                    raise ResourceExists(kind=self._kind.name, name=name)
                name_key = self._name_key(owner_rid, name)
                batch.expectations.append(Expectation(name_key, None))
                batch.deletes.append(self._name_key(owner_rid, current.name))
                batch.puts.append((name_key, current.rid))
            await self._change(batch)
            self._forget(current)
            self._remember(changed)
            return changed

        return await self._decide(attempt)

    async def delete(self, record: OwnedRecord, *, with_changes: Batch | None = None) -> None:
        """Delete a record, together with `with_changes` in the same batch: a user's permissions go with the user."""

        async def attempt() -> None:
            current = self._required(record)
            key = self._record_key(current)
            batch = Batch(
                expectations=[Expectation(key, _PRESENT)],
                deletes=[key, self._name_key(self._owner_of(current), current.name)],
            )
            if with_changes is not None:
                batch.extend(with_changes)
            await self._change(batch)
            self._forget(current)

        await self._decide(attempt)

    def plan_removal(self, rid_prefix: bytes, batch: Batch) -> None:
        """Add to a batch the removal of all records whose resource ids have the prefix."""
        for prefix in (self._kind.record_prefix, self._kind.name_prefix):
            batch.range_deletes.append(Span(prefix + rid_prefix, after_prefix(prefix + rid_prefix)))

    def forget_all(self, rid_prefix: bytes) -> None:
        for record in [record for rid, record in self._records.items() if rid.startswith(rid_prefix)]:
            self._forget(record)

    # --- the parts --------------------------------------------------------------------------------------------------

    def _required(self, record: OwnedRecord) -> OwnedRecord:
        """Return the record as it is now: another process may have changed it."""
        current = self._records.get(record.rid)
        if current is None:
            raise ResourceNotFound(kind=self._kind.name, name=record.name)
        return current

    def _remember(self, record: OwnedRecord) -> None:
        self._records[record.rid] = record
        self._rids[self._owner_of(record), record.name] = record.rid

    def _forget(self, record: OwnedRecord) -> None:
        del self._records[record.rid]
        if self._rids.get((self._owner_of(record), record.name)) == record.rid:
            del self._rids[self._owner_of(record), record.name]

    def _owner_of(self, record: OwnedRecord) -> bytes:
        return record.rid[: self._kind.owner_rid_bytes]

    def _record_key(self, record: OwnedRecord) -> bytes:
        return self._kind.record_prefix + record.rid

    def _name_key(self, owner_rid: bytes, name: str) -> bytes:
        # A digest, because 255 characters may be 1,020 bytes.
        return self._kind.name_prefix + owner_rid + hashlib.blake2b(name.encode(), digest_size=32).digest()

    def _new_rid(self, owner_rid: bytes) -> bytes:
        while True:
            number = int.from_bytes(self._random_bytes(8), "big") % self._kind.numbers
            rid = self._kind.make_rid(owner_rid, number)
            if rid not in self._records:
                return rid
