"""The entities of messaging namespaces: hubs, queues and topics, each a keyspace on a numbered line.

A namespace is an account; all of its entities share a database, so that no two of them have the same name, whatever
their kinds are. The description of an entity stands in the settings of its keyspace: it is in the memory of every
process, and a process with an older one is refused by the fences of the partitions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from asterism.clock import Clock
from asterism.errors import ResourceExists, ResourceNotFound, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.storage.contract import StorageRefusal

# Entities lie in accounts that no other door lists: no name of an account contains `:`.
ACCOUNT_PREFIX: Final = "messaging:"
_DATABASE: Final = "entities"
LINE: Final = PartitionKeyDefinition(paths=("/partition",), kind=PartitionKeyKind.NUMBERED)

Kind = Literal["hub", "queue", "topic"]
# The property of the settings that has the kind; specs of doors name it too, without this module.
KIND: Final = "messagingKind"
_NAME: Final = "messagingName"
_POINTS: Final = "messagingPoints"
_DESCRIPTION: Final = "messagingDescription"


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """An entity as its keyspace describes it at one moment."""

    namespace: str
    # As it was created; names are compared without regard to case.
    name: str
    kind: Kind
    # Plain JSON, which the model of the kind understands.
    description: Mapping[str, Any]
    keyspace: Keyspace

    @property
    def partition_count(self) -> int:
        """Return the number of points of the entity: partitions of a hub, fragments of a queue or topic."""
        return int(self.keyspace.record.settings[_POINTS])


class NamespaceStore:
    """Creates, finds, changes and deletes entities, and keeps small documents about namespaces. One per process."""

    def __init__(
        self, catalog: Catalog, admission: Admission, documents: SmallDocuments, reshaper: Reshaper, clock: Clock
    ) -> None:
        self.catalog = catalog
        self._admission = admission
        self._documents = documents
        self._reshaper = reshaper
        self._clock = clock

    async def catch_up(self) -> None:
        """Take over what other processes have changed."""
        try:
            await self.catalog.follow()
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal

    # --- entities ---------------------------------------------------------------------------------------------------

    def find(self, namespace: str, name: str) -> EntityRecord | None:
        database = self._database(namespace)
        if database is None:
            return None
        keyspace = self.catalog.find_keyspace(database.rid, name.lower())
        return None if keyspace is None or keyspace.deleted else _record_of(namespace, keyspace)

    def entities_of(self, namespace: str, *kinds: Kind) -> list[EntityRecord]:
        """List the entities of some kinds in the order of their names."""
        database = self._database(namespace)
        if database is None:
            return []
        found = [_record_of(namespace, keyspace) for keyspace in self.catalog.keyspaces_of(database.rid)]
        return sorted((record for record in found if record.kind in kinds), key=lambda record: record.name.lower())

    def all(self, *kinds: Kind) -> list[EntityRecord]:
        """List the entities of some kinds in all namespaces."""
        return [record for namespace in self.namespaces() for record in self.entities_of(namespace, *kinds)]

    def namespaces(self) -> list[str]:
        """List the namespaces that have, or have had, entities."""
        accounts = (database.account for database in self.catalog.databases.values())
        return sorted(
            account.removeprefix(ACCOUNT_PREFIX) for account in accounts if account.startswith(ACCOUNT_PREFIX)
        )

    async def create(
        self, namespace: str, name: str, kind: Kind, *, points: int, description: Mapping[str, Any]
    ) -> EntityRecord:
        """Create an entity with so many points, each in a physical partition of its own; ResourceExists if the name is
        taken, by whatever kind."""
        database = await self._database_to_fill(namespace)
        settings = {KIND: kind, _NAME: name, _POINTS: points, _DESCRIPTION: dict(description)}
        nodes = await self._reshaper.placer.for_new_keyspace(database.name, name.lower(), count=points)
        try:
            keyspace = await self.catalog.create_keyspace(
                database, name.lower(), LINE, settings, nodes=nodes, throughput=None, now=self._clock.stored_seconds()
            )
        except ResourceExists:
            raise ResourceExists(kind=kind, name=name) from None
        self._admission.refresh(keyspace)
        return _record_of(namespace, keyspace)

    async def change(
        self, entity: EntityRecord, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> EntityRecord:
        """Replace the description by what `change` makes of the present one, again if another process was faster."""

        def changed(settings: Mapping[str, Any]) -> Mapping[str, Any]:
            return {**settings, _DESCRIPTION: dict(change(settings[_DESCRIPTION]))}

        try:
            await self.catalog.change_keyspace_settings(entity.keyspace, changed, now=self._clock.stored_seconds())
        except ResourceNotFound:
            raise ResourceNotFound(kind=entity.kind, name=entity.name) from None
        return _record_of(entity.namespace, entity.keyspace)

    async def delete(self, entity: EntityRecord) -> None:
        """Delete an entity with everything in it; ResourceNotFound if it is gone already."""
        try:
            await self.catalog.delete_keyspace(entity.keyspace)
        except ResourceNotFound:
            raise ResourceNotFound(kind=entity.kind, name=entity.name) from None

    # --- documents --------------------------------------------------------------------------------------------------

    async def get_document(self, namespace: str, name: str) -> bytes | None:
        """Return a small document about a namespace."""
        database = self._database(namespace)
        return None if database is None else await self._documents.get(database.rid, name)

    async def replace_document(self, namespace: str, name: str, content: bytes, *, before: bytes | None) -> bool:
        """Store a small document in place of `before`; it is durable on return. False if another was stored since."""
        database = await self._database_to_fill(namespace)
        return await self._documents.replace(database.rid, name, content, before=before)

    # --- databases --------------------------------------------------------------------------------------------------

    def _database(self, namespace: str) -> DatabaseRecord | None:
        return self.catalog.find_database(ACCOUNT_PREFIX + namespace, _DATABASE)

    async def _database_to_fill(self, namespace: str) -> DatabaseRecord:
        found = self._database(namespace)
        while found is None:
            try:
                found = await self._created_database(namespace)
            except ResourceExists:
                found = self._database(namespace)
        return found

    def _created_database(self, namespace: str) -> Awaitable[DatabaseRecord]:
        now = self._clock.stored_seconds()
        return self.catalog.create_database(ACCOUNT_PREFIX + namespace, _DATABASE, None, now=now)


def _record_of(namespace: str, keyspace: Keyspace) -> EntityRecord:
    settings = keyspace.record.settings
    return EntityRecord(namespace, settings[_NAME], settings[KIND], settings[_DESCRIPTION], keyspace)
