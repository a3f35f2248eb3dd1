"""The queues of all accounts: those of an account share a keyspace, in which each is one logical partition by its name.

The record of a queue is read from there for each request: so every process sees the newest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from asterism.errors import ResourceExists, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.routing.families import ITEMS, after_prefix
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.scan import read_slice
from asterism.keyspaces.routing.slice_sizes import ENTITIES
from asterism.models.queues.layout import GENERATION_BYTES, point_of
from asterism.models.queues.messages import Created
from asterism.models.queues.planner import plan_creation, record_key
from asterism.models.queues.queue import Queue, QueueServices
from asterism.models.queues.record import QueueRecord
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.storage.contract import ExpectationFailed, StorageRefusal
from asterism.values.ordered_text import ordered_text, text_of

# Queues lie in accounts that no other door lists: no name of an account contains `:`.
ACCOUNT_PREFIX: Final = "queue:"
_DATABASE: Final = "queues"
_KEYSPACE: Final = "queues"
# The setting by which a keyspace of queues is known.
MARK: Final = "queues"
QUEUE_KEY: Final = PartitionKeyDefinition(paths=("/queue",), kind=PartitionKeyKind.RANGE)
# The terminator of a point (values/ordered_text).
_POINT_END_BYTES: Final = 2


class QueueStore:
    """Creates, finds, lists and deletes queues, and keeps small documents about accounts. One per process."""

    def __init__(
        self, catalog: Catalog, admission: Admission, documents: SmallDocuments, services: QueueServices
    ) -> None:
        self.catalog = catalog
        self.services = services
        self._admission = admission
        self._documents = documents

    # --- other processes --------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        return self.catalog.store.is_shared

    @property
    def known_lsn(self) -> int:
        return self.catalog.store.known_lsn

    async def catch_up(self) -> int:
        try:
            await self.catalog.follow()
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal
        return self.catalog.store.known_lsn

    # --- queues -----------------------------------------------------------------------------------------------------

    async def create_queue(self, account: str, name: str, metadata: Mapping[str, str]) -> Created:
        keyspace = await self._keyspace_to_fill(account)
        services, point = self.services, point_of(name)
        while True:
            generation = services.random_bytes(GENERATION_BYTES)
            record = QueueRecord(generation, services.next_ticks(), dict(metadata))
            found = await self._find(account, name, keyspace)
            if found is not None:
                return Created.SAME if found.record.metadata == record.metadata else Created.DIFFERENT
            change = plan_creation(point, record)
            try:
                await Queue(account, name, keyspace, record, services).commit(change)
            except ExpectationFailed:
                # Another call has created it meanwhile.
                continue
            return Created.NEW

    async def find_queue(self, account: str, name: str) -> Queue | None:
        keyspace = self.keyspace_of(account)
        return None if keyspace is None else await self._find(account, name, keyspace)

    async def _find(self, account: str, name: str, keyspace: Keyspace) -> Queue | None:
        point = point_of(name)
        _, _, (stored,) = await self.services.router.read(keyspace, point, [record_key(point)])
        if stored is None:
            return None
        return Queue(account, name, keyspace, QueueRecord.from_bytes(stored), self.services)

    async def list_queues(self, account: str, *, prefix: str, start: str, limit: int) -> list[Queue]:
        """List queues whose names begin with a prefix, from the name `start` on, in the order of their names."""
        keyspace = self.keyspace_of(account)
        if keyspace is None:
            return []
        low, high = ordered_text(prefix), after_prefix(ordered_text(prefix)) or FULL.end
        low = max(low, ordered_text(start))
        rest = KeyRange(low, max(low, high))
        found: list[Queue] = []
        while rest.start < rest.end and len(found) < limit:
            size = ENTITIES._replace(entries=min(limit - len(found), ENTITIES.entries))
            _, entries, rest = await read_slice(self.services.router, keyspace, ITEMS, rest, size)
            for key, stored in entries:
                name = name_of(key[len(ITEMS) :])
                found.append(Queue(account, name, keyspace, QueueRecord.from_bytes(stored), self.services))
        return found

    # --- documents --------------------------------------------------------------------------------------------------

    async def get_account_document(self, account: str, name: str) -> bytes | None:
        """Return a small document about an account."""
        database = self._database(account)
        return None if database is None else await self._documents.get(database.rid, name)

    async def replace_account_document(self, account: str, name: str, content: bytes, *, before: bytes | None) -> bool:
        """Store a small document in place of `before`; it is durable on return. False if another was stored since."""
        database = await self._database_to_fill(account)
        return await self._documents.replace(database.rid, name, content, before=before)

    # --- keyspaces --------------------------------------------------------------------------------------------------

    def keyspace_of(self, account: str) -> Keyspace | None:
        """Return the keyspace of the queues of an account; None while it has had none."""
        database = self._database(account)
        return None if database is None else self.catalog.find_keyspace(database.rid, _KEYSPACE)

    def keyspaces(self) -> list[tuple[str, Keyspace]]:
        """List the accounts that have queues, with their keyspaces."""
        accounts = sorted(
            database.account.removeprefix(ACCOUNT_PREFIX)
            for database in self.catalog.databases.values()
            if database.account.startswith(ACCOUNT_PREFIX)
        )
        found = [(account, self.keyspace_of(account)) for account in accounts]
        return [(account, keyspace) for account, keyspace in found if keyspace is not None]

    async def _keyspace_to_fill(self, account: str) -> Keyspace:
        keyspace = self.keyspace_of(account)
        while keyspace is None:
            database = await self._database_to_fill(account)
            try:
                nodes = await self.services.reshaper.placer.for_new_keyspace(database.name, _KEYSPACE, count=1)
                keyspace = await self.catalog.create_keyspace(
                    database, _KEYSPACE, QUEUE_KEY, {MARK: True}, nodes=nodes, throughput=None, now=self._now()
                )
                self._admission.refresh(keyspace)
            except ResourceExists:
                # Two first requests of an account came at once.
                keyspace = self.keyspace_of(account)
        return keyspace

    def _database(self, account: str) -> DatabaseRecord | None:
        return self.catalog.find_database(ACCOUNT_PREFIX + account, _DATABASE)

    async def _database_to_fill(self, account: str) -> DatabaseRecord:
        found = self._database(account)
        while found is None:
            try:
                found = await self.catalog.create_database(ACCOUNT_PREFIX + account, _DATABASE, None, now=self._now())
            except ResourceExists:
                found = self._database(account)
        return found

    def _now(self) -> int:
        return self.services.clock.stored_seconds()


def name_of(point: bytes) -> str:
    """Return the name of a queue from its point: names are short and have no character that points spell otherwise."""
    return text_of(point[:-_POINT_END_BYTES])
