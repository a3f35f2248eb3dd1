"""Queues that are emptied: the work goes on between the requests that begin it and follow it."""

from __future__ import annotations

import asyncio
from typing import Final

from asterism.apis.admin.errors import JSON_HEADERS
from asterism.apis.admin.messaging.counts import counts_of, total_of
from asterism.apis.admin.messaging.fields import channel_of, place_of, sub_queue_of
from asterism.apis.admin.messaging.purges import Purge
from asterism.apis.admin.parameters import body_object
from asterism.apis.admin.services import AdminServices
from asterism.apis.transports.http import Request, Response
from asterism.models.messages.channel import Channel
from asterism.models.messages.messages import Counts
from asterism.values.json.text import dumps

# Of a request: enough for small queues, and far from the time after which clients give up.
_ANSWER_SECONDS: Final = 1.0


async def purge_messages(services: AdminServices, request: Request) -> Response:
    """Remove the messages of a queue that are not locked, or go on with it. The answer counts those removed since the
    one before."""
    fields = body_object(request)
    channel = channel_of(services, place_of(services, fields), sub_queue_of(fields))
    purge = services.purges.find(channel)
    removed = 0
    if purge is None or purge.task.done():
        # Messages may have come since the work ended.
        if purge is not None:
            removed = _end(services, purge)
        purge = services.purges.begin(channel, await _left(channel))
    await asyncio.wait({purge.task}, timeout=_ANSWER_SECONDS)
    is_done = purge.task.done()
    left = await _left(channel)
    removed += _end(services, purge) if is_done else _newly_removed(purge, max(purge.total - left, 0))
    return Response(200, JSON_HEADERS, dumps({"removed": removed, "left": left, "is_done": is_done}))


def _end(services: AdminServices, purge: Purge) -> int:
    """Forget a purge that is over; raises the refusal that it has ended with."""
    services.purges.end(purge)
    purge.task.result()
    return _newly_removed(purge, purge.removed)


def _newly_removed(purge: Purge, removed: int) -> int:
    """Return the number that no answer has counted yet. While the work goes on it is an estimate: senders and other
    receivers change the number of messages too."""
    newly = max(removed - purge.announced, 0)
    purge.announced += newly
    return newly


async def _left(channel: Channel) -> int:
    counts = await counts_of(channel.entity)
    return 0 if counts is None else total_of(counts.get((channel.subscription, channel.sub_queue), Counts()))
