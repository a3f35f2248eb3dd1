"""The count of calls to nodes, beside the requests of other doors: how many ended how, and how long they took.

A call is what the engine hands to a node at once: deliveries or settlements of one read, or a request for management.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from asterism.apis.amqp.nodes import (
    AmqpError,
    AttachReply,
    Delivery,
    Intake,
    NodeReply,
    Outcome,
    Outlet,
    Rejected,
    Settlement,
)
from asterism.metrics import DoorRequests

_ACCEPTED: Final = "accepted"
_FAILED: Final = "failed"


class NodeMeter:
    """Counts the calls to the nodes of a process."""

    def __init__(self, requests: DoorRequests, monotonic_seconds: Callable[[], float]) -> None:
        self._requests = requests
        self._monotonic_seconds = monotonic_seconds

    def intake(self, intake: Intake) -> Intake:
        return _MeteredIntake(intake, self)

    def outlet(self, outlet: Outlet) -> Outlet:
        return _MeteredOutlet(outlet, self)

    async def outcomes(self, operation: str, call: Awaitable[Sequence[Outcome]]) -> Sequence[Outcome]:
        status, started_at = _FAILED, self._begin()
        try:
            outcomes = await call
            status = _status_of(outcomes)
            return outcomes
        except AmqpError as error:
            status = error.condition
            raise
        finally:
            self._end(operation, status, started_at)

    async def reply(self, call: Awaitable[NodeReply]) -> NodeReply:
        status, started_at = _FAILED, self._begin()
        try:
            reply = await call
            status = str(reply.properties.get("statusCode", reply.properties.get("status-code", _FAILED)))
            return reply
        finally:
            self._end("manage", status, started_at)

    def _begin(self) -> float:
        self._requests.in_flight += 1
        return self._monotonic_seconds()

    def _end(self, operation: str, status: str, started_at: float) -> None:
        self._requests.in_flight -= 1
        self._requests.add(operation, status, self._monotonic_seconds() - started_at)


def _status_of(outcomes: Sequence[Outcome]) -> str:
    """Return the condition of the first refusal; conditions are those of the protocol, so their number is bounded."""
    for outcome in outcomes:
        if type(outcome) is Rejected and outcome.error is not None:
            return outcome.error.condition
    return _ACCEPTED


class _MeteredIntake:
    def __init__(self, intake: Intake, meter: NodeMeter) -> None:
        self._intake = intake
        self._meter = meter

    @property
    def reply(self) -> AttachReply:
        return self._intake.reply

    async def take(self, deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        return await self._meter.outcomes("send", self._intake.take(deliveries))

    def closed(self) -> None:
        self._intake.closed()


class _MeteredOutlet:
    def __init__(self, outlet: Outlet, meter: NodeMeter) -> None:
        self._outlet = outlet
        self._meter = meter
        self.start = outlet.start
        self.credit_changed = outlet.credit_changed
        self.closed = outlet.closed

    @property
    def reply(self) -> AttachReply:
        return self._outlet.reply

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Outcome]:
        return await self._meter.outcomes("settle", self._outlet.settle(settlements))
