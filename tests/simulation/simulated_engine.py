"""A gateway's own handle on a node: the storage contract, as messages over the network."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from asterism.storage.contract import (
    Batch,
    Engine,
    EngineStatus,
    Fence,
    JournalEntry,
    ScanPage,
    Snapshot,
    Span,
)
from asterism.values.identifiers import Epoch, Lsn, PartitionNumber
from tests.simulation.network import Network, Node

if TYPE_CHECKING:
    from tests.simulation.gateway import Gateway


@dataclass(slots=True, eq=False)
class SimulatedEngine:
    """A gateway's own handle on a node. See `asterism.storage.contract.Engine`."""

    network: Network
    gateway: Gateway
    node: Node
    # The last message that was delivered to each partition.
    delivered: dict[PartitionNumber, int] = field(default_factory=dict)

    async def read(
        self, partition: PartitionNumber, epoch: Epoch, keys: Sequence[bytes], *, at_least: Lsn | None = None
    ) -> tuple[Lsn, list[bytes | None]]:
        return await self.network.call(self, "read", partition, lambda engine: engine.read(partition, epoch, keys))

    async def scan(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        span: Span,
        *,
        reverse: bool = False,
        limit: int = 1000,
        bytes_max: int | None = None,
        at_least: Lsn | None = None,
    ) -> ScanPage:
        scan = partial(_scan, partition, epoch, span, reverse=reverse, limit=limit, bytes_max=bytes_max)
        return await self.network.call(self, "scan", partition, scan)

    async def snapshot(self, partition: PartitionNumber, epoch: Epoch, *, at_least: Lsn | None = None) -> Snapshot:
        return await self.network.call(self, "snapshot", partition, lambda engine: engine.snapshot(partition, epoch))

    async def apply(self, partition: PartitionNumber, epoch: Epoch, batch: Batch) -> Lsn:
        apply: Callable[[Engine], Coroutine[Any, Any, Lsn]] = lambda engine: engine.apply(partition, epoch, batch)  # noqa: E731
        return await self.network.call(self, "apply", partition, apply, (batch,))

    async def create_partition(
        self, partition: PartitionNumber, fence: Fence, *, lsn: Lsn = Lsn(0), announced: bool = False
    ) -> None:
        await self.network.call(
            self,
            "create_partition",
            partition,
            lambda engine: engine.create_partition(partition, fence, lsn=lsn, announced=announced),
            (fence,),
        )

    def watch(self, partition: PartitionNumber, callback: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self.node.watches[token] = (self.gateway, partition, callback)

        def end() -> None:
            self.node.watches.pop(token, None)

        return end

    async def drop_partition(self, partition: PartitionNumber) -> bool:
        return await self.network.call(
            self, "drop_partition", partition, lambda engine: engine.drop_partition(partition)
        )

    async def partitions(self) -> dict[PartitionNumber, tuple[Fence, Lsn]]:
        return await self.network.call(self, "read", PartitionNumber(0), lambda engine: engine.partitions())

    async def read_fence(self, partition: PartitionNumber) -> tuple[Fence, Lsn]:
        return await self.network.call(self, "read_fence", partition, lambda engine: engine.read_fence(partition))

    async def set_fence(
        self,
        partition: PartitionNumber,
        fence: Fence,
        *,
        lsn: Lsn | None = None,
        expected: Fence | None = None,
    ) -> Lsn:
        return await self.network.call(
            self,
            "set_fence",
            partition,
            lambda engine: engine.set_fence(partition, fence, lsn=lsn, expected=expected),
            (fence,),
        )

    async def read_unfenced(self, partition: PartitionNumber, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self.network.call(
            self, "read_unfenced", partition, lambda engine: engine.read_unfenced(partition, keys)
        )

    async def scan_unfenced(
        self, partition: PartitionNumber, span: Span, *, limit: int = 1000, bytes_max: int | None = None
    ) -> ScanPage:
        return await self.network.call(
            self,
            "scan_unfenced",
            partition,
            lambda engine: engine.scan_unfenced(partition, span, limit=limit, bytes_max=bytes_max),
        )

    async def read_journal(self, partition: PartitionNumber, *, after: Lsn, limit: int = 1000) -> list[JournalEntry]:
        return await self.network.call(
            self, "read_journal", partition, lambda engine: engine.read_journal(partition, after=after, limit=limit)
        )

    async def write_copied(
        self,
        partition: PartitionNumber,
        epoch: Epoch,
        *,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[Span] = (),
    ) -> None:
        await self.network.call(
            self,
            "write_copied",
            partition,
            lambda engine: engine.write_copied(
                partition, epoch, puts=puts, deletes=deletes, range_deletes=range_deletes
            ),
        )

    @property
    def commits(self) -> int:
        """0: the simulation does not count them."""
        return 0

    async def status(self) -> EngineStatus:
        return await self.network.call(self, "read", PartitionNumber(0), lambda engine: engine.status())

    async def close(self) -> None:
        """Do nothing: the node stays open."""


def _scan(partition: PartitionNumber, epoch: Epoch, span: Span, engine: Engine, **named: Any) -> Any:
    return engine.scan(partition, epoch, span, **named)
