"""A whole database in this process, on a real engine held to its contract: what the tests of the middle floors use."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.documents.container import Container, Tools
from asterism.documents.expiry_hints import ExpiryHints
from asterism.documents.item_record import unpack_item
from asterism.documents.store import DocumentStore
from asterism.keyspaces.admission import Admission
from asterism.keyspaces.budget_sharing import BudgetSharing
from asterism.keyspaces.catalog import Catalog
from asterism.keyspaces.coordination import Coordination, Services
from asterism.keyspaces.layout import (
    COUNTERS,
    CREATION_ORDER,
    ITEMS,
    LOGICAL_ORDER,
    LOGICAL_SIZES,
    TOTALS_KEY,
    after_prefix,
    number_bytes,
)
from asterism.keyspaces.moving import Moving
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.reshape_job import Step
from asterism.keyspaces.reshaping import Reshaping
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.storage.checked import CheckedEngine
from asterism.storage.contract import Engine, Span
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
    reshaping: Reshaping
    owner: Owner
    nodes: NodeEngines
    moving: Moving
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
        """All entries of a partition, under the engine's own roof: no fence, no routing."""
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
        """What the counters say is what a count of the data says, in every partition and logical partition."""
        for one in container.keyspace.record.map.ranges:
            items = await self.everything(one.partition, ITEMS)
            sizes = {
                key[1:]: COUNTERS.unpack(value) for key, value in await self.everything(one.partition, LOGICAL_SIZES)
            }
            counted: dict[bytes, tuple[int, int]] = {}
            for key, stored in items:
                assert one.range.contains(key[1:]), "an item lies outside the range of its partition"
                logical = next(size for size in sizes if key[1:].startswith(size))
                told_bytes, told_items = counted.get(logical, (0, 0))
                counted[logical] = (told_bytes + len(stored) - 35, told_items + 1)
            assert counted == sizes
            (totals,) = await self.engine.read_unfenced(one.partition, [TOTALS_KEY])
            summed = tuple(map(sum, zip(*sizes.values(), strict=True))) if sizes else (0, 0)
            assert (COUNTERS.unpack(totals) if totals is not None else (0, 0)) == summed
            await self._check_order(one.partition, items, list(sizes))

    async def _check_order(
        self, partition: PartitionNumber, items: Sequence[tuple[bytes, bytes]], points: Sequence[bytes]
    ) -> None:
        """Every item is listed by its number, among all of its partition and among those of its logical partition."""
        expected: dict[bytes, bytes] = {}
        for key, stored in items:
            number, point = (
                number_bytes(unpack_item(stored).number),
                next(one for one in points if key[1:].startswith(one)),
            )
            expected[CREATION_ORDER + number] = key[1:]
            expected[LOGICAL_ORDER + point + number] = key[1 + len(point) :]
        listed = [*await self.everything(partition, CREATION_ORDER), *await self.everything(partition, LOGICAL_ORDER)]
        assert dict(listed) == expected


def node_directory(directory: Path, number: int) -> Path:
    return directory if number == 0 else directory / f"node{number}"


@asynccontextmanager
async def open_world(
    directory: Path,
    *,
    limits: Limits = DEFAULT_LIMITS,
    enforce: bool = False,
    on_step: Callable[[Step], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
    node_labels: Sequence[str] = ("",),
) -> AsyncIterator[World]:
    """One node for each of the `node_labels`, which are words; node 0 is in the directory itself."""
    stores = {NodeNumber(n): await open_store(node_directory(directory, n)) for n in range(len(node_labels))}
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
) -> AsyncIterator[World]:
    """One process of several, over an engine that they share: as good as one of its own, but for the memory."""
    nodes = engine = NodeEngines({NodeNumber(0): store}, catalog_node=NodeNumber(0))
    world = await _wire(
        nodes, engine, limits=limits, enforce=enforce, on_step=on_step, clock=clock, is_shared=True, node_labels=("",)
    )
    coordination = Coordination(
        engine,
        world.catalog,
        monotonic=clock.monotonic_seconds,
        background=_background(world),
        presence=[
            BudgetSharing(world.admission, monotonic=clock.monotonic_seconds),
            ExpiryHints(world.store.tools.expiry, leads=lambda: world.catalog.leads, wall_seconds=clock.wall_seconds),
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
    owner = Owner(engine, catalog.follow if is_shared else None)
    reshaping = Reshaping(engine, catalog, owner, admission, limits, clock, on_step=on_step)
    numbers = count(catalog.boot_number << 36)
    tools = Tools(owner, reshaping, limits, clock, os.urandom, lambda: next(numbers))
    store = DocumentStore(catalog, admission, tools)
    catalog.listeners.append(store.take_over)
    moving = Moving(catalog, reshaping)
    return World(engine, catalog, store, reshaping, owner, nodes, moving, admission)


def _background(world: World) -> Services:
    store = world.store
    return Services(
        [
            (world.reshaping.recover, world.reshaping.stop),
            (world.moving.start, world.moving.stop),
            (store.housekeeping.recover, store.housekeeping.stop),
            (store.rekeying.recover, store.rekeying.stop),
            (store.reindexing.start, store.reindexing.stop),
        ]
    )
