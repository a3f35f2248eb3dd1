"""Hubs in this process, on an engine in memory held to its contract, in virtual time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from asterism.clock import Clock
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.routing.families import COUNTERS, LOGICAL_SIZES
from asterism.models.event_logs.chunk_cache import CACHE_BYTES_MAX, ChunkCache
from asterism.models.event_logs.description import HubDescription, HubLimits
from asterism.models.event_logs.events import Appended, Event
from asterism.models.event_logs.hub import Hub
from asterism.models.event_logs.layout import CHUNKS, NewEvent, first_sequence_of, unpack_events, unpack_head
from asterism.models.event_logs.log import PartitionLog
from asterism.models.event_logs.retention import EventLogUpkeep
from asterism.models.event_logs.services import EventLogServices
from asterism.models.event_logs.store import EventLogStore
from asterism.models.namespaces.store import NamespaceStore
from asterism.partitioning.partition_key import numbered_point
from asterism.storage.memory import MemoryEngine, MemoryStore
from tests.support.virtual_time import VirtualLoop, virtual_clock
from tests.support.world import World, open_gateway, open_world

NAMESPACE = "asterism"
LIMITS = HubLimits(retention_ms_min=1)


@dataclass
class WallOffset:
    """A jump of the wall clock that a test makes."""

    seconds: float = 0.0


@dataclass(frozen=True)
class HubWorld:
    world: World
    store: EventLogStore
    upkeep: EventLogUpkeep
    wall: WallOffset

    async def hub(self, name: str = "h", *, partitions: int = 2, **settings: object) -> Hub:
        description = replace(HubDescription(partitions, 0, 0), **settings)  # type: ignore[arg-type]  # by name
        return await self.store.create_hub(NAMESPACE, name, description)

    def limit(self, **limits: object) -> None:
        """Change limits of the server."""
        services = self.store.services
        services.limits = replace(services.limits, **limits)  # type: ignore[arg-type]  # by name

    async def check_entries(self, hub: Hub) -> None:
        """Check that the ends of every log and its counters equal what is stored (E2)."""
        for partition in range(hub.partition_count):
            properties = await hub.log(partition).properties()
            number = hub.keyspace.record.map.find(numbered_point(partition)).partition
            entries = [
                (unpack_head(first_sequence_of(key), value), value)
                for key, value in await self.world.everything(number, CHUNKS)
            ]
            sequences = [
                head.first_sequence + place for head, value in entries for place in range(len(unpack_events(value)))
            ]
            stored_bytes = sum(len(value) for _, value in entries)
            assert sequences == list(range(properties.begin_sequence, properties.last_sequence + 1))
            assert (stored_bytes, len(sequences)) == (properties.stored_bytes, properties.stored_events)
            sizes = [COUNTERS.unpack(value) for _, value in await self.world.everything(number, LOGICAL_SIZES)]
            assert [size for size in sizes if any(size)] == [
                size for size in [(stored_bytes, len(sequences))] if any(size)
            ]


def store_of(world: World, clock: Clock, *, cache_bytes_max: int = CACHE_BYTES_MAX) -> EventLogStore:
    namespaces = NamespaceStore(world.catalog, world.admission, SmallDocuments(world.engine), world.reshaper, clock)
    services = EventLogServices(
        world.router, world.reshaper, clock, os.urandom, LIMITS, ChunkCache(bytes_max=cache_bytes_max)
    )
    store = EventLogStore(namespaces, services)
    world.catalog.listeners.append(store.take_over)
    return store


def _clock(wall: WallOffset) -> Clock:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    clock = virtual_clock(loop)
    return Clock(lambda: clock.wall_seconds() + wall.seconds, clock.monotonic_seconds)


@asynccontextmanager
async def open_hubs(*, cache_bytes_max: int = CACHE_BYTES_MAX) -> AsyncIterator[HubWorld]:
    wall = WallOffset()
    clock = _clock(wall)
    async with open_world(None, clock=clock) as world:
        store = store_of(world, clock, cache_bytes_max=cache_bytes_max)
        yield HubWorld(world, store, EventLogUpkeep(store), wall)
        await store.stop()


@asynccontextmanager
async def open_two_processes() -> AsyncIterator[tuple[HubWorld, HubWorld]]:
    """Two processes on one store, as gateways are."""
    memory = MemoryStore()
    wall = WallOffset()
    clock = _clock(wall)
    first_engine, second_engine = MemoryEngine(memory), MemoryEngine(memory)
    async with (
        open_gateway(first_engine, clock=clock, is_first=True) as first,
        open_gateway(second_engine, clock=clock) as second,
    ):
        stores = [store_of(world, clock) for world in (first, second)]
        worlds = [
            HubWorld(world, store, EventLogUpkeep(store), wall)
            for world, store in zip((first, second), stores, strict=True)
        ]
        yield worlds[0], worlds[1]
        for store in stores:
            await store.stop()


async def append(log: PartitionLog, *contents: bytes, key: bytes | None = None) -> Appended:
    result = await log.append([NewEvent(content, key) for content in contents])
    assert isinstance(result, Appended)
    return result


async def read_all(log: PartitionLog, start: int = 0, *, events_max: int = 100, bytes_max: int = 2**20) -> list[Event]:
    await log.end.look()
    reader = log.reader(start)
    events: list[Event] = []
    while page := await reader.read(events_max=events_max, bytes_max=bytes_max):
        events += page
    return events


def contents(events: Sequence[Event]) -> list[bytes]:
    return [event.content for event in events]
