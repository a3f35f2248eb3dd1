"""From a data directory to a fleet and back, while clients go on: every partition is moved, then the catalog.

The nodes of the destination are attached, and all others drained. It is resumed after a crash from the note in
the source's store (`migration_note`) and the states of the nodes. The last step is the hand-over of the catalog; from
then on the source refers to the destination.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from asterism.errors import AsterismError, ReshapeRefused
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.nodes import EMBEDDED_NAME, EMBEDDED_NODE, NodeRecord
from asterism.keyspaces.processes.background_tasks import end_tasks
from asterism.keyspaces.reshaping.mover import Mover
from asterism.partitioning.placement import NodeState
from asterism.server.background import BackgroundWork
from asterism.server.config import StartRefused
from asterism.server.data_directory import DataDirectory, claim_directory
from asterism.server.engines import open_engine
from asterism.server.fleet.config import FleetConfig
from asterism.server.fleet.fleet import Fleet, embedded_fleet
from asterism.server.fleet.migration_note import MigrationNote, record_move, write_migration_note
from asterism.storage.contract import Engine, StorageRefusal
from asterism.storage.node_identity import NodeIdentity, claim

_log = logging.getLogger(__name__)

# The interval of the checks for the last partition, and the wait before a store that refused is retried.
_POLL_SECONDS = 0.05
_RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class MigrationProgress:
    phase: str
    where: str
    partitions_left: int
    trouble: str = ""


class Migration:
    """At most one at a time, of everything this server has."""

    def __init__(
        self, fleet: Fleet, catalog: Catalog, mover: Mover, work: BackgroundWork, *, new_id: Callable[[], str]
    ) -> None:
        self._fleet = fleet
        self._catalog = catalog
        self._mover = mover
        self._work = work
        self._new_id = new_id
        self._note: MigrationNote | None = None
        self._done_where = ""
        self._trouble = ""
        self._task: asyncio.Task[None] | None = None
        self._claims = contextlib.ExitStack()

    # --- beginning --------------------------------------------------------------------------------------------------

    async def to_fleet(self, destination: FleetConfig, *, where: str) -> None:
        await self._begin(MigrationNote(destination, where))

    async def to_directory(self, path: Path) -> None:
        directory = path.absolute()
        await self._begin(
            MigrationNote(embedded_fleet(DataDirectory(directory).store_address), str(directory), directory)
        )

    async def _begin(self, note: MigrationNote) -> None:
        """Begin, unless the same migration is under way already; ReshapeRefused gives the reason why not."""
        if self._note is not None:
            if self._note == note:
                return
            raise ReshapeRefused(reason=f"Everything is on its way to {self._note.where} already.")
        if {node.name for node in note.destination.nodes} & {node.name for node in self._fleet.config.nodes}:
            raise ReshapeRefused(
                reason="The destination has nodes that serve already; rebalance and drain are for that."
            )
        if self._work.others:
            raise ReshapeRefused(reason=f"{self._work.others} other processes serve the same data; stop them first.")
        self._note = note
        self._mover.may_move_catalog = False
        try:
            await self._prepare(note)
        except (StartRefused, StorageRefusal) as refusal:
            self._forget()
            raise ReshapeRefused(reason=str(refusal)) from None
        except BaseException:
            self._forget()
            raise
        self._start()

    def _forget(self) -> None:
        self._note = None
        self._mover.may_move_catalog = True
        self._claims.close()

    async def _prepare(self, note: MigrationNote) -> None:
        fleet = self._fleet
        if note.directory is not None:
            self._claims.enter_context(claim_directory(note.directory))
        source = fleet.catalog_engine
        if not fleet.id:
            identity = await claim(source, NodeIdentity(self._new_id(), EMBEDDED_NODE, EMBEDDED_NAME))
            fleet.id = identity.fleet
            for own in fleet.config.nodes:
                await fleet.attach(own, source)
        opened = await self._open(note)
        await self._work.become_shared()
        # From here on it is resumed after a crash.
        await write_migration_note(source, note)
        fleet.config = fleet.config.union(note.destination)
        for node, engine in zip(note.destination.nodes, opened, strict=True):
            await self._mover.take_back(await fleet.attach(node, engine))
        await self._drain_sources(note)

    async def _open(self, note: MigrationNote) -> list[Engine]:
        """Open all nodes of the destination, or none of them."""
        opened: list[Engine] = []
        try:
            for node in note.destination.nodes:
                opened.append(await open_engine(node.dsn))
                if await self._fleet.check(node, opened[-1]) is None and note.directory is not None:
                    # So that an empty directory of another machine is not mistaken for it.
                    await claim(opened[-1], NodeIdentity(self._fleet.id, EMBEDDED_NODE, EMBEDDED_NAME))
        except BaseException:
            await asyncio.gather(*(engine.close() for engine in opened), return_exceptions=True)
            raise
        return opened

    async def _drain_sources(self, note: MigrationNote) -> None:
        for record in self._sources(note):
            if record.state is NodeState.ONLINE:
                await self._catalog.nodes.set_state(record, NodeState.DRAINING)

    def _sources(self, note: MigrationNote) -> list[NodeRecord]:
        kept = {node.name for node in note.destination.nodes}
        return [record for record in self._catalog.nodes.records.values() if record.name not in kept]

    # --- carrying it out --------------------------------------------------------------------------------------------

    async def recover(self) -> None:
        """Resume the migration that was under way when the server stopped."""
        if self._fleet.migration is not None:
            self._note = self._fleet.migration
            if self._note.directory is not None:
                self._claims.enter_context(claim_directory(self._note.directory))
            await self._drain_sources(self._note)
            self._start()

    def _start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        await end_tasks([self._task])
        self._claims.close()

    async def _run(self) -> None:
        note = self._note
        while note is not None:
            try:
                while any(node.state is not NodeState.REMOVED for node in self._sources(note)):
                    await asyncio.sleep(_POLL_SECONDS)
                await self._hand_over(note)
                return
            except (StorageRefusal, AsterismError) as refusal:
                self._trouble = str(refusal)
                _log.warning("the migration to %s is held up and retried: %s", note.where, refusal)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _hand_over(self, note: MigrationNote) -> None:
        engines, source = self._fleet.engines, self._fleet.catalog_engine
        target = self._catalog.nodes.named(note.destination.catalog)
        if target is None:
            raise ReshapeRefused(reason="The destination's catalog node is unknown.")
        await engines.move_catalog(target.number, is_announced=False)
        await record_move(source, self._fleet.catalog_engine, note)
        for record in self._sources(note):
            await engines.detach(record.number)
        self._fleet.config = note.destination
        self._fleet.migration = None
        self._done_where, self._note, self._trouble = note.where, None, ""
        self._mover.may_move_catalog = True

    # --- progress ----------------------------------------------------------------------------------------------

    def progress(self) -> MigrationProgress:
        note = self._note
        if note is None:
            phase = "done" if self._done_where else "none"
            return MigrationProgress(phase, self._done_where, 0)
        left = sum(len(self._mover.partitions_on(node.number)) for node in self._sources(note))
        trouble = self._trouble
        if self._mover.stuck:
            trouble = (
                f"{len(self._mover.stuck)} partitions fit no node of the destination; change their placement rules"
            )
        return MigrationProgress("moving" if left else "handing over", note.where, left, trouble)
