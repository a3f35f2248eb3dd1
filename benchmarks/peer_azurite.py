"""The peer of the tables: Azurite's table service, fetched with npm when asked for, with its data on disk, as by
default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.npm_packages import install
from benchmarks.processes import RunningServer, free_port, running
from benchmarks.subject import PROJECT

PACKAGE = "azurite"
FOLDER = PROJECT / "build" / "peers" / PACKAGE


@contextmanager
def running_azurite(data: Path) -> Iterator[RunningServer]:
    install(PACKAGE, FOLDER)
    port = free_port()
    command = [
        "node",
        str(FOLDER / "node_modules" / PACKAGE / "dist" / "src" / "table" / "main.js"),
        *("--tableHost", "127.0.0.1", "--tablePort", str(port), "--location", str(data)),
        *("--silent", "--skipApiVersionCheck", "--disableTelemetry"),
    ]
    probe = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    with running(command, port=port, log_name="azurite", probe=probe, folder=FOLDER) as server:
        yield server
