"""The peer: `@vercel/cosmosdb-server`, an open in-memory imitation of the service, fetched with npm when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.npm_packages import install
from benchmarks.processes import RunningServer, free_port, running
from benchmarks.subject import PROJECT

PACKAGE = "@vercel/cosmosdb-server"
FOLDER = PROJECT / "build" / "peers"

# Its own program closes the connection after every answer; its library can also keep connections open, which saves it
# most of its work. Both are measured: the first is what its users run, the second is the peer at its best.
START = 'require("@vercel/cosmosdb-server").createHttpServer({ keepAlive: %s }).listen(%d, "127.0.0.1")'


@contextmanager
def running_vercel(*, keep_alive: bool) -> Iterator[RunningServer]:
    install(PACKAGE, FOLDER)
    port = free_port()
    probe = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    command = ["node", "-e", START % (str(keep_alive).lower(), port)]
    with running(command, port=port, log_name="vercel", probe=probe, folder=FOLDER) as server:
        yield server
