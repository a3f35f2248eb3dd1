"""Tables in this process, on a real engine held to its contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.reshaping.job import Step
from asterism.keyspaces.reshaping.load_watch import LoadWatch, Patience
from asterism.keyspaces.routing.families import COUNTERS, ITEMS, LOGICAL_SIZES, TOTALS_KEY
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.models.tables.entities import StoredEntity
from asterism.models.tables.store import TableStore
from asterism.models.tables.table import EntityKey, Table, TableServices
from asterism.storage.contract import LSN_BYTES
from asterism.values.ticks import TickSource
from tests.support.world import World, open_world

ACCOUNT = "acct"


@dataclass(frozen=True)
class TableWorld:
    world: World
    tables: TableStore
    load: LoadWatch

    async def check_statistics(self, table: Table) -> None:
        """Check that the counters equal a count of the data, in every partition and logical partition."""
        for partition_range in table.keyspace.record.map.ranges:
            items = await self.world.everything(partition_range.partition, ITEMS)
            stored = await self.world.everything(partition_range.partition, LOGICAL_SIZES)
            sizes = {key[1:]: COUNTERS.unpack(value) for key, value in stored}
            counted: dict[bytes, tuple[int, int]] = {}
            for key, value in items:
                assert partition_range.range.contains(key[1:]), "an entity is outside the range of its partition"
                logical = next(size for size in sizes if key[1:].startswith(size))
                counted_bytes, counted_items = counted.get(logical, (0, 0))
                counted[logical] = (counted_bytes + len(value) - LSN_BYTES, counted_items + 1)
            assert counted == sizes
            (totals,) = await self.world.engine.read_unfenced(partition_range.partition, [TOTALS_KEY])
            summed = tuple(map(sum, zip(*sizes.values(), strict=True))) if sizes else (0, 0)
            assert (COUNTERS.unpack(totals) if totals is not None else (0, 0)) == summed


@asynccontextmanager
async def open_tables(
    directory: Path | None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    enforce: bool = False,
    on_step: Callable[[Step], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
    patience: Patience | None = None,
) -> AsyncIterator[TableWorld]:
    async with open_world(directory, limits=limits, enforce=enforce, on_step=on_step, clock=clock) as world:
        load = LoadWatch(world.catalog, world.router, world.reshaper, limits, clock, patience=patience)
        services = TableServices(world.router, world.reshaper, load, limits, clock, TickSource(clock.wall_seconds))
        tables = TableStore(world.catalog, world.admission, SmallDocuments(world.engine), services)
        await load.start()
        yield TableWorld(world, tables, load)
        await load.stop()


async def everything(
    table: Table, lower: EntityKey | None = None, upper: EntityKey | None = None, *, limit: int = 100
) -> list[StoredEntity]:
    """Return all entities of a span, page by page."""
    found: list[StoredEntity] = []
    at: EntityKey | None = lower
    more = True
    while more:
        page = await table.scan(at, upper, limit=limit, entries_examined_max=10 * limit)
        found += page.entities
        at, more = page.next_key, page.next_key is not None
    return found
