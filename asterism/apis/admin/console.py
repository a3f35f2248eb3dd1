"""What the admin door works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from asterism.documents.container import Container
from asterism.documents.store import DocumentStore
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.reshaping import Reshaping


@dataclass(frozen=True, slots=True)
class Console:
    """The running database as an operator handles it."""

    store: DocumentStore
    admission: Admission
    account: str
    version: str
    # Bytes of the store on disk.
    store_bytes: Callable[[], int]

    @property
    def reshaping(self) -> Reshaping:
        return self.store.tools.reshaping

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

    def keyspaces(self) -> list[tuple[str, Keyspace]]:
        """Every keyspace of the account, with the name of its database, in the order of both names."""
        return [
            (database.name, container.keyspace)
            for database in self.store.list_databases(self.account)
            for container in self.store.list_containers(database)
        ]
