"""What is wired to what, on one page. The only module that names a storage engine."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from asterism import __version__
from asterism.apis.admin.console import Console
from asterism.apis.admin.door import AdminDoor
from asterism.apis.nosql.door import NoSqlDoor
from asterism.apis.table.accounts import Account
from asterism.apis.table.door import TableDoor
from asterism.apis.table.entity_record import partition_key_of
from asterism.apis.table.entity_store import TableStore, TickSource
from asterism.apis.table.table import TableTools
from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.documents.container import Tools
from asterism.documents.store import DocumentStore
from asterism.documents.version_retention import VersionRetention
from asterism.errors import AsterismError
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.load_watch import LoadWatch
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.reshape_job import Step
from asterism.keyspaces.reshaping import Reshaping
from asterism.keyspaces.small_documents import SmallDocuments
from asterism.scripts.runtime import ScriptRuntime
from asterism.server.config import (
    ServerConfig,
    StartRefused,
    account_keys,
    accounts_of_cosmos_tables,
    accounts_of_tables,
)
from asterism.server.data_directory import DataDirectory
from asterism.storage.contract import StorageRefusal
from asterism.storage.lmdb import LmdbEngine

# An item's number has 60 bits: 24 for the start of the server that gave it, 36 for its place among those given since.
_ITEM_NUMBER_BITS_PER_BOOT = 36
_BOOT_NUMBER_MAX = 2**24 - 1


@dataclass(frozen=True, slots=True)
class Assembly:
    store: DocumentStore
    admission: Admission
    tables: TableStore
    console: Console
    nosql: NoSqlDoor
    table: TableDoor
    cosmos_table: TableDoor
    admin: AdminDoor


@asynccontextmanager
async def assembled(
    config: ServerConfig, directory: DataDirectory, *, on_step: Callable[[Step], None] | None = None
) -> AsyncIterator[Assembly]:
    """Everything between the listeners and the disk, open for the length of the `async with`.

    `on_step` hears of every step of a split or merge; fault tests stop the process there.
    """
    keys = account_keys(config)
    with _opening(directory):
        engine = LmdbEngine.open(directory.store)
    try:
        clock = SYSTEM_CLOCK
        catalog = Catalog(engine, random_bytes=os.urandom, monotonic=clock.monotonic_seconds)
        with _opening(directory):
            await catalog.open()
        admission = Admission(catalog, config.limits, enforce=config.throttle, monotonic=clock.monotonic_seconds)
        for keyspace in catalog.keyspaces.values():
            admission.refresh(keyspace)
        owner = Owner(engine)
        reshaping = Reshaping(
            engine,
            catalog,
            owner,
            admission,
            config.limits,
            clock,
            announce_seconds=config.announce_seconds,
            on_step=on_step,
        )
        tools = Tools(
            owner=owner,
            reshaping=reshaping,
            limits=config.limits,
            clock=clock,
            random_bytes=os.urandom,
            next_item_number=item_numbers(catalog.boot_number),
        )
        store = DocumentStore(catalog, admission, tools)
        retention = VersionRetention(catalog, owner, clock)
        store.on_versions_kept = retention.wake
        scripts = ScriptRuntime()
        nosql = NoSqlDoor(
            store,
            account=config.account,
            keys=keys,
            clock=clock,
            consistency=config.consistency,
            limits=config.limits,
            scripts=scripts,
            new_activity_id=activity_ids(),
        )
        load = LoadWatch(catalog, owner, reshaping, config.limits, clock)
        table_tools = TableTools(owner, reshaping, load, config.limits, clock, TickSource(clock.wall_seconds))
        tables = TableStore(catalog, admission, SmallDocuments(engine), table_tools)
        console = Console(
            store,
            admission,
            account=config.account,
            version=__version__,
            store_bytes=store_bytes(engine),
            load=load,
            find_table=table_keyspaces(tables),
            partition_key_of_entity=partition_key_of,
        )
        admin = AdminDoor(console, keys=keys, clock=clock)
        table, cosmos_table = _table_doors(config, tables, clock)
        try:
            with _opening(directory):
                await reshaping.recover()
                await store.housekeeping.recover()
                await store.rekeying.recover()
            store.reindexing.recover()
            retention.wake()
            load.recover()
            yield Assembly(store, admission, tables, console, nosql, table, cosmos_table, admin)
        finally:
            scripts.close()
            await load.stop()
            await retention.stop()
            await store.rekeying.stop()
            await store.housekeeping.stop()
            await store.reindexing.stop()
            await reshaping.stop()
    finally:
        await engine.close()


def _table_doors(config: ServerConfig, tables: TableStore, clock: Clock) -> tuple[TableDoor, TableDoor]:
    """The same tables, as Azure Table storage presents them and as Cosmos DB for Table does."""
    request_ids = activity_ids()

    def door(accounts: dict[str, Account], *, is_cosmos: bool) -> TableDoor:
        return TableDoor(
            tables,
            accounts=accounts,
            clock=clock,
            is_cosmos=is_cosmos,
            unsigned_tokens=config.unsigned_tokens,
            new_request_id=request_ids,
        )

    storage = door(accounts_of_tables(config), is_cosmos=False)
    return storage, door(accounts_of_cosmos_tables(config), is_cosmos=True)


@contextmanager
def _opening(directory: DataDirectory) -> Iterator[None]:
    """What the store refuses before the server is ready is a reason not to start."""
    try:
        yield
    except (StorageRefusal, AsterismError) as refusal:
        raise StartRefused(f"the store in {directory.store} cannot be used: {refusal}") from None


def item_numbers(boot_number: int) -> Callable[[], int]:
    """Numbers no other start of the server has given or will give."""
    if boot_number > _BOOT_NUMBER_MAX:
        raise StartRefused("the store was opened more than 16 million times; copy its data to a new one")
    return itertools.count(boot_number << _ITEM_NUMBER_BITS_PER_BOOT).__next__


def table_keyspaces(tables: TableStore) -> Callable[[str, str], Keyspace | None]:
    """The admin door's way to a table, which it knows only as a keyspace."""

    def find(account: str, name: str) -> Keyspace | None:
        table = tables.find_table(account, name)
        return None if table is None else table.keyspace

    return find


def store_bytes(engine: LmdbEngine) -> Callable[[], int]:
    return lambda: engine.stats().bytes_used


def activity_ids() -> Callable[[], str]:
    """Names for requests that bring none: random for this start of the server, then counted."""
    text = os.urandom(10).hex()
    start = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-"
    numbers = itertools.count()
    return lambda: f"{start}{next(numbers):012x}"
