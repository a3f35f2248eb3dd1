"""The tables of all accounts, as keyspaces of the catalog."""

from __future__ import annotations

from typing import cast

from asterism.errors import ResourceExists, ResourceNotFound, StorageUnavailable
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import DatabaseRecord
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.tables.entities import TableKind
from asterism.models.tables.record import partition_key_of
from asterism.models.tables.table import Table, TableServices
from asterism.partitioning.partition_key import PartitionKeyDefinition, PartitionKeyKind
from asterism.partitioning.split_merge import partition_count_at_creation
from asterism.storage.contract import StorageRefusal
from asterism.throughput.budgets import Autoscale, Manual, Throughput, effective_ru, validate

# Tables lie in accounts that no other door lists: no name of an account contains `:`.
_ACCOUNT_PREFIX = "table:"
_DATABASE = "tables"

STORAGE_KEY = PartitionKeyDefinition(paths=("/PartitionKey",), kind=PartitionKeyKind.RANGE)
COSMOS_KEY = PartitionKeyDefinition(paths=("/PartitionKey",))
# The throughput of a table whose request names none: the service's own default.
DEFAULT_THROUGHPUT = Manual(400)
# Some megabytes of memory; the names of storage tables can be spelled in many ways.
_KNOWN_TABLES_MAX = 10_000


