"""The wiring of the server, on one page."""

from __future__ import annotations

import importlib
import itertools
import os
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from asterism.access.keys import AccountKeys
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.captures.captures import Captures
from asterism.apis.captures.files import MemoryFiles
from asterism.apis.peers import Peers, ServedDoor
from asterism.apis.pipeline import RequestMeter
from asterism.apis.process_group import ProcessGroup, SingleProcess
from asterism.apis.services import DoorServices
from asterism.apis.suite_controls import SuiteControls
from asterism.apis.transports.doors import AnyDoor
from asterism.apis.transports.http import Door
from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.errors import AsterismError
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.processes.budget_sharer import BudgetSharer
from asterism.keyspaces.processes.coordination import Coordination, Services
from asterism.keyspaces.processes.fleet_health import FleetHealth
from asterism.keyspaces.processes.revocations import Revocations
from asterism.keyspaces.processes.usage_gatherer import UsageGatherer
from asterism.keyspaces.processes.usage_history import UsageHistory
from asterism.keyspaces.reshaping.job import Step
from asterism.keyspaces.reshaping.load_watch import LoadWatch
from asterism.keyspaces.reshaping.mover import Mover
from asterism.keyspaces.reshaping.placer import Placer
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.languages.bus_sql.rules import RuleCompiler
from asterism.languages.mongo.index_profile import compile_index
from asterism.metrics import WorkCounts
from asterism.models.blobs.space import BlobServices
from asterism.models.blobs.store import BlobStore
from asterism.models.blobs.upkeep import BlobUpkeep
from asterism.models.collections.collection import CollectionServices
from asterism.models.collections.hybrid_time import HybridClock
from asterism.models.collections.planner import ChangePlanner
from asterism.models.collections.rekey.rekeyer import CollectionRekeyer
from asterism.models.collections.store import CollectionStore
from asterism.models.collections.upkeep import CollectionUpkeep
from asterism.models.documents.changes.retention import VersionRetention
from asterism.models.documents.container import DocumentServices
from asterism.models.documents.cosmos.profile import CosmosProfile
from asterism.models.documents.store import DocumentStore
from asterism.models.documents.upkeep.expiry_hints import ExpiryHints
from asterism.models.event_logs.retention import EventLogUpkeep
from asterism.models.event_logs.services import EventLogServices
from asterism.models.event_logs.store import EventLogStore
from asterism.models.messages.store import MessageStore
from asterism.models.messages.upkeep import MessageUpkeep
from asterism.models.namespaces.store import NamespaceStore
from asterism.models.queues.queue import QueueServices
from asterism.models.queues.store import QueueStore
from asterism.models.queues.upkeep import QueueUpkeep
from asterism.models.tables.store import TableStore
from asterism.models.tables.table import TableServices
from asterism.reading import turns
from asterism.reading.limits import QueryMemory
from asterism.scripts.runtime import ScriptRuntime
from asterism.server.background import BackgroundWork
from asterism.server.capture_directory import CaptureDirectory
from asterism.server.config import ServerConfig, StartRefused, account_keys
from asterism.server.data_directory import DataDirectory
from asterism.server.doors import OPERATOR_MODULES, build_operator_door
from asterism.server.fleet.fleet import Fleet, embedded_fleet, open_fleet
from asterism.server.fleet.migration import Migration
from asterism.server.fleet.migration_desk import MigrationDesk
from asterism.server.greeting import surroundings
from asterism.server.item_numbers import numbers_of_this_start
from asterism.server.worker_links import new_start_token
from asterism.storage.contract import StorageRefusal
from asterism.values.ticks import TickSource


@dataclass(frozen=True, slots=True)
class Assembly:
    fleet: Fleet
    migration: Migration
    services: DoorServices
    # Of the served doors, by the name of the port.
    doors: Mapping[str, AnyDoor]
    operator_door: Door


