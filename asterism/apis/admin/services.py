"""The parts of the running database that the admin door uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from asterism.apis.services import MigrationControl
from asterism.errors import ResourceNotFound
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.accounts import AccountRecord, Accounts
from asterism.keyspaces.catalog.nodes import Nodes
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.processes.fleet_health import FleetHealth
from asterism.keyspaces.processes.usage_gatherer import UsageGatherer
from asterism.keyspaces.reshaping.load_watch import LoadWatch
from asterism.keyspaces.reshaping.mover import Mover
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.languages.cosmos_sql.compiling.environment import Udfs
from asterism.models.documents.container import Container
from asterism.models.documents.store import DocumentStore
from asterism.reading.result_sets import ResultSets
from asterism.values.identifiers import NodeNumber


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
    load: LoadWatch
    # The keyspace of a table, by the names of its account and its own.
    find_table: Callable[[str, str], Keyspace | None]
    partition_key_of_entity: Callable[[bytes], str]
    # Results that the pages of a long query share.
    result_sets: ResultSets
    # The functions of the users that a container's queries may call.
    udfs_of: Callable[[Container], Udfs]
    # Names of the accounts that the server's configuration gives, which no command can change.
    configured_accounts: frozenset[str] = frozenset()

    @property
    def accounts(self) -> Accounts:
        return self.store.catalog.accounts

    def required_account(self, name: str) -> AccountRecord:
        record = self.accounts.find(name)
        if record is None:
            raise ResourceNotFound(kind="account", name=name)
        return record

    def databases_of(self, account: AccountRecord) -> list[DatabaseRecord]:
        return self.store.catalog.databases_of(account.name)

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
        return self.container(database, container).keyspace

    def container(self, database: str, container: str) -> Container:
        return self.store.container(self.store.database(self.account, database), container)

    def table(self, account: str, name: str) -> Keyspace:
        found = self.find_table(account, name)
        if found is None:
            raise ResourceNotFound(kind="table", name=name)
        return found

    def names_of(self, keyspace_rid: bytes) -> tuple[str, str] | None:
        """Return the names of a keyspace's database and its own; None if it is gone. A keyspace of another account, as
        tables are, has the account's name in place of the database's."""
        catalog = self.store.catalog
        keyspace, database = catalog.keyspaces.get(keyspace_rid), catalog.databases.get(keyspace_rid[:4])
        if keyspace is None or database is None:
            return None
        return self._database_name(database), keyspace.record.name

    def node_name(self, node: NodeNumber) -> str:
        record = self.nodes.records.get(node)
        return str(node) if record is None else record.name

    def keyspaces(self) -> list[tuple[str, Keyspace]]:
        """Return every keyspace, with the name of its database as `names_of` gives it, in the order of both names."""
        databases = self.store.catalog.databases
        named = [
            (self._database_name(databases[keyspace.record.database_rid]), keyspace)
            for keyspace in self.store.catalog.keyspaces.values()
        ]
        return sorted(named, key=lambda entry: (entry[0], entry[1].record.name))

    def _database_name(self, database: DatabaseRecord) -> str:
        return database.name if database.account == self.account else database.account
