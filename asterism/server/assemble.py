"""What is wired to what, on one page."""

from __future__ import annotations

import itertools
import os
import socket
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
from asterism.server.migration import Migration
from asterism.server.migration_desk import MigrationDesk
from asterism.storage.contract import StorageRefusal

# An item's number has 60 bits: 24 for the start of the server that gave it, 36 for its place among those given since.
_ITEM_NUMBER_BITS_PER_BOOT = 36
_BOOT_NUMBER_MAX = 2**24 - 1


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
    own = config.fleet or embedded(directory.store)
    with _opening(config, directory):
        fleet = await open_fleet(
            own,
            on_its_own=config.fleet is None,
            new_id=new_fleet_id,
            shared=config.fleet is not None or config.workers > 1,
            file=config.fleet_file,
        )
    engine = fleet.engines
    is_shared = config.fleet is not None or config.workers > 1 or fleet.migration is not None
    try:
        clock = SYSTEM_CLOCK
        catalog = Catalog(engine, random_bytes=os.urandom, monotonic=clock.monotonic_seconds, is_shared=is_shared)
        with _opening(config, directory):
            await catalog.open()
            await fleet.join(catalog)
        admission = Admission(catalog, config.limits, enforce=config.throttle, monotonic=clock.monotonic_seconds)
        for keyspace in catalog.keyspaces.values():
            admission.refresh(keyspace)
        # The nodes of a fleet may have standbys.
        has_copies = config.fleet is not None or fleet.migration is not None
        owner = Owner(engine, catalog.follow if is_shared else None, may_read_copies=has_copies)
        placing = Placing(catalog, owner, admission, config.limits, clock, default_rules=fleet.rules_for)
        reshaping = Reshaping(
            engine,
            catalog,
            owner,
            admission,
            config.limits,
            clock,
            placing=placing,
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
        moving = Moving(catalog, reshaping, engine)
        moving.may_move_catalog = fleet.migration is None
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
        usage = UsageGathering(catalog)
        load = LoadWatch(catalog, owner, reshaping, config.limits, clock, usage_of=usage.of_keyspace)
        table_tools = TableTools(owner, reshaping, load, config.limits, clock, TickSource(clock.wall_seconds))
        tables = TableStore(catalog, admission, SmallDocuments(engine), table_tools)
        catalog.listeners.append(store.take_over)
        background = Services(
            [
                (reshaping.recover, reshaping.stop),
                (moving.start, moving.stop),
                (store.reindexing.start, store.reindexing.stop),
                (store.housekeeping.recover, store.housekeeping.stop),
                (store.rekeying.recover, store.rekeying.stop),
                (retention.start, retention.stop),
                (load.start, load.stop),
            ]
        )
        coordination = Coordination(
            engine,
            catalog,
            monotonic=clock.monotonic_seconds,
            background=background,
            presence=[
                BudgetSharing(admission, monotonic=clock.monotonic_seconds),
                ExpiryHints(tools.expiry, leads=lambda: catalog.leads, wall_seconds=clock.wall_seconds),
                usage,
            ],
            name=f"{socket.gethostname()}/{os.getpid()}",
            is_first=is_first and config.fleet is None,
        )
        usage.on_news = coordination.hurry
        work = BackgroundWork(catalog, owner, background, coordination)
        migration = Migration(fleet, catalog, moving, work, new_id=new_fleet_id)
        console = Console(
            store,
            admission,
            account=config.account,
            version=__version__,
            usage=usage,
            engines=engine,
            moving=moving,
            migration=MigrationDesk(migration, fleet, directory.path),
            load=load,
            find_table=table_keyspaces(tables),
            partition_key_of_entity=partition_key_of,
        )
        admin = AdminDoor(console, keys=keys, clock=clock)
        table, cosmos_table = _table_doors(config, tables, clock)
        try:
            with _opening(config, directory):
                await work.start()
                await migration.recover()
            yield Assembly(fleet, migration, store, admission, tables, console, nosql, table, cosmos_table, admin)
        finally:
            scripts.close()
            await migration.stop()
            await work.stop()
    finally:
        await fleet.close()


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
def _opening(config: ServerConfig, directory: DataDirectory) -> Iterator[None]:
    """What the store refuses before the server is ready is a reason not to start."""
    try:
        yield
    except (StorageRefusal, AsterismError) as refusal:
        what = f"the store in {directory.store}" if config.fleet is None else f"the fleet {config.fleet.name}"
        raise StartRefused(f"{what} cannot be used: {refusal}") from None


def item_numbers(boot_number: int) -> Callable[[], int]:
    """Numbers no other start of the server has given or will give."""
    if boot_number > _BOOT_NUMBER_MAX:
        raise StartRefused("the store was opened more than 16 million times; copy its data to a new one")
    return itertools.count(boot_number << _ITEM_NUMBER_BITS_PER_BOOT).__next__


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
