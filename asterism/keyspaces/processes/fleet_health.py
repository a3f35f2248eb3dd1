"""The health of the nodes, as an operator needs it."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.storage.contract import EngineStatus
from asterism.storage.nodes import NodeEngines
from asterism.values.identifiers import NodeNumber


@dataclass(frozen=True, slots=True)
class Standby:
    """A replica of a node: `state` is the server's own word; `lag_bytes` is None if it is unknown."""

    name: str
    state: str
    lag_bytes: int | None


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """The state of a node that answers. A node that is not writable accepts no data."""

    is_writable: bool
    store_bytes: int
    version: str
    standbys: tuple[Standby, ...]


class FleetHealth:
    """Asks the nodes for their state. One per process."""

    __slots__ = ("_engines",)

    def __init__(self, engines: NodeEngines) -> None:
        self._engines = engines

    @property
    def catalog_node(self) -> NodeNumber:
        return self._engines.catalog_node

    async def of_nodes(self) -> dict[NodeNumber, NodeHealth | None]:
        """Return the health of every node; None for a node that does not answer."""
        statuses = await self._engines.node_statuses()
        return {node: None if status is None else _health_of(status) for node, status in statuses.items()}

    async def store_bytes(self) -> int:
        """Return the bytes that all reachable nodes use."""
        return (await self._engines.status()).bytes_used


def _health_of(status: EngineStatus) -> NodeHealth:
    standbys = tuple(Standby(standby.name, standby.state, standby.lag_bytes) for standby in status.standbys)
    return NodeHealth(status.is_writable, status.bytes_used, status.server_version, standbys)
