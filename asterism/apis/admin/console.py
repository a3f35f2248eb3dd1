"""What the admin door works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from asterism.documents.container import Container
from asterism.documents.store import DocumentStore
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.moving import Moving
from asterism.keyspaces.nodes import Nodes
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.reshaping import Reshaping
from asterism.keyspaces.usage_gathering import UsageGathering
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

    def names_of(self, keyspace_rid: bytes) -> tuple[str, str] | None:
        """The names of a keyspace's database and its own; None if it is gone."""
        catalog = self.store.catalog
        keyspace, database = catalog.keyspaces.get(keyspace_rid), catalog.databases.get(keyspace_rid[:4])
        if keyspace is None or database is None or database.account != self.account:
            return None
        return database.name, keyspace.record.name

    def node_name(self, node: NodeNumber) -> str:
        record = self.nodes.records.get(node)
        return str(node) if record is None else record.name

    def keyspaces(self) -> list[tuple[str, Keyspace]]:
        """Every keyspace of the account, with the name of its database, in the order of both names."""
        return [
            (database.name, container.keyspace)
            for database in self.store.list_databases(self.account)
            for container in self.store.list_containers(database)
        ]
