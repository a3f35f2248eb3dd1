"""The operations of `$management`: a line each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from asterism.apis.amqp.bus.management import messages, rules, sessions
from asterism.apis.amqp.bus.management.requests import Fields, Managed, refusal_reply
from asterism.apis.amqp.errors import DECODE_ERROR, NOT_IMPLEMENTED
from asterism.apis.amqp.nodes import AmqpError, NodeReply, NodeRequest, Right
from asterism.values.amqp.message import text_of
from asterism.values.amqp.types import InvalidAmqp

_PREFIX: Final = "com.microsoft:"
_OPERATION: Final = "operation"


@dataclass(frozen=True, slots=True)
class Operation:
    run: Callable[[Managed, Fields], Awaitable[NodeReply]]
    right: Right = Right.LISTEN


OPERATIONS: Final[Mapping[str, Operation]] = {
    "renew-lock": Operation(messages.renew_lock),
    "peek-message": Operation(messages.peek),
    "receive-by-sequence-number": Operation(messages.receive_deferred),
    "update-disposition": Operation(messages.update_disposition),
    "schedule-message": Operation(messages.schedule, Right.SEND),
    "cancel-scheduled-message": Operation(messages.cancel_scheduled, Right.SEND),
    "renew-session-lock": Operation(sessions.renew_session_lock),
    "get-session-state": Operation(sessions.get_session_state),
    "set-session-state": Operation(sessions.set_session_state),
    "get-message-sessions": Operation(sessions.get_message_sessions),
    # The service asks for no more than Listen, unlike its administration.
    "add-rule": Operation(rules.add_rule),
    "remove-rule": Operation(rules.remove_rule),
    "enumerate-rules": Operation(rules.enumerate_rules),
}


async def answer_request(managed: Managed, request: NodeRequest) -> NodeReply:
    """Carry out the operation that a request names; AmqpError refuses it."""
    try:
        name = text_of(request.message.application_properties.get(_OPERATION)) or ""
        operation = OPERATIONS.get(name.removeprefix(_PREFIX))
        if operation is None:
            raise AmqpError(NOT_IMPLEMENTED, f"The operation {name[:64]!r} is not known here.")
        request.peer.require(request.address, operation.right)
        fields = Fields(request.message.body)
    except InvalidAmqp as error:
        raise AmqpError(DECODE_ERROR, f"The request cannot be decoded: {error}.") from error
    return await operation.run(managed, fields)


__all__ = ["OPERATIONS", "Managed", "Operation", "answer_request", "refusal_reply"]
