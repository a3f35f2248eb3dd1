"""The operations of `$management` on messages [contract, section E]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from asterism.apis.amqp.bus.management.requests import Fields, Managed, done, nothing
from asterism.apis.amqp.bus.outgoing import encode_answer
from asterism.apis.amqp.bus.sender import message_bytes_max
from asterism.apis.amqp.bus.settlement import COMPLETE, texts_of_keys
from asterism.apis.amqp.errors import ARGUMENT_ERROR, DECODE_ERROR, MESSAGE_NOT_FOUND, words_of_failure
from asterism.apis.amqp.nodes import AmqpError, NodeReply
from asterism.models.messages.messages import Abandon, Action, DeadLetter, Defer, Failure, NewMessage, Received
from asterism.values.amqp.types import Array, InvalidAmqp, Timestamp, Uuid

# Messages of one answer, and of one request to schedule.
_MESSAGES_MAX: Final = 4_096
_PEEK_LOCK: Final = 1


async def renew_lock(managed: Managed, fields: Fields) -> NodeReply:
    renewed = await managed.channel.renew(fields.tokens("lock-tokens"))
    expirations = []
    for until_ms in renewed:
        if isinstance(until_ms, Failure):
            raise words_of_failure(until_ms)
        expirations.append(Timestamp(until_ms))
    return done({"expirations": Array.of(Timestamp, expirations)})


async def peek(managed: Managed, fields: Fields) -> NodeReply:
    count = fields.number("message-count", 1)
    if count < 1:
        raise AmqpError(ARGUMENT_ERROR, "The number of messages to peek is less than 1.")
    found = await managed.channel.peek(
        fields.number("from-sequence-number", 0),
        min(count, _MESSAGES_MAX),
        session_id=fields.text("session-id"),
        bytes_max=managed.limits.peek_bytes_max,
    )
    if not found:
        return nothing(MESSAGE_NOT_FOUND)
    return done({"messages": [{"message": encode_answer(received)} for received in found]})


async def receive_deferred(managed: Managed, fields: Fields) -> NodeReply:
    received = await managed.channel.receive_deferred(
        _bounded(fields.numbers("sequence-numbers")),
        lock=fields.number("receiver-settle-mode", _PEEK_LOCK) == _PEEK_LOCK,
        session_id=fields.text("session-id"),
    )
    return done({"messages": [_with_token(message) for message in received]})


def _with_token(received: Received) -> dict[str, Any]:
    encoded: dict[str, Any] = {"message": encode_answer(received)}
    if received.lock_token is not None:
        encoded["lock-token"] = Uuid(received.lock_token)
    return encoded


# --- settlement -----------------------------------------------------------------------------------------------------


def _dead_letter(fields: Fields, properties: Mapping[str, Any]) -> Action:
    return DeadLetter(fields.text("deadletter-reason"), fields.text("deadletter-description"), properties)


_ACTIONS: Final[Mapping[str, Callable[[Fields, Mapping[str, Any]], Action]]] = {
    "completed": lambda _, __: COMPLETE,
    "abandoned": lambda _, properties: Abandon(properties),
    # Spelled so by the service.
    "defered": lambda _, properties: Defer(properties),
    "suspended": _dead_letter,
}


async def update_disposition(managed: Managed, fields: Fields) -> NodeReply:
    status = fields.required_text("disposition-status").lower()
    make_action = _ACTIONS.get(status)
    if make_action is None:
        raise AmqpError(ARGUMENT_ERROR, f"{status[:64]!r} is not a status that a message can be left in.")
    action = make_action(fields, texts_of_keys(fields.mapping("properties-to-modify")))
    failures = await managed.channel.settle(fields.tokens("lock-tokens"), action, session_id=fields.text("session-id"))
    for failure in failures:
        if failure is not None:
            raise words_of_failure(failure)
    return done()


# --- scheduled messages ---------------------------------------------------------------------------------------------


async def schedule(managed: Managed, fields: Fields) -> NodeReply:
    bytes_max = message_bytes_max(managed.entity)
    messages = [_scheduled(managed, item, bytes_max) for item in _bounded(fields.items("messages"))]
    numbers = await managed.entity.send(messages)
    return done({"sequence-numbers": Array.of(int, numbers)})


def _scheduled(managed: Managed, item: Any, bytes_max: int) -> NewMessage:
    fields = Fields(item)
    payload = fields.get("message")
    if not isinstance(payload, bytes):
        raise AmqpError(ARGUMENT_ERROR, "A message to schedule is not binary.")
    try:
        message = managed.reader.read(payload, bytes_max=bytes_max)
    except InvalidAmqp as error:
        raise AmqpError(DECODE_ERROR, f"The message cannot be decoded: {error}.") from error
    if message.scheduled_ms is None:
        raise AmqpError(ARGUMENT_ERROR, "A message to schedule has no x-opt-scheduled-enqueue-time.")
    # Beside the message as in it.
    return replace(
        message,
        session_id=message.session_id or fields.text("session-id"),
        partition_key=message.partition_key or fields.text("partition-key"),
    )


async def cancel_scheduled(managed: Managed, fields: Fields) -> NodeReply:
    await managed.entity.cancel_scheduled(_bounded(fields.numbers("sequence-numbers")))
    return done()


def _bounded(items: Sequence[Any]) -> Sequence[Any]:
    if len(items) > _MESSAGES_MAX:
        raise AmqpError(ARGUMENT_ERROR, f"The request is about more than {_MESSAGES_MAX} messages.")
    return items
