"""The parts of the running database that the admin door uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from asterism.apis.admin.messaging.purges import Purges
from asterism.apis.captures.captures import Captures
from asterism.apis.door_spec import CollectionKind, Endpoint
from asterism.apis.services import MigrationControl
from asterism.apis.suite_controls import SuiteControls
from asterism.errors import ResourceNotFound
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.accounts import AccountRecord, Accounts, account_of
from asterism.keyspaces.catalog.nodes import Nodes
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.processes.fleet_health import FleetHealth
from asterism.keyspaces.processes.usage_gatherer import UsageGatherer
from asterism.keyspaces.processes.usage_history import UsageHistory
from asterism.keyspaces.reshaping.load_watch import LoadWatch
from asterism.keyspaces.reshaping.mover import Mover
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.keyspaces.routing.statistics import first_item
from asterism.languages.cosmos_sql.compiling.environment import Udfs
from asterism.limits import Limits
from asterism.models.blobs.store import BlobStore
from asterism.models.collections.collection import Collection as MongoCollection
from asterism.models.collections.records import HOME, MARK
from asterism.models.collections.shared_names import find_database, shown_name
from asterism.models.collections.store import ACCOUNT_PREFIX, CollectionStore
from asterism.models.documents.container import Container
from asterism.models.documents.store import DocumentStore
from asterism.models.event_logs.store import EventLogStore
from asterism.models.messages.store import MessageStore
from asterism.models.namespaces.store import NamespaceStore
from asterism.partitioning.partition_map import PartitionRange
from asterism.reading.result_sets import ResultSets
from asterism.values.identifiers import NodeNumber
from asterism.values.ordered_text import leading_part

# The keyspace that all collections of a database without a shard key share. MongoDB keeps names with this prefix for
# the server.
HOME_NAME: Final = "system.home"


@dataclass(frozen=True, slots=True)
class Collection:
    """A keyspace under the names that clients of its door know."""

    kind: CollectionKind
    account: str
    # None where clients name no database.
    database: str | None
    name: str
    keyspace: Keyspace
    # The logical partition that a collection is, of those that share a keyspace; None for a keyspace of its own.
    point: bytes | None = None

    @property
    def key(self) -> bytes:
        """Bytes that no other collection has."""
        return self.keyspace.record.rid + (self.point or b"")

    def names(self) -> dict[str, str | None]:
        return {"kind": self.kind.noun, "account": self.account, "database": self.database, "name": self.name}


@dataclass(frozen=True, slots=True)
class AdminServices:
    """The running database as an operator handles it."""

    store: DocumentStore
    admission: Admission
    account: str
    version: str
    health: FleetHealth
    mover: Mover
    migration: MigrationControl
    # The requests served by all processes.
    usage: UsageGatherer
    # The same over the last hours.
    history: UsageHistory
    load: LoadWatch
    partition_key_of_entity: Callable[[bytes], str]
    collection_store: CollectionStore
    blobs: BlobStore
    # Messaging: the registry of entities, hubs, and queues with topics.
    namespaces: NamespaceStore
    event_logs: EventLogStore
    messages: MessageStore
    # Results that the pages of a long query share.
    result_sets: ResultSets
    # The functions of the users that a container's queries may call.
    udfs_of: Callable[[Container], Udfs]
    # Names of the accounts that the server's configuration gives, which no command can change.
    configured_accounts: frozenset[str] = frozenset()
    collection_kinds: tuple[CollectionKind, ...] = ()
    # The address of the pages about the server; None if it serves none.
    web_page: str | None = None
    # The address of the port for MongoDB's clients; None if it is not served.
    mongo_endpoint: Endpoint | None = None
    # The address of the port for clients of graphs; None if it is not served.
    gremlin_endpoint: Endpoint | None = None
    # The addresses of the ports for tables, queues and blobs that are served, by service.
    storage_endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    # Samples of the requests on containers.
    captures: Captures | None = None
    # The queues that this process is emptying.
    purges: Purges = field(default_factory=Purges)
    # Given only to the server of a test suite.
    controls: SuiteControls | None = None
    # The only account that the request may reach, which is then `account` too; None for all of them.
    scope: str | None = None

    @property
    def accounts(self) -> Accounts:
        return self.store.catalog.accounts

    def required_account(self, name: str) -> AccountRecord:
        record = self.accounts.find(name)
        if record is None:
            raise ResourceNotFound(kind="account", name=name)
        return record

    def is_account(self, name: str) -> bool:
        return name in self.configured_accounts or self.accounts.find(name) is not None

    def is_in_scope(self, database: DatabaseRecord) -> bool:
        return self.scope is None or account_of(database.account) == self.scope

    def databases_of(self, account: AccountRecord) -> list[DatabaseRecord]:
        return self.store.catalog.databases_of(account.name)

    @property
    def limits(self) -> Limits:
        return self.store.services.limits

    @property
    def reshaper(self) -> Reshaper:
        return self.store.services.reshaper

    @property
    def nodes(self) -> Nodes:
        return self.store.catalog.nodes

    @property
    def router(self) -> PartitionRouter:
        return self.store.services.router

    def keyspace(self, database: str, container: str) -> Keyspace:
        try:
            return self.container(database, container).keyspace
        except ResourceNotFound:
            found = self.mongo_keyspace(database, container)
            if found is None:
                raise
            return found

    def mongo_keyspace(self, database: str, collection: str) -> Keyspace | None:
        """Return the keyspace of a collection of MongoDB; of one without a shard key, that of its database."""
        found = self.mongo_collection(database, collection)
        if found is not None:
            return found.keyspace
        shared = find_database(self.store.catalog, self.account, database)
        is_home = shared is not None and collection == HOME_NAME
        return self.collection_store.home_keyspace(self.account, shared.record.name) if shared and is_home else None

    def mongo_collection(self, database: str, collection: str) -> MongoCollection | None:
        shared = find_database(self.store.catalog, self.account, database)
        return None if shared is None else self.collection_store.find(self.account, shared.record.name, collection)

    def container(self, database: str, container: str) -> Container:
        return self.store.container(self.store.database(self.account, database), container)

    def in_account(self, kind: CollectionKind, account: str, name: str) -> Keyspace:
        """Return a keyspace of a kind whose clients name no databases, such as a table; of a kind that shares one, that
        of the account, which may have nothing of the name."""
        asked = name.casefold()
        found = [
            collection
            for collection in self.collections()
            if collection.kind is kind
            and collection.account == account
            and (kind.is_shared or collection.name.casefold() == asked)
        ]
        # Some doors take names in any case; the others may have two that differ by it.
        best = min(found, key=lambda collection: collection.name != name, default=None)
        if best is None:
            raise ResourceNotFound(kind=_noun_of_one(kind), name=name)
        return best.keyspace

    async def sharing_partition(self, keyspace: Keyspace, name: str) -> PartitionRange:
        """Return the partition of what has a name among those that share a keyspace, such as a queue."""
        kind, point = self.kind_of(keyspace), leading_part(name)
        if await first_item(self.router, keyspace, point) is None:
            raise ResourceNotFound(kind="item" if kind is None else _noun_of_one(kind), name=name)
        return keyspace.record.map.find(point)

    def names_of(self, keyspace_rid: bytes) -> tuple[str, str] | None:
        """Return the names of a keyspace's database and its own; None if it is gone, or out of scope. A keyspace of
        another account, as tables are, has the account's name in place of the database's."""
        catalog = self.store.catalog
        keyspace, database = catalog.keyspaces.get(keyspace_rid), catalog.databases.get(keyspace_rid[:4])
        if keyspace is None or database is None or not self.is_in_scope(database):
            return None
        return self._database_name(database), self.shown_name(keyspace)

    def shown_name(self, keyspace: Keyspace) -> str:
        """Return the name of a keyspace in commands and metrics."""
        settings = keyspace.record.settings
        if MARK not in settings:
            return keyspace.record.name
        return HOME_NAME if settings[MARK] == HOME else str(settings["name"])

    def node_name(self, node: NodeNumber) -> str:
        record = self.nodes.records.get(node)
        return str(node) if record is None else record.name

    def keyspaces(self) -> list[tuple[str, Keyspace]]:
        """Return every keyspace in scope, with the name of its database as `names_of` gives it, in the order of both
        names."""
        databases = self.store.catalog.databases
        named = [
            (self._database_name(database), keyspace)
            for keyspace in self.store.catalog.keyspaces.values()
            if self.is_in_scope(database := databases[keyspace.record.database_rid])
        ]
        return sorted(named, key=lambda entry: (entry[0], entry[1].record.name))

    def _database_name(self, database: DatabaseRecord) -> str:
        if database.account == ACCOUNT_PREFIX + self.account:
            return shown_name(self.store.catalog, self.account, database)
        return database.name if database.account == self.account else database.account

    # --- collections ------------------------------------------------------------------------------------------------

    def kind_of(self, keyspace: Keyspace) -> CollectionKind | None:
        """Return the kind of a keyspace; None if its door is not in the table of this server."""
        settings = keyspace.record.settings
        return next((kind for kind in self.collection_kinds if kind.owns(settings)), None)

    def collections(self) -> Iterator[Collection]:
        """Yield the collections in scope, in no particular order."""
        for keyspace in list(self.store.catalog.keyspaces.values()):
            collection = self.collection_of(keyspace)
            if collection is not None and keyspace.record.settings.get(MARK) == HOME:
                yield from self._collections_at_home(collection)
            elif collection is not None:
                yield collection

    def _collections_at_home(self, home: Collection) -> Iterator[Collection]:
        """Yield the collections that share the keyspace of their database."""
        database = self.store.catalog.databases[home.keyspace.record.database_rid]
        for record in self.collection_store.records(home.account, database.name):
            found = self.collection_store.find(home.account, database.name, record.name)
            if found is not None and not record.shard_key:
                yield replace(home, name=record.name, point=found.rules.fixed_point)

    def collection_of(self, keyspace: Keyspace) -> Collection | None:
        """Return a keyspace with its names; None if it is gone, out of scope or of an unknown kind."""
        record = keyspace.record
        database, kind = self.store.catalog.databases.get(record.database_rid), self.kind_of(keyspace)
        if database is None or kind is None or keyspace.deleted or not self.is_in_scope(database):
            return None
        account = account_of(database.account)
        if MARK in record.settings:
            shown = shown_name(self.store.catalog, account, database)
            return Collection(kind, account, shown, self.shown_name(keyspace), keyspace)
        return Collection(
            kind,
            account,
            database.name if kind.is_in_database else None,
            record.name if kind.name_property is None else str(record.settings[kind.name_property]),
            keyspace,
        )


def _noun_of_one(kind: CollectionKind) -> str:
    return kind.parameter if kind.is_shared and kind.parameter is not None else kind.noun
