"""Messages that an operator sends, takes and settles."""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.messaging.counts import counts_of
from asterism.apis.admin.messaging.fields import (
    Place,
    channel_of,
    number,
    optional_text,
    place_of,
    sub_queue_of,
)
from asterism.apis.admin.messaging.message_form import listed, read_message
from asterism.apis.admin.messaging.message_view import describe_message
from asterism.apis.admin.parameters import body_object
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.models.messages.channel import Channel
from asterism.models.messages.messages import (
    Abandon,
    Action,
    Complete,
    Counts,
    DeadLetter,
    Defer,
    Failure,
    MessagingRefused,
    Received,
    Unlock,
)
from asterism.values.json.text import dumps

RECEIVED_MAX: Final = 100
# Shorter than the time after which clients of this door give up.
WAIT_SECONDS_MAX: Final = 20
# Within that time a waiting receiver finds what other processes have released.
_OTHERS_SECONDS: Final = 2.0
_TOKEN_BYTES: Final = 16
_MODES: Final = ("peek-lock", "delete")


async def send_messages(services: AdminServices, request: Request) -> Response:
    """Store all messages of a request, or none of them."""
    fields = body_object(request)
    place = place_of(services, fields)
    if place.subscription is not None:
        raise MalformedRequest(reason="A subscription gets its messages from its topic: send them to that.")
    random_bytes = services.store.services.random_bytes
    messages = [read_message(each, message_id=random_bytes(16).hex()) for each in listed(fields, "messages")]
    numbers = await place.entity.send(messages)
    return Response(201, JSON_HEADERS, dumps({"sequence_numbers": list(numbers)}))


async def receive_messages(services: AdminServices, request: Request) -> Response:
    """Take messages: locked ones are settled by another request, those of the mode `delete` are removed at once."""
    fields = body_object(request)
    place, sub_queue = place_of(services, fields), sub_queue_of(fields)
    channel = channel_of(services, place, sub_queue)
    mode = fields.get("mode", "peek-lock")
    if mode not in _MODES:
        raise MalformedRequest(reason=f"'mode' must be one of {', '.join(_MODES)}.")
    count = number(fields, "count", default=1, minimum=1, maximum=RECEIVED_MAX)
    wait_seconds = number(fields, "wait_seconds", default=0, minimum=0, maximum=WAIT_SECONDS_MAX)
    if channel.requires_session:
        found = await _receive_of_session(place, channel, fields, mode, count, wait_seconds)
    elif fields.get("session") is not None:
        raise MalformedRequest(reason=f"'{place.path}' has no sessions.")
    else:
        found = await _receive(channel, count, wait_seconds, lock=mode == "peek-lock")
    answer = {"lock_ms": channel.lock_ms, "messages": [describe_message(message) for message in found]}
    return Response(200, JSON_HEADERS, dumps(answer))


async def _receive(channel: Channel, count: int, wait_seconds: int, *, lock: bool) -> list[Received]:
    found = await receive_at_hand(channel, count, lock=lock)
    return found or (await _receive_within(channel, count, wait_seconds, lock=lock) if wait_seconds else [])


async def receive_at_hand(channel: Channel, count: int, *, lock: bool) -> list[Received]:
    """Take the messages that are there, also those that other processes have stored or released."""
    found = await _receive_known(channel, count, lock=lock)
    if not found and channel.is_shared and await _has_active(channel):
        # Only callers that wait look for the writes of others.
        found = await _receive_within(channel, count, _OTHERS_SECONDS, lock=lock)
        found += await _receive_known(channel, count - len(found), lock=lock)
    return found


async def _receive_known(channel: Channel, count: int, *, lock: bool) -> list[Received]:
    """Take messages of as many fragments as have some: a call of the model asks one of them."""
    found: list[Received] = []
    while len(found) < count:
        page = await channel.receive(count - len(found), lock=lock, wait=False)
        if not page:
            break
        found += page
    return found


async def _receive_within(channel: Channel, count: int, seconds: float, *, lock: bool) -> list[Received]:
    try:
        async with asyncio.timeout(seconds):
            return await channel.receive(count, lock=lock)
    except TimeoutError:
        return []


async def _has_active(channel: Channel) -> bool:
    counts = await counts_of(channel.entity) or {}
    return counts.get((channel.subscription, channel.sub_queue), Counts()).active > 0


async def _receive_of_session(
    place: Place, channel: Channel, fields: Mapping[str, Any], mode: str, count: int, wait_seconds: int
) -> list[Received]:
    """Take messages of a session, which is held for this request alone."""
    if mode != "delete":
        raise MalformedRequest(
            reason=f"The messages of '{place.path}' belong to sessions, whose locks end with the request: "
            "receive them with the mode 'delete', or peek."
        )
    try:
        hold = await channel.accept_session(optional_text(fields, "session"), wait_seconds=float(wait_seconds))
    except MessagingRefused as refusal:
        if refusal.failure is Failure.TIMED_OUT:
            return []
        raise
    try:
        return await channel.receive(count, lock=False, session=hold, wait=False)
    finally:
        await hold.release()


# --- settlement -----------------------------------------------------------------------------------------------------


async def settle_messages(services: AdminServices, request: Request) -> Response:
    """Complete, abandon, defer, release or dead-letter locked messages; those whose lock is lost are listed."""
    fields = body_object(request)
    channel = channel_of(services, place_of(services, fields), sub_queue_of(fields))
    tokens = _tokens(fields)
    failures = await channel.settle([bytes.fromhex(token) for token in tokens], _action(fields))
    failed = [
        {"lock_token": token, "reason": failure.value}
        for token, failure in zip(tokens, failures, strict=True)
        if failure is not None
    ]
    return Response(200, JSON_HEADERS, dumps({"settled": len(tokens) - len(failed), "failed": failed}))


def _action(fields: Mapping[str, Any]) -> Action:
    match fields.get("action"):
        case "complete":
            return Complete()
        case "abandon":
            return Abandon()
        case "defer":
            return Defer()
        case "release":
            return Unlock()
        case "dead-letter":
            return DeadLetter(optional_text(fields, "reason"), optional_text(fields, "description"))
        case _:
            raise MalformedRequest(reason="'action' must be complete, abandon, defer, release or dead-letter.")


def _tokens(fields: Mapping[str, Any]) -> list[str]:
    tokens = fields.get("lock_tokens")
    if not isinstance(tokens, list) or not all(_is_token(token) for token in tokens):
        raise MalformedRequest(reason="'lock_tokens' must be a list of lock tokens, as messages are received with.")
    if len(tokens) > RECEIVED_MAX:
        raise MalformedRequest(reason=f"'lock_tokens' has more than {RECEIVED_MAX} entries; send several requests.")
    return tokens


def _is_token(token: object) -> bool:
    if not isinstance(token, str):
        return False
    try:
        return len(binascii.unhexlify(token)) == _TOKEN_BYTES
    except (binascii.Error, ValueError):
        return False
