"""Transactions of a store: opened here, and ended here, when their collections appear and their changes are written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace, Spent
from asterism.models.collections.catalog_log import change_of
from asterism.models.collections.collection import Collection
from asterism.models.collections.home import Home
from asterism.models.collections.layout import RETRIES, session_digest
from asterism.models.collections.records import (
    HOME_DEFINITION,
    HOME_KEYSPACE,
    ID_INDEX,
    CollectionRecord,
    HomeSettings,
    IndexRecord,
)
from asterism.models.collections.results import CollectionExists, DuplicateKey, RetryToken, TransactionOvertaken
from asterism.models.collections.retries import SessionOutcomes, is_committed
from asterism.models.collections.rules import CollectionRules
from asterism.models.collections.unit import Unit
from asterism.storage.contract import ExpectationFailed, Span

if TYPE_CHECKING:
    from asterism.models.collections.store import CollectionStore

_ID = IndexRecord(0, ID_INDEX, {"_id": 1}, {})
_UUID_BYTES = 16
_PAGE_ENTRIES = 1000

FillHome = Callable[[str, str, HomeSettings], Awaitable[Home]]
ChangeHome = Callable[[DatabaseRecord, Callable[[HomeSettings], HomeSettings]], Awaitable[None]]


class UnitStore:
    """Opens and commits transactions. One per store."""

    def __init__(self, store: CollectionStore, fill_home: FillHome, change_home: ChangeHome) -> None:
        self._store = store
        self._fill_home = fill_home
        self._change_home = change_home

    def new(self) -> Unit:
        """Open a transaction, which begins with its first statement."""
        services = self._store.services
        return Unit(services.router, services.planner, services.claims)

    # --- collections that a transaction creates ---------------------------------------------------------------------

    async def create_collection(
        self, unit: Unit, account: str, database: str, name: str, options: Mapping[str, Any] | None = None
    ) -> CollectionRecord:
        """Create a collection that others see when the transaction commits; CollectionExists if there is one."""
        await self._fill_home(account, database, HomeSettings())
        found = self._store.database_record(account, database)
        assert found is not None, "the home of a database was just filled"
        if self._store.record(account, database, name, unit) is not None:
            raise CollectionExists(name)
        number = 0

        def reserve(settings: HomeSettings) -> HomeSettings:
            nonlocal number
            number = settings.next_number
            return replace(settings, next_number=number + 1)

        await self._change_home(found, reserve)
        uuid = self._store.services.random_bytes(_UUID_BYTES)
        record = CollectionRecord(database, name, number, uuid, dict(options or {}), (_ID,))
        unit.created[found.rid, name] = record
        return record

    def add_indexes(
        self, unit: Unit, account: str, record: CollectionRecord, indexes: Sequence[IndexRecord]
    ) -> CollectionRecord:
        """Add indexes to a collection that the transaction has created and not written to yet."""
        found = self._store.database_record(account, record.database)
        assert found is not None, "a collection that was created has a database"
        first = record.next_index
        numbered = tuple(replace(index, number=first + place, is_ready=True) for place, index in enumerate(indexes))
        changed = replace(record, indexes=(*record.indexes, *numbered), next_index=first + len(numbered))
        unit.created[found.rid, record.name] = changed
        return changed

    async def _publish(self, unit: Unit) -> None:
        """Publish the collections that a transaction has created; TransactionOvertaken if a name is taken.

        They appear before the transaction's documents, which come in one batch: a server that dies between the two
        leaves empty collections.
        """
        for rid in {rid for rid, _ in unit.created}:
            database = self._store.catalog.databases.get(rid)
            if database is None:
                raise TransactionOvertaken
            records = [record for (owner, _), record in unit.created.items() if owner == rid]

            def add(settings: HomeSettings, records: Sequence[CollectionRecord] = records) -> HomeSettings:
                for record in records:
                    if record.name in settings.collections or record.name in settings.sharded:
                        raise TransactionOvertaken
                    settings = settings.with_collection(record)
                return settings

            await self._change_home(database, add)
            home = self._store.catalog.find_keyspace(rid, HOME_KEYSPACE)
            if home is None:
                raise TransactionOvertaken
            for record in records:
                created = change_of("create", record, {"options": record.options})
                await self._store.catalog_log.write(home, record, created)
        unit.created.clear()

    # --- the end ----------------------------------------------------------------------------------------------------

    async def commit(self, unit: Unit, retry: RetryToken | None = None, *, spent: Spent | None = None) -> None:
        """Write the changes of a transaction, all or nothing; TransactionOvertaken if another writer was faster."""
        store = self._store
        if unit.created:
            await self._publish(unit)
        keyspace = unit.keyspace
        if keyspace is None or not unit.staged:
            return
        for change in unit.staged.values():
            planned_by = change.rules.record
            if store.by_number(keyspace.record.database_rid, planned_by.number) != planned_by:
                # Its indexes or its rules have changed, or it was dropped.
                raise TransactionOvertaken
        rules = next(iter(unit.staged.values())).rules
        collection = Collection(keyspace, lambda: rules, store.services)
        try:
            await collection.commit_unit(unit, retry, spent=spent)
        except (ExpectationFailed, DuplicateKey):
            raise TransactionOvertaken from None

    async def has_committed(self, account: str, retry: RetryToken) -> bool:
        """Return whether a transaction of this number was committed, for a client that has not learned of it.

        Commits name no collection, so all of the account are asked. That happens after a restart only.
        """
        store = self._store
        for database in store.databases(account):
            records = store.records(account, database)
            home = store.home_keyspace(account, database)
            if home is not None and await self._is_in_home(home, records, retry):
                return True
            for record in records:
                collection = store.find(account, database, record.name) if record.shard_key else None
                if collection is not None and await self._is_in_sharded(collection.keyspace, retry):
                    return True
        return False

    async def _is_in_home(self, home: Keyspace, records: Sequence[CollectionRecord], retry: RetryToken) -> bool:
        compile_index = self._store.services.compile_index
        for record in records:
            if record.shard_key or record.is_view:
                continue
            point = CollectionRules(record, HOME_DEFINITION, compile_index).fixed_point
            key = SessionOutcomes.key_of(retry, point)
            _, _, (stored,) = await self._store.services.router.read(home, point, (key,))
            if is_committed(stored, retry):
                return True
        return False

    async def _is_in_sharded(self, keyspace: Keyspace, retry: RetryToken) -> bool:
        """Look through all outcomes: the point of the transaction is not known."""
        digest = session_digest(retry.session)
        for partition in keyspace.record.map.ranges:
            rest: Span | None = Span(RETRIES, after_prefix(RETRIES))
            while rest is not None:
                page = await self._store.services.router.scan(
                    keyspace, keyspace.record, partition, rest, limit=_PAGE_ENTRIES, bytes_max=1024 * 1024
                )
                if page is None:
                    break
                for key, stored in page.entries:
                    if key.endswith(digest) and is_committed(stored, retry):
                        return True
                rest = page.rest(rest)
        return False
