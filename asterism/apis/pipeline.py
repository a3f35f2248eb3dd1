"""The way of every request through a door: counted and timed, its errors in the door's words, failures in the log.

Nothing here knows a transport. A door of any protocol hands over its call and gets an answer of its own kind back;
`apis/http_pipeline.py` adds what all doors over HTTP share.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from asterism.apis.damage import name_damage
from asterism.errors import AsterismError, StoredDamage
from asterism.keyspaces.routing.refusals import REPORTED, as_error
from asterism.metrics import RequestCounts

if TYPE_CHECKING:
    from asterism.apis.injected_faults import InjectedFaults

# The operation of a call whose door has not found its route: an unknown address, or an unknown sender.
UNROUTED: Final = "unrouted"
# The status of a call without an answer: its client has gone, or the server stops.
UNANSWERED: Final = "unanswered"

_slow_log = logging.getLogger("asterism.slow")


class Call(Protocol):
    """One request at a door, as far as the pipeline must know it."""

    @property
    def request_id(self) -> str:
        """The name of the request in its answer and in the log, bounded in length."""

    @property
    def operation(self) -> str:
        """The name of the operation in the door's table, UNROUTED until that is found."""


class Answer(Protocol):
    @property
    def status(self) -> int | str:
        """The protocol's own status or code; a bounded set, because it labels a metric."""


AnyCall = TypeVar("AnyCall", bound=Call, contravariant=True)
AnyAnswer = TypeVar("AnyAnswer", bound=Answer)


class Words(Protocol[AnyCall, AnyAnswer]):
    """A door's words for the ways in which a call can end without a result."""

    def refuse(self, error: AsterismError, call: AnyCall, /) -> AnyAnswer:
        """Answer an error of the database."""

    def refuse_own(self, problem: Exception, call: AnyCall, /) -> AnyAnswer | None:
        """Answer an exception that only this door raises; None for any other."""

    def fail(self, call: AnyCall, /) -> AnyAnswer:
        """Answer an exception that no code foresaw, without a word of it."""

    def describe(self, call: AnyCall, /) -> str:
        """Name the call for the log: bounded, without line breaks, bodies and secrets."""

    def charge_of(self, call: AnyCall, answer: AnyAnswer, /) -> str:
        """Return the request units of a call as text, for the log of slow requests; empty where there are none."""


@dataclass(frozen=True, slots=True)
class RequestMeter:
    """The counts that the doors of a process share, and the time from which on a request is slow."""

    monotonic_seconds: Callable[[], float]
    counts: RequestCounts = field(default_factory=RequestCounts)
    slow_seconds: float = math.inf
    # Failures that a test suite has asked for; None but with `--test-controls`.
    faults: InjectedFaults | None = None


class Pipeline(Generic[AnyCall, AnyAnswer]):
    """Runs the calls of one door. Every call ends with an answer, but for the errors of its transport."""

    __slots__ = ("_handle", "_log", "_monotonic_seconds", "_name", "_requests", "_slow_seconds", "_transport", "_words")

    def __init__(
        self,
        name: str,
        words: Words[AnyCall, AnyAnswer],
        handle: Callable[[AnyCall], Awaitable[AnyAnswer]],
        meter: RequestMeter,
        *,
        transport_errors: tuple[type[Exception], ...] = (),
    ) -> None:
        """`name` labels the door in metrics and logs. `transport_errors` pass: the listener answers them."""
        self._name = name
        self._words = words
        self._handle = handle
        self._transport = transport_errors
        self._log = logging.getLogger(f"asterism.{name}")
        self._requests = meter.counts.of_door(name)
        self._monotonic_seconds = meter.monotonic_seconds
        self._slow_seconds = meter.slow_seconds

    async def run(self, call: AnyCall) -> AnyAnswer:
        requests = self._requests
        requests.in_flight += 1
        started_at = self._monotonic_seconds()
        answer: AnyAnswer | None = None
        status: int | str = UNANSWERED
        try:
            try:
                answer = await self._handle(call)
            except Exception as problem:
                # An error of the transport has the status with which the listener answers it.
                status = getattr(problem, "status", UNANSWERED)
                answer = self._explain(problem, call)
            status = answer.status
            return answer
        finally:
            requests.in_flight -= 1
            seconds = self._monotonic_seconds() - started_at
            requests.add(call.operation, status, seconds)
            if seconds >= self._slow_seconds:
                self._log_slow(call, answer, status, seconds)

    def _explain(self, problem: Exception, call: AnyCall) -> AnyAnswer:
        if isinstance(problem, self._transport):
            raise problem
        error = as_error(problem) if isinstance(problem, REPORTED) else problem
        if isinstance(error, AsterismError):
            if isinstance(error, StoredDamage):
                name_damage(error, self._words.describe(call))
            return self._words.refuse(error, call)
        answer = self._words.refuse_own(problem, call)
        if answer is not None:
            return answer
        self._log.error("request %r failed: %s", call.request_id, self._words.describe(call), exc_info=problem)
        return self._words.fail(call)

    def _log_slow(self, call: AnyCall, answer: AnyAnswer | None, status: int | str, seconds: float) -> None:
        charge = "" if answer is None else self._words.charge_of(call, answer)
        _slow_log.warning(
            "slow request: door %s, operation %s, status %s, %.1f ms, charge %s, request %r",
            self._name,
            call.operation,
            status,
            seconds * 1000,
            charge or "-",
            call.request_id,
        )


Subject = TypeVar("Subject")
Result = TypeVar("Result")


class SharedCatalog(Protocol):
    """The catalog of a process, which other processes may change too."""

    @property
    def known_lsn(self) -> int: ...

    async def catch_up(self) -> int: ...


async def look_again(
    catalog: SharedCatalog,
    handle: Callable[[Subject], Awaitable[Result]],
    call: Subject,
    *,
    looks_first: bool,
    is_missing: Callable[[Exception], bool],
) -> Result:
    """Handle a call where other processes change the catalog too, and look there again before something is missing.

    `looks_first`: the call is about the catalog itself and must see all that others have done. `is_missing`: the call
    ended because the catalog has no such thing, so that nothing was done and it can be handled again. Data needs no
    second look: fences refuse a process that is behind.
    """
    seen_lsn = await catalog.catch_up() if looks_first else catalog.known_lsn
    try:
        return await handle(call)
    except Exception as problem:
        if not is_missing(problem) or await catalog.catch_up() == seen_lsn:
            raise
    return await handle(call)