class TableStore:
    """Creates, finds, lists and deletes tables, and keeps small documents about them. One per process."""

    def __init__(
        self, catalog: Catalog, admission: Admission, documents: SmallDocuments, services: TableServices
    ) -> None:
        self._catalog = catalog
        self._admission = admission
        self._documents = documents
        self._services = services
        # By account and name, in every spelling that was asked for, until their keyspaces are deleted.
        self._known: dict[tuple[str, str], Table] = {}

    # --- other processes --------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        return self._catalog.store.is_shared

    @property
    def known_lsn(self) -> int:
        return self._catalog.store.known_lsn

    async def catch_up(self) -> int:
        try:
            await self._catalog.follow()
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal
        return self._catalog.store.known_lsn

    # --- tables -----------------------------------------------------------------------------------------------------

    async def create_table(
        self, account: str, name: str, *, kind: TableKind, throughput: Throughput | None = None
    ) -> Table:
        database = await self._database_to_fill(account)
        if self._is_taken(account, name, kind):
            raise ResourceExists(kind="table", name=name)
        identity = _identity(name, kind)
        settings = {"table": name, "kind": kind}
        count = 1
        if kind == "cosmos":
            throughput = throughput or DEFAULT_THROUGHPUT
            limits = self._services.limits
            validate(throughput, limits, limits.throughput_ru_per_second_min)
            autoscale = isinstance(throughput, Autoscale)
            count = partition_count_at_creation(effective_ru(throughput), autoscale=autoscale, limits=limits)
        try:
            keyspace = await self._catalog.create_keyspace(
                database,
                identity,
                STORAGE_KEY if kind == "storage" else COSMOS_KEY,
                settings,
                nodes=await self._services.reshaper.placer.for_new_keyspace(database.name, identity, count=count),
                throughput=throughput if kind == "cosmos" else None,
                now=self._now(),
            )
        except ResourceExists:
            raise ResourceExists(kind="table", name=name) from None
        self._admission.refresh(keyspace)
        return self._table(account, keyspace)

    async def delete_table(self, account: str, name: str) -> None:
        table = self.find_table(account, name)
        if table is None:
            raise ResourceNotFound(kind="table", name=name)
        try:
            await self._catalog.delete_keyspace(table.keyspace)
        except ResourceNotFound:
            raise ResourceNotFound(kind="table", name=name) from None
        self._services.reshaper.collect_garbage()

    async def list_tables(self, account: str, after: str | None, limit: int) -> list[str]:
        """List names as they were created, in an order that depends only on the name: `after` may have been deleted."""
        database = self._database(account)
        if database is None:
            return []
        names = [_name_of(keyspace) for keyspace in self._catalog.keyspaces_of(database.rid)]
        if after is not None:
            known = self.find_table(account, after)
            behind = listing_order(after if known is None else known.name)
            names = [name for name in names if listing_order(name) > behind]
        return sorted(names, key=listing_order)[:limit]

    def find_table(self, account: str, name: str) -> Table | None:
        known = self._known.get((account, name))
        # A name belongs to the same keyspace until that is deleted.
        if known is not None and not known.keyspace.deleted:
            return known
        database = self._database(account)
        if database is None:
            return None
        keyspace = self._catalog.find_keyspace(database.rid, name)
        if keyspace is None:
            keyspace = self._catalog.find_keyspace(database.rid, name.lower())
            if keyspace is None or keyspace.record.settings["kind"] != "storage":
                return None
        if len(self._known) >= _KNOWN_TABLES_MAX:
            self._known.clear()
        table = self._known[account, name] = self._table(account, keyspace)
        return table

    @staticmethod
    def partition_key_of(stored: bytes) -> str:
        """Return the PartitionKey of an entity as it is stored."""
        return partition_key_of(stored)

    def tables(self) -> list[Table]:
        """List the tables of all accounts."""
        found = []
        for database in self._catalog.databases.values():
            if database.account.startswith(_ACCOUNT_PREFIX):
                account = database.account.removeprefix(_ACCOUNT_PREFIX)
                found += [self._table(account, keyspace) for keyspace in self._catalog.keyspaces_of(database.rid)]
        return sorted(found, key=lambda table: (table.account, table.name))

    # --- documents --------------------------------------------------------------------------------------------------

    async def get_document(self, account: str, table: Table, name: str) -> bytes | None:
        """Return a small document about a table."""
        found = self.find_table(account, table.name)
        return None if found is None else await self._documents.get(found.keyspace.record.rid, name)

    async def put_document(self, account: str, table: Table, name: str, content: bytes) -> None:
        """Store a small document about a table; it is durable on return, and deleted with the table."""
        found = self.find_table(account, table.name)
        if found is None:
            raise ResourceNotFound(kind="table", name=table.name)
        await self._documents.put(found.keyspace.record.rid, name, content)

    async def get_account_document(self, account: str, name: str) -> bytes | None:
        """Return a small document about an account."""
        database = self._database(account)
        return None if database is None else await self._documents.get(database.rid, name)

    async def replace_account_document(self, account: str, name: str, content: bytes, *, before: bytes | None) -> bool:
        """Store a small document in place of `before`; it is durable on return. False if another was stored since."""
        database = await self._database_to_fill(account)
        return await self._documents.replace(database.rid, name, content, before=before)

    # --- databases and names ----------------------------------------------------------------------------------------

    def _database(self, account: str) -> DatabaseRecord | None:
        return self._catalog.find_database(_ACCOUNT_PREFIX + account, _DATABASE)

    async def _database_to_fill(self, account: str) -> DatabaseRecord:
        found = self._database(account)
        while found is None:
            try:
                found = await self._catalog.create_database(_ACCOUNT_PREFIX + account, _DATABASE, None, now=self._now())
            except ResourceExists:
                # Two first requests of an account came at once.
                found = self._database(account)
        return found

    def _is_taken(self, account: str, name: str, kind: TableKind) -> bool:
        """Return whether a table has the name already, in any case for a storage table: a second table would hide the
        entities of the first."""
        if self.find_table(account, name) is not None:
            return True
        database = self._database(account)
        if kind == "cosmos" or database is None:
            return False
        lowered = name.lower()
        return any(_name_of(keyspace).lower() == lowered for keyspace in self._catalog.keyspaces_of(database.rid))

    def _table(self, account: str, keyspace: Keyspace) -> Table:
        kind = cast("TableKind", keyspace.record.settings["kind"])
        return Table(account, _name_of(keyspace), kind, keyspace, self._services)

    def _now(self) -> int:
        return self._services.clock.stored_seconds()


def _identity(name: str, kind: TableKind) -> str:
    """Return the name that is unique in the account: names of storage tables do not differ by case."""
    return name.lower() if kind == "storage" else name


def listing_order(name: str) -> tuple[str, str]:
    """Return the sort key of a listing: the name without its case, then with it."""
    return name.lower(), name


def _name_of(keyspace: Keyspace) -> str:
    return cast("str", keyspace.record.settings["table"])
