"""The engines that the storage suites run against. A new engine joins by adding a line to `ENGINES`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from asterism.storage.contract import Engine, Fence
from asterism.storage.lmdb import FoldPace, LmdbEngine
from asterism.storage.memory import MemoryEngine, MemoryStore
from asterism.storage.nodes import NodeEngines
from asterism.storage.postgres import PostgresEngine
from asterism.values.identifiers import Lsn, NodeNumber, PartitionNumber, partition_on
from tests.support.postgres import shared_server

# Stores by directory, as the other engines have them.
_memory_stores: defaultdict[Path, MemoryStore] = defaultdict(MemoryStore)


async def _open_memory(directory: Path) -> Engine:
    return MemoryEngine(_memory_stores[directory])


async def _open_lmdb(directory: Path) -> Engine:
    return LmdbEngine.open(directory / "lmdb", durable=False)


async def _open_lmdb_shared(directory: Path) -> Engine:
    """Without a log, as several processes use a store."""
    return LmdbEngine.open(directory / "lmdb", durable=False, shared=True)


async def _open_lmdb_folding(directory: Path) -> Engine:
    """Folding all the time, so that calls meet every state of it."""
    return LmdbEngine.open(directory / "lmdb", durable=False, fold_pace=FoldPace(changes=5, seconds=0.001))


async def _open_nodes(directory: Path) -> NodeEngines:
    stores = {NodeNumber(n): LmdbEngine.open(directory / f"node{n}", durable=False) for n in range(3)}
    return NodeEngines(stores, catalog_node=NodeNumber(0))


class _OnOtherNodes:
    """The suite's small numbers mapped to partitions on nodes 1 and 2, apart from the catalog."""

    def __init__(self, nodes: NodeEngines) -> None:
        self._nodes = nodes

    @staticmethod
    def _number(number: PartitionNumber) -> PartitionNumber:
        # Above the catalog's own numbers, and no higher than the highest, which the suite uses too.
        return partition_on(NodeNumber(1 + number % 2), 100 + number % 0xFFFFFF00)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._nodes, name)
        if name in ("commits", "status", "close"):
            return call  # type: ignore[no-any-return]  # a method of the real engine
        return lambda partition, *rest, **named: call(self._number(partition), *rest, **named)

    async def partitions(self) -> dict[PartitionNumber, tuple[Fence, Lsn]]:
        known = [PartitionNumber(n) for n in (*range(100), 0x4D4D4D4D, 0xFFFFFFFE)]
        names = {self._number(number): number for number in known}
        partitions = await self._nodes.partitions()
        return {names[number]: fence_and_lsn for number, fence_and_lsn in partitions.items()}


async def _open_spread(directory: Path) -> Engine:
    return _OnOtherNodes(await _open_nodes(directory))  # type: ignore[return-value]  # by __getattr__


async def _open_postgres(directory: Path) -> Engine:
    """Open the shared database, emptied for each new directory: creating one takes longer than a test."""
    marker = directory / "postgres"
    if not marker.exists():
        marker.touch()
        await shared_server().empty_database("contract")
    return await PostgresEngine.open(shared_server().dsn("contract"), snapshots=256)


# Each opens a store in a directory of its own; a reopened store has the data written before.
EngineOpener = Callable[[Path], Awaitable[Engine]]
ENGINES: dict[str, EngineOpener] = {
    "memory": _open_memory,
    "lmdb": _open_lmdb,
    "lmdb-shared": _open_lmdb_shared,
    "lmdb-folding": _open_lmdb_folding,
    "postgres": _open_postgres,
    "catalog-node": _open_nodes,
    "other-nodes": _open_spread,
}
