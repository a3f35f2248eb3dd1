"""What the admin door works on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from asterism.documents.container import Container
from asterism.documents.store import DocumentStore
from asterism.errors import ResourceNotFound
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.load_watch import LoadWatch
from asterism.keyspaces.moving import Moving
from asterism.keyspaces.nodes import Nodes
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.records import DatabaseRecord
from asterism.keyspaces.reshaping import Reshaping
from asterism.keyspaces.usage_gathering import UsageGathering
from asterism.query.result_sets import ResultSets
from asterism.storage.nodes import NodeEngines
from asterism.values.identifiers import NodeNumber


class MigrationControl(Protocol):
    """Where everything the server has can be brought, and how far that is. Only the server knows how."""

    async def begin(self, told: Mapping[str, Any]) -> None: ...

    def show(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Console:
    """The running database as an operator handles it."""

    store: DocumentStore
    admission: Admission
    account: str
    version: str
    engines: NodeEngines
    moving: Moving
    migration: MigrationControl
    # What all processes have served.
    usage: UsageGathering
    load: LoadWatch
    # The keyspace of a table, by the names of its account and its own.
    find_table: Callable[[str, str], Keyspace | None]
    partition_key_of_entity: Callable[[bytes], str]
    # What the pages of long queries leave to each other.
    result_sets: ResultSets

    @property
    def reshaping(self) -> Reshaping:
        return self.store.tools.reshaping

    @property
    def nodes(self) -> Nodes:
        return self.store.catalog.nodes

    @property
    def owner(self) -> Owner:
        return self.store.tools.owner

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
        """The names of a keyspace's database and its own; None if it is gone. What lies in another account, as tables
        do, has that account's name for its database's."""
        catalog = self.store.catalog
        keyspace, database = catalog.keyspaces.get(keyspace_rid), catalog.databases.get(keyspace_rid[:4])
        if keyspace is None or database is None:
            return None
        return self._database_name(database), keyspace.record.name

    def node_name(self, node: NodeNumber) -> str:
        record = self.nodes.records.get(node)
        return str(node) if record is None else record.name

    def keyspaces(self) -> list[tuple[str, Keyspace]]:
        """Every keyspace, with the name of its database as `names_of` gives it, in the order of both names."""
        databases = self.store.catalog.databases
        named = [
            (self._database_name(databases[keyspace.record.database_rid]), keyspace)
            for keyspace in self.store.catalog.keyspaces.values()
        ]
        return sorted(named, key=lambda one: (one[0], one[1].record.name))

    def _database_name(self, database: DatabaseRecord) -> str:
        return database.name if database.account == self.account else database.account
