"""A whole database in this process, on a real engine held to its contract, for tests of the middle floors."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.processes.budget_sharer import BudgetSharer
from asterism.keyspaces.processes.coordination import Coordination, Services
from asterism.keyspaces.reshaping.job import Step
from asterism.keyspaces.reshaping.mover import Mover
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.families import (
    COUNTERS,
    CREATION_ORDER,
    ITEMS,
    LOGICAL_ORDER,
    LOGICAL_SIZES,
    TOTALS_KEY,
    after_prefix,
    number_bytes,
)
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.cosmos.profile import CosmosProfile
from asterism.models.documents.item_record import unpack_item
from asterism.models.documents.store import DocumentStore
from asterism.models.documents.upkeep.expiry_hints import ExpiryHints
from asterism.storage.checked import CheckedEngine
from asterism.storage.contract import Engine, Span
from asterism.storage.memory import MemoryEngine, MemoryStore
from asterism.storage.nodes import NodeEngines
from asterism.throughput.budgets import Throughput
from asterism.values.identifiers import NodeNumber, PartitionNumber
from tests.support.stores import open_store

ACCOUNT = "test"


@dataclass(frozen=True)
class World:
    engine: Engine
    catalog: Catalog
    store: DocumentStore
    reshaper: Reshaper
    router: PartitionRouter
    nodes: NodeEngines
    mover: Mover
    admission: Admission

    async def container(
        self, path: str = "/pk", *, throughput: Throughput | None = None, **settings: object
    ) -> Container:
        database = self.catalog.find_database(ACCOUNT, "d")
        if database is None:
            database = await self.store.create_database(ACCOUNT, "d", None)
        body = {"id": "c", "partitionKey": {"paths": [path], "kind": "Hash", "version": 2}, **settings}
        return await self.store.create_container(database, body, throughput)

    async def everything(self, partition: PartitionNumber, prefix: bytes = b"") -> list[tuple[bytes, bytes]]:
        """Return all entries of a partition, read without fence or routing."""
        span = Span(prefix, after_prefix(prefix) if prefix else None)
        entries: list[tuple[bytes, bytes]] = []
        more = True
        while more:
            page = await self.engine.scan_unfenced(partition, span, limit=5000)
            entries += page.entries
            more = page.more
            span = Span(entries[-1][0] + b"\x00", span.end) if entries else span
        return entries

    async def check_statistics(self, container: Container) -> None:
        """Check that the counters equal a count of the data, in every partition and logical partition."""
        for partition_range in container.keyspace.record.map.ranges:
            items = await self.everything(partition_range.partition, ITEMS)
            sizes = {
                key[1:]: COUNTERS.unpack(value)
                for key, value in await self.everything(partition_range.partition, LOGICAL_SIZES)
            }
            counted: dict[bytes, tuple[int, int]] = {}
            for key, stored in items:
                assert partition_range.range.contains(key[1:]), "an item is outside the range of its partition"
                logical = next(size for size in sizes if key[1:].startswith(size))
                counted_bytes, counted_items = counted.get(logical, (0, 0))
                counted[logical] = (counted_bytes + len(stored) - 35, counted_items + 1)
            assert counted == sizes
            (totals,) = await self.engine.read_unfenced(partition_range.partition, [TOTALS_KEY])
            summed = tuple(map(sum, zip(*sizes.values(), strict=True))) if sizes else (0, 0)
            assert (COUNTERS.unpack(totals) if totals is not None else (0, 0)) == summed
            await self._check_order(partition_range.partition, items, list(sizes))

    async def _check_order(
        self, partition: PartitionNumber, items: Sequence[tuple[bytes, bytes]], points: Sequence[bytes]
    ) -> None:
        """Check that every item is listed by its number, in its partition and in its logical partition."""
        expected: dict[bytes, bytes] = {}
        for key, stored in items:
            number = number_bytes(unpack_item(stored).number)
            point = next(prefix for prefix in points if key[1:].startswith(prefix))
            expected[CREATION_ORDER + number] = key[1:]
            expected[LOGICAL_ORDER + point + number] = key[1 + len(point) :]
        listed = [*await self.everything(partition, CREATION_ORDER), *await self.everything(partition, LOGICAL_ORDER)]
        assert dict(listed) == expected


def node_directory(directory: Path, number: int) -> Path:
    return directory if number == 0 else directory / f"node{number}"


@asynccontextmanager
async def open_world(
    directory: Path | None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    enforce: bool = False,
    on_step: Callable[[Step], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
    node_labels: Sequence[str] = ("",),
) -> AsyncIterator[World]:
    """Open a world with one node for each of the `node_labels`, which are words; node 0 is in the directory itself.

    Without a directory, all nodes are in memory, whatever store the tests run on.
    """
    stores: dict[NodeNumber, Engine] = {}
    for number in range(len(node_labels)):
        if directory is None:
            stores[NodeNumber(number)] = MemoryEngine(MemoryStore())
        else:
            stores[NodeNumber(number)] = await open_store(node_directory(directory, number))
    nodes = NodeEngines(stores, catalog_node=NodeNumber(0))
    engine: Engine = CheckedEngine(nodes)
    try:
        world = await _wire(
            nodes,
            engine,
            limits=limits,
            enforce=enforce,
            on_step=on_step,
            clock=clock,
            is_shared=False,
            node_labels=node_labels,
        )
        background = _background(world)
        await background.start()
        yield world
        await background.stop()
    finally:
        await engine.close()


@asynccontextmanager
async def open_gateway(
    store: Engine,
    *,
    limits: Limits = DEFAULT_LIMITS,
    enforce: bool = False,
    on_step: Callable[[Step], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
    is_first: bool = False,
    others: Sequence[Engine] = (),
) -> AsyncIterator[World]:
    """Open one process of several on a shared engine: like a real process, except that they share memory. `others` are
    the engines of nodes 1, 2 and so on."""
    stores = {NodeNumber(number): each for number, each in enumerate([store, *others])}
    nodes = engine = NodeEngines(stores, catalog_node=NodeNumber(0))
    world = await _wire(
        nodes,
        engine,
        limits=limits,
        enforce=enforce,
        on_step=on_step,
        clock=clock,
        is_shared=True,
        node_labels=("",) * len(stores),
    )
    coordination = Coordination(
        engine,
        world.catalog,
        monotonic=clock.monotonic_seconds,
        background=_background(world),
        presence=[
            BudgetSharer(world.admission, monotonic=clock.monotonic_seconds),
            ExpiryHints(
                world.store.services.expiry, leads=lambda: world.catalog.leads, wall_seconds=clock.wall_seconds
            ),
        ],
        name="gateway",
        is_first=is_first,
    )
    await coordination.start()
    try:
        yield world
    finally:
        await coordination.stop()


async def _wire(
    nodes: NodeEngines,
    engine: Engine,
    *,
    limits: Limits,
    enforce: bool,
    on_step: Callable[[Step], None] | None,
    clock: Clock,
    is_shared: bool,
    node_labels: Sequence[str],
) -> World:
    catalog = Catalog(engine, random_bytes=os.urandom, monotonic=clock.monotonic_seconds, is_shared=is_shared)
    await catalog.open()
    if len(node_labels) > 1:
        for number, words in enumerate(node_labels):
            await catalog.nodes.join(f"n{number}", frozenset(words.split()), number=NodeNumber(number))
    admission = Admission(catalog, limits, enforce=enforce, monotonic=clock.monotonic_seconds)
    for keyspace in catalog.keyspaces.values():
        admission.refresh(keyspace)
    router = PartitionRouter(engine, catalog.follow if is_shared else None)
    reshaper = Reshaper(engine, catalog, router, admission, limits, clock, on_step=on_step)
    numbers = count(catalog.boot_number << 36)
    services = DocumentServices(router, reshaper, limits, clock, os.urandom, lambda: next(numbers), CosmosProfile())
    store = DocumentStore(catalog, admission, services)
    catalog.listeners.append(store.take_over)
    mover = Mover(catalog, reshaper)
    return World(engine, catalog, store, reshaper, router, nodes, mover, admission)


def _background(world: World) -> Services:
    store = world.store
    return Services(
        [
            (world.reshaper.recover, world.reshaper.stop),
            (world.mover.start, world.mover.stop),
            (store.housekeeper.recover, store.housekeeper.stop),
            (store.rekeyer.recover, store.rekeyer.stop),
            (store.promoter.recover, store.promoter.stop),
            (store.reindexer.start, store.reindexer.stop),
        ]
    )
