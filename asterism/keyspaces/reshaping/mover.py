"""Partitions on their way to other nodes: moves that the operator wants, and nodes that are being drained.

The wanted moves are in the catalog (`Nodes.wanted`, and the state of a node), so that they are resumed after a crash,
by the process that does the background work. Each move is a job of `Reshaper`, never more than a few at once: a
partition that waits for its move can still be split.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from asterism.errors import AsterismError, ReshapeRefused
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.nodes import NodeRecord
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.reshaping.job import ReshapeJob
from asterism.keyspaces.reshaping.placer import Placer
from asterism.keyspaces.reshaping.reshaper import Reshaper
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.partitioning.partition_map import PartitionRange
from asterism.partitioning.placement import Move, NodeState, PlacedPartition, Plan, RangeName, plan_drain
from asterism.storage.contract import StorageRefusal
from asterism.values.identifiers import NodeNumber, node_of

_log = logging.getLogger(__name__)

# As many as `reshaper` carries out at once; a partition that only waits for its move can still be split.
_MOVES_AT_ONCE = 2
# The wait before a node that cannot take a partition now is retried.
_RETRY_SECONDS = 2.0
# The interval of the checks of a node that is empty but for partitions still being dropped.
_EMPTY_SECONDS = 0.1


class CatalogPlace(Protocol):
    """The node of the catalog, and the way to move it."""

    @property
    def catalog_node(self) -> NodeNumber: ...

    async def move_catalog(self, target: NodeNumber) -> None: ...


class Mover:
    """The executor of wanted moves. One per process; it works only between `start` and `stop`, while there is work."""

    def __init__(self, catalog: Catalog, reshaper: Reshaper, place: CatalogPlace | None = None) -> None:
        """Without a `place` the catalog stays where it is, whatever is drained."""
        self._catalog = catalog
        self._reshaper = reshaper
        self._place = place
        # Not while everything goes to another fleet: then the catalog goes last, and elsewhere.
        self.may_move_catalog = True
        self._task: asyncio.Task[None] | None = None
        self._runs = False
        self._is_woken = False
        self.stuck: tuple[PlacedPartition, ...] = ()

    @property
    def _placer(self) -> Placer:
        return self._reshaper.placer

    async def start(self) -> None:
        """Begin, or resume, the moves that the catalog lists as wanted."""
        self._runs = True
        self._catalog.nodes.on_change = self.wake
        self.wake()

    async def stop(self) -> None:
        self._runs = False
        await end_tasks([self._task])
        self._task = None

    def wake(self) -> None:
        self._is_woken = True
        nodes = self._catalog.nodes
        is_idle = self._task is None or self._task.done()
        if self._runs and is_idle and (nodes.wanted or nodes.draining()):
            self._task = asyncio.create_task(self._work())

    # --- operator commands ------------------------------------------------------------------------------------------

    async def move(self, keyspace: Keyspace, range_id: int, node: NodeRecord) -> ReshapeJob:
        """Move a partition now, within the container's rules and the node's state."""
        self.plan_move(keyspace, range_id, node)
        return await self._reshaper.move(keyspace, range_id, node.number)

    def plan_move(self, keyspace: Keyspace, range_id: int, node: NodeRecord) -> PartitionRange:
        """Return the partition that would move; ReshapeRefused gives the reason why it cannot."""
        if node.state is not NodeState.ONLINE:
            raise ReshapeRefused(reason=f"The node '{node.name}' is {node.state}.")
        missing = self._placer.rules_of(keyspace).labels - node.labels
        if missing:
            raise ReshapeRefused(
                reason=f"The container is kept on nodes with {_words(missing)}; '{node.name}' does not have it."
            )
        return self._reshaper.plan_move(keyspace, range_id, node.number)

    async def plan(self) -> Plan:
        return await self._placer.plan()

    async def rebalance(self) -> Plan:
        """Want every move of the present plan, and cancel those wanted before that are not in it."""
        plan = await self.plan()
        planned = {move.name for move in plan.moves}
        nodes = self._catalog.nodes
        await nodes.cancel_wanted([name for name in nodes.wanted if name not in planned])
        await nodes.want(plan.moves)
        return plan

    async def drain(self, node: NodeRecord) -> NodeRecord:
        if not [other for other in self._catalog.nodes.online() if other.number != node.number]:
            raise ReshapeRefused(reason="There is no other node that could take its partitions.")
        return await self._catalog.nodes.set_state(node, NodeState.DRAINING)

    async def take_back(self, node: NodeRecord) -> NodeRecord:
        """Let the node take partitions again."""
        return await self._catalog.nodes.set_state(node, NodeState.ONLINE)

    def partitions_on(self, node: NodeNumber) -> list[tuple[Keyspace, PartitionRange]]:
        spaces = self._catalog.keyspaces.values()
        return [
            (space, partition) for space in spaces for partition in space.record.map.ranges if partition.node == node
        ]

    # --- the work -----------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        running: dict[RangeName, asyncio.Task[None]] = {}
        try:
            while True:
                self._is_woken = False
                try:
                    due = [move for move in await self._due() if move.name not in running]
                    nap_seconds = await self._end_drains()
                except (StorageRefusal, AsterismError) as refusal:
                    _log.warning("moves are held up and retried: %s", refusal)
                    await asyncio.sleep(_RETRY_SECONDS)
                    continue
                for move in due[: _MOVES_AT_ONCE - len(running)]:
                    running[move.name] = asyncio.create_task(self._carry_out(move))
                if not running and nap_seconds is None and not self._is_woken:
                    return
                nap = asyncio.ensure_future(asyncio.sleep(nap_seconds or _EMPTY_SECONDS))
                await asyncio.wait(running.values() or [nap], return_when=asyncio.FIRST_COMPLETED)
                nap.cancel()
                running = {name: task for name, task in running.items() if not task.done()}
        finally:
            for task in running.values():
                task.cancel()

    async def _due(self) -> list[Move]:
        """Return the moves off draining nodes first, then the wanted ones; wanted moves that are done are removed."""
        nodes = self._catalog.nodes
        draining = {node.number for node in nodes.draining()}
        due: list[Move] = []
        self.stuck = ()
        if draining:
            plan = await self._placer.plan(plan_drain)
            due = [move for move in plan.moves if move.source in draining]
            self.stuck = tuple(partition for partition in plan.stuck if partition.node in draining)
        done = []
        online = {node.number for node in nodes.online()}
        for name, target in nodes.wanted.items():
            keyspace = self._catalog.keyspaces.get(name.keyspace)
            source = None if keyspace is None else keyspace.record.map.get(name.range_id)
            if source is None or source.node == target or target not in online:
                done.append(name)
            elif source.node not in draining:
                due.append(Move(name, source.node, target))
        await nodes.cancel_wanted(done)
        return due

    async def _carry_out(self, move: Move) -> None:
        try:
            keyspace = self._catalog.keyspaces.get(move.name.keyspace)
            if keyspace is None:
                return
            job = self._reshaper.job_on(keyspace, move.name.range_id)
            if job is None:
                reason = "drain" if move.name not in self._catalog.nodes.wanted else "rebalance"
                job = await self._reshaper.move(keyspace, move.name.range_id, move.target, reason=reason)
            await self._reshaper.finished(job)
        except ReshapeRefused as refusal:
            _log.info("a partition could not be moved: %s", refusal.reason)
            await asyncio.sleep(_EMPTY_SECONDS)
        except (StorageRefusal, AsterismError) as refusal:
            _log.warning("a partition could not be moved: %s", refusal)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _end_drains(self) -> float | None:
        """Remove empty nodes; return the seconds to the next check of the others, fewer if nothing is stuck."""
        nodes = self._catalog.nodes
        for node in nodes.draining():
            if not self._is_in_use(node.number):
                await self._move_catalog_from(node.number)
                await nodes.set_state(node, NodeState.REMOVED)
        draining = nodes.draining()
        if not draining:
            return None
        stuck = {partition.name for partition in self.stuck}
        there = [pair for node in draining for pair in self.partitions_on(node.number)]
        left = {RangeName(space.record.rid, partition.id) for space, partition in there}
        return _RETRY_SECONDS if left and left <= stuck else _EMPTY_SECONDS

    async def _move_catalog_from(self, node: NodeNumber) -> None:
        """Move the catalog last of all, under a seal of milliseconds; every process follows it."""
        place = self._place
        if place is None or not self.may_move_catalog or place.catalog_node != node:
            return
        others = [record.number for record in self._catalog.nodes.online() if record.number != node]
        trouble: Exception = ReshapeRefused(reason="There is no other node that could take the catalog.")
        for target in sorted(others, key=lambda number: (len(self.partitions_on(number)), number)):
            try:
                await place.move_catalog(target)
            except StorageRefusal as refusal:
                # It is away, or the catalog is on its way elsewhere.
                trouble = refusal
            else:
                _log.warning("the catalog went from node %d to node %d", node, target)
                return
        raise trouble

    def _is_in_use(self, node: NodeNumber) -> bool:
        return bool(self.partitions_on(node)) or self._has_remains(node)

    def _has_remains(self, node: NodeNumber) -> bool:
        """Return True if partitions are being filled or dropped there."""
        filling = (target.number for progress in self._reshaper.progress.values() for target in progress.job.targets)
        return any(node_of(number) == node for number in (*filling, *self._catalog.garbage))


def _words(labels: frozenset[str]) -> str:
    return "the label " + " and ".join(f"'{label}'" for label in sorted(labels))
