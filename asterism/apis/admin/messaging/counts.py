"""The numbers of messages of queues, topics and subscriptions, as operators see them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from asterism.apis.admin.messaging.fields import Place
from asterism.errors import AsterismError
from asterism.models.messages.entity import Entity
from asterism.models.messages.messages import Counts, SubQueue

# A node that takes longer is not waited for: the counts of its entities are unknown.
_COUNT_SECONDS_MAX: Final = 3.0
_NONE: Final = Counts()

# By the number of a subscription, 0 for a queue, and the sub-queue.
ChannelCounts = Mapping[tuple[int, SubQueue], Counts]


async def counts_of(entity: Entity) -> ChannelCounts | None:
    """Return the counts of all channels of an entity; None if it is gone or its node does not answer."""
    try:
        async with asyncio.timeout(_COUNT_SECONDS_MAX):
            return await entity.counts()
    except (AsterismError, TimeoutError):
        return None


def describe_counts(place: Place, counts: ChannelCounts | None) -> dict[str, int] | None:
    return None if counts is None else describe_channels(counts, place.number)


def describe_channels(counts: ChannelCounts, number: int) -> dict[str, int]:
    """Describe the main queue of a subscription, or of a queue (0), and the numbers of its dead letters."""
    main, dead, transfer = (counts.get((number, sub_queue), _NONE) for sub_queue in SubQueue)
    return {
        "active": main.active,
        "deferred": main.deferred,
        "scheduled": main.scheduled,
        "dead_letters": total_of(dead),
        "transfer_dead_letters": total_of(transfer),
        "bytes": main.bytes + dead.bytes + transfer.bytes,
    }


def total_of(counts: Counts) -> int:
    return counts.active + counts.deferred + counts.scheduled


def describe_rule(rule: Any) -> dict[str, Any]:
    """Describe a rule in words: its filter as SQL, or as the pairs that must be equal."""
    return {"name": rule.name, "filter": _filter_text(rule.filter), "action": rule.action_sql}


_CORRELATED: Final = (
    "correlation_id",
    "message_id",
    "to",
    "reply_to",
    "label",
    "session_id",
    "reply_to_session_id",
    "content_type",
)


def _filter_text(filter_: Any) -> str:
    match filter_.kind:
        case "sql":
            return filter_.expression or ""
        case "correlation":
            pairs = {name: getattr(filter_, name) for name in _CORRELATED}
            pairs |= {each.name: each.text for each in filter_.properties}
            return ", ".join(f"{name} = {value!r}" for name, value in pairs.items() if value is not None)
        case "true":
            return "all messages"
        case _:
            return "no messages"
