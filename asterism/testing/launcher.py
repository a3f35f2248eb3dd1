"""Starts servers for tests: keeps one process to fork them from (`zygote`), for as long as this process lives."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

from asterism.testing.errors import ServerNotStarted
from asterism.testing.zygote import LENGTH_BYTES

# Appended to the path of modules, not put before it: a folder of tests may hold modules with names of the library.
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from asterism.testing.zygote import main; main(int(sys.argv[2]))"
_LOG_BYTES_SHOWN = 8_000
_PACKAGE_FOLDER = str(Path(__file__).resolve().parents[2])


class _Zygote:
    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        # A server must not take settings from the shell that the tests run in.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ASTERISM_")}
        # Not the tests' own: a reader of their output would wait for the end of this process.
        self.log = tempfile.TemporaryFile(prefix="asterism-")  # noqa: SIM115 - closed by `close`
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, _PACKAGE_FOLDER, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=self.log,
                env=environment,
                # Ctrl+C on the terminal is for the tests, which stop their servers.
                start_new_session=True,
            )

    def start_server(self, options: list[str], log: IO[bytes]) -> socket.socket:
        """Return this process's end of the lifeline of a new server."""
        lifeline, theirs = socket.socketpair()
        text = json.dumps(options).encode()
        with theirs:
            try:
                socket.send_fds(self._control, [b"!"], [theirs.fileno(), log.fileno()])
                self._control.sendall(len(text).to_bytes(LENGTH_BYTES, "big") + text)
            except OSError:
                lifeline.close()
                raise
        return lifeline

    def close(self) -> None:
        self._control.close()
        self.log.close()


class _Launcher:
    """The zygote of this process. A process that was forked from this one gets its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._zygote: _Zygote | None = None
        self._owner = 0

    def warm_up(self) -> None:
        with self._lock:
            self._living()

    def start_server(self, options: list[str], log: IO[bytes]) -> socket.socket:
        with self._lock:
            try:
                return self._living().start_server(options, log)
            except OSError as error:
                # Ended in this moment; the next server gets another.
                self._drop()
                raise ServerNotStarted(f"the process that starts servers has ended: {error}") from None

    def failure(self) -> str:
        """Return the output of a process that has ended, and so could not start a server; empty if it lives."""
        with self._lock:
            zygote = self._zygote
            if zygote is None or zygote.process.poll() is None:
                return ""
            return os.pread(zygote.log.fileno(), _LOG_BYTES_SHOWN, 0).decode(errors="replace")

    def _living(self) -> _Zygote:
        if self._zygote is not None and (self._owner != os.getpid() or self._zygote.process.poll() is not None):
            self._drop()
        if self._zygote is None:
            self._zygote = _Zygote()
            self._owner = os.getpid()
        return self._zygote

    def _drop(self) -> None:
        if self._zygote is not None:
            with contextlib.suppress(OSError):
                self._zygote.close()
        self._zygote = None


_LAUNCHER = _Launcher()


def failure() -> str:
    """Return why no server could start, if the process that starts them has ended; otherwise empty."""
    return _LAUNCHER.failure()


def warm_up() -> None:
    """Begin to load the server in the background, so that the first one starts as fast as the others."""
    _LAUNCHER.warm_up()


def start_server(options: list[str], log: IO[bytes]) -> socket.socket:
    """Start a server whose output goes to `log`. It reports through the socket, and stops when that is closed."""
    return _LAUNCHER.start_server(options, log)
