"""The peer: `@vercel/cosmosdb-server`, an open in-memory imitation of the service, fetched with npm when asked for."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.processes import PROJECT, NotMeasured, RunningServer, free_port, running

PACKAGE = "@vercel/cosmosdb-server"
FOLDER = PROJECT / "build" / "peers"
INSTALL_SECONDS_MAX = 120

# Its own program closes the connection after every answer; its library can also keep connections open, which saves it
# most of its work. Both are measured: the first is what its users run, the second is the peer at its best.
START = 'require("@vercel/cosmosdb-server").createHttpServer({ keepAlive: %s }).listen(%d, "127.0.0.1")'


def install() -> None:
    if (FOLDER / "node_modules" / PACKAGE).is_dir():
        return
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotMeasured("npm and node are not installed")
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "package.json").write_text('{"private": true}\n')
    try:
        subprocess.run(
            [npm, "install", "--silent", "--no-audit", "--no-fund", PACKAGE],
            cwd=FOLDER,
            check=True,
            timeout=INSTALL_SECONDS_MAX,
            capture_output=True,
        )
    except (subprocess.SubprocessError, OSError) as problem:
        raise NotMeasured(f"npm could not install {PACKAGE}") from problem


@contextmanager
def running_vercel(*, keep_alive: bool) -> Iterator[RunningServer]:
    install()
    port = free_port()
    probe = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    command = ["node", "-e", START % (str(keep_alive).lower(), port)]
    with running(command, port=port, log_name="vercel", probe=probe, folder=FOLDER) as server:
        yield server