@asynccontextmanager
async def assembled(
    config: ServerConfig,
    directory: DataDirectory,
    *,
    on_step: Callable[[Step], None] | None = None,
    is_first: bool = True,
    clock: Clock = SYSTEM_CLOCK,
    processes: ProcessGroup | None = None,
) -> AsyncIterator[Assembly]:
    """Everything between the listeners and the disk, open for the length of the `async with`.

    `on_step` hears of every step of a split or merge; fault tests stop the process there. `is_first`: no other process
    uses the data directory's store yet; of a fleet that is never known. `processes` serve the same ports.
    """
    keys = account_keys(config)
    controls = SuiteControls() if config.test_controls else None
    clock = clock if controls is None else controls.skew.shift(clock)
    with _opening(config, directory):
        fleet = await open_fleet(
            config.fleet or embedded_fleet(directory.store_address),
            on_its_own=config.fleet is None,
            new_id=new_fleet_id,
            shared=config.fleet is not None or config.workers > 1,
            file=config.fleet_file,
        )
    try:
        with _opening(config, directory):
            catalog = await _open_catalog(config, fleet, clock)
        spaces = _keyspaces(config, fleet, catalog, on_step, clock)
        documents = _documents(config, spaces)
        collections = _collections(config, fleet, spaces, documents)
        queues = _queues(config, fleet, spaces)
        blobs = _blobs(config, fleet, spaces)
        entities = _entities(fleet, spaces)
        work = _background(config, fleet, spaces, documents, collections, queues, blobs, entities, is_first=is_first)
        migration = Migration(fleet, catalog, spaces.mover, work, new_id=new_fleet_id)
        desk = MigrationDesk(migration, fleet, directory.path)
        group = processes or SingleProcess(new_start_token())
        captures = _captures(directory, spaces, group)
        services = _door_services(
            config,
            keys,
            fleet,
            spaces,
            documents,
            collections,
            queues,
            blobs,
            entities,
            desk,
            controls,
            group,
            captures,
        )
        try:
            doors = _build_doors(config, services)
            operator_door = build_operator_door(services)
            services.peers.doors, services.peers.operator = doors, operator_door
            with _opening(config, directory):
                await work.start()
                await captures.open()
                await spaces.history.start()
                await documents.conversion.finished()
                await migration.recover()
            yield Assembly(fleet, migration, services, doors, operator_door)
        finally:
            services.scripts.close()
            await captures.close()
            await migration.stop()
            await blobs.copies.stop()
            await entities.stop()
            await spaces.history.stop()
            await work.stop()
    finally:
        await fleet.close()


async def _open_catalog(config: ServerConfig, fleet: Fleet, clock: Clock) -> Catalog:
    is_shared = config.fleet is not None or config.workers > 1 or fleet.migration is not None
    catalog = Catalog(fleet.engines, random_bytes=os.urandom, monotonic=clock.monotonic_seconds, is_shared=is_shared)
    await catalog.open()
    await fleet.join(catalog)
    return catalog


@dataclass(frozen=True, slots=True)
class _Keyspaces:
    """Everything that floor 3 offers to the floors above it."""

    clock: Clock
    catalog: Catalog
    admission: Admission
    router: PartitionRouter
    reshaper: Reshaper
    mover: Mover
    usage: UsageGatherer
    history: UsageHistory
    revocations: Revocations
    load: LoadWatch


def _keyspaces(
    config: ServerConfig, fleet: Fleet, catalog: Catalog, on_step: Callable[[Step], None] | None, clock: Clock
) -> _Keyspaces:
    admission = Admission(catalog, config.limits, enforce=config.throttle, monotonic=clock.monotonic_seconds)
    for keyspace in catalog.keyspaces.values():
        admission.refresh(keyspace)
    # The nodes of a fleet may have standbys.
    has_copies = config.fleet is not None or fleet.migration is not None
    router = PartitionRouter(fleet.engines, catalog.follow if catalog.is_shared else None, may_read_copies=has_copies)
    reshaper = Reshaper(
        fleet.engines,
        catalog,
        router,
        admission,
        config.limits,
        clock,
        placer=Placer(catalog, router, admission, config.limits, clock, default_rules=fleet.rules_for),
        announce_seconds=config.announce_seconds,
        on_step=on_step,
    )
    usage = UsageGatherer(
        catalog, lambda: WorkCounts(Counter(reshaper.finished_jobs), store_commits=fleet.engines.commits)
    )
    history = UsageHistory(catalog, router, clock, history_seconds=config.metrics_history_hours * 3600)
    revocations = Revocations(wall_seconds=clock.wall_seconds)
    load = LoadWatch(catalog, router, reshaper, config.limits, clock, usage_of=usage.of_keyspace)
    mover = Mover(catalog, reshaper, fleet.engines)
    mover.may_move_catalog = fleet.migration is None
    return _Keyspaces(clock, catalog, admission, router, reshaper, mover, usage, history, revocations, load)


def _documents(config: ServerConfig, spaces: _Keyspaces) -> DocumentStore:
    services = DocumentServices(
        router=spaces.router,
        reshaper=spaces.reshaper,
        limits=config.limits,
        clock=spaces.clock,
        random_bytes=os.urandom,
        next_item_number=numbers_of_this_start(spaces.catalog),
        profile=CosmosProfile(),
    )
    store = DocumentStore(spaces.catalog, spaces.admission, services)
    spaces.catalog.listeners.append(store.take_over)
    return store


