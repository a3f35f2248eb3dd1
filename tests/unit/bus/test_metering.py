"""The count of calls to nodes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from asterism.apis.amqp.metering import NodeMeter
from asterism.apis.amqp.nodes import (
    ACCEPTED,
    NOT_ALLOWED,
    NOT_FOUND,
    AmqpError,
    AttachReply,
    Delivery,
    NodeReply,
    Outcome,
    Rejected,
)
from asterism.metrics import DoorRequests
from asterism.values.amqp.types import Int


class Node:
    """An intake with the answers that a test gives."""

    def __init__(self, *answers: Sequence[Outcome] | Exception) -> None:
        self.reply = AttachReply(max_message_bytes=7)
        self.is_closed = False
        self._answers = list(answers)

    async def take(self, deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def closed(self) -> None:
        self.is_closed = True


async def test_calls_are_counted_by_how_they_end() -> None:
    requests = DoorRequests()
    meter = NodeMeter(requests, lambda: 0.0)
    refused = Rejected(AmqpError(NOT_ALLOWED, "No."))
    node = Node([ACCEPTED, ACCEPTED], [ACCEPTED, refused], AmqpError(NOT_FOUND, "Gone."), ValueError("a fault"))
    metered = meter.intake(node)
    assert metered.reply.max_message_bytes == 7
    assert await metered.take([]) == [ACCEPTED, ACCEPTED]
    assert await metered.take([]) == [ACCEPTED, refused]
    with pytest.raises(AmqpError):
        await metered.take([])
    with pytest.raises(ValueError, match="a fault"):
        await metered.take([])
    metered.closed()
    assert node.is_closed
    assert requests.operations["send"].by_status == {"accepted": 1, NOT_ALLOWED: 1, NOT_FOUND: 1, "failed": 1}
    assert requests.in_flight == 0


async def test_requests_of_management_are_counted_by_their_status() -> None:
    requests = DoorRequests()
    meter = NodeMeter(requests, lambda: 0.0)

    async def answer(name: str, status: int) -> NodeReply:
        return NodeReply({name: Int(status)})

    await meter.reply(answer("statusCode", 200))
    await meter.reply(answer("statusCode", 410))
    await meter.reply(answer("status-code", 404))
    assert requests.operations["manage"].by_status == {"200": 1, "410": 1, "404": 1}
