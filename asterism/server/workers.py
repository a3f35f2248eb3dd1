"""`--workers N`: a parent that starts N processes on the same port over the same store, and keeps them there.

The parent opens nothing but the data directory's lock, which the workers inherit; it has no threads and no event loop,
so that it can fork whenever a worker is to be replaced. A worker that loses its parent ends too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from asterism.server.config import StartRefused

# A worker that ends by itself is replaced after this long, doubled each time until a worker has stayed for a while.
RESTART_SECONDS_MIN = 0.1
RESTART_SECONDS_MAX = 10.0
STEADY_SECONDS = 30.0
# The time of a worker, after the signal, to answer its requests; the parent then ends it.
STOP_SECONDS_MAX = 20.0
_POLL_SECONDS = 0.5
_READY = b"ready\n"

# Runs a worker until it ends: its place, True if no other runs yet, the pipe that ends with the parent, and the
# function to call when it listens. Returns the exit status.
RunWorker = Callable[[int, bool, int, Callable[[], None]], int]


@dataclass(slots=True)
class _Worker:
    place: int
    process: int
    # Reading end of a pipe: the worker writes that it listens, or why it cannot. -1 when it is closed.
    report_pipe: int
    started_at: float
    text: bytes = b""
    is_ready: bool = False


class WorkerPool:
    """The parent. Everything happens in `run`."""

    def __init__(self, count: int, run_worker: RunWorker) -> None:
        self._count = count
        self._run_worker = run_worker
        self._workers: dict[int, _Worker] = {}
        # Places to be filled, with the time at which, and how long the last wait was.
        self._due: dict[int, float] = {}
        self._waits: dict[int, float] = {}
        self._signals: list[int] = []
        # Workers hold the reading end: it ends when the parent does.
        self._alive_reader, self._alive_writer = os.pipe()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)

    def run(self, *, on_ready: Callable[[], None], on_stopping: Callable[[], None]) -> None:
        """Run until SIGTERM or SIGINT; StartRefused when a worker cannot start in the first place."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, self._on_signal)
        try:
            # The first alone: it makes what is missing, such as the certificate.
            for first, places in ((True, [0]), (False, list(range(1, self._count)))):
                for place in places:
                    self._start(place, is_first=first)
                if not self._wait_until_ready():
                    return
            on_ready()
            self._supervise()
            on_stopping()
        finally:
            self._stop_all()

    # --- starting ---------------------------------------------------------------------------------------------------

    def _start(self, place: int, *, is_first: bool = False) -> None:
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            self._become_worker(place, is_first, reader, writer)
        os.close(writer)
        self._workers[process] = _Worker(place, process, reader, time.monotonic())

    def _become_worker(self, place: int, is_first: bool, reader: int, writer: int) -> None:
        """Run the worker and exit without returning: the clean-up of the parent is not for this process."""
        status = 1
        try:
            # Ctrl+C on the terminal is for the parent, which passes it on.
            os.setpgid(0, 0)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            for descriptor in (reader, self._alive_writer, self._wake_reader, self._wake_writer):
                os.close(descriptor)
            for other in self._workers.values():
                os.close(other.report_pipe)
            status = self._run_worker(place, is_first, self._alive_reader, lambda: _report(writer, _READY))
        except StartRefused as refusal:
            _report(writer, f"{refusal}\n".encode())
        except BaseException as error:
            _report(writer, f"worker {place + 1} failed: {error!r}\n".encode())
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _wait_until_ready(self) -> bool:
        """Wait until all workers listen; False when the signal to stop came first."""
        while not all(worker.is_ready for worker in self._workers.values()):
            self._wait(_POLL_SECONDS)
            if self._signals:
                return False
            for worker in self._reap():
                reason = worker.text.decode("utf-8", "replace").strip()
                raise StartRefused(reason or f"worker {worker.place + 1} ended before it was ready")
        return True

    # --- supervision ----------------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        while not self._signals:
            now = time.monotonic()
            for place in [place for place, at in self._due.items() if at <= now]:
                del self._due[place]
                self._start(place)
            next_at = min(self._due.values(), default=now + 3600.0)
            self._wait(max(next_at - now, 0.0))
            for worker in self._reap():
                self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        now = time.monotonic()
        wait = min(2 * self._waits.get(worker.place, RESTART_SECONDS_MIN / 2), RESTART_SECONDS_MAX)
        if now - worker.started_at > STEADY_SECONDS:
            wait = RESTART_SECONDS_MIN
        self._waits[worker.place] = wait
        self._due[worker.place] = now + wait
        reason = worker.text.decode("utf-8", "replace").replace(_READY.decode(), "").strip()
        detail = f": {reason}" if reason else ""
        _print_error(
            f"Worker {worker.place + 1} (process {worker.process}) has ended{detail}; another starts in {wait:.1f} s."
        )

    # --- stopping ---------------------------------------------------------------------------------------------------

    def _stop_all(self) -> None:
        self._signal_all(signal.SIGTERM)
        give_up_at = time.monotonic() + STOP_SECONDS_MAX
        while self._workers and time.monotonic() < give_up_at and len(self._signals) < 2:
            self._wait(_POLL_SECONDS)
            self._reap()
        self._signal_all(signal.SIGKILL)
        for process in list(self._workers):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)
        if len(self._signals) > 1:
            # As without workers: a second signal ends it on the spot. All acknowledged writes are on disk.
            os._exit(128 + self._signals[-1])

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    # --- reports and signals ----------------------------------------------------------------------------------------

    def _on_signal(self, number: int, _: object) -> None:
        if number != signal.SIGCHLD:
            self._signals.append(number)
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_writer, b"!")

    def _wait(self, seconds: float) -> None:
        """Wait until a worker writes, a signal comes, or the time is up."""
        by_pipe = {worker.report_pipe: worker for worker in self._workers.values() if worker.report_pipe >= 0}
        ready, _, _ = select.select([self._wake_reader, *by_pipe], [], [], seconds)
        if self._wake_reader in ready:
            os.read(self._wake_reader, 4096)
        for descriptor in ready:
            worker = by_pipe.get(descriptor)
            if worker is not None:
                self._read_report(worker)

    def _read_report(self, worker: _Worker) -> None:
        message = os.read(worker.report_pipe, 4096)
        if message:
            worker.text += message
            worker.is_ready = worker.is_ready or worker.text.startswith(_READY)
        else:
            os.close(worker.report_pipe)
            worker.report_pipe = -1

    def _reap(self) -> list[_Worker]:
        """Collect the workers that have ended since the last call."""
        ended = []
        for process, worker in list(self._workers.items()):
            try:
                found, _ = os.waitpid(process, os.WNOHANG)
            except ChildProcessError:
                found = process
            if found:
                while worker.report_pipe >= 0:
                    self._read_report(worker)
                del self._workers[process]
                ended.append(worker)
        return ended


def _report(descriptor: int, text: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(descriptor, text)


def _print_error(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)