def _tables(config: ServerConfig, fleet: Fleet, spaces: _Keyspaces) -> TableStore:
    ticks = TickSource(spaces.clock.wall_seconds)
    services = TableServices(spaces.router, spaces.reshaper, spaces.load, config.limits, spaces.clock, ticks)
    return TableStore(spaces.catalog, spaces.admission, SmallDocuments(fleet.engines), services)


def _queues(config: ServerConfig, fleet: Fleet, spaces: _Keyspaces) -> QueueStore:
    ticks = TickSource(spaces.clock.wall_seconds)
    services = QueueServices(
        spaces.router, spaces.reshaper, spaces.load, config.limits, spaces.clock, ticks, os.urandom
    )
    return QueueStore(spaces.catalog, spaces.admission, SmallDocuments(fleet.engines), services)


def _blobs(config: ServerConfig, fleet: Fleet, spaces: _Keyspaces) -> BlobStore:
    ticks = TickSource(spaces.clock.wall_seconds)
    services = BlobServices(spaces.router, spaces.reshaper, spaces.load, config.limits, spaces.clock, ticks, os.urandom)
    return BlobStore(spaces.catalog, spaces.admission, SmallDocuments(fleet.engines), services)


def _collections(config: ServerConfig, fleet: Fleet, spaces: _Keyspaces, documents: DocumentStore) -> CollectionStore:
    clock = spaces.clock
    hybrid_clock = HybridClock(clock.wall_seconds)
    planner = ChangePlanner(
        documents.services.next_item_number, hybrid_clock.next, lambda: int(clock.wall_seconds() * 1000)
    )
    services = CollectionServices(
        router=spaces.router,
        reshaper=spaces.reshaper,
        limits=config.limits,
        clock=clock,
        random_bytes=os.urandom,
        planner=planner,
        hybrid_clock=hybrid_clock,
        compile_index=compile_index,
    )
    store = CollectionStore(spaces.catalog, spaces.admission, SmallDocuments(fleet.engines), services)
    rekeyer = store.rekeyer = CollectionRekeyer(store)
    spaces.catalog.listeners.append(lambda _: rekeyer.wake())
    return store


@dataclass(frozen=True, slots=True)
class _Entities:
    """The models of hubs, queues and topics, and their registry."""

    namespaces: NamespaceStore
    event_logs: EventLogStore
    messages: MessageStore

    async def stop(self) -> None:
        await self.messages.stop()
        await self.event_logs.stop()


def _entities(fleet: Fleet, spaces: _Keyspaces) -> _Entities:
    namespaces = NamespaceStore(
        spaces.catalog, spaces.admission, SmallDocuments(fleet.engines), spaces.reshaper, spaces.clock
    )
    log_services = EventLogServices(spaces.router, spaces.reshaper, spaces.clock, os.urandom)
    event_logs = EventLogStore(namespaces, log_services)
    messages = MessageStore(namespaces, spaces.router, spaces.clock, os.urandom, RuleCompiler(os.urandom))
    spaces.catalog.listeners.append(event_logs.take_over)
    return _Entities(namespaces, event_logs, messages)


async def _nothing() -> None:
    """Stop what stops by itself."""


def _background(
    config: ServerConfig,
    fleet: Fleet,
    spaces: _Keyspaces,
    store: DocumentStore,
    collections: CollectionStore,
    queues: QueueStore,
    blobs: BlobStore,
    entities: _Entities,
    *,
    is_first: bool,
) -> BackgroundWork:
    """Whatever goes on behind the requests; of processes that share a store, one does it at a time."""
    catalog = spaces.catalog
    retention = VersionRetention(store, spaces.clock)
    store.on_versions_kept = retention.wake
    upkeep = CollectionUpkeep(collections)
    queue_upkeep = QueueUpkeep(queues)
    blob_upkeep = BlobUpkeep(blobs)
    event_log_upkeep, message_upkeep = EventLogUpkeep(entities.event_logs), MessageUpkeep(entities.messages)
    rekeyer = collections.rekeyer
    assert rekeyer is not None, "a store is made with its rekeyer"
    services = Services(
        [
            (spaces.reshaper.recover, spaces.reshaper.stop),
            (spaces.mover.start, spaces.mover.stop),
            # Before whatever goes by entries that only the present layout has.
            (store.conversion.run, _nothing),
            (store.reindexer.start, store.reindexer.stop),
            (store.housekeeper.recover, store.housekeeper.stop),
            (store.rekeyer.recover, store.rekeyer.stop),
            (store.promoter.recover, store.promoter.stop),
            (store.scratch.start, store.scratch.stop),
            (retention.start, retention.stop),
            (upkeep.start, upkeep.stop),
            (queue_upkeep.start, queue_upkeep.stop),
            (blob_upkeep.start, blob_upkeep.stop),
            (event_log_upkeep.start, event_log_upkeep.stop),
            (message_upkeep.start, message_upkeep.stop),
            (rekeyer.start, rekeyer.stop),
            (spaces.load.start, spaces.load.stop),
        ]
    )
    coordination = Coordination(
        fleet.engines,
        catalog,
        monotonic=spaces.clock.monotonic_seconds,
        background=services,
        presence=[
            BudgetSharer(spaces.admission, monotonic=spaces.clock.monotonic_seconds),
            ExpiryHints(store.services.expiry, leads=lambda: catalog.leads, wall_seconds=spaces.clock.wall_seconds),
            spaces.usage,
            spaces.history,
            spaces.revocations,
        ],
        name=f"{socket.gethostname()}/{os.getpid()}",
        is_first=is_first and config.fleet is None,
    )
    spaces.usage.on_news = spaces.revocations.on_news = coordination.hurry
    return BackgroundWork(catalog, spaces.router, services, coordination)


