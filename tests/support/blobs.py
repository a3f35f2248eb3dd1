"""Containers of blobs in this process, on a real engine held to its contract."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from asterism.clock import SYSTEM_CLOCK, Clock, ClockSkew
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.reshaping.job import Step
from asterism.keyspaces.reshaping.load_watch import LoadWatch, Patience
from asterism.keyspaces.routing.families import COUNTERS, ITEMS, LOGICAL_SIZES, TOTALS_KEY
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.models.blobs.calls import CURRENT, ListQuery, NewBlob, Which
from asterism.models.blobs.conditions import NO_CONDITIONS, Conditions
from asterism.models.blobs.container import Container
from asterism.models.blobs.layout import DATA, PAGES, VERSIONS
from asterism.models.blobs.record import BlobKind, BlobRecord
from asterism.models.blobs.rules import NO_RULES, AccountRules
from asterism.models.blobs.space import BlobServices
from asterism.models.blobs.store import BlobStore
from asterism.storage.contract import LSN_BYTES
from asterism.values.ticks import TickSource
from tests.support.world import World, open_world

ACCOUNT = "acct"
NEVER = Patience(period_seconds=1000.0)


@dataclass(frozen=True)
class BlobWorld:
    world: World
    blobs: BlobStore
    skew: ClockSkew

    async def container(self, name: str = "c") -> Container:
        return await self.blobs.create_container(ACCOUNT, name)

    async def entries(self, container: Container, family: bytes) -> list[tuple[bytes, bytes]]:
        """Return all entries of a family, from all partitions of a container."""
        found: list[tuple[bytes, bytes]] = []
        for partition in container.keyspace.record.map.ranges:
            found += await self.world.everything(partition.partition, family)
        return found

    async def check_statistics(self, container: Container) -> None:
        """Check that the counters equal a count of the data, in every partition and logical partition."""
        for partition in container.keyspace.record.map.ranges:
            stored = await self.world.everything(partition.partition, LOGICAL_SIZES)
            sizes = {key[1:]: COUNTERS.unpack(value) for key, value in stored}
            counted = dict.fromkeys(sizes, (0, 0))
            for family, versioned in ((ITEMS, True), (VERSIONS, True), (DATA, False), (PAGES, False)):
                for key, value in await self.world.everything(partition.partition, family):
                    assert partition.range.contains(key[1:]), "an entry is outside the range of its partition"
                    point = next(point for point in sizes if key[1:].startswith(point))
                    size, items = counted[point]
                    added = len(value) - (LSN_BYTES if versioned else 0)
                    counted[point] = (size + added, items + (family == ITEMS))
            assert counted == sizes
            (totals,) = await self.world.engine.read_unfenced(partition.partition, [TOTALS_KEY])
            summed = tuple(map(sum, zip(*sizes.values(), strict=True))) if sizes else (0, 0)
            assert (COUNTERS.unpack(totals) if totals is not None else (0, 0)) == summed


@asynccontextmanager
async def open_blobs(
    directory: Path | None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    clock: Clock = SYSTEM_CLOCK,
    patience: Patience | None = NEVER,
    on_step: Callable[[Step], None] | None = None,
) -> AsyncIterator[BlobWorld]:
    skew = ClockSkew()
    clock = skew.shift(clock)
    async with open_world(directory, limits=limits, clock=clock, on_step=on_step) as world:
        load = LoadWatch(world.catalog, world.router, world.reshaper, limits, clock, patience=patience)
        ticks = TickSource(clock.wall_seconds)
        services = BlobServices(world.router, world.reshaper, load, limits, clock, ticks, os.urandom)
        blobs = BlobStore(world.catalog, world.admission, SmallDocuments(world.engine), services)
        await load.start()
        yield BlobWorld(world, blobs, skew)
        await load.stop()


def run_blobs(test: Callable[[BlobWorld], Awaitable[None]], *, limits: Limits = DEFAULT_LIMITS) -> None:
    async def go() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with open_blobs(Path(directory), limits=limits) as world, asyncio.timeout(180):
                await test(world)

    asyncio.run(go())


# --- short forms of calls ---------------------------------------------------------------------------------------------


async def put(
    container: Container,
    name: str,
    data: bytes,
    properties: NewBlob | None = None,
    conditions: Conditions = NO_CONDITIONS,
    rules: AccountRules = NO_RULES,
) -> BlobRecord:
    async with container.begin_upload(name) as upload:
        await upload.write(data)
        return await container.put_blob(name, upload, properties or NewBlob(), conditions, rules)


async def put_block(container: Container, name: str, block_id: bytes, data: bytes) -> None:
    async with container.begin_upload(name) as upload:
        await upload.write(data)
        await container.put_block(name, block_id, upload)


async def create_append(container: Container, name: str) -> BlobRecord:
    return await container.put_blob(name, None, NewBlob(BlobKind.APPEND))


async def append(container: Container, name: str, data: bytes) -> BlobRecord:
    async with container.begin_upload(name) as upload:
        await upload.write(data)
        return (await container.append(name, upload)).record


async def get(container: Container, name: str, which: Which = CURRENT, start: int = 0, end: int | None = None) -> bytes:
    record = await container.find(name, which)
    return await content_of(container, record, start, end)


async def content_of(container: Container, record: BlobRecord, start: int = 0, end: int | None = None) -> bytes:
    return b"".join([piece async for piece in container.read(record, start, end)])


async def pages_of(container: Container, query: ListQuery) -> list[BlobRecord | str]:
    """Return all blobs and prefixes of a listing, page by page."""
    found: list[BlobRecord | str] = []
    page = await container.list(query)
    found += page.entries
    while page.next is not None:
        page = await container.list(replace(query, after=page.next))
        assert len(page.entries) <= query.limit
        found += page.entries
    return found


async def listed(container: Container, query: ListQuery) -> list[BlobRecord]:
    """Return all records of a listing without a delimiter."""
    return [entry for entry in await pages_of(container, query) if isinstance(entry, BlobRecord)]
