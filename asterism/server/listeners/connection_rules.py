"""Which connections are closed, decided from what requests and the kernel say of them. No socket, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from asterism.limits import KIB, Limits

# A client that has an answer to read must take this much of it in `answer_pause_seconds_max`, or all that is left; one
# that has begun a message must send this much of it in `body_pause_seconds_max`, or the rest.
_PROGRESS_BYTES_MIN = 64 * KIB
# A slower reader is closed when there are too many bytes of answers.
_DRAIN_SECONDS_MAX = 10.0
# Room is made from the first share on, down to the second, in tenths of the connections of a port.
_CROWDED_TENTHS = 9
_ROOMY_TENTHS = 8
# A record is made with a connection's first request; the look that misses its connection may have begun before that.
_MISSED_LOOKS_MAX = 2


class Connection:
    """The record that requests keep of a connection. Every request writes it, so it is as plain as can be."""

    __slots__ = (
        "answered_bytes",
        "client",
        "descriptor",
        "idle_seconds_max",
        "is_http2",
        "is_within_message",
        "missed_looks",
        "request_count",
        "under_way",
    )

    def __init__(self, client: str, *, is_http2: bool) -> None:
        self.client = client
        self.is_http2 = is_http2
        # Requests, or messages in either direction where the protocol is not HTTP.
        self.request_count = 0
        self.under_way = 0
        self.answered_bytes = 0
        self.missed_looks = 0
        # The door's own limit; None: that of all connections.
        self.idle_seconds_max: float | None = None
        # True while the rest of a message is waited for.
        self.is_within_message = False
        # As the last look found it; it may have been closed since.
        self.descriptor: int | None = None


@dataclass(slots=True)
class Observed:
    """The state of a connection, as the kernel knows it."""

    port: int
    # As requests name it: `127.0.0.1:54321`.
    client: str
    descriptor: int
    received_bytes: int
    acknowledged_bytes: int
    # True while the kernel holds bytes that the client has not taken.
    owes_bytes: bool
    # Since the client sent anything, or connected.
    quiet_seconds: float


@dataclass(slots=True)
class Closure:
    observed: Observed
    # Without waiting for what was not sent yet.
    is_abrupt: bool = False


@dataclass(slots=True)
class _Watched:
    """The findings of earlier looks."""

    first_seen: float
    last_used: float
    received_bytes: int
    acknowledged_bytes: int
    looked_at: float
    request_count: int = 0
    held_bytes: int = 0
    # When the client last took enough of what it has to read, and how much it had taken then; None: nothing to read.
    progress_at: float | None = None
    progress_bytes: int = 0
    # The same of a message that the client has begun to send.
    arrival_at: float | None = None
    arrival_bytes: int = 0


@dataclass(slots=True)
class PortConnections:
    """The connections of a port that have sent a request, by the client's address."""

    connections_max: int
    by_client: dict[str, Connection] = field(default_factory=dict)


class AnswerBudget:
    """The bytes of answers that clients have not read."""

    __slots__ = ("added_bytes", "bytes_max", "held_bytes", "is_exceeded")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        # Found by the last look, and answered since.
        self.held_bytes = 0
        self.added_bytes = 0
        # True while requests are refused because clients have not read.
        self.is_exceeded = False

    def add(self, size: int) -> bool:
        """Count an answer; True when it is time for a look at how much of all answers was read.

        That time comes at half of the bytes, so that clients that do read are seldom refused: until the look, all that
        was answered counts as unread.
        """
        self.added_bytes += size
        unread_bytes = self.held_bytes + self.added_bytes
        if unread_bytes > self.bytes_max:
            self.is_exceeded = True
        return unread_bytes * 2 > self.bytes_max

    def forget(self) -> None:
        self.held_bytes = self.added_bytes = 0
        self.is_exceeded = False


def held_bytes(connection: Connection, observed: Observed) -> int:
    """Return how many bytes of answers the client has not taken, by what TCP says was acknowledged."""
    held = connection.answered_bytes - observed.acknowledged_bytes
    if held > 0:
        return held
    # Heads of answers are acknowledged too, and must not make up for bodies that come later.
    connection.answered_bytes = observed.acknowledged_bytes
    return 0


