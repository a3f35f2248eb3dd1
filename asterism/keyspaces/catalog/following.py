"""The catalog as it follows the store: opened, kept up with the changes of other processes, and changed by decisions
that are retried when another process was faster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from asterism.errors import StorageUnavailable
from asterism.keyspaces.catalog.accounts import ACCOUNT, Accounts
from asterism.keyspaces.catalog.memory import CatalogChanges, CatalogMemory, catalog_key
from asterism.keyspaces.catalog.nodes import NODE, WANTED_MOVE, Nodes
from asterism.keyspaces.catalog.owned_records import PERMISSIONS, USERS, OwnedRecordKind, OwnedRecords
from asterism.keyspaces.catalog.scripts_catalog import ScriptsCatalog
from asterism.keyspaces.catalog.store import (
    DATABASE,
    FORWARDED,
    GARBAGE,
    JOB,
    KEYSPACE,
    LEADER,
    LSN_FLOOR,
    NEXT_BOOT,
    NUMBER,
    OFFER,
    PROMOTION,
    REKEY,
    REKEY_SWITCH,
    TASK,
    CatalogStore,
)
from asterism.keyspaces.catalog.work import CatalogWork
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.storage.contract import Batch, Engine, Expectation, ExpectationFailed, OutOfSpace
from asterism.values.identifiers import Lsn, PartitionNumber
from asterism.values.resource_ids import OWNED_NUMBER_LIMIT, collection_rid

# Each attempt but the last was overtaken by a change of another process.
_ATTEMPTS_MAX = 50
# The records that are kept in memory; counters, names, history and positions are not.
_FOLLOWED = (
    DATABASE,
    KEYSPACE,
    OFFER,
    GARBAGE,
    JOB,
    TASK,
    REKEY,
    REKEY_SWITCH,
    PROMOTION,
    FORWARDED,
    NODE,
    WANTED_MOVE,
    ACCOUNT,
)

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


class CatalogFollower(CatalogMemory):
    """Memory and store together, without the changes that clients ask for."""

    def __init__(
        self,
        engine: Engine,
        *,
        random_bytes: Callable[[int], bytes],
        monotonic: Callable[[], float],
        is_shared: bool = False,
    ) -> None:
        """`is_shared`: other processes use the store at the same time."""
        super().__init__(monotonic=monotonic)
        self._engine = engine
        self._random_bytes = random_bytes
        self._changing = asyncio.Lock()
        self.store = CatalogStore(engine, is_shared=is_shared)
        self.work = CatalogWork(self.store)
        self.nodes = Nodes(self.store.change, self._read_key)
        self.accounts = Accounts(decide=self._decide, change=self.store.change)
        # The number of this start of the process; 0 while the store has had no room for it.
        self.boot_number = 0
        # The leadership record as it is known; None if no process ever led.
        self.leader: bytes | None = None
        # Called after memory has taken over changes of another process.
        self.listeners: list[Callable[[CatalogChanges], None]] = []
        # New partitions begin above every LSN that a deleted keyspace has reached: a client may still hold session
        # tokens of one that had the same name, and could not read its successor.
        self._lsn_floor: bytes | None = None
        self.users = self._owned_records(USERS, DATABASE, lambda rid: rid in self.databases)
        self.permissions = self._owned_records(
            PERMISSIONS, USERS.record_prefix, lambda rid: self.users.get(rid) is not None
        )
        self.scripts = ScriptsCatalog(
            lambda kind: self._owned_records(kind, KEYSPACE, lambda rid: rid in self.keyspaces)
        )
        self._owned = (self.users, self.permissions, *self.scripts.all_kinds)

    def _lsn_floor_now(self) -> Lsn:
        return Lsn(0 if self._lsn_floor is None else NUMBER.unpack(self._lsn_floor)[0])

    def _owned_records(
        self, kind: OwnedRecordKind, owner_prefix: bytes, owner_exists: Callable[[bytes], bool]
    ) -> OwnedRecords:
        return OwnedRecords(
            kind,
            decide=self._decide,
            change=self.store.change,
            random_bytes=self._random_bytes,
            new_etag=self._new_etag,
            owner_prefix=owner_prefix,
            owner_exists=owner_exists,
        )

    @property
    def is_shared(self) -> bool:
        return self.store.is_shared

    @property
    def leads(self) -> bool:
        """Return True if this process does the background work: always, when there is no other."""
        return not self.store.is_shared or self.store.leader_mark is not None

    @property
    def garbage(self) -> set[PartitionNumber]:
        return self.work.garbage

    # --- opening and following --------------------------------------------------------------------------------------

    async def open(self) -> None:
        await self.store.open()
        self._take_over(await self._everything())
        await self.work.open()
        if self.store.is_shared:
            # Records were read one kind after the other; this takes over changes made meanwhile.
            await self._follow()
        try:
            await self.take_boot_number()
        except OutOfSpace as refusal:
            # The stored data can still be read.
            _log.warning("the store has no room left and is opened for reading; free space on its disk: %s", refusal)

    async def take_boot_number(self) -> None:
        """Take the number of this start, unless it has one; OutOfSpace says that it cannot be written."""
        if not self.boot_number:
            self.boot_number = await self.store.take_numbers(NEXT_BOOT, 1)

    async def _read_key(self, key: bytes) -> bytes | None:
        (stored,) = await self.store.read([key])
        return stored

    async def follow(self) -> bool:
        """Take over the changes of other processes; False if there were none."""
        if not self.store.is_shared or not await self.store.is_behind():
            return False
        async with self._changing:
            return await self._follow()

    async def _follow(self) -> bool:
        if not self.store.is_shared:
            # A process that should not exist has changed the catalog, without an entry in the log.
            changes = self._take_over(await self._everything())
            await self.work.open()
            return self._notify(changes)
        lsn, entries, is_reload = await self._changed_entries()
        if is_reload:
            await self.work.open()
        changes = self._take_over(entries)
        changes.work = changes.work or is_reload
        self.store.known_lsn = max(self.store.known_lsn, lsn)
        return self._notify(changes) or bool(entries)

    async def _changed_entries(self) -> tuple[Lsn, dict[bytes, bytes | None], bool]:
        """Return an LSN, the records changed up to it since the known one, and True if these are all records.

        Records are read after the log that names them, so that a read may find some records of a still later change:
        the new version of an account without the database that was counted with it. A decision on those would pass as
        one on fresh data. The keys of later changes are therefore read as well, until a read finds no later change.
        """
        entries: dict[bytes, bytes | None] = {}
        is_reload = False
        lsn, keys = await self.store.changed_keys(after=self.store.known_lsn)
        while keys is None or keys:
            if keys is None:
                entries, is_reload = await self._everything(), True
            else:
                wanted = sorted(key for key in keys if self._is_followed(key))
                entries.update(zip(wanted, await self.store.read(wanted), strict=True) if wanted else ())
            lsn, keys = await self.store.changed_keys(after=lsn)
        return lsn, entries, is_reload

    def _notify(self, changes: CatalogChanges) -> bool:
        for listener in self.listeners:
            listener(changes)
        return bool(changes.keyspaces or changes.databases_gone or changes.offers or changes.work or changes.leader)

    def _is_followed(self, key: bytes) -> bool:
        return (
            key[:1] in _FOLLOWED
            or key in (LEADER, LSN_FLOOR)
            or any(key.startswith(owned.record_prefix) for owned in self._owned)
        )

    async def _everything(self) -> dict[bytes, bytes | None]:
        """Return all records, and None for those that are in memory and gone from the store."""
        prefixes = [DATABASE, OFFER, KEYSPACE, NODE, WANTED_MOVE, ACCOUNT]
        prefixes += [owned.record_prefix for owned in self._owned]
        kept = (self.nodes, self.accounts, *self._owned)
        known = self._known_keys().union(*(records.known_keys() for records in kept))
        entries: dict[bytes, bytes | None] = dict.fromkeys(known)
        for prefix in prefixes:
            entries.update(await self.store.scan(prefix))
        leader, floor = await self.store.read([LEADER, LSN_FLOOR])
        return {**entries, LEADER: leader, LSN_FLOOR: floor}

    def _take_over(self, entries: Mapping[bytes, bytes | None]) -> CatalogChanges:
        changes = CatalogChanges()
        if LEADER in entries and entries[LEADER] != self.leader:
            self.leader, changes.leader = entries[LEADER], True
        if LSN_FLOOR in entries:
            self._lsn_floor = entries[LSN_FLOOR]
        self._take_over_records(entries, changes)
        for key, value in entries.items():
            with catalog_key(key):
                if self.work.follow(key, value) or self.nodes.follow(key, value):
                    changes.work = True
                if key.startswith(ACCOUNT):
                    self.accounts.follow(key, value)
                for owned in self._owned:
                    if key.startswith(owned.record_prefix):
                        owned.follow(key, value)
        return changes

    def _forget_database(self, rid: bytes) -> None:
        for keyspace in self.keyspaces_of(rid):
            self._forget_keyspace(keyspace)
        self._forget_offer(rid)
        self.permissions.forget_all(rid)
        self.users.forget_all(rid)
        super()._forget_database(rid)

    def _forget_keyspace(self, keyspace: Keyspace) -> None:
        self._forget_offer(keyspace.record.rid)
        self.scripts.forget_all(keyspace.record.rid)
        super()._forget_keyspace(keyspace)

    async def take_leadership(self, mark: bytes, *, after: bytes | None) -> bool:
        """Make `mark` the leadership record in place of `after`, which it was decided on; False if another process was
        faster, which this one may have learned while it waited for the lock."""
        async with self._changing:
            if self.leader != after:
                return False
            batch = Batch(expectations=[Expectation(LEADER, after)], puts=[(LEADER, mark)], may_use_reserve=True)
            try:
                await self.store.change(batch)
            except ExpectationFailed:
                await self._follow()
                return False
            self.leader = mark
            return True

    async def _decide(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Make a change that is decided on memory; retry it while other processes are faster."""
        async with self._changing:
            for _ in range(_ATTEMPTS_MAX):
                try:
                    return await attempt()
                except ExpectationFailed:
                    await self._follow()
        raise StorageUnavailable(reason="the catalog was changed by other processes on every attempt")

    # --- new identifiers ---------------------------------------------------------------------------------------------

    def _new_etag(self) -> str:
        text = self._random_bytes(16).hex()
        return f'"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"'

    def _new_database_rid(self) -> bytes:
        rid = self._random_bytes(4)
        while rid in self.databases:
            rid = self._random_bytes(4)
        return rid

    def _new_keyspace_rid(self, database_rid: bytes) -> bytes:
        while True:
            number = int.from_bytes(self._random_bytes(4), "big") % OWNED_NUMBER_LIMIT
            rid = collection_rid(database_rid, number)
            if rid not in self.keyspaces:
                return rid
