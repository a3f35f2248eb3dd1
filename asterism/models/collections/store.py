"""The databases and collections of all accounts, as keyspaces of the catalog.

A database appears with its first collection and has one keyspace, its home, for all collections without a shard key. A
collection is an entry in the home's settings: creating one is one change of one catalog record. A sharded collection
has a keyspace of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from asterism.errors import OwnerNotFound, ResourceExists, ResourceNotFound
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.collections.catalog_log import CatalogLog, change_of
from asterism.models.collections.collection import CollectionServices
from asterism.models.collections.directory import ACCOUNT_PREFIX, CollectionDirectory
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
    NoSuchCollection,
    RekeyUnderWay,
)
from asterism.models.collections.rules import CollectionRules
from asterism.models.collections.units import UnitStore
from asterism.partitioning.split_merge import partition_count_at_creation
from asterism.throughput.budgets import Autoscale, Manual, Throughput, effective_ru, validate

if TYPE_CHECKING:
    from asterism.models.collections.rekey.rekeyer import CollectionRekeyer

__all__ = ["ACCOUNT_PREFIX", "DEFAULT_THROUGHPUT", "CollectionStore"]

DEFAULT_THROUGHPUT = Manual(400)
_ID = IndexRecord(0, ID_INDEX, {"_id": 1}, {})
_UUID_BYTES = 16
# How often a collection is created anew in a database that others keep dropping.
_ATTEMPTS_MAX = 50
# MongoDB's own monitor comes once a minute; tests and users are glad of less.
EXPIRY_ROUND_SECONDS = 2.0


class CollectionStore(CollectionDirectory):
    """Creates, finds, lists, changes and drops collections. One per process."""

    def __init__(
        self, catalog: Catalog, admission: Admission, documents: SmallDocuments, services: CollectionServices
    ) -> None:
        super().__init__(catalog, services)
        self.small_documents = documents
        self._admission = admission
        self.indexes = IndexCatalog(self)
        self.remover = CollectionRemover(services)
        # Of the upkeep of this process, if it is the leading one.
        self.expires_documents = True
        self.expiry_round_seconds = EXPIRY_ROUND_SECONDS
        self.catalog_log = CatalogLog(catalog, admission, services, ACCOUNT_PREFIX)
        self.readers = OpenReaders()
        self.units = UnitStore(self, self._home_to_fill, self.change_home)
        catalog.listeners.append(lambda _: services.signal.notify())
        # Gives collections other shard keys; set by the wiring, which knows both.
        self.rekeyer: CollectionRekeyer | None = None

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
        for _ in range(_ATTEMPTS_MAX):
            try:
                await self._create(
                    account,
                    database,
                    name,
                    options,
                    shard_pattern=shard_pattern,
                    throughput=throughput,
                    indexes=indexes,
                )
            except (NoSuchCollection, ResourceNotFound, OwnerNotFound):
                # The database was dropped meanwhile.
                await self.catch_up()
                continue
            created = self.record(account, database, name)
            if created is not None:
                return created
        raise NoSuchCollection(name)

    async def _create(
        self,
        account: str,
        database: str,
        name: str,
        options: Mapping[str, Any] | None,
        *,
        shard_pattern: Mapping[str, Any] | None,
        throughput: Throughput | None,
        indexes: Sequence[IndexRecord],
    ) -> None:
        if self.record(account, database, name) is not None:
            raise CollectionExists(name)
        record = CollectionRecord(
            database,
            name,
            HomeSettings().next_number,
            self.services.random_bytes(_UUID_BYTES),
            dict(options or {}),
            () if options and "viewOn" in options else (_ID, *indexes),
            tuple(shard_pattern or ()),
            dict(shard_pattern or {}),
            next_index=1 + len(indexes),
        )
        # The first collection of a database is in its home from the beginning, which saves a write.
        filled = HomeSettings() if shard_pattern else HomeSettings().with_collection(record)
        home = await self._home_to_fill(account, database, filled)
        found = self.database_record(account, database)
        if found is None:
            raise NoSuchCollection(name)
        created = self.record(account, database, name)
        if created is not None and created.uuid != record.uuid:
            raise CollectionExists(name)
        if created is None and shard_pattern:
            await self._create_sharded(found, record, throughput)
        elif created is None:
            await self._create_in_home(found, record)
        created = self.record(account, database, name)
        if created is None:
            raise NoSuchCollection(name)
        changes = [change_of("create", created, {"options": created.options})]
        if shard_pattern:
            changes.append(change_of("shardCollection", created, {"shardKey": dict(shard_pattern)}))
        await self.catalog_log.write(home.keyspace, created, *changes)

    async def _create_in_home(self, database: DatabaseRecord, record: CollectionRecord) -> None:
        def add(settings: HomeSettings) -> HomeSettings:
            if record.name in settings.collections or record.name in settings.sharded:
                raise CollectionExists(record.name)
            return settings.with_collection(replace(record, number=settings.next_number))

        await self.change_home(database, add)

    async def _create_sharded(
        self, database: DatabaseRecord, record: CollectionRecord, throughput: Throughput | None
    ) -> None:
        record = replace(record, number=await self.take_number(database))
        key = self.new_keyspace_key(record.number)
        keyspace = await self.create_place(database, key, record, throughput)

        def add(settings: HomeSettings) -> HomeSettings:
            if record.name in settings.collections or record.name in settings.sharded:
                raise CollectionExists(record.name)
            return settings.with_sharded(record.name, key, next_number=settings.next_number)

        try:
            await self.change_home(database, add)
        except CollectionExists:
            await self.catalog.delete_keyspace(keyspace)
            self.services.reshaper.collect_garbage()
            raise

    async def take_number(self, database: DatabaseRecord) -> int:
        """Return a number that no collection of the database has had, nor will have."""
        taken = 0

        def take(settings: HomeSettings) -> HomeSettings:
            nonlocal taken
            taken = settings.next_number
            return replace(settings, next_number=taken + 1)

        await self.change_home(database, take)
        return taken

    def new_keyspace_key(self, number: int) -> str:
        return f"collection-{number}-{self.services.random_bytes(4).hex()}"

    async def create_place(
        self, database: DatabaseRecord, key: str, record: CollectionRecord, throughput: Throughput | None
    ) -> Keyspace:
        """Create the keyspace of a sharded collection, which is found only once the home names it."""
        limits = self.services.limits
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
        return keyspace

    async def create_database(self, account: str, database: str, throughput: Throughput | None) -> None:
        """Create a database with throughput for all of its collections; ResourceExists if there is one."""
        if throughput is not None:
            validate(throughput, self.services.limits, self.services.limits.throughput_ru_per_second_min)
        await self.catalog.create_database(ACCOUNT_PREFIX + account, database, throughput, now=self._now())

    async def replace_throughput(self, rid: bytes, throughput: Throughput) -> bool:
        """Change the throughput of a database or a keyspace; False if it has none of its own."""
        offer = self.catalog.offer_for(rid)
        if offer is None:
            return False
        validate(throughput, self.services.limits, self.services.limits.throughput_ru_per_second_min)
        await self.catalog.replace_offer(offer, throughput, now=self._now())
        for keyspace in self.catalog.governed_by(rid):
            self._admission.refresh(keyspace)
            self.services.reshaper.grow(keyspace)
        return True

    async def _home_to_fill(self, account: str, database: str, filled: HomeSettings) -> Home:
        """Return the home of a database; one that does not exist is created with the settings `filled`."""
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
                    filled.to_settings(),
                    nodes=nodes,
                    throughput=None if self.catalog.offer_for(found.rid) else DEFAULT_THROUGHPUT,
                    now=self._now(),
                )
                self._admission.refresh(keyspace)
            except ResourceExists:
                await self.catch_up()
            home = self._home(found)
        return home

    async def change_home(self, database: DatabaseRecord, change: Callable[[HomeSettings], HomeSettings]) -> None:
        """Change the settings of a home. The change is decided again if another process was faster."""
        keyspace = self.catalog.find_keyspace(database.rid, HOME_KEYSPACE)
        if keyspace is None:
            raise NoSuchCollection(database.name)

        def changed(settings: Mapping[str, Any]) -> Mapping[str, Any]:
            return change(HomeSettings.from_settings(settings)).to_settings()

        try:
            await self.catalog.change_keyspace_settings(keyspace, changed, now=self._now())
        except ResourceNotFound:
            raise NoSuchCollection(database.name) from None

    # --- dropping ---------------------------------------------------------------------------------------------------

    async def drop(self, account: str, database: str, name: str, *, is_logged: bool = True) -> CollectionRecord | None:
        """Drop a collection or a view; None if it does not exist. Readers of changes see it, unless they are told of it
        in other words."""
        try:
            return await self._drop(account, database, name, is_logged=is_logged)
        except (NoSuchCollection, ResourceNotFound, OwnerNotFound):
            # Another command was faster, or has dropped the database.
            return None

    async def _drop(self, account: str, database: str, name: str, *, is_logged: bool) -> CollectionRecord | None:
        found = self.database_record(account, database)
        record = self.record(account, database, name)
        if found is None or record is None:
            return None
        home = self._home(found)
        assert home is not None, "a collection has a home"
        if record.shard_key:
            keyspace = self.catalog.find_keyspace(found.rid, home.settings.sharded[name])
            await self.change_home(found, lambda settings: settings.without(name))
            if keyspace is not None:
                await self.readers.drain(account, database)
                ends = await self.catalog_log.ends([keyspace])
                await self.catalog_log.write(home.keyspace, record, change_of("drop", record, {"ends": ends}))
                await self.catalog.delete_keyspace(keyspace)
                self.services.reshaper.collect_garbage()
            return record
        if record.is_view:
            await self.change_home(found, lambda settings: settings.without(name))
            await self.catalog_log.write(home.keyspace, record, change_of("drop", record))
            return record
        rules = CollectionRules(record, HOME_DEFINITION, self.services.compile_index)

        def without(settings: HomeSettings) -> HomeSettings:
            text = settings.collections.get(name)
            if text is None or CollectionRecord.from_text(database, name, text).number != record.number:
                raise NoSuchCollection(name)
            return settings.without(name, dropped=record.number)

        await self.change_home(found, without)
        await home.keyspace.earlier_work_done()
        await self.readers.drain(account, database)
        await self.remover.remove(home.keyspace, rules, *([change_of("drop", record)] if is_logged else ()))

        def forget(settings: HomeSettings) -> HomeSettings:
            return replace(settings, dropped=tuple(number for number in settings.dropped if number != record.number))

        await self.change_home(found, forget)
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
        by_rekeyer: bool = False,
    ) -> CollectionRecord:
        """Change options or indexes; writers that planned by the record before plan again. Readers of changes see it
        unless the caller logs it in other words. RekeyUnderWay while the collection gets another shard key, but for the
        job itself."""
        database, name = record.database, record.name
        found = self.database_record(account, database)
        home = None if found is None else self._home(found)
        if found is None or home is None:
            raise NoSuchCollection(name)
        if not by_rekeyer and home.job_on(name) is not None:
            raise RekeyUnderWay(name)
        if record.shard_key:
            keyspace = self.catalog.find_keyspace(found.rid, home.settings.sharded.get(name, ""))
            if keyspace is None:
                raise NoSuchCollection(name)

            def changed_record(settings: Mapping[str, Any]) -> Mapping[str, Any]:
                before = CollectionRecord.from_text(database, settings["name"], settings["collection"])
                return sharded_settings(change(before))

            await self.catalog.change_keyspace_settings(keyspace, changed_record, now=self._now())
        else:

            def replaced(settings: HomeSettings) -> HomeSettings:
                text = settings.collections.get(name)
                if text is None:
                    raise NoSuchCollection(name)
                return settings.with_collection(change(CollectionRecord.from_text(database, name, text)))

            await self.change_home(found, replaced)
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
        home = self._home(found)
        if home is not None and home.job_on(name) is not None:
            raise RekeyUnderWay(name)
        target = self.record(account, database, to_name)
        if target is not None and not drop_target:
            raise CollectionExists(to_name)
        # One change, so that at every moment the name means the old collection or the new one.
        replaced = f"tmp.replaced.{self.services.random_bytes(8).hex()}"
        if record.shard_key:
            keyspace = None if home is None else self.catalog.find_keyspace(found.rid, home.settings.sharded[name])
            if keyspace is None:
                raise NoSuchCollection(name)
            settings = sharded_settings(replace(record, name=to_name))
            await self.catalog.replace_keyspace_settings(keyspace, settings, now=self._now())
        await self.change_home(found, lambda home: home.renamed(to_name, replaced).renamed(name, to_name))
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
