"""The servers for queues and blobs: Asterism, and Azurite with its data on disk, each one process on one core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.npm_packages import install
from benchmarks.peer_azurite import FOLDER, PACKAGE
from benchmarks.processes import RunningServer, free_port, python_module, running, wait_for_answer
from benchmarks.subject import Subject

PROBE = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@dataclass(frozen=True)
class StorageServer:
    process: RunningServer
    queue_port: int
    blob_port: int

    @property
    def pid(self) -> int:
        return self.process.process.pid


@contextmanager
def running_storage(subject: Subject, data: Path) -> Iterator[StorageServer]:
    """Asterism with the two doors alone."""
    queue, blob = free_port(), free_port()
    arguments = ["--data", str(data), "--apis", "queue,blob"]
    arguments += ["--queue-port", str(queue), "--blob-port", str(blob), "--no-throttle"]
    command = [*subject.command, *arguments]
    with running(command, port=blob, log_name="storage", probe=PROBE, environment=subject.environment) as server:
        wait_for_queues(server, queue)
        yield StorageServer(server, queue, blob)


@contextmanager
def running_azurite_storage(data: Path) -> Iterator[StorageServer]:
    install(PACKAGE, FOLDER)
    queue, blob = free_port(), free_port()
    command = [
        "node",
        str(FOLDER / "node_modules" / PACKAGE / "dist" / "src" / "azurite.js"),
        *("--blobHost", "127.0.0.1", "--blobPort", str(blob), "--queueHost", "127.0.0.1", "--queuePort", str(queue)),
        *("--tableHost", "127.0.0.1", "--tablePort", str(free_port()), "--location", str(data)),
        *("--silent", "--skipApiVersionCheck", "--disableTelemetry"),
    ]
    with running(command, port=blob, log_name="azurite-storage", probe=PROBE, folder=FOLDER) as server:
        wait_for_queues(server, queue)
        yield StorageServer(server, queue, blob)


def wait_for_queues(server: RunningServer, port: int) -> None:
    wait_for_answer(server.process, port=port, probe=PROBE, log=Path("/dev/null"))


@contextmanager
def running_bare_file(file: Path) -> Iterator[RunningServer]:
    port = free_port()
    command = python_module("benchmarks.bare_granian_file", str(port), str(file))
    with running(command, port=port, log_name="bare-file", probe=PROBE) as server:
        yield server
