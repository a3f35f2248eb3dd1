"""A server for tests, in the process that was forked for it: it reports where it is, and ends with its test suite."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from asterism.access.keys import AccountKeys
from asterism.server.config import IN_MEMORY, ServerConfig, StartRefused
from asterism.server.configure import configured, serve_options
from asterism.server.data_directory import DataDirectory
from asterism.server.doors import DOORS
from asterism.server.ready_file import ready_report
from asterism.server.run import run_server
from asterism.testing.option_lists import UnknownOption, values_of

# In place of a data directory: a temporary one, which ends with the server.
TEMPORARY = ":temporary:"
# Free ports, and nothing kept.
DEFAULTS: dict[str, object] = {
    "data": IN_MEMORY,
    **{port.option.name: 0 for door in DOORS for port in door.ports},
}
_POLL_SECONDS = 0.2


def run(options: list[str], lifeline: socket.socket) -> None:
    """Serve until the other end of the lifeline is closed. Nothing is read from it; reports are lines of JSON."""
    try:
        values = {**DEFAULTS, **values_of(options, serve_options())}
        # Faults and the clock are those of a process; several would each have their own.
        values.setdefault("test_controls", not values.keys() & {"workers", "fleet", "store"})
        with _data(str(values["data"])) as data:
            config = configured({**values, **data})
            run_server(config, say=_say_nothing, on_ready=_prepare(config, lifeline))
    except (StartRefused, UnknownOption) as refusal:
        _report(lifeline, {"refused": str(refusal)})


@contextlib.contextmanager
def _data(given: str) -> Iterator[dict[str, object]]:
    if given != TEMPORARY:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="asterism-", ignore_cleanup_errors=True) as folder:
        yield {"data": Path(folder) / "data"}


def _prepare(config: ServerConfig, lifeline: socket.socket) -> Callable[[ServerConfig, DataDirectory], None]:
    """Return the function to call when the server is ready, after a guard for the lifeline is in place."""
    if config.workers > 1:
        # The parent of workers has no event loop. It, and not this process, goes on to serve.
        _guard_workers(lifeline)

    def on_ready(chosen: ServerConfig, directory: DataDirectory) -> None:
        if chosen.workers == 1:
            loop = asyncio.get_running_loop()
            loop.add_reader(lifeline, _stop, loop, lifeline)
        keys = AccountKeys.complete(primary=chosen.key)
        report = ready_report(chosen, tls=directory.tls, with_secrets=True)
        more = {
            "key": keys.primary,
            "readonly_key": keys.primary_readonly,
            "data": None if chosen.is_in_memory else str(directory.path),
            "has_controls": chosen.test_controls,
        }
        _report(lifeline, {"ready": report | more})

    return on_ready


def _stop(loop: asyncio.AbstractEventLoop, lifeline: socket.socket) -> None:
    loop.remove_reader(lifeline)
    os.kill(os.getpid(), signal.SIGTERM)


def _guard_workers(lifeline: socket.socket) -> None:
    """Fork; return in the child. The parent waits for the end of the lifeline, then ends the child, then itself."""
    process = os.fork()
    if process == 0:
        return
    is_stopping = False
    while os.waitpid(process, os.WNOHANG)[0] == 0:
        watched = [] if is_stopping else [lifeline]
        readable, _, _ = select.select(watched, [], [], _POLL_SECONDS)
        if readable:
            is_stopping = True
            os.kill(process, signal.SIGTERM)
    os._exit(0)


def _report(lifeline: socket.socket, content: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        lifeline.sendall(json.dumps(content).encode() + b"\n")


def _say_nothing(_: str) -> None:
    """Keep the greeting to itself: the test suite gets a report."""
