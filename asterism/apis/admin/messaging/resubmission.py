"""Dead letters that are sent to their entity again: each is removed when its copy is stored, never before.

Copy and removal are one transaction where both are in one fragment: then no crash makes two messages of one. In a
partitioned entity a message without a key may go to another fragment: there the copy is stored first, and a crash
between the two leaves both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.messaging.fields import channel_of, number, place_of, sub_queue_of
from asterism.apis.admin.messaging.message_view import DEAD_LETTER_PROPERTIES
from asterism.apis.admin.messaging.transfers import receive_at_hand
from asterism.apis.admin.parameters import body_object
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import MalformedRequest
from asterism.models.messages.channel import Channel
from asterism.models.messages.entity import Entity
from asterism.models.messages.messages import COMPLETE, UNLOCK, NewMessage, Received, SubQueue
from asterism.models.messages.transaction import MESSAGES_MAX
from asterism.values.amqp.message import Message, encode_application_properties
from asterism.values.amqp.types import InvalidAmqp
from asterism.values.json.text import dumps

# Of a request, so that it is answered soon; callers send several, and show their progress.
RESUBMITTED_MAX: Final = 200
# Looked through for the dead letters that a request names: those locked meanwhile are released again.
_SEARCHED_MAX: Final = 10_000
_PAGE: Final = 200
# A transaction has at most 100 messages, sent and settled ones together.
_GROUP_MAX: Final = MESSAGES_MAX // 2


async def resubmit_dead_letters(services: AdminServices, request: Request) -> Response:
    """Send the named dead letters again, or the first that are free."""
    fields = body_object(request)
    place, sub_queue = place_of(services, fields), sub_queue_of({"queue": "dead-letter", **fields})
    if sub_queue is SubQueue.MAIN:
        raise MalformedRequest(reason="'queue' must be dead-letter or transfer-dead-letter.")
    channel = channel_of(services, place, sub_queue)
    wanted = _numbers(fields)
    if wanted is None:
        count = number(fields, "count", default=RESUBMITTED_MAX, minimum=1, maximum=RESUBMITTED_MAX)
        found, missing = await receive_at_hand(channel, count, lock=True), []
    else:
        found = await _take(channel, wanted)
        missing = sorted(wanted - {message.sequence_number for message in found})
    done = await _resubmit(place.entity, channel, found)
    return Response(200, JSON_HEADERS, dumps({"resubmitted": done, "missing": missing}))


def _numbers(fields: Mapping[str, Any]) -> set[int] | None:
    numbers = fields.get("sequence_numbers")
    if numbers is None:
        return None
    if not isinstance(numbers, list) or not numbers or not all(type(each) is int for each in numbers):
        raise MalformedRequest(reason="'sequence_numbers' must be a list of sequence numbers.")
    if len(numbers) > RESUBMITTED_MAX:
        raise MalformedRequest(reason=f"'sequence_numbers' has more than {RESUBMITTED_MAX} entries.")
    return set(numbers)


async def _take(channel: Channel, wanted: set[int]) -> list[Received]:
    """Lock the messages with some numbers; others that had to be locked on the way are released at once."""
    found: list[Received] = []
    passed: list[Received] = []
    try:
        while len(found) < len(wanted) and len(passed) < _SEARCHED_MAX:
            page = await receive_at_hand(channel, _PAGE, lock=True)
            for message in page:
                (found if message.sequence_number in wanted else passed).append(message)
            if not page:
                break
    finally:
        await _release(channel, passed)
    return found


async def _resubmit(entity: Entity, channel: Channel, messages: Sequence[Received]) -> int:
    """Send messages again and remove them; return their number. If some cannot be sent, all that are left are
    released."""
    done = 0
    waiting = [*_groups(entity, messages)]
    try:
        while waiting:
            done += await _move(entity, channel, waiting[0])
            del waiting[0]
    finally:
        await _release(channel, [message for group in waiting for message in group])
    return done


def _groups(entity: Entity, messages: Sequence[Received]) -> Iterator[list[Received]]:
    """Divide messages into groups that can be moved in one transaction each."""
    by_fragment: dict[int, list[Received]] = {}
    for message in messages:
        if entity.fragment_for([_copy_of(entity, message)], None) is None:
            yield [message]
        else:
            by_fragment.setdefault(message.fragment, []).append(message)
    for found in by_fragment.values():
        yield from (found[place : place + _GROUP_MAX] for place in range(0, len(found), _GROUP_MAX))


async def _move(entity: Entity, channel: Channel, group: Sequence[Received]) -> int:
    """Send a group again and remove it; return the number of those whose locks were still there."""
    copies = [_copy_of(entity, message) for message in group]
    if entity.fragment_for(copies, None) is None:
        # Without a key, in a partitioned entity: no transaction can say where it goes.
        await entity.send(copies)
        failures = await channel.settle(_tokens(group), COMPLETE)
        return failures.count(None)
    transaction = entity.transaction()
    try:
        failures = await transaction.settle(channel, _tokens(group), COMPLETE)
        kept = [copy for copy, failure in zip(copies, failures, strict=True) if failure is None]
        if kept:
            transaction.send(kept)
    except BaseException:
        transaction.rollback()
        raise
    await transaction.commit()
    return len(kept)


def _copy_of(entity: Entity, message: Received) -> NewMessage:
    """Return a message as it was before it became a dead letter."""
    rest = {name: value for name, value in message.overlay.items() if name not in DEAD_LETTER_PROPERTIES}
    return NewMessage(
        content=_without_reasons(message.content),
        # Without the id, the detection of duplicates does not take the copy for what it was made of.
        message_id="" if entity.description.requires_duplicate_detection else message.message_id,
        session_id=message.session_id,
        partition_key=message.partition_key,
        overlay=rest,
    )


def _without_reasons(content: bytes) -> bytes:
    """Return a content without the properties of a dead letter, which clients that pass messages on may have copied."""
    try:
        message = Message.parse(content)
        properties = message.application_properties
    except InvalidAmqp:
        return content
    if not DEAD_LETTER_PROPERTIES & properties.keys():
        return content
    rest = {name: value for name, value in properties.items() if name not in DEAD_LETTER_PROPERTIES}
    section = encode_application_properties(rest) if rest else b""
    return b"".join(
        (
            message.header_bytes,
            message.annotations_bytes,
            message.properties_bytes,
            section,
            message.body_bytes,
            message.footer_bytes,
        )
    )


async def _release(channel: Channel, messages: Sequence[Received]) -> None:
    if messages:
        await channel.settle(_tokens(messages), UNLOCK)


def _tokens(messages: Sequence[Received]) -> list[bytes]:
    return [message.lock_token for message in messages if message.lock_token is not None]
