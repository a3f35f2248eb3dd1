"""The operations of `$management` on sessions [contract, section E]."""

from __future__ import annotations

from typing import Final

from asterism.apis.amqp.bus.management.requests import Fields, Managed, done, nothing
from asterism.apis.amqp.errors import ARGUMENT_ERROR, SESSION_NOT_FOUND
from asterism.apis.amqp.nodes import AmqpError, NodeReply
from asterism.values.amqp.types import Array, Int, Timestamp

# The time at which clients ask for the sessions with active messages or a state, whenever it was changed.
_ANY_TIME_MS: Final = 253_402_300_800_000
_SESSIONS_DEFAULT: Final = 100
_SESSIONS_MAX: Final = 1_000
# Larger states do not fit beside the rest of an answer.
_STATE_BYTES_MAX: Final = 256 * 1024


async def renew_session_lock(managed: Managed, fields: Fields) -> NodeReply:
    until_ms = await managed.channel.renew_session(fields.required_text("session-id"))
    return done({"expiration": Timestamp(until_ms)})


async def get_session_state(managed: Managed, fields: Fields) -> NodeReply:
    return done({"session-state": await managed.channel.session_state(fields.required_text("session-id"))})


async def set_session_state(managed: Managed, fields: Fields) -> NodeReply:
    state = fields.get("session-state")
    if state is not None and not isinstance(state, bytes):
        raise AmqpError(ARGUMENT_ERROR, "The state of a session is neither binary nor null.")
    if state is not None and len(state) > _STATE_BYTES_MAX:
        raise AmqpError(ARGUMENT_ERROR, f"The state of the session has more than {_STATE_BYTES_MAX} bytes.")
    await managed.channel.set_session_state(fields.required_text("session-id"), state)
    return done()


async def get_message_sessions(managed: Managed, fields: Fields) -> NodeReply:
    updated_since_ms = fields.number("last-updated-time", _ANY_TIME_MS)
    skip = max(fields.number("skip", 0), 0)
    top = min(fields.number("top", _SESSIONS_DEFAULT), _SESSIONS_MAX)
    found = await managed.channel.sessions(None if updated_since_ms >= _ANY_TIME_MS else updated_since_ms, skip, top)
    if not found:
        return nothing(SESSION_NOT_FOUND)
    return done({"skip": Int(skip + len(found)), "sessions-ids": Array.of(str, found)})
