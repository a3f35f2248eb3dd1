"""What is wired to what, on one page."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from asterism import __version__
from asterism.access.keys import AccountKeys
from asterism.apis.admin.console import Console
from asterism.apis.admin.door import AdminDoor
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.nosql.door import NoSqlDoor
from asterism.apis.nosql.script_functions import ContainerFunctions
from asterism.apis.table.accounts import Account
from asterism.apis.table.door import TableDoor
from asterism.apis.table.entity_record import partition_key_of
from asterism.apis.table.entity_store import TableStore, TickSource
from asterism.apis.table.table import TableTools
from asterism.clock import SYSTEM_CLOCK
from asterism.documents.container import Tools
from asterism.documents.expiry_hints import ExpiryHints
from asterism.documents.store import DocumentStore
from asterism.documents.version_retention import VersionRetention
from asterism.errors import AsterismError
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.budget_sharing import BudgetSharing
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.coordination import Coordination, Services
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.load_watch import LoadWatch
from asterism.keyspaces.moving import Moving
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.placing import Placing
from asterism.keyspaces.reshape_job import Step
from asterism.keyspaces.reshaping import Reshaping
from asterism.keyspaces.small_documents import SmallDocuments
from asterism.keyspaces.usage_gathering import UsageGathering
from asterism.query import turns
from asterism.query.limits import QueryMemory
from asterism.query.result_sets import ResultSets
from asterism.scripts.runtime import ScriptRuntime
from asterism.server.background import BackgroundWork
from asterism.server.config import (
    ServerConfig,
    StartRefused,
    account_keys,
    accounts_of_cosmos_tables,
    accounts_of_tables,
)
from asterism.server.data_directory import DataDirectory
from asterism.server.fleet import Fleet, embedded, open_fleet
from asterism.server.item_numbers import numbers_of_this_start
from asterism.server.migration import Migration
from asterism.server.migration_desk import MigrationDesk
from asterism.storage.contract import StorageRefusal


@dataclass(frozen=True, slots=True)
class Assembly:
    fleet: Fleet
    migration: Migration
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
    config: ServerConfig,
    directory: DataDirectory,
    *,
    on_step: Callable[[Step], None] | None = None,
    is_first: bool = True,
) -> AsyncIterator[Assembly]:
    """Everything between the listeners and the disk, open for the length of the `async with`.

    `on_step` hears of every step of a split or merge; fault tests stop the process there. `is_first`: no other process
    uses the data directory's store yet; of a fleet nobody can say.
    """
    keys = account_keys(config)
    with _opening(config, directory):
        fleet = await open_fleet(
            config.fleet or embedded(directory.store),
            on_its_own=config.fleet is None,
            new_id=new_fleet_id,
            shared=config.fleet is not None or config.workers > 1,
            file=config.fleet_file,
        )
    try:
        with _opening(config, directory):
            catalog = await _open_catalog(config, fleet)
        spaces = _keyspaces(config, fleet, catalog, on_step)
        store = _documents(config, spaces)
        tables = _tables(config, fleet, spaces)
        work = _background(config, fleet, spaces, store, is_first=is_first)
        migration = Migration(fleet, catalog, spaces.moving, work, new_id=new_fleet_id)
        scripts, desk = ScriptRuntime(wait=turns.wait), MigrationDesk(migration, fleet, directory.path)
        query_memory = QueryMemory(config.limits.query_memory_bytes_max)
        console = _console(config, fleet, spaces, store, tables, scripts, desk, query_memory)
        guard = _browser_guard(config)
        admin = AdminDoor(console, keys=keys, clock=SYSTEM_CLOCK, guard=guard if config.key_is_public else None)
        nosql = _nosql_door(config, keys, store, scripts, guard, query_memory)
        table, cosmos_table = _table_doors(config, tables, guard)
        try:
            with _opening(config, directory):
                await work.start()
                await store.conversion.finished()
                await migration.recover()
            yield Assembly(
                fleet=fleet,
                migration=migration,
                store=store,
                admission=spaces.admission,
                tables=tables,
                console=console,
                nosql=nosql,
                table=table,
                cosmos_table=cosmos_table,
                admin=admin,
            )
        finally:
            scripts.close()
            await migration.stop()
            await work.stop()
    finally:
        await fleet.close()


async def _open_catalog(config: ServerConfig, fleet: Fleet) -> Catalog:
    is_shared = config.fleet is not None or config.workers > 1 or fleet.migration is not None
    catalog = Catalog(
        fleet.engines, random_bytes=os.urandom, monotonic=SYSTEM_CLOCK.monotonic_seconds, is_shared=is_shared
    )
    await catalog.open()
    await fleet.join(catalog)
    return catalog


@dataclass(frozen=True, slots=True)
class _Keyspaces:
    """What floor 3 has for those above it."""

    catalog: Catalog
    admission: Admission
    owner: Owner
    reshaping: Reshaping
    moving: Moving
    usage: UsageGathering
    load: LoadWatch


def _keyspaces(
    config: ServerConfig, fleet: Fleet, catalog: Catalog, on_step: Callable[[Step], None] | None
) -> _Keyspaces:
    admission = Admission(catalog, config.limits, enforce=config.throttle, monotonic=SYSTEM_CLOCK.monotonic_seconds)
    for keyspace in catalog.keyspaces.values():
        admission.refresh(keyspace)
    # The nodes of a fleet may have standbys.
    has_copies = config.fleet is not None or fleet.migration is not None
    owner = Owner(fleet.engines, catalog.follow if catalog.is_shared else None, may_read_copies=has_copies)
    reshaping = Reshaping(
        fleet.engines,
        catalog,
        owner,
        admission,
        config.limits,
        SYSTEM_CLOCK,
        placing=Placing(catalog, owner, admission, config.limits, SYSTEM_CLOCK, default_rules=fleet.rules_for),
        announce_seconds=config.announce_seconds,
        on_step=on_step,
    )
    usage = UsageGathering(catalog)
    load = LoadWatch(catalog, owner, reshaping, config.limits, SYSTEM_CLOCK, usage_of=usage.of_keyspace)
    moving = Moving(catalog, reshaping, fleet.engines)
    moving.may_move_catalog = fleet.migration is None
    return _Keyspaces(catalog, admission, owner, reshaping, moving, usage, load)


def _documents(config: ServerConfig, spaces: _Keyspaces) -> DocumentStore:
    tools = Tools(
        owner=spaces.owner,
        reshaping=spaces.reshaping,
        limits=config.limits,
        clock=SYSTEM_CLOCK,
        random_bytes=os.urandom,
        next_item_number=numbers_of_this_start(spaces.catalog),
    )
    store = DocumentStore(spaces.catalog, spaces.admission, tools)
    spaces.catalog.listeners.append(store.take_over)
    return store


def _tables(config: ServerConfig, fleet: Fleet, spaces: _Keyspaces) -> TableStore:
    ticks = TickSource(SYSTEM_CLOCK.wall_seconds)
    tools = TableTools(spaces.owner, spaces.reshaping, spaces.load, config.limits, SYSTEM_CLOCK, ticks)
    return TableStore(spaces.catalog, spaces.admission, SmallDocuments(fleet.engines), tools)


async def _nothing() -> None:
    """Stop what stops by itself."""


def _background(
    config: ServerConfig, fleet: Fleet, spaces: _Keyspaces, store: DocumentStore, *, is_first: bool
) -> BackgroundWork:
    """Whatever goes on behind the requests; of processes that share a store, one does it at a time."""
    catalog = spaces.catalog
    retention = VersionRetention(catalog, spaces.owner, SYSTEM_CLOCK)
    store.on_versions_kept = retention.wake
    services = Services(
        [
            (spaces.reshaping.recover, spaces.reshaping.stop),
            (spaces.moving.start, spaces.moving.stop),
            # Before whatever goes by entries that only the present layout has.
            (store.conversion.run, _nothing),
            (store.reindexing.start, store.reindexing.stop),
            (store.housekeeping.recover, store.housekeeping.stop),
            (store.rekeying.recover, store.rekeying.stop),
            (retention.start, retention.stop),
            (spaces.load.start, spaces.load.stop),
        ]
    )
    coordination = Coordination(
        fleet.engines,
        catalog,
        monotonic=SYSTEM_CLOCK.monotonic_seconds,
        background=services,
        presence=[
            BudgetSharing(spaces.admission, monotonic=SYSTEM_CLOCK.monotonic_seconds),
            ExpiryHints(store.tools.expiry, leads=lambda: catalog.leads, wall_seconds=SYSTEM_CLOCK.wall_seconds),
            spaces.usage,
        ],
        name=f"{socket.gethostname()}/{os.getpid()}",
        is_first=is_first and config.fleet is None,
    )
    spaces.usage.on_news = coordination.hurry
    return BackgroundWork(catalog, spaces.owner, services, coordination)


def _console(
    config: ServerConfig,
    fleet: Fleet,
    spaces: _Keyspaces,
    store: DocumentStore,
    tables: TableStore,
    scripts: ScriptRuntime,
    migration: MigrationDesk,
    query_memory: QueryMemory,
) -> Console:
    return Console(
        store,
        spaces.admission,
        account=config.account,
        version=__version__,
        usage=spaces.usage,
        engines=fleet.engines,
        moving=spaces.moving,
        migration=migration,
        load=spaces.load,
        find_table=table_keyspaces(tables),
        partition_key_of_entity=partition_key_of,
        result_sets=ResultSets(
            monotonic_seconds=SYSTEM_CLOCK.monotonic_seconds, random_bytes=os.urandom, memory=query_memory
        ),
        udfs_of=lambda container: ContainerFunctions(store, scripts, container),
    )


def _browser_guard(config: ServerConfig) -> BrowserGuard:
    machine = socket.gethostname()
    return BrowserGuard((*config.allowed_hosts, *config.tls_names, config.host, machine, f"{machine}.local"))


def _nosql_door(
    config: ServerConfig,
    keys: AccountKeys,
    store: DocumentStore,
    scripts: ScriptRuntime,
    guard: BrowserGuard,
    query_memory: QueryMemory,
) -> NoSqlDoor:
    return NoSqlDoor(
        store,
        account=config.account,
        keys=keys,
        clock=SYSTEM_CLOCK,
        consistency=config.consistency,
        limits=config.limits,
        scripts=scripts,
        lenient_sql=config.lenient_sql,
        new_activity_id=activity_ids(),
        guard=guard if config.key_is_public else None,
        query_memory=query_memory,
    )


def _table_doors(config: ServerConfig, tables: TableStore, guard: BrowserGuard) -> tuple[TableDoor, TableDoor]:
    """The same tables, as Azure Table storage presents them and as Cosmos DB for Table does."""
    request_ids = activity_ids()

    def door(accounts: dict[str, Account], *, is_cosmos: bool) -> TableDoor:
        return TableDoor(
            tables,
            accounts=accounts,
            clock=SYSTEM_CLOCK,
            is_cosmos=is_cosmos,
            unsigned_tokens=config.unsigned_tokens,
            new_request_id=request_ids,
            guard=guard,
        )

    storage = door(accounts_of_tables(config), is_cosmos=False)
    return storage, door(accounts_of_cosmos_tables(config), is_cosmos=True)


@contextmanager
def _opening(config: ServerConfig, directory: DataDirectory) -> Iterator[None]:
    """What the store refuses before the server is ready is a reason not to start."""
    try:
        yield
    except (StorageRefusal, AsterismError) as refusal:
        what = f"the store in {directory.store}" if config.fleet is None else f"the fleet {config.fleet.name}"
        raise StartRefused(f"{what} cannot be used: {refusal}") from None


def new_fleet_id() -> str:
    return os.urandom(8).hex()


def table_keyspaces(tables: TableStore) -> Callable[[str, str], Keyspace | None]:
    """The admin door's way to a table, which it knows only as a keyspace."""

    def find(account: str, name: str) -> Keyspace | None:
        table = tables.find_table(account, name)
        return None if table is None else table.keyspace

    return find


def activity_ids() -> Callable[[], str]:
    """Names for requests that bring none: random for this start of the server, then counted."""
    text = os.urandom(10).hex()
    start = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-"
    numbers = itertools.count()
    return lambda: f"{start}{next(numbers):012x}"
