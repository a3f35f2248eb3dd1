"""Script hosts on the side of the server: started when needed, used by one run at a time, replaced when they end."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict

from asterism.scripts import frames
from asterism.scripts.limits import ScriptLimits
from asterism.scripts.sandbox import EngineStop

# A turn that starts with a larger message is not short.
INLINE_WAIT_BYTES_MAX = 16 * 1024

_ENVIRONMENT_OF_PYTHON = ("PATH", "LD_LIBRARY_PATH", "LANG")


class HostEnded(Exception):
    """The host's process has ended; its work is lost. Internal to this package."""

    def __init__(self, stopped: EngineStop) -> None:
        super().__init__(stopped.value)
        self.stopped = stopped


class HostsBusy(Exception):
    """No host became free in time. Internal to this package."""


def _start(limits: ScriptLimits, *, reads_from: int, writes_to: int) -> subprocess.Popen[bytes]:
    # -P: imports nothing from the server's working directory.
    command = [sys.executable, "-P", "-m", "asterism.scripts.host", str(reads_from), str(writes_to)]
    # The host finds the package by this process's path, and gets no other settings: some of them are secrets.
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment |= {name: os.environ[name] for name in _ENVIRONMENT_OF_PYTHON if name in os.environ}
    return subprocess.Popen(
        [*command, json.dumps(asdict(limits))],
        pass_fds=sorted({reads_from, writes_to}),
        stdin=subprocess.DEVNULL,
        env=environment,
    )


def _ended(process: subprocess.Popen[bytes]) -> HostEnded:
    alarms = (-signal.SIGALRM, -signal.SIGPROF)
    return HostEnded(EngineStop.TIME if process.wait() in alarms else EngineStop.MEMORY)


class HostProcess:
    """A host that is awaited, through a socket."""

    def __init__(self, limits: ScriptLimits) -> None:
        self._inline_wait_milliseconds = limits.inline_wait_seconds * 1000
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = _start(limits, reads_from=theirs.fileno(), writes_to=theirs.fileno())
        self._connection.setblocking(False)
        self._ready = select.poll()
        self._ready.register(self._connection, select.POLLIN)
        self.is_waiting_for_answer = False

    async def exchange(self, *parts: bytes) -> bytes:
        """Send a message and return the answer. Short turns block the event loop, longer ones are awaited."""
        self.is_waiting_for_answer = True
        try:
            message = frames.framed(*parts)
            await asyncio.get_running_loop().sock_sendall(self._connection, message)
            if len(message) <= INLINE_WAIT_BYTES_MAX:
                self._ready.poll(self._inline_wait_milliseconds)
            received = await self._receive()
        except OSError:
            raise _ended(self._process) from None
        self.is_waiting_for_answer = False
        return frames.payload_of(received)

    def end(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()

    async def _receive(self) -> bytearray:
        received = bytearray()
        loop = asyncio.get_running_loop()
        while frames.bytes_missing(received):
            # Reads available bytes at once, and waits otherwise.
            chunk = await loop.sock_recv(self._connection, frames.RECEIVE_BYTES)
            if not chunk:
                raise _ended(self._process)
            received += chunk
        return received


class BlockingHostProcess:
    """A host whose calls block, through pipes: several times faster, and bounded by the host's own alarm."""

    def __init__(self, limits: ScriptLimits, wait: Callable[[int], bool]) -> None:
        """Start a host. If an answer takes longer than a moment, `wait` is called with the descriptor that will receive
        it."""
        self._wait = wait
        self._inline_wait_milliseconds = limits.inline_wait_seconds * 1000
        host_reads, self._writes_to = os.pipe()
        self._reads_from, host_writes = os.pipe()
        self._process = _start(limits, reads_from=host_reads, writes_to=host_writes)
        os.close(host_reads)
        os.close(host_writes)
        self._ready = select.poll()
        self._ready.register(self._reads_from, select.POLLIN)

    def exchange(self, payload: bytes) -> bytes:
        try:
            frames.send_blocking(self._writes_to, frames.framed(payload))
            if not self._ready.poll(self._inline_wait_milliseconds):
                self._wait(self._reads_from)
                # An event loop that has waited for it may have made it non-blocking.
                os.set_blocking(self._reads_from, True)
            answer = frames.receive_blocking(self._reads_from)
        except OSError:
            answer = None
        if answer is None:
            self._close_pipes()
            raise _ended(self._process)
        return answer

    def end(self) -> None:
        self._close_pipes()
        self._process.kill()
        self._process.wait()

    def _close_pipes(self) -> None:
        os.close(self._writes_to)
        os.close(self._reads_from)


class HostPool:
    """Up to `hosts_max` hosts for the runs of one event loop."""

    def __init__(self, limits: ScriptLimits) -> None:
        self._limits = limits
        # First in, first out: after a run, a host is busy making the sandbox of its next run.
        self._idle: deque[HostProcess] = deque()
        self._slots = asyncio.Semaphore(limits.hosts_max)

    @asynccontextmanager
    async def host(self) -> AsyncIterator[HostProcess]:
        """Lend a host for one run. It returns to the pool unless the run ended in the middle of an exchange."""
        try:
            async with asyncio.timeout(self._limits.host_wait_seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise HostsBusy from None
        try:
            host = self._idle.popleft() if self._idle else HostProcess(self._limits)
            try:
                yield host
            finally:
                if host.is_waiting_for_answer:
                    host.end()
                else:
                    self._idle.append(host)
        finally:
            self._slots.release()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().end()
