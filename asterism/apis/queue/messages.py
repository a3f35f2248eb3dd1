"""Messages: put, get, peek, update, delete, clear."""

from __future__ import annotations

from typing import Final

from asterism.access.sas_grants import ResourceType
from asterism.apis.queue.context import Call, queue_of
from asterism.apis.queue.errors import malformed_receipt, message_not_found
from asterism.apis.queue.message_xml import date_of, read_text, write_peeked, write_put, write_taken
from asterism.apis.storage.headers import read_whole
from asterism.apis.storage.refusals import (
    invalid_query_parameter,
    missing_query_parameter,
    out_of_range_query_parameter,
    secondary_is_read_only,
)
from asterism.apis.storage.routes import Needs
from asterism.apis.storage.xml_text import xml_response
from asterism.apis.transports.http import Response
from asterism.models.queues.receipts import Receipt, read_message_id, read_receipt, receipt_text
from asterism.values.ticks import TICKS_PER_SECOND

# Seven days, the longest that a message can be invisible, and the life of one that names none.
WEEK_SECONDS: Final = 7 * 24 * 3600
GET_INVISIBLE_SECONDS: Final = 30
MESSAGES_MAX: Final = 32
# The service's type of the parameter.
LIFE_SECONDS_MAX: Final = 2**31 - 1
FOR_EVER: Final = -1

_TO_PEEK: Final = Needs(ResourceType.OBJECT, "r", "r")
_TO_GET: Final = Needs(ResourceType.OBJECT, "p", "p")
_INVISIBLE: Final = "visibilitytimeout"
_LIFE: Final = "messagettl"


async def put_message(call: Call) -> Response:
    life_seconds = _whole(call, _LIFE, minimum=FOR_EVER, maximum=LIFE_SECONDS_MAX, default=WEEK_SECONDS)
    if life_seconds == 0:
        raise out_of_range_query_parameter(_LIFE, "0", minimum=1, maximum=LIFE_SECONDS_MAX)
    # A message that expires before it is visible would be of no use.
    longest = WEEK_SECONDS if life_seconds == FOR_EVER else min(WEEK_SECONDS, life_seconds - 1)
    delay_seconds = _whole(call, _INVISIBLE, minimum=0, maximum=longest, default=0)
    text = read_text(call.request.body)
    message = await (await queue_of(call)).put(
        text,
        delay_ticks=delay_seconds * TICKS_PER_SECOND,
        live_ticks=None if life_seconds == FOR_EVER else life_seconds * TICKS_PER_SECOND,
    )
    return xml_response(201, write_put(message))


async def get_or_peek(call: Call) -> Response:
    """Serve both operations of one address: they differ by a parameter, and in what they are allowed to."""
    peeks = call.query.get("peekonly", "").lower()
    if peeks not in ("", "true", "false"):
        raise invalid_query_parameter("peekonly", call.query["peekonly"])
    if peeks == "true":
        call.allow(_TO_PEEK)
        return await _peek_messages(call)
    if call.is_secondary:
        raise secondary_is_read_only()
    call.allow(_TO_GET)
    return await _get_messages(call)


async def _get_messages(call: Call) -> Response:
    count = _count(call)
    seconds = _whole(call, _INVISIBLE, minimum=1, maximum=WEEK_SECONDS, default=GET_INVISIBLE_SECONDS)
    taken = await (await queue_of(call)).get(count, invisible_ticks=seconds * TICKS_PER_SECOND)
    return xml_response(200, write_taken(taken))


async def _peek_messages(call: Call) -> Response:
    return xml_response(200, write_peeked(await (await queue_of(call)).peek(_count(call))))


async def update_message(call: Call) -> Response:
    receipt = _receipt(call)
    if not call.query.get(_INVISIBLE):
        raise missing_query_parameter(_INVISIBLE)
    seconds = _whole(call, _INVISIBLE, minimum=0, maximum=WEEK_SECONDS, default=0)
    # Without a body, the message keeps its text.
    text = read_text(call.request.body) if call.request.body else None
    renewed = await (await queue_of(call)).update(
        _message_id(call), receipt, invisible_ticks=seconds * TICKS_PER_SECOND, text=text
    )
    return Response(
        204,
        [
            ("x-ms-popreceipt", receipt_text(renewed.generation, renewed.visible_at)),
            ("x-ms-time-next-visible", date_of(renewed.visible_at)),
        ],
    )


async def delete_message(call: Call) -> Response:
    receipt = _receipt(call)
    await (await queue_of(call)).delete(_message_id(call), receipt)
    return Response(204, [])


async def clear_messages(call: Call) -> Response:
    await (await queue_of(call)).clear()
    return Response(204, [])


def _count(call: Call) -> int:
    return _whole(call, "numofmessages", minimum=1, maximum=MESSAGES_MAX, default=1)


def _whole(call: Call, name: str, *, minimum: int, maximum: int, default: int) -> int:
    value = read_whole(call.query, name, minimum=minimum, maximum=maximum, default=default)
    return default if value is None else value


def _message_id(call: Call) -> bytes:
    message_id = read_message_id(call.resource.name)
    if message_id is None:
        raise message_not_found()
    return message_id


def _receipt(call: Call) -> Receipt:
    text = call.query.get("popreceipt")
    if not text:
        raise missing_query_parameter("popreceipt")
    receipt = read_receipt(text)
    if receipt is None:
        raise malformed_receipt(text)
    return receipt
