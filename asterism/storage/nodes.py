"""The engines of all nodes as one: each call goes to the engine of its partition's node.

The catalog's own partitions (numbers below `CATALOG_NUMBERS_END`) do not contain a node number: they are on the
*catalog node*, and can be handed over to another node while calls to them wait. A process that finds them sealed
follows them to their new node; if the process that moved them has died, it completes the hand-over. A node whose engine
is missing, or refuses, does not stop calls to the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from asterism.storage.contract import (
    Batch,
    Engine,
    EngineFailed,
    EngineStatus,
    EpochFenced,
    Fence,
    JournalEntry,
    PartitionUnknown,
    ScanPage,
    Snapshot,
    Span,
    StorageRefusal,
)
from asterism.storage.handover import hand_over, has_arrived, read_catalog_target
from asterism.storage.node_identity import IDENTITY_PARTITION
from asterism.values.identifiers import (
    SEQUENCE_BITS,
    Epoch,
    Lsn,
    NodeNumber,
    PartitionNumber,
    node_of,
    partition_on,
    sequence_of,
)

# Numbers below this are the catalog's own, and those of every node's identity.
CATALOG_NUMBERS_END = 16
# A node that takes longer to report its status counts as unreachable.
STATUS_SECONDS_MAX = 3.0
# A hand-over takes milliseconds; one that takes longer than this was abandoned by a process that died.
HAND_OVER_SECONDS_MAX = 2.0
FOLLOW_SECONDS_MAX = 15.0
_POLL_SECONDS = 0.02

T = TypeVar("T")
Pending = Coroutine[Any, Any, T]
EndWatch = Callable[[], None]


@dataclass(slots=True)
class _CatalogWatch:
    partition: PartitionNumber
    callback: Callable[[], None]
    end: EndWatch


class NodeEngines:
    """An engine over nodes; see `asterism.storage.contract.Engine`. Calls are delegated without a coroutine of their
    own: most requests make such a call."""

    def __init__(self, engines: Mapping[NodeNumber, Engine | None], *, catalog_node: NodeNumber) -> None:
        """Create from engines by node. None is a node that is known but not reachable yet."""
        self._engines = dict(engines)
        self._catalog_node = catalog_node
        self._detached_commits = 0
        self._catalog_settled = asyncio.Event()
        self._catalog_settled.set()
        self._following = asyncio.Lock()
        self._catalog_watches: list[_CatalogWatch] = []

    # --- the nodes ------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> Mapping[NodeNumber, Engine | None]:
        return self._engines

    @property
    def catalog_node(self) -> NodeNumber:
        return self._catalog_node

    def attach(self, node: NodeNumber, engine: Engine | None) -> None:
        """Add a node, or the engine of a node that has become reachable."""
        if self._engines.get(node) is not None:
            raise ValueError(f"node {node} is attached already")
        self._engines[node] = engine

    async def detach(self, node: NodeNumber) -> None:
        """Close the node's engine; later calls to its partitions fail."""
        if node == self._catalog_node:
            raise ValueError("the catalog's node cannot be detached")
        engine = self._engines.pop(node, None)
        if engine is not None:
            await engine.close()
            self._detached_commits += engine.commits

    async def move_catalog(self, target: NodeNumber, *, is_announced: bool = True) -> None:
        """Move the catalog's partitions to another node. Calls to them wait meanwhile, and then go there; if the move
        `is_announced`, those of other processes too."""
        if target == self._catalog_node:
            return
        source_engine, target_engine = self._at(self._catalog_node), self._at(target)
        self._catalog_settled.clear()
        try:
            await hand_over(source_engine, target_engine, target if is_announced else None)
            self._go_to(target, target_engine)
        finally:
            self._catalog_settled.set()

    def _go_to(self, target: NodeNumber, engine: Engine) -> None:
        self._catalog_node = target
        for watch in self._catalog_watches:
            watch.end()
            watch.end = engine.watch(watch.partition, watch.callback)
            watch.callback()

    async def _follow_catalog(self, node: NodeNumber) -> bool:
        """Follow the catalog after it was found sealed on `node`; return True if it is elsewhere now."""
        try:
            async with asyncio.timeout(FOLLOW_SECONDS_MAX), self._following:
                return node != self._catalog_node or await self._find_catalog(node)
        except TimeoutError:
            raise EngineFailed("the catalog is being moved to a node that does not answer") from None

    async def _find_catalog(self, node: NodeNumber) -> bool:
        source, loop = self._at(node), asyncio.get_running_loop()
        finish_at = loop.time() + HAND_OVER_SECONDS_MAX
        while (target_node := await read_catalog_target(source)) is not None:
            target_engine = self._engines.get(target_node)
            if target_engine is None:
                raise EngineFailed(f"the catalog is on node {target_node}, which cannot be reached")
            if await has_arrived(source, target_engine):
                self._go_to(target_node, target_engine)
                return True
            if loop.time() > finish_at:
                await hand_over(source, target_engine, target_node)
            else:
                await asyncio.sleep(_POLL_SECONDS)
        return False

    async def node_statuses(self) -> dict[NodeNumber, EngineStatus | None]:
        """Return the status of each node; None for one that cannot be reached."""
        statuses = await asyncio.gather(*(_status_or_none(engine) for engine in self._engines.values()))
        return dict(zip(self._engines, statuses, strict=True))

    # --- routing --------------------------------------------------------------------------------------------------

    def _at(self, node: NodeNumber) -> Engine:
        engine = self._engines.get(node)
        if engine is None:
            if node in self._engines:
                raise EngineFailed(f"node {node} cannot be reached")
            raise PartitionUnknown(f"node {node} is not part of the fleet")
        return engine

    def _call(self, partition: PartitionNumber, call: Callable[[Engine], Pending[T]]) -> Pending[T]:
        if partition < CATALOG_NUMBERS_END:
            return self._at_catalog(call)
        return call(self._at(node_of(partition)))

    async def _at_catalog(self, call: Callable[[Engine], Pending[T]]) -> T:
        while True:
            await self._catalog_settled.wait()
            node = self._catalog_node
            try:
                return await call(self._at(node))
            except EpochFenced:
                # Sealed because it is being handed over: another node has it, or soon will.
                is_ours = not self._catalog_settled.is_set() or node != self._catalog_node
                if not is_ours and not await self._follow_catalog(node):
                    raise

    # --- reading and writing --------------------------------------------------------------------------------------

    def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> Pending[tuple[Lsn, list[bytes | None]]]:
        # The hottest path of the database: written out.
        engine = self._engines.get(NodeNumber(partition >> SEQUENCE_BITS))
        if engine is None or partition < CATALOG_NUMBERS_END:
            return self._call(partition, lambda engine: engine.read(partition, epoch, keys, at_least=at_least))
        return engine.read(partition, epoch, keys, at_least=at_least)

    def scan(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        span: Span,
        *,
        reverse: bool = False,
        limit: int = 1000,
        bytes_max: int | None = None,
        at_least: Lsn | None = None,
    ) -> Pending[ScanPage]:
        return self._call(
            partition,
            lambda engine: engine.scan(
                partition, epoch, span, reverse=reverse, limit=limit, bytes_max=bytes_max, at_least=at_least
            ),
        )

    def snapshot(self, partition: PartitionNumber, epoch: Epoch, *, at_least: Lsn | None = None) -> Pending[Snapshot]:
        return self._call(partition, lambda engine: engine.snapshot(partition, epoch, at_least=at_least))

    def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Pending[Lsn]:
        if partition < CATALOG_NUMBERS_END:
            return self._at_catalog(lambda engine: engine.apply(partition, epoch, batch))
        return self._at(node_of(partition)).apply(partition, epoch, batch)

    # --- partitions -----------------------------------------------------------------------------------------------

    def create_partition(
        self, partition: PartitionNumber, fence: Fence, *, lsn: Lsn = Lsn(0), announced: bool = False
    ) -> Pending[None]:
        return self._call(
            partition, lambda engine: engine.create_partition(partition, fence, lsn=lsn, announced=announced)
        )

    def watch(self, partition: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        if partition >= CATALOG_NUMBERS_END:
            return self._at(node_of(partition)).watch(partition, callback)
        watch = _CatalogWatch(partition, callback, self._at(self._catalog_node).watch(partition, callback))
        self._catalog_watches.append(watch)

        def end() -> None:
            watch.end()
            if watch in self._catalog_watches:
                self._catalog_watches.remove(watch)

        return end

    async def drop_partition(self, partition: PartitionNumber) -> bool:
        try:
            return await self._call(partition, lambda engine: engine.drop_partition(partition))
        except PartitionUnknown:
            # The node has been removed, so nothing is left to drop.
            return True

    async def partitions(self) -> dict[PartitionNumber, tuple[Fence, Lsn]]:
        """Return every partition on the nodes that can be reached; those of the others are omitted."""
        found: dict[PartitionNumber, tuple[Fence, Lsn]] = {}
        for node, engine in list(self._engines.items()):
            if engine is None:
                continue
            try:
                of_node = await engine.partitions()
            except StorageRefusal:
                if node == self._catalog_node:
                    raise
                continue
            for number, fence_and_lsn in of_node.items():
                # The embedded store returns numbers without a node.
                sequence = sequence_of(number)
                if sequence >= CATALOG_NUMBERS_END:
                    found[partition_on(node, sequence)] = fence_and_lsn
                elif node == self._catalog_node and number != IDENTITY_PARTITION:
                    found[number] = fence_and_lsn
        return found

    def read_fence(self, partition: PartitionNumber) -> Pending[tuple[Fence, Lsn]]:
        return self._call(partition, lambda engine: engine.read_fence(partition))

    def set_fence(
        self,
        partition: PartitionNumber,
        fence: Fence,
        *,
        lsn: Lsn | None = None,
        expected: Fence | None = None,
    ) -> Pending[Lsn]:
        return self._call(partition, lambda engine: engine.set_fence(partition, fence, lsn=lsn, expected=expected))

    # --- copying --------------------------------------------------------------------------------------------------

    def read_unfenced(self, partition: PartitionNumber, keys: Sequence[bytes]) -> Pending[list[bytes | None]]:
        return self._call(partition, lambda engine: engine.read_unfenced(partition, keys))

    def scan_unfenced(
        self, partition: PartitionNumber, span: Span, *, limit: int = 1000, bytes_max: int | None = None
    ) -> Pending[ScanPage]:
        return self._call(
            partition, lambda engine: engine.scan_unfenced(partition, span, limit=limit, bytes_max=bytes_max)
        )

    def read_journal(self, partition: PartitionNumber, *, after: Lsn, limit: int = 1000) -> Pending[list[JournalEntry]]:
        return self._call(partition, lambda engine: engine.read_journal(partition, after=after, limit=limit))

    def write_copied(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        *,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[Span] = (),
    ) -> Pending[None]:
        return self._call(
            partition,
            lambda engine: engine.write_copied(
                partition, epoch, puts=puts, deletes=deletes, range_deletes=range_deletes
            ),
        )

    # --- the engines themselves -----------------------------------------------------------------------------------

    @property
    def commits(self) -> int:
        """Return the transactions of all nodes, those that are detached by now included."""
        return self._detached_commits + sum(engine.commits for engine in self._engines.values() if engine is not None)

    async def status(self) -> EngineStatus:
        """Return the status of all nodes together: the sum of their bytes, writable if all of them are."""
        statuses = await self.node_statuses()
        known = [status for status in statuses.values() if status is not None]
        return EngineStatus(
            bytes_used=sum(status.bytes_used for status in known),
            is_writable=len(known) == len(statuses) and all(status.is_writable for status in known),
            server_version=", ".join(sorted({status.server_version for status in known})),
            standbys=tuple(standby for status in known for standby in status.standbys),
        )

    async def close(self) -> None:
        """Close every engine, even if one of them fails to close."""
        engines = [engine for engine in self._engines.values() if engine is not None]
        outcomes = await asyncio.gather(*(engine.close() for engine in engines), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


async def _status_or_none(engine: Engine | None) -> EngineStatus | None:
    if engine is None:
        return None
    try:
        async with asyncio.timeout(STATUS_SECONDS_MAX):
            return await engine.status()
    except (StorageRefusal, TimeoutError):
        return None
