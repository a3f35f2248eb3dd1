"""A server with a portal, as the tests with a browser use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.support.server import RunningServer, running_server

DOORS = ("nosql", "table", "portal")


@dataclass(frozen=True)
class PortalServer:
    server: RunningServer

    @property
    def url(self) -> str:
        """The address of the portal, without a slash at its end."""
        return f"{self.server.scheme}://127.0.0.1:{self.server.ports['portal']}"

    @property
    def key(self) -> str:
        return WELL_KNOWN_EMULATOR_KEY


@contextmanager
def running_portal(
    *options: str, data: Path = Path(":memory:"), doors: Sequence[str] = DOORS
) -> Iterator[PortalServer]:
    """Run a server with a portal, in memory unless `data` names a directory."""
    with running_server(data, *options, doors=doors, alone=True, embedded=True) as server:
        yield PortalServer(server)
