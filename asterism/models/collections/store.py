"""The databases and collections of all accounts, as keyspaces of the catalog.

A database appears with its first collection and has one keyspace, its home, for all collections without a shard key. A
collection is an entry in the home's settings: creating one is one change of one catalog record. A sharded collection
has a keyspace of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from asterism.errors import ResourceExists, ResourceNotFound, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.routing.keyspace import Keyspace, Spent
from asterism.models.collections.catalog_log import CatalogLog, change_of
from asterism.models.collections.collection import Collection, CollectionServices
from asterism.models.collections.home import Home
from asterism.models.collections.index_catalog import IndexCatalog
from asterism.models.collections.open_readers import OpenReaders, change_sources
from asterism.models.collections.records import (
    HOME_DEFINITION,
    HOME_KEYSPACE,
    ID_INDEX,
    CollectionRecord,
    HomeSettings,
    IndexRecord,
    definition_of,
    sharded_settings,
)
from asterism.models.collections.removal import CollectionRemover
from asterism.models.collections.results import (
    CollectionExists,
    DuplicateKey,
    NoSuchCollection,
    RetryToken,
    TransactionOvertaken,
)
from asterism.models.collections.rules import CollectionRules
from asterism.models.collections.unit import Unit
from asterism.partitioning.split_merge import partition_count_at_creation
from asterism.storage.contract import ExpectationFailed, StorageRefusal
from asterism.throughput.budgets import Autoscale, Manual, Throughput, effective_ru, validate

# No name of an account contains `:`, so no other door lists these.
ACCOUNT_PREFIX = "mongo:"
DEFAULT_THROUGHPUT = Manual(400)
_ID = IndexRecord(0, ID_INDEX, {"_id": 1}, {})
_UUID_BYTES = 16


class CollectionStore:
    """Creates, finds, lists, changes and drops collections. One per process."""

    def __init__(
        self, catalog: Catalog, admission: Admission, documents: SmallDocuments, services: CollectionServices
    ) -> None:
        self.catalog = catalog
        self.services = services
        self.small_documents = documents
        self._admission = admission
        self._homes: dict[bytes, Home] = {}
        self._sharded: dict[bytes, tuple[Mapping[str, Any], CollectionRules]] = {}
        self.indexes = IndexCatalog(self)
        self.remover = CollectionRemover(services)
        self.catalog_log = CatalogLog(catalog, admission, services, ACCOUNT_PREFIX)
        self.readers = OpenReaders()
        catalog.listeners.append(lambda _: services.signal.notify())

    # --- other processes --------------------------------------------------------------------------------------------

    @property
    def known_lsn(self) -> int:
        return self.catalog.store.known_lsn

    async def catch_up(self) -> int:
        try:
            await self.catalog.follow()
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal
        return self.catalog.store.known_lsn

    # --- looking up -------------------------------------------------------------------------------------------------

    def databases(self, account: str) -> list[str]:
        """List the databases that have a collection."""
        return sorted(name for name in self.database_names(account) if self.records(account, name))

    def database_names(self, account: str) -> list[str]:
        """List all databases of the catalog, with those that have no collection and the one of the log."""
        owner = ACCOUNT_PREFIX + account
        return [record.name for record in self.catalog.databases.values() if record.account == owner]

    def records(self, account: str, database: str) -> list[CollectionRecord]:
        """List collections and views by name."""
        found = self.database_record(account, database)
        home = None if found is None else self._home(found)
        if found is None or home is None:
            return []
        sharded = [self._sharded_record(found, name, key) for name, key in home.settings.sharded.items()]
        both = [*home.records.values(), *(record for record in sharded if record is not None)]
        return sorted(both, key=lambda record: record.name)

    def record(self, account: str, database: str, name: str) -> CollectionRecord | None:
        found = self.database_record(account, database)
        home = None if found is None else self._home(found)
        if found is None or home is None:
            return None
        record = home.records.get(name)
        if record is None and name in home.settings.sharded:
            record = self._sharded_record(found, name, home.settings.sharded[name])
        return record

    def find(self, account: str, database: str, name: str) -> Collection | None:
        """Return a collection, None for a view and where it does not exist."""
        found = self.database_record(account, database)
        home = None if found is None else self._home(found)
        if found is None or home is None:
            return None
        collection = home.collections.get(name)
        if collection is not None:
            return collection
        record = home.records.get(name)
        if record is not None:
            if record.is_view:
                return None
            collection = Collection(home.keyspace, self._home_rules(found, record.name, record.number), self.services)
        elif name in home.settings.sharded:
            keyspace = self.catalog.find_keyspace(found.rid, home.settings.sharded[name])
            if keyspace is None:
                return None
            collection = Collection(keyspace, self._sharded_rules(found, keyspace), self.services)
        else:
            return None
        home.collections[name] = collection
        return collection

    def by_number(self, database_rid: bytes, number: int) -> CollectionRecord | None:
        """Find a collection by its number, for readers of changes."""
        database = self.catalog.databases.get(database_rid)
        home = None if database is None else self._home(database)
        if database is None or home is None:
            return None
        for record in home.records.values():
            if record.number == number:
                return record
        for name, key in home.settings.sharded.items():
            sharded = self._sharded_record(database, name, key)
            if sharded is not None and sharded.number == number:
                return sharded
        return None

    def home_keyspace(self, account: str, database: str) -> Keyspace | None:
        found = self.database_record(account, database)
        home = None if found is None else self._home(found)
        return None if home is None else home.keyspace

    def new_unit(self) -> Unit:
        """Open a transaction, which begins with its first statement."""
        return Unit(self.services.router, self.services.planner)

    async def commit_unit(self, unit: Unit, retry: RetryToken | None = None, *, spent: Spent | None = None) -> None:
        """Write the changes of a transaction, all or nothing; TransactionOvertaken if another writer was faster."""
        keyspace = unit.keyspace
        if keyspace is None or not unit.staged:
            return
        for change in unit.staged.values():
            planned_by = change.rules.record
            if self.by_number(keyspace.record.database_rid, planned_by.number) != planned_by:
                # Its indexes or its rules have changed, or it was dropped.
                raise TransactionOvertaken
        rules = next(iter(unit.staged.values())).rules
        collection = Collection(keyspace, lambda: rules, self.services)
        try:
            await collection.commit_unit(unit, retry, spent=spent)
        except (ExpectationFailed, DuplicateKey):
            raise TransactionOvertaken from None

    def database_record(self, account: str, database: str) -> DatabaseRecord | None:
        return self.catalog.find_database(ACCOUNT_PREFIX + account, database)

    def home_of(self, database: DatabaseRecord) -> Home | None:
        return self._home(database)

    def _home(self, database: DatabaseRecord) -> Home | None:
        keyspace = self.catalog.find_keyspace(database.rid, HOME_KEYSPACE)
        if keyspace is None:
            return None
        known = self._homes.get(database.rid)
        if known is None or known.source is not keyspace.record.settings or known.keyspace is not keyspace:
            known = self._homes[database.rid] = Home(database.name, keyspace)
        return known

    def _home_rules(self, database: DatabaseRecord, name: str, number: int) -> Callable[[], CollectionRules]:
        def current() -> CollectionRules:
            home = self._home(database)
            if home is None:
                raise NoSuchCollection(name)
            rules = home.rules.get(name)
            if rules is None:
                record = home.records.get(name)
                if record is None or record.number != number:
                    raise NoSuchCollection(name)
                rules = CollectionRules(record, HOME_DEFINITION, self.services.compile_index)
                home.rules[name] = rules
            return rules

        return current

    def _sharded_rules(self, database: DatabaseRecord, keyspace: Keyspace) -> Callable[[], CollectionRules]:
        def current() -> CollectionRules:
            record = keyspace.record
            known = self._sharded.get(record.rid)
            if keyspace.deleted:
                raise NoSuchCollection(record.settings["name"])
            if known is None or known[0] is not record.settings:
                settings = record.settings
                described = CollectionRecord.from_text(database.name, settings["name"], settings["collection"])
                known = settings, CollectionRules(described, record.definition, self.services.compile_index)
                self._sharded[record.rid] = known
            return known[1]

        return current

    def _sharded_record(self, database: DatabaseRecord, name: str, key: str) -> CollectionRecord | None:
        keyspace = self.catalog.find_keyspace(database.rid, key)
        if keyspace is None:
            return None
        return CollectionRecord.from_text(database.name, name, keyspace.record.settings["collection"])

    # --- creating ---------------------------------------------------------------------------------------------------

    async def create(
        self,
        account: str,
        database: str,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        shard_pattern: Mapping[str, Any] | None = None,
        throughput: Throughput | None = None,
        indexes: Sequence[IndexRecord] = (),
    ) -> CollectionRecord:
        """Create a collection or a view, and its database if it does not exist; CollectionExists if there is one."""
        home = await self._home_to_fill(account, database)
        found = self.database_record(account, database)
        assert found is not None, "the home of a database was just filled"
        if self.record(account, database, name) is not None:
            raise CollectionExists(name)
        record = CollectionRecord(
            database,
            name,
            home.settings.next_number,
            self.services.random_bytes(_UUID_BYTES),
            dict(options or {}),
            () if options and "viewOn" in options else (_ID, *indexes),
            tuple(shard_pattern or ()),
            dict(shard_pattern or {}),
            next_index=1 + len(indexes),
        )
        if not shard_pattern:

            def add(settings: HomeSettings) -> HomeSettings:
                if name in settings.collections or name in settings.sharded:
                    raise CollectionExists(name)
                return settings.with_collection(replace(record, number=settings.next_number))

            await self._change_home(found, add)
        else:
            await self._create_sharded(found, record, throughput)
        created = self.record(account, database, name)
        assert created is not None, "a collection exists once it was created"
        changes = [change_of("create", created, {"options": created.options})]
        if shard_pattern:
            changes.append(change_of("shardCollection", created, {"shardKey": dict(shard_pattern)}))
        await self.catalog_log.write(home.keyspace, created, *changes)
        return created

    async def _create_sharded(
        self, database: DatabaseRecord, record: CollectionRecord, throughput: Throughput | None
    ) -> None:
        limits = self.services.limits
        key = f"collection-{record.number}-{self.services.random_bytes(4).hex()}"
        shared = self.catalog.offer_for(database.rid)
        if throughput is None and shared is None:
            throughput = DEFAULT_THROUGHPUT
        count = 1
        if throughput is not None:
            validate(throughput, limits, limits.throughput_ru_per_second_min)
            autoscale = isinstance(throughput, Autoscale)
            count = partition_count_at_creation(effective_ru(throughput), autoscale=autoscale, limits=limits)
        nodes = await self.services.reshaper.placer.for_new_keyspace(database.name, key, count=count)
        keyspace = await self.catalog.create_keyspace(
            database,
            key,
            definition_of(record.shard_pattern),
            sharded_settings(record),
            nodes=nodes,
            throughput=throughput,
            now=self._now(),
        )
        self._admission.refresh(keyspace)

        def add(settings: HomeSettings) -> HomeSettings:
            next_number = max(settings.next_number, record.number + 1)
            return settings.with_sharded(record.name, key, next_number=next_number)

        await self._change_home(database, add)

    async def create_database(self, account: str, database: str, throughput: Throughput | None) -> None:
        """Create a database with throughput for all of its collections; ResourceExists if there is one."""
        if throughput is not None:
            validate(throughput, self.services.limits, self.services.limits.throughput_ru_per_second_min)
        await self.catalog.create_database(ACCOUNT_PREFIX + account, database, throughput, now=self._now())

    async def _home_to_fill(self, account: str, database: str) -> Home:
        found = self.database_record(account, database)
        owner = ACCOUNT_PREFIX + account
        while found is None:
            try:
                found = await self.catalog.create_database(owner, database, None, now=self._now())
            except ResourceExists:
                found = self.database_record(account, database)
        home = self._home(found)
        while home is None:
            nodes = await self.services.reshaper.placer.for_new_keyspace(database, HOME_KEYSPACE, count=1)
            try:
                keyspace = await self.catalog.create_keyspace(
                    found,
                    HOME_KEYSPACE,
                    HOME_DEFINITION,
                    HomeSettings().to_settings(),
                    nodes=nodes,
                    throughput=None if self.catalog.offer_for(found.rid) else DEFAULT_THROUGHPUT,
                    now=self._now(),
                )
                self._admission.refresh(keyspace)
            except ResourceExists:
                await self.catch_up()
            home = self._home(found)
        return home

    async def _change_home(self, database: DatabaseRecord, change: Callable[[HomeSettings], HomeSettings]) -> None:
        """Change the settings of a home. The change is decided again if another process was faster."""
        keyspace = self.catalog.find_keyspace(database.rid, HOME_KEYSPACE)
        if keyspace is None:
            raise NoSuchCollection(database.name)
        after = change(HomeSettings.from_settings(keyspace.record.settings)).to_settings()
        try:
            await self.catalog.replace_keyspace_settings(keyspace, after, now=self._now())
        except ResourceNotFound:
            raise NoSuchCollection(database.name) from None

    # --- dropping ---------------------------------------------------------------------------------------------------

    async def drop(self, account: str, database: str, name: str, *, is_logged: bool = True) -> CollectionRecord | None:
        """Drop a collection or a view; None if it does not exist. Readers of changes see it, unless they are told of it
        in other words."""
        found = self.database_record(account, database)
        record = self.record(account, database, name)
        if found is None or record is None:
            return None
        home = self._home(found)
        assert home is not None, "a collection has a home"
        if record.shard_key:
            keyspace = self.catalog.find_keyspace(found.rid, home.settings.sharded[name])
            await self._change_home(found, lambda settings: settings.without(name))
            if keyspace is not None:
                await self.readers.drain(account, database)
                ends = await self.catalog_log.ends([keyspace])
                await self.catalog_log.write(home.keyspace, record, change_of("drop", record, {"ends": ends}))
                await self.catalog.delete_keyspace(keyspace)
                self.services.reshaper.collect_garbage()
            return record
        if record.is_view:
            await self._change_home(found, lambda settings: settings.without(name))
            await self.catalog_log.write(home.keyspace, record, change_of("drop", record))
            return record
        rules = CollectionRules(record, HOME_DEFINITION, self.services.compile_index)
        await self._change_home(found, lambda settings: settings.without(name, dropped=record.number))
        await home.keyspace.earlier_work_done()
        await self.readers.drain(account, database)
        await self.remover.remove(home.keyspace, rules, *([change_of("drop", record)] if is_logged else ()))

        def forget(settings: HomeSettings) -> HomeSettings:
            return replace(settings, dropped=tuple(number for number in settings.dropped if number != record.number))

        await self._change_home(found, forget)
        return record

    async def drop_database(self, account: str, database: str) -> bool:
        found = self.database_record(account, database)
        if found is None:
            return False
        records = self.records(account, database)
        existed = bool(records)
        if existed:
            await self.readers.drain(account, database)
            ends = await self.catalog_log.ends([source.keyspace for source in change_sources(self, account, database)])
            dropped = self.catalog.delete_database(found)
            await self.catalog_log.write_dropped(account, database, records, ends, dropped)
        else:
            await self.catalog.delete_database(found)
        self._homes.pop(found.rid, None)
        self._admission.forget_database(found.rid)
        self.services.reshaper.collect_garbage()
        return existed

    # --- changing ---------------------------------------------------------------------------------------------------

    async def change_record(
        self,
        account: str,
        record: CollectionRecord,
        change: Callable[[CollectionRecord], CollectionRecord],
        *,
        is_logged: bool = True,
    ) -> CollectionRecord:
        """Change options or indexes; writers that planned by the record before plan again. Readers of changes see it
        unless the caller logs it in other words."""
        database, name = record.database, record.name
        found = self.database_record(account, database)
        home = None if found is None else self._home(found)
        if found is None or home is None:
            raise NoSuchCollection(name)
        if record.shard_key:
            keyspace = self.catalog.find_keyspace(found.rid, home.settings.sharded.get(name, ""))
            current = self.record(account, database, name)
            if keyspace is None or current is None:
                raise NoSuchCollection(name)
            await self.catalog.replace_keyspace_settings(keyspace, sharded_settings(change(current)), now=self._now())
        else:

            def replaced(settings: HomeSettings) -> HomeSettings:
                text = settings.collections.get(name)
                if text is None:
                    raise NoSuchCollection(name)
                return settings.with_collection(change(CollectionRecord.from_text(database, name, text)))

            await self._change_home(found, replaced)
        changed = self.record(account, database, name)
        if changed is None:
            raise NoSuchCollection(name)
        if is_logged:
            details = {"before": record.options, "options": changed.options}
            await self.catalog_log.write(home.keyspace, changed, change_of("modify", changed, details))
        return changed

    async def change_options(
        self, account: str, record: CollectionRecord, options: Mapping[str, Any]
    ) -> CollectionRecord:
        return await self.change_record(account, record, lambda before: replace(before, options=dict(options)))

    async def rename(
        self, account: str, database: str, name: str, to_name: str, *, drop_target: bool = False
    ) -> CollectionRecord:
        """Rename a collection within its database. NoSuchCollection, CollectionExists."""
        found = self.database_record(account, database)
        record = self.record(account, database, name)
        if found is None or record is None:
            raise NoSuchCollection(name)
        target = self.record(account, database, to_name)
        if target is not None and not drop_target:
            raise CollectionExists(to_name)
        # One change, so that at every moment the name means the old collection or the new one.
        replaced = f"tmp.replaced.{self.services.random_bytes(8).hex()}"
        if record.shard_key:
            home = self._home(found)
            keyspace = None if home is None else self.catalog.find_keyspace(found.rid, home.settings.sharded[name])
            if keyspace is None:
                raise NoSuchCollection(name)
            settings = sharded_settings(replace(record, name=to_name))
            await self.catalog.replace_keyspace_settings(keyspace, settings, now=self._now())
        await self._change_home(found, lambda home: home.renamed(to_name, replaced).renamed(name, to_name))
        home = self._home(found)
        if home is not None:
            await home.keyspace.earlier_work_done()
            details = {"to": to_name, **({} if target is None else {"dropTarget": target.uuid})}
            await self.catalog_log.write(home.keyspace, record, change_of("rename", record, details))
        await self.drop(account, database, replaced, is_logged=False)
        result = self.record(account, database, to_name)
        assert result is not None, "a collection has its new name"
        return result

    async def create_indexes(
        self, account: str, record: CollectionRecord, indexes: Sequence[IndexRecord]
    ) -> CollectionRecord:
        """Add indexes and build them on the documents that exist; DuplicateKey for a unique one that cannot be."""
        return await self.indexes.create(account, record, indexes)

    async def drop_indexes(self, account: str, record: CollectionRecord, names: Sequence[str]) -> CollectionRecord:
        return await self.indexes.drop(account, record, names)

    def _now(self) -> int:
        return self.services.clock.stored_seconds()
