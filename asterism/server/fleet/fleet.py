"""The stores of a server: opened, checked to be of one fleet, and known to the catalog.

A store in the data directory is node 0; on its own it has no record of fleets. The nodes of a fleet carry its id; a
node that carries another, or holds data from outside this fleet, is refused. A node that cannot be reached when
the server starts is known by its name, and attached when it can be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from asterism.errors import AsterismError
from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.nodes import EMBEDDED, EMBEDDED_NAME, EMBEDDED_NODE, NodeRecord
from asterism.partitioning.placement import NodeState, Rules
from asterism.server.config import StartRefused
from asterism.server.engines import open_engine, open_with_warning
from asterism.server.fleet.config import FleetConfig, NodeConfig, read_fleet
from asterism.server.fleet.migration_note import (
    MigrationNote,
    keep_name,
    read_migration_note,
    record_move,
    refuse_moved,
    refuse_other_name,
)
from asterism.storage.contract import Engine, PartitionUnknown, StorageRefusal
from asterism.storage.handover import CATALOG_PARTITION, hand_over, has_arrived, is_open, read_catalog_target
from asterism.storage.node_identity import IDENTITY_PARTITION, NodeIdentity, claim, read_identity
from asterism.storage.nodes import NodeEngines
from asterism.values.identifiers import NodeNumber

_log = logging.getLogger(__name__)

# The first node of a fleet that began as one; 0 is for a store in a data directory.
_FIRST_NODE = NodeNumber(1)
_REOPEN_SECONDS = 2.0


class Fleet:
    """The nodes that are open, and those that could not be opened yet."""

    def __init__(self, config: FleetConfig, engines: NodeEngines, opened: dict[str, Engine], fleet_id: str) -> None:
        self.config = config
        self.engines = engines
        # "" for a store on its own.
        self.id = fleet_id
        self.file: Path | None = None
        # The migration that was under way when the server stopped.
        self.migration: MigrationNote | None = None
        self._opened = opened
        self._attached: dict[NodeNumber, str] = {}
        self._missing: dict[str, NodeConfig] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._known_catalog: Catalog | None = None

    def rules_for(self, database: str, container: str) -> Rules:
        return self.config.rules_for(database, container)

    @property
    def catalog_engine(self) -> Engine:
        engine = self.engines.nodes[self.engines.catalog_node]
        if engine is None:
            raise RuntimeError("the catalog's node is always attached")
        return engine

    @property
    def _catalog(self) -> Catalog:
        if self._known_catalog is None:
            raise RuntimeError("the catalog is not open yet")
        return self._known_catalog

    # --- joining ----------------------------------------------------------------------------------------------------

    async def join(self, catalog: Catalog) -> None:
        """Make the catalog know every node, and every node know the fleet. Call it when the catalog is open."""
        self._known_catalog = catalog
        if not self.id:
            return
        await self._check_complete()
        for node in self.config.nodes:
            engine = self._opened.get(node.name)
            if engine is None:
                self._expect(node)
                continue
            if self.migration is not None and self.migration.directory is not None and node.name == EMBEDDED_NAME:
                await self._check_destination(node, engine)
            await self.attach(node, engine)
        if self.migration is None:
            await keep_name(self.catalog_engine, self.config)
        self._keeper = asyncio.create_task(self._keep_trying())

    async def check(self, node: NodeConfig, engine: Engine) -> NodeIdentity | None:
        """Return the identity of the node, None if it is empty; StartRefused if it cannot be of this fleet."""
        identity = await read_identity(engine)
        if identity is None and set(await engine.partitions()) - {IDENTITY_PARTITION}:
            raise StartRefused(f"the node {node.name!r} ({node.shown}) holds data of no fleet; use an empty store")
        if identity is not None and identity.fleet != self.id:
            raise StartRefused(f"the node {node.name!r} ({node.shown}) belongs to another fleet; use an empty store")
        return identity

    async def attach(self, node: NodeConfig, engine: Engine) -> NodeRecord:
        """Attach a node of this fleet, or an empty one that becomes so."""
        record = await self._record_of(node, engine)
        if self.engines.nodes.get(record.number) is None:
            self.engines.attach(record.number, engine)
        self._opened[node.name] = engine
        return record

    async def _record_of(self, node: NodeConfig, engine: Engine) -> NodeRecord:
        nodes = self._catalog.nodes
        identity = await self.check(node, engine)
        if identity is None:
            number = EMBEDDED_NODE if node.name == EMBEDDED_NAME else None
            record = await nodes.join(node.name, node.labels, number=number)
            identity = await claim(engine, NodeIdentity(self.id, record.number, node.name))
        other = self._attached.setdefault(identity.number, node.name)
        if other != node.name:
            raise StartRefused(f"the nodes {other!r} and {node.name!r} are one and the same store ({node.shown})")
        namesake = nodes.named(node.name)
        if namesake is not None and namesake.number != identity.number:
            raise StartRefused(
                f"the node {node.name!r} ({node.shown}) needs another name: the fleet had one of that name"
            )
        return await nodes.join(node.name, node.labels, number=identity.number)

    def _expect(self, node: NodeConfig) -> None:
        """List an unreachable node: attached without an engine if the catalog has its name, else joined later."""
        self._missing[node.name] = node
        record = self._catalog.nodes.named(node.name)
        if record is not None and record.number not in self.engines.nodes:
            self.engines.attach(record.number, None)

    async def _check_destination(self, node: NodeConfig, engine: Engine) -> None:
        if await self.check(node, engine) is None:
            raise StartRefused(f"the data is on its way to {node.shown}, which is not on this machine; start there")

    async def _check_complete(self) -> None:
        """Refuse a description that lacks a node, before anything is changed.

        A node may have another name than before: its stored identity says which it is.
        """
        names = {node.name for node in self.config.nodes}
        opened = [await read_identity(engine) for engine in self._opened.values()]
        numbers = {identity.number for identity in opened if identity is not None and identity.fleet == self.id}
        for record in self._catalog.nodes.records.values():
            # A catalog without node records yet is that of a store on its own.
            is_described = record is EMBEDDED or record.name in names or record.number in numbers
            if not is_described and record.state is not NodeState.REMOVED:
                raise StartRefused(
                    f"the fleet has a node {record.name!r} that its description does not name; add it, "
                    f"or start with it and remove it with 'asterism drain {record.name}'"
                )

    # --- nodes that come back ---------------------------------------------------------------------------------------

    async def _keep_trying(self) -> None:
        while True:
            await asyncio.sleep(_REOPEN_SECONDS)
            self._look_for_new()
            for node in list(self._missing.values()):
                try:
                    engine = await open_engine(node.dsn)
                except StorageRefusal:
                    continue
                try:
                    await self.attach(node, engine)
                    del self._missing[node.name]
                    _log.warning("node %s can be reached", node.name)
                except (StorageRefusal, StartRefused, AsterismError) as refusal:
                    _log.error("node %s is not attached: %s", node.name, refusal)
                    await engine.close()

    def _look_for_new(self) -> None:
        """Add nodes that another process has brought into the fleet; the description has their addresses."""
        online = self._catalog.nodes.online()
        new = {node.name for node in online if node.number not in self.engines.nodes}
        if not new or self.file is None or new <= self._missing.keys():
            return
        try:
            described = read_fleet(self.file)
        except StartRefused as refusal:
            _log.error("new nodes cannot be attached: %s", refusal)
            return
        for node in described.nodes:
            if node.name in new:
                self._missing[node.name] = node

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        attached = [engine for engine in self.engines.nodes.values() if engine is not None]
        await self.engines.close()
        for engine in self._opened.values():
            if engine not in attached:
                await engine.close()


# --- opening --------------------------------------------------------------------------------------------------------


def embedded_fleet(store_address: str) -> FleetConfig:
    """Return the store in a data directory as a fleet with one node."""
    return FleetConfig(nodes=(NodeConfig(EMBEDDED_NAME, store_address),), catalog=EMBEDDED_NAME)


async def open_fleet(
    config: FleetConfig, *, on_its_own: bool, new_id: Callable[[], str], shared: bool, file: Path | None = None
) -> Fleet:
    """Open the nodes of a fleet; only the one with the catalog must be reachable.

    A store `on_its_own` is not a fleet, unless it was on its way to one.
    """
    first = next(node for node in config.nodes if node.name == config.catalog)
    try:
        engine = await open_with_warning(first.dsn, shown=first.shown, shared=shared)
    except StorageRefusal as refusal:
        raise StartRefused(f"the store {first.shown} cannot be used: {refusal}") from None
    opened = {first.name: engine}
    try:
        first = await _follow_catalog(config, first, opened)
        config, engine = replace(config, catalog=first.name), opened[first.name]
        await refuse_moved(engine, first)
        note = await read_migration_note(engine)
        identity = await read_identity(engine)
        await refuse_other_name(engine, first, config)
        if identity is None and on_its_own:
            return Fleet(config, NodeEngines({EMBEDDED_NODE: engine}, catalog_node=EMBEDDED_NODE), opened, "")
        if note is not None:
            config = config.union(note.destination)
        await _open_others(config, opened)
        await _check_one_catalog(config, opened, identity)
        if identity is None:
            # A store that was served from a data directory so far has its number; a new one gets the first.
            number = EMBEDDED_NODE if await _has_catalog(engine) else _FIRST_NODE
            identity = await claim(engine, NodeIdentity(new_id(), number, first.name, is_founder=True))
        fleet = Fleet(
            config, NodeEngines({identity.number: engine}, catalog_node=identity.number), opened, identity.fleet
        )
        fleet.migration = note
        fleet.file = file
        if on_its_own and note is None:
            fleet.id = ""
        await _finish_hand_over(fleet, first)
    except BaseException:
        await asyncio.gather(*(store.close() for store in opened.values()), return_exceptions=True)
        raise
    return fleet


async def _open_others(config: FleetConfig, opened: dict[str, Engine]) -> None:
    others = [node for node in config.nodes if node.name not in opened]
    outcomes = await asyncio.gather(
        *(open_with_warning(node.dsn, shown=node.shown) for node in others), return_exceptions=True
    )
    for node, outcome in zip(others, outcomes, strict=True):
        if isinstance(outcome, StorageRefusal):
            _log.warning("node %s (%s) cannot be reached and is retried: %s", node.name, node.shown, outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            opened[node.name] = outcome


async def _follow_catalog(config: FleetConfig, first: NodeConfig, opened: dict[str, Engine]) -> NodeConfig:
    """Return the node that has the catalog; a drained one that had it stores the number of its successor.

    A hand-over that a crash has interrupted is finished.
    """
    engine = opened[first.name]
    place = await read_catalog_target(engine)
    if place is None:
        return first
    await _open_others(config, opened)
    own = await read_identity(engine)
    for node in config.nodes:
        identity = await read_identity(opened[node.name]) if node.name in opened else None
        if identity is not None and own is not None and (identity.fleet, identity.number) == (own.fleet, place):
            await refuse_moved(opened[node.name], node)
            if not await has_arrived(engine, opened[node.name]):
                await hand_over(engine, opened[node.name], place)
            _log.warning('the catalog is on node %s; write catalog = "%s" in [fleet]', node.name, node.name)
            return await _follow_catalog(config, node, opened)
    raise StartRefused(f"the catalog that was on {first.name!r} is on node number {place}; name it in the description")


async def _finish_hand_over(fleet: Fleet, first: NodeConfig) -> None:
    """Finish a migration that was stopped after its seal: only the hand-over of the catalog is left to do."""
    note, source = fleet.migration, fleet.catalog_engine
    if not await _has_catalog(source) or await is_open(source, CATALOG_PARTITION):
        return
    if note is None:
        raise StartRefused(
            f"the catalog of {first.shown} is sealed, because another node has it; name that node in the description"
        )
    target = fleet._opened.get(note.destination.catalog)
    if target is None:
        raise StartRefused(f"the data is on its way to {note.where}, which cannot be reached; start it first")
    await hand_over(source, target)
    await record_move(source, target, note)
    await refuse_moved(source, first)


async def _check_one_catalog(config: FleetConfig, opened: dict[str, Engine], first: NodeIdentity | None) -> None:
    """Refuse a node of another fleet, and a catalog elsewhere, before anything is written."""
    others = {name: await read_identity(engine) for name, engine in opened.items() if name != config.catalog}
    for node in config.nodes:
        identity = others.get(node.name)
        if identity is not None and first is not None and identity.fleet != first.fleet:
            raise StartRefused(f"the node {node.name!r} ({node.shown}) belongs to another fleet; use an empty store")
    is_of_fleet = any(others.values()) if first is None else not first.is_founder
    if is_of_fleet and not await _has_catalog(opened[config.catalog]):
        raise StartRefused(
            f"the catalog of the fleet is not on {config.catalog!r}; name the node that has it in [fleet]"
        )


async def _has_catalog(engine: Engine) -> bool:
    try:
        await engine.read_fence(CATALOG_PARTITION)
    except PartitionUnknown:
        return False
    return True
