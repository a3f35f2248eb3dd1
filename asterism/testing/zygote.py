"""The process that servers for tests are forked from: it has loaded the whole server, and does nothing else.

Loading takes most of the time of a start; a fork takes milliseconds. The process has no threads and no event loop, so
that it can fork. It ends when the socket to its parent does, which also happens when the parent is killed.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

# Of a request: a byte that carries the descriptors, then the length of the JSON text, then the text.
LENGTH_BYTES = 4
DESCRIPTORS = 2


def main(control_descriptor: int) -> None:
    control = socket.socket(fileno=control_descriptor)
    # Ended servers are collected by the system.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    run_server = _load()
    while True:
        request = _receive(control)
        if request is None:
            return
        options, lifeline, log_descriptor = request
        if os.fork() == 0:
            control.close()
            _become_server(run_server, options, lifeline, log_descriptor)
        lifeline.close()
        os.close(log_descriptor)


def _load() -> Callable[[list[str], socket.socket], None]:
    """Import the server with all its doors. Collecting garbage meanwhile would find none, and later copy the memory
    that a server shares with this process."""
    gc.disable()
    from asterism.server.assemble import load_doors
    from asterism.server.configure import configured
    from asterism.testing.forked_server import run

    load_doors(configured({"no_portal": True}))
    gc.freeze()
    gc.enable()
    return run


def _receive(control: socket.socket) -> tuple[list[str], socket.socket, int] | None:
    """Return the options of the next server, the socket to the test suite, and the file for its output; None at the
    end of the parent."""
    mark, descriptors, _, _ = socket.recv_fds(control, 1, DESCRIPTORS)
    if not mark:
        return None
    length = int.from_bytes(_read(control, LENGTH_BYTES), "big")
    options = json.loads(_read(control, length))
    return options, socket.socket(fileno=descriptors[0]), descriptors[1]


def _read(control: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        more = control.recv(size - len(content))
        if not more:
            sys.exit(0)
        content += more
    return content


def _become_server(
    run: Callable[[list[str], socket.socket], None], options: list[str], lifeline: socket.socket, log_descriptor: int
) -> NoReturn:
    """Run the server and exit without returning: the loop of the parent is not for this process."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(log_descriptor, sys.stdout.fileno())
        os.dup2(log_descriptor, sys.stderr.fileno())
        os.close(log_descriptor)
        run(options, lifeline)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
