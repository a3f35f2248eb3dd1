"""The log of changes of the catalog: collections that were created, renamed, dropped or given other options.

They lie in the log of the collection's own logical partition in the home of its database, so that they are in order
with the changes of its documents. The home goes with its database: that a database was dropped is in the log of its
account, a keyspace of its own that no client can name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from asterism.errors import OwnerNotFound, ResourceExists
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.collections.changes import ChangeLog, LoggedChange
from asterism.models.collections.collection import CollectionServices
from asterism.models.collections.log_entries import CatalogChange
from asterism.models.collections.records import HOME_DEFINITION, CollectionRecord, HomeSettings
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.feed_position import FeedPosition
from asterism.storage.contract import Batch
from asterism.throughput.budgets import Manual
from asterism.values.bson.types import Document

# No client can name a database with a `$`.
LOG_DATABASE = "$changes"
_LOG_KEYSPACE = "log"
# A home without collections, for all that look at keyspaces.
_LOG_SETTINGS = HomeSettings().to_settings()
_LOG_THROUGHPUT = Manual(400)


def point_of(record: CollectionRecord) -> bytes:
    """Return the point in the home of its database at which the catalog changes of a collection are logged."""
    return storage_point(HOME_DEFINITION, (str(record.number),))


def change_of(operation: str, record: CollectionRecord, details: Document | None = None) -> CatalogChange:
    return CatalogChange(operation, record.database, record.name, record.uuid, details or {}, record.is_view)


class CatalogLog:
    def __init__(self, catalog: Catalog, admission: Admission, services: CollectionServices, prefix: str) -> None:
        """`prefix` stands in front of the names of accounts in the catalog."""
        self._catalog = catalog
        self._admission = admission
        self._services = services
        self._prefix = prefix
        self._reading = ChangeLog(services.router)

    # --- collections ------------------------------------------------------------------------------------------------

    async def write(self, home: Keyspace, record: CollectionRecord, *changes: CatalogChange) -> None:
        """Log changes of a collection in the home of its database; nothing if that was dropped meanwhile."""
        point = point_of(record)
        batch = Batch()
        self._services.planner.log_catalog(batch, point, changes)
        try:
            await self._services.router.apply(home, point, batch)
        except OwnerNotFound:
            return
        self._services.signal.notify()

    # --- dropped keyspaces ------------------------------------------------------------------------------------------

    async def ends(self, keyspaces: Sequence[Keyspace]) -> Document:
        """Return where the logs of keyspaces end that are about to be dropped, for the entry that says so."""
        found: Document = {}
        for keyspace in keyspaces:
            try:
                found[keyspace.record.rid.hex()] = (await self._reading.end_of(keyspace)).to_text()
            except OwnerNotFound:
                continue
        return found

    # --- databases --------------------------------------------------------------------------------------------------

    def keyspace(self, account: str) -> Keyspace | None:
        """Return the log of the databases of an account; None before the first was dropped."""
        database = self._catalog.find_database(self._prefix + account, LOG_DATABASE)
        return None if database is None else self._catalog.find_keyspace(database.rid, _LOG_KEYSPACE)

    async def write_dropped(
        self, account: str, database: str, records: Sequence[CollectionRecord], ends: Document, drop: Awaitable[None]
    ) -> None:
        """Drop a database, by `drop`, and log it: its collections one by one, then the database itself.

        Both are written at once, since one does not wait for the other: a crash in between leaves a database whose
        readers think that it was dropped, or one that went without a word; the client was told neither.
        """
        keyspace = await self._keyspace_to_fill(account)
        details = {"ends": ends}
        changes = [change_of("drop", record, details) for record in records if not record.is_view]
        changes.append(CatalogChange("dropDatabase", database, details=details))
        point = storage_point(HOME_DEFINITION, (database,))
        batch = Batch()
        self._services.planner.log_catalog(batch, point, changes)
        await asyncio.gather(drop, self._services.router.apply(keyspace, point, batch))
        self._services.signal.notify()

    async def _keyspace_to_fill(self, account: str) -> Keyspace:
        owner, now = self._prefix + account, self._services.clock.stored_seconds()
        while True:
            found = self.keyspace(account)
            if found is not None:
                return found
            try:
                database = self._catalog.find_database(owner, LOG_DATABASE)
                if database is None:
                    database = await self._catalog.create_database(owner, LOG_DATABASE, None, now=now)
                nodes = await self._services.reshaper.placer.for_new_keyspace(LOG_DATABASE, _LOG_KEYSPACE, count=1)
                keyspace = await self._catalog.create_keyspace(
                    database,
                    _LOG_KEYSPACE,
                    HOME_DEFINITION,
                    _LOG_SETTINGS,
                    nodes=nodes,
                    throughput=_LOG_THROUGHPUT,
                    now=now,
                )
                self._admission.refresh(keyspace)
            except ResourceExists:
                await self._catalog.follow()


def dropped_keyspaces(change: LoggedChange) -> dict[bytes, FeedPosition]:
    """Return the keyspaces that went with a change, and where their logs ended."""
    if change.is_of_document or change.description is None:
        return {}
    ends = change.description.get("ends", {})
    return {bytes.fromhex(rid): FeedPosition.from_text(text) for rid, text in ends.items()}
