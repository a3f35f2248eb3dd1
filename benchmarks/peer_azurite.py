"""The peer of the tables: Azurite's table service, fetched with npm when asked for, keeping its data on disk as it does
unless told otherwise."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import PROJECT, NotMeasured, RunningServer, free_port, running

PACKAGE = "azurite"
FOLDER = PROJECT / "build" / "peers" / PACKAGE
INSTALL_SECONDS_MAX = 240


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
def running_azurite(data: Path) -> Iterator[RunningServer]:
    install()
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
