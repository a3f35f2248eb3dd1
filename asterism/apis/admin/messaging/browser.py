"""Messages read without a change to them: a page of a queue, a subscription or their dead letters."""

from __future__ import annotations

from typing import Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.messaging.fields import channel_of, place_of, sub_queue_of
from asterism.apis.admin.messaging.message_view import describe_message
from asterism.apis.admin.parameters import query_parameters, whole_number_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.limits import KIB
from asterism.models.messages.messages import Received
from asterism.values.json.text import dumps

COUNT_DEFAULT: Final = 20
COUNT_MAX: Final = 100
_BYTES_MAX: Final = 512 * KIB
# Sequence numbers have the fragment above 48 bits.
_NUMBER_MAX: Final = 10**15 * 9


async def show_messages(services: AdminServices, request: Request) -> Response:
    """Describe the messages of ?namespace=&entity= from a sequence number on; `next` is null behind the last."""
    parameters = query_parameters(request)
    place = place_of(services, parameters)
    channel = channel_of(services, place, sub_queue_of(parameters))
    start = whole_number_of(parameters, "from", default=0, minimum=0, maximum=_NUMBER_MAX)
    count = whole_number_of(parameters, "count", default=COUNT_DEFAULT, minimum=1, maximum=COUNT_MAX)
    # Another message tells that there is a next page.
    found = await channel.peek(start, count + 1, session_id=parameters.get("session"), bytes_max=_BYTES_MAX)
    page = found[:count]
    answer = {
        "messages": [describe_message(message) for message in page],
        "next": page[-1].sequence_number + 1 if page and _may_have_more(found, count) else None,
    }
    return Response(200, JSON_HEADERS, dumps(answer))


def _may_have_more(found: list[Received], count: int) -> bool:
    """Return True unless the page has come to the end: one that is short may have met its limit of bytes."""
    return len(found) > count or sum(len(message.content) for message in found) > _BYTES_MAX // 4