class ConnectionRules:
    """Look after look, the connections that must go."""

    def __init__(self, limits: Limits, ports: Mapping[int, PortConnections], answers: AnswerBudget) -> None:
        self._limits = limits
        self._ports = ports
        self._answers = answers
        self._watched: dict[tuple[int, str], _Watched] = {}
        # True when the last look made room on a port: more clients may be waiting for it.
        self.is_crowded = False

    def look(self, observed: Sequence[Observed], *, now: float) -> list[Closure]:
        watched = {(each.port, each.client): self._update(each, now) for each in observed}
        self._watched = watched
        self._forget_closed()
        closures: list[Closure] = []
        staying: list[Observed] = []
        for each in observed:
            closure = self._overdue(each, now)
            if closure is None:
                staying.append(each)
            else:
                closures.append(closure)
        closures += self._too_many_bytes(staying, now)
        surplus = list(self._too_many_connections(staying))
        self.is_crowded = bool(surplus)
        closures += surplus
        for each in observed:
            seen = watched[(each.port, each.client)]
            seen.acknowledged_bytes = each.acknowledged_bytes
            seen.looked_at = now
        return closures

    def _update(self, observed: Observed, now: float) -> _Watched:
        seen = self._watched.get((observed.port, observed.client))
        connection = self._ports[observed.port].by_client.get(observed.client)
        if seen is None or observed.received_bytes < seen.received_bytes:
            begun = now - (0.0 if observed.received_bytes else observed.quiet_seconds)
            seen = _Watched(begun, now, observed.received_bytes, observed.acknowledged_bytes, now)
        seen.received_bytes = observed.received_bytes
        if connection is not None:
            connection.missed_looks = 0
            if connection.under_way or connection.request_count != seen.request_count or observed.owes_bytes:
                seen.request_count = connection.request_count
                seen.last_used = now
            if not (observed.owes_bytes or connection.is_http2):
                connection.answered_bytes = observed.acknowledged_bytes
            seen.held_bytes = held_bytes(connection, observed)
            connection.descriptor = observed.descriptor
        taken = observed.acknowledged_bytes - seen.progress_bytes
        if not observed.owes_bytes:
            seen.progress_at = None
        elif seen.progress_at is None or taken >= _PROGRESS_BYTES_MIN:
            seen.progress_at = now
            seen.progress_bytes = observed.acknowledged_bytes
        if connection is None or connection.under_way or not connection.is_within_message:
            seen.arrival_at = None
        elif seen.arrival_at is None or observed.received_bytes - seen.arrival_bytes >= _PROGRESS_BYTES_MIN:
            seen.arrival_at = now
            seen.arrival_bytes = observed.received_bytes
        return seen

    def _forget_closed(self) -> None:
        for port, connections in self._ports.items():
            for client, connection in list(connections.by_client.items()):
                if (port, client) not in self._watched and not connection.under_way:
                    connection.missed_looks += 1
                    if connection.missed_looks > _MISSED_LOOKS_MAX:
                        del connections.by_client[client]

    def _overdue(self, observed: Observed, now: float) -> Closure | None:
        seen = self._watched[(observed.port, observed.client)]
        connection = self._ports[observed.port].by_client.get(observed.client)
        limits = self._limits
        if seen.progress_at is not None and now - seen.progress_at >= limits.answer_pause_seconds_max:
            return Closure(observed, is_abrupt=True)
        if connection is None:
            is_late = now - seen.first_seen >= limits.first_request_seconds_max
            return Closure(observed) if is_late else None
        if seen.arrival_at is not None:
            # A message that is arriving has its own deadline, and ends the idle time.
            return Closure(observed) if now - seen.arrival_at >= limits.body_pause_seconds_max else None
        idle_seconds_max = connection.idle_seconds_max or limits.idle_connection_seconds_max
        is_idle = not connection.under_way and now - seen.last_used >= idle_seconds_max
        return Closure(observed) if is_idle else None

    def _too_many_bytes(self, staying: list[Observed], now: float) -> Iterator[Closure]:
        """The slowest readers, until the answers of the others fit; requests wait while they do not."""
        answers = self._answers
        total = sum(self._watched[(each.port, each.client)].held_bytes for each in staying)
        if total > answers.bytes_max:
            slow = sorted((share, index) for index, share in enumerate(self._drained_shares(staying, now)))
            for share, index in slow:
                if share >= 1.0 or total <= answers.bytes_max:
                    break
                each = staying[index]
                total -= self._watched[(each.port, each.client)].held_bytes
                yield Closure(each, is_abrupt=True)
        answers.held_bytes = total
        answers.added_bytes = 0
        answers.is_exceeded = total > answers.bytes_max

    def _drained_shares(self, staying: list[Observed], now: float) -> Iterator[float]:
        """How much of what it holds each connection will have taken in `_DRAIN_SECONDS_MAX`, at its present pace."""
        for each in staying:
            seen = self._watched[(each.port, each.client)]
            seconds = now - seen.looked_at
            if not seen.held_bytes or seconds <= 0:
                yield 1.0
                continue
            taken = each.acknowledged_bytes - seen.acknowledged_bytes
            yield taken / seconds * _DRAIN_SECONDS_MAX / seen.held_bytes

    def _too_many_connections(self, staying: list[Observed]) -> Iterator[Closure]:
        """Those without a request and those longest idle, where a port is nearly full."""
        for port, connections in self._ports.items():
            here = [each for each in staying if each.port == port]
            if len(here) < max(1, connections.connections_max * _CROWDED_TENTHS // 10):
                continue
            surplus = len(here) - connections.connections_max * _ROOMY_TENTHS // 10
            waiting = sorted((each for each in here if self._may_make_room(each)), key=self._last_used)
            yield from (Closure(each) for each in waiting[:surplus])

    def _may_make_room(self, observed: Observed) -> bool:
        connection = self._ports[observed.port].by_client.get(observed.client)
        return not observed.owes_bytes and (connection is None or not connection.under_way)

    def _last_used(self, observed: Observed) -> tuple[bool, float]:
        seen = self._watched[(observed.port, observed.client)]
        has_record = observed.client in self._ports[observed.port].by_client
        return (True, seen.last_used) if has_record else (False, seen.first_seen)
