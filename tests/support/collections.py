"""Collections in this process, on a real engine held to its contract."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.reshaping.job import Step
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.models.collections.collection import Collection, CollectionServices
from asterism.models.collections.hybrid_time import HybridClock
from asterism.models.collections.planner import ChangePlanner
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.rules import IndexProfile
from asterism.models.collections.scans import ScanQuery
from asterism.models.collections.store import CollectionStore
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import Document
from tests.support.world import World, open_world

ACCOUNT = "acct"
DATABASE = "shop"


@dataclass(frozen=True)
class Fact:
    """A condition of a filter."""

    path: str
    operator: str
    value: Any


@dataclass(frozen=True)
class CollectionWorld:
    world: World
    store: CollectionStore

    async def collection(self, name: str, **options: Any) -> Collection:
        await self.store.create(ACCOUNT, DATABASE, name, **options)
        found = self.store.find(ACCOUNT, DATABASE, name)
        assert found is not None
        return found


def compile_plain_index(_: CollectionRecord, index: IndexRecord) -> IndexProfile:
    """Compile an index of top-level fields, of which the first may be an array."""

    def keys_of(document: Document) -> tuple[Sequence[tuple[Any, ...]], bool]:
        first, *others = [document.get(path) for path in index.key]
        if isinstance(first, list):
            return [(value, *others) for value in first], True
        return [(first, *others)], False

    return IndexProfile(keys_of, None, True)


@asynccontextmanager
async def open_collections(
    directory: Path | None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    enforce: bool = False,
    on_step: Callable[[Step], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> AsyncIterator[CollectionWorld]:
    async with open_world(directory, limits=limits, enforce=enforce, on_step=on_step, clock=clock) as world:
        numbers, randoms = itertools.count(1 << 20), itertools.count(1)
        hybrid_clock = HybridClock(clock.wall_seconds)
        planner = ChangePlanner(lambda: next(numbers), hybrid_clock.next, lambda: int(clock.wall_seconds() * 1000))
        services = CollectionServices(
            router=world.router,
            reshaper=world.reshaper,
            limits=limits,
            clock=clock,
            random_bytes=lambda size: next(randoms).to_bytes(size, "big"),
            planner=planner,
            hybrid_clock=hybrid_clock,
            compile_index=compile_plain_index,
        )
        yield CollectionWorld(
            world, CollectionStore(world.catalog, world.admission, SmallDocuments(world.engine), services)
        )


def bodies(*documents: Document) -> list[bytes]:
    return [encode(document) for document in documents]


async def found(collection: Collection, query: ScanQuery | None = None, **options: Any) -> list[Document]:
    scan = await collection.open_scan(query or ScanQuery(), **options)
    return [decode(document.body) async for batch in scan.batches() for document in batch]