def load_doors(config: ServerConfig) -> None:
    """Import the doors that are served, for processes that are forked later: these then share the memory."""
    for module in (*OPERATOR_MODULES, *(module for door in config.served_doors for module in door.spec.modules)):
        importlib.import_module(module)


def _door_services(
    config: ServerConfig,
    keys: AccountKeys,
    fleet: Fleet,
    spaces: _Keyspaces,
    documents: DocumentStore,
    collections: CollectionStore,
    queues: QueueStore,
    blobs: BlobStore,
    entities: _Entities,
    migration: MigrationDesk,
    controls: SuiteControls | None,
    processes: ProcessGroup,
    captures: Captures,
) -> DoorServices:
    return DoorServices(
        clock=spaces.clock,
        random_bytes=os.urandom,
        limits=config.limits,
        meter=RequestMeter(
            spaces.clock.monotonic_seconds,
            spaces.usage.requests,
            config.slow_seconds,
            None if controls is None else controls.faults,
        ),
        new_request_id=request_ids(),
        account=config.account,
        keys=keys,
        key_is_public=config.key_is_public,
        configured_accounts=config.account_names,
        guard=_browser_guard(config),
        documents=documents,
        tables=_tables(config, fleet, spaces),
        queues=queues,
        blobs=blobs,
        collections=collections,
        namespaces=entities.namespaces,
        event_logs=entities.event_logs,
        messages=entities.messages,
        scripts=ScriptRuntime(wait=turns.wait),
        query_memory=QueryMemory(config.limits.query_memory_bytes_max),
        admission=spaces.admission,
        health=FleetHealth(fleet.engines),
        mover=spaces.mover,
        usage=spaces.usage,
        history=spaces.history,
        load=spaces.load,
        migration=migration,
        collection_kinds=tuple(kind for door in config.doors for kind in door.spec.collections),
        peers=_peers(config),
        revocations=spaces.revocations,
        processes=processes,
        captures=captures,
        controls=controls,
    )


def _captures(directory: DataDirectory, spaces: _Keyspaces, processes: ProcessGroup) -> Captures:
    files = CaptureDirectory(directory.captures, part=os.urandom(4).hex()) if directory.is_kept else MemoryFiles()
    return Captures(
        spaces.catalog,
        files,
        clock=spaces.clock,
        random=random.random,
        random_bytes=os.urandom,
        processes=processes,
    )


def _peers(config: ServerConfig) -> Peers:
    served = tuple(ServedDoor(door.spec, door.settings, surroundings(config, door)) for door in config.served_doors)
    return Peers(served, config.keys_of_doors)


def _build_doors(config: ServerConfig, services: DoorServices) -> dict[str, AnyDoor]:
    """Build the doors that are served; return what answers at each port, by its name."""
    doors: dict[str, AnyDoor] = {}
    for door in config.served_doors:
        doors |= door.spec.build(services, door.settings)
    return doors


def _browser_guard(config: ServerConfig) -> BrowserGuard:
    machine = socket.gethostname()
    return BrowserGuard((*config.allowed_hosts, *config.tls_names, config.host, machine, f"{machine}.local"))


@contextmanager
def _opening(config: ServerConfig, directory: DataDirectory) -> Iterator[None]:
    """Turn refusals of the store into reasons not to start, until the server is ready."""
    try:
        yield
    except (StorageRefusal, AsterismError) as refusal:
        what = f"the store in {directory.store}" if config.fleet is None else f"the fleet {config.fleet.name}"
        raise StartRefused(f"{what} cannot be used: {refusal}") from None


def new_fleet_id() -> str:
    return os.urandom(8).hex()


def request_ids() -> Callable[[], str]:
    """Names for requests that bring none: random for this start of the server, then counted."""
    text = os.urandom(10).hex()
    start = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-"
    numbers = itertools.count()
    return lambda: f"{start}{next(numbers):012x}"
