"""The databases and collections of all accounts, as keyspaces of the catalog: where a name leads to.

A database has one keyspace, its home, for all collections without a shard key; a sharded collection has a keyspace of
its own, which the home names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.errors import StorageUnavailable
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.collections.collection import Collection, CollectionServices
from asterism.models.collections.home import Home
from asterism.models.collections.records import HOME_DEFINITION, HOME_KEYSPACE, CollectionRecord
from asterism.models.collections.results import NoSuchCollection
from asterism.models.collections.rules import CollectionRules
from asterism.models.collections.scans import Verify
from asterism.models.collections.unit import Unit
from asterism.storage.contract import StorageRefusal

# No name of an account contains `:`, so no other door lists these.
ACCOUNT_PREFIX = "mongo:"


class CollectionDirectory:
    """Finds and lists collections. It keeps what it has read of the catalog for as long as that is in force."""

    def __init__(self, catalog: Catalog, services: CollectionServices) -> None:
        self.catalog = catalog
        self.services = services
        self._homes: dict[bytes, Home] = {}
        self._sharded: dict[bytes, tuple[Mapping[str, Any], CollectionRules]] = {}

    # --- other processes --------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """True if other processes change the catalog, too."""
        return self.catalog.is_shared

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

    def record(self, account: str, database: str, name: str, unit: Unit | None = None) -> CollectionRecord | None:
        """Return the record of a collection or a view, also of one that `unit` has created."""
        found = self.database_record(account, database)
        home = None if found is None else self._home(found)
        if found is None or home is None:
            return None
        if unit is not None and (found.rid, name) in unit.created:
            return unit.created[found.rid, name]
        record = home.records.get(name)
        if record is None and name in home.settings.sharded:
            record = self._sharded_record(found, name, home.settings.sharded[name])
        return record

    def find(self, account: str, database: str, name: str, unit: Unit | None = None) -> Collection | None:
        """Return a collection, also one that `unit` has created; None for a view and where it does not exist."""
        found = self.database_record(account, database)
        home = None if found is None else self._home(found)
        if found is None or home is None:
            return None
        if unit is not None and (found.rid, name) in unit.created:
            created = CollectionRules(unit.created[found.rid, name], HOME_DEFINITION, self.services.compile_index)
            return Collection(home.keyspace, lambda: created, self.services)
        collection = home.collections.get(name)
        if collection is not None:
            return collection
        record = home.records.get(name)
        if record is not None:
            if record.is_view:
                return None
            rules = self._home_rules(found, record.name, record.number)
            collection = Collection(home.keyspace, rules, self.services, verify=self._verifier(found, home.keyspace))
        elif name in home.settings.sharded:
            keyspace = self.catalog.find_keyspace(found.rid, home.settings.sharded[name])
            if keyspace is None:
                return None
            rules = self._sharded_rules(found, keyspace)
            collection = Collection(keyspace, rules, self.services, verify=self._verifier(found, keyspace))
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

    def home_of(self, database: DatabaseRecord) -> Home | None:
        return self._home(database)

    def home_keyspace(self, account: str, database: str) -> Keyspace | None:
        found = self.database_record(account, database)
        home = None if found is None else self._home(found)
        return None if home is None else home.keyspace

    def database_record(self, account: str, database: str) -> DatabaseRecord | None:
        return self.catalog.find_database(ACCOUNT_PREFIX + account, database)

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

    def _verifier(self, database: DatabaseRecord, keyspace: Keyspace) -> Verify:
        def verify(rules: CollectionRules, *, has_begun: bool) -> None:
            record = rules.record
            home = self._home(database)
            if home is None:
                raise NoSuchCollection(record.name)
            if record.shard_key:
                key = keyspace.record.name
                is_there = key in home.settings.sharded.values() or (has_begun and key in home.retained.sharded)
            else:
                numbers = {kept.number for kept in home.records.values()}
                is_there = record.number in numbers or (has_begun and record.number in home.retained.numbers)
            if not is_there:
                raise NoSuchCollection(record.name)

        return verify

    def _sharded_rules(self, database: DatabaseRecord, keyspace: Keyspace) -> Callable[[], CollectionRules]:
        def current() -> CollectionRules:
            record = keyspace.record
            known = self._sharded.get(record.rid)
            home = self._home(database)
            name = record.settings["name"]
            if keyspace.deleted or home is None or record.name not in home.settings.sharded.values():
                raise NoSuchCollection(name)
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
