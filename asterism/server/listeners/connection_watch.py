"""A watch over the process's own connections: it reads from the kernel how each is doing, and closes those that the
rules name. The HTTP server keeps no list of them, and has no deadline for most of what a client may leave undone."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import logging
import os
import resource
import socket
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from asterism.limits import Limits
from asterism.server.listeners.addresses import client_of
from asterism.server.listeners.connection_rules import AnswerBudget, Closure, ConnectionRules, Observed, PortConnections
from asterism.server.listeners.heap import give_back_freed_memory
from asterism.server.listeners.request_bodies import BodyBudget

LOG = logging.getLogger("asterism.server")

_OWN_DESCRIPTORS = Path("/proc/self/fd")
# Of Linux, from <linux/tcp.h>: the option, and where the fields are that are used here.
_TCP_INFO = 11
_TCP_INFO_BYTES = 152
_STATE_OPEN = (1, 8)
_UNACKED_PACKETS = struct.Struct("=24xI")
_QUIET_MILLISECONDS = struct.Struct("=52xI")
_ACKED_AND_RECEIVED = struct.Struct("=120xQQ")
_UNSENT_BYTES = struct.Struct("=144xI")
# Close at once and drop what was not sent.
_LINGER_NOT = struct.pack("ii", 1, 0)

# How often the number of open descriptors is looked at, which takes some microseconds.
_TICK_SECONDS = 1.0
_LOOK_SECONDS_MAX = 15.0
# A look at 10,000 connections takes a tenth of a second; requests are answered in between, and looks keep a distance.
_SLICE = 100
_REST_FACTOR = 20
_REST_FACTOR_URGENT = 2
_REST_SECONDS_MIN = 0.1
# From this share of a port's connections on, in tenths, looks come with every tick.
_WATCHFUL_TENTHS = 7


def can_watch() -> bool:
    """Tell whether this system informs a process about its connections.

    Without it the HTTP server's own deadlines hold.
    """
    return _OWN_DESCRIPTORS.is_dir()


class ConnectionWatch:
    """Looks at all connections every few seconds, and at once when a bound is near."""

    def __init__(
        self, limits: Limits, ports: Mapping[int, PortConnections], answers: AnswerBudget, bodies: BodyBudget
    ) -> None:
        self._ports = ports
        self._answers = answers
        self._bodies = bodies
        self._has_memory_to_give_back = False
        self._rules = ConnectionRules(limits, ports, answers)
        shortest = min(
            limits.first_request_seconds_max,
            limits.idle_connection_seconds_max,
            limits.answer_pause_seconds_max,
            limits.body_pause_seconds_max,
        )
        self._look_seconds = min(_LOOK_SECONDS_MAX, shortest / 4)
        self._tick_seconds = min(_TICK_SECONDS, self._look_seconds)
        self._watchful_count = min(port.connections_max for port in ports.values()) * _WATCHFUL_TENTHS // 10
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if can_watch():
            self._task = asyncio.create_task(self._watch())
        else:
            # Nothing would tell that answers were read.
            self._answers.bytes_max = sys.maxsize

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def look_soon(self) -> None:
        self._wake.set()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        next_look = loop.time()
        while True:
            if not self._is_urgent():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._tick_seconds):
                        await self._wake.wait()
            work_seconds = 0.0
            try:
                if (
                    loop.time() < next_look
                    and not self._is_urgent()
                    and _lowest_free_descriptor() < self._watchful_count
                ):
                    continue
                self._wake.clear()
                was_exceeded = self._answers.is_exceeded
                work_seconds = await self._look()
                await self._tidy(was_exceeded=was_exceeded)
            except Exception:
                LOG.exception("the connections could not be looked at")
                self._answers.forget()
            next_look = loop.time() + (0.0 if self._has_memory_to_give_back else self._look_seconds)
            rest_factor = _REST_FACTOR_URGENT if self._is_urgent() else _REST_FACTOR
            await asyncio.sleep(max(_REST_SECONDS_MIN, work_seconds * rest_factor))

    async def _tidy(self, *, was_exceeded: bool) -> None:
        """Give memory back when a burst of bytes is over."""
        if self._bodies.had_a_peak() or was_exceeded:
            self._has_memory_to_give_back = True
        elif self._has_memory_to_give_back:
            self._has_memory_to_give_back = False
            await give_back_freed_memory()

    def _is_urgent(self) -> bool:
        return self._wake.is_set() or self._answers.is_exceeded or self._rules.is_crowded

    async def _look(self) -> float:
        """Look once at every connection; the seconds that took, without those of other tasks in between."""
        loop = asyncio.get_running_loop()
        observed: list[Observed] = []
        work_seconds = 0.0
        with own_descriptors() as descriptors:
            while True:
                begun = loop.time()
                some = list(itertools.islice(descriptors, _SLICE))
                observed += observe(some, self._ports)
                work_seconds += loop.time() - begun
                if not some:
                    break
                await asyncio.sleep(0)
        begun = loop.time()
        closures = self._rules.look(observed, now=begun)
        for closure in closures:
            close(closure)
        return work_seconds + loop.time() - begun


def _lowest_free_descriptor() -> int:
    """The number of open descriptors at least: the system gives out the lowest free number."""
    try:
        descriptor = os.open(os.devnull, os.O_RDONLY)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    os.close(descriptor)
    return descriptor


@contextlib.contextmanager
def own_descriptors() -> Iterator[Iterator[int]]:
    try:
        entries = os.scandir(_OWN_DESCRIPTORS)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        # Not even one is left to read the list with: then every number is in use.
        yield iter(range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
        return
    with entries:
        yield (int(entry.name) for entry in entries)


def observe(descriptors: Sequence[int], ports: Mapping[int, PortConnections]) -> list[Observed]:
    """Return the state of those descriptors that are open connections of the ports."""
    found = []
    for descriptor in descriptors:
        try:
            # All three named: otherwise each would be asked for. The family only says how addresses are read.
            sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=descriptor)
        except OSError:
            continue
        try:
            each = _observe(sock, descriptor, ports)
        except OSError:
            # No socket, no connection, or closed meanwhile.
            continue
        finally:
            sock.detach()
        if each is not None:
            found.append(each)
    return found


def _observe(sock: socket.socket, descriptor: int, ports: Mapping[int, PortConnections]) -> Observed | None:
    info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
    if len(info) < _TCP_INFO_BYTES or info[0] not in _STATE_OPEN:
        return None
    port = sock.getsockname()[1]
    if port not in ports:
        return None
    (unacked,) = _UNACKED_PACKETS.unpack_from(info)
    (quiet_milliseconds,) = _QUIET_MILLISECONDS.unpack_from(info)
    acked, received = _ACKED_AND_RECEIVED.unpack_from(info)
    (unsent,) = _UNSENT_BYTES.unpack_from(info)
    return Observed(
        port=port,
        client=client_of(sock.getpeername()),
        descriptor=descriptor,
        received_bytes=received,
        acknowledged_bytes=acked,
        owes_bytes=bool(unacked or unsent),
        quiet_seconds=quiet_milliseconds / 1000,
    )


def close(closure: Closure) -> None:
    """End a connection on both sides; the HTTP server then sees it end, and frees what it held for it."""
    observed = closure.observed
    with contextlib.suppress(OSError):
        # A copy: the number may belong to another connection by now, and could again before the last line.
        copy = socket.socket(fileno=_duplicate(observed.descriptor))
        try:
            if client_of(copy.getpeername()) != observed.client or copy.getsockname()[1] != observed.port:
                return
            if closure.is_abrupt:
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
            copy.shutdown(socket.SHUT_RDWR)
        finally:
            if copy.fileno() == observed.descriptor:
                copy.detach()
            copy.close()


def _duplicate(descriptor: int) -> int:
    try:
        return os.dup(descriptor)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        return descriptor
