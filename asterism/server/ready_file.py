"""`--ready-file`: the greeting for programs. Its appearance says that the server is ready, its content where it is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from asterism import __version__
from asterism.server.config import ServerConfig, StartRefused
from asterism.server.greeting import surroundings
from asterism.values.json.text import dumps, loads

Report = dict[str, Any]


def ready_report(config: ServerConfig, *, tls: Path, with_secrets: bool = False) -> Report:
    """Return the facts that a client needs, by the names of ports. The configuration has the ports that were chosen.

    Without `with_secrets` no key shows that is not public.
    """
    places = [(door, surroundings(config, door)) for door in config.served_doors]
    is_encrypted = any(map(config.encrypts, config.served_ports))
    return {
        "pid": os.getpid(),
        "version": __version__,
        "account": config.account,
        "ports": {name: number for door, _ in places for name, number in door.ports.items()},
        "endpoints": {name: endpoint.url for _, place in places for name, endpoint in place.endpoints.items()},
        "connection_strings": {
            name: text
            for door, place in places
            for name, text in door.spec.connection_strings(door.settings, place, with_secrets).items()
        },
        "certificate": str((tls / "certificate.pem").resolve()) if is_encrypted else None,
    }


@contextlib.contextmanager
def ready_file(path: Path | None) -> Iterator[Callable[[Callable[[], Report]], None]]:
    """Yield a function that writes the file, which is removed at the end.

    A file that an earlier server has left is removed at once: a script that waits for it must not read that.
    """
    if path is None:
        yield lambda _: None
        return
    with _refusing(path):
        path.unlink(missing_ok=True)

    def write(make_report: Callable[[], Report]) -> None:
        with _refusing(path):
            _write_whole(path, dumps(make_report()) + b"\n")

    try:
        yield write
    finally:
        if _process_in(path) == os.getpid():
            path.unlink(missing_ok=True)


def _write_whole(path: Path, content: bytes) -> None:
    """Write next to the file and rename: a reader finds all of it or none."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _process_in(path: Path) -> int | None:
    """Return the process that wrote the file; another server may have been given the same one since."""
    try:
        report = loads(path.read_bytes())
    except Exception:
        return None
    return report.get("pid") if isinstance(report, dict) else None


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StartRefused(f"the ready file {path} cannot be written: {error.strerror}") from None
