"""Links on which clients send events: to a hub, or to one of its partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from asterism.apis.amqp.errors import ENTITY_DISABLED, NOT_IMPLEMENTED, SERVER_BUSY, words
from asterism.apis.amqp.hubs.event_messages import events_of
from asterism.apis.amqp.nodes import (
    ACCEPTED,
    NOT_FOUND,
    SIZE_EXCEEDED,
    AmqpError,
    AttachReply,
    Delivery,
    Outcome,
    Rejected,
)
from asterism.errors import AsterismError, StorageUnavailable
from asterism.models.event_logs.appender import CHUNK_BYTES_MAX, CHUNK_EVENTS_MAX
from asterism.models.event_logs.events import Appended, AppendResult, Busy
from asterism.models.event_logs.hub import Hub
from asterism.models.event_logs.layout import NewEvent
from asterism.models.event_logs.log import PartitionLog
from asterism.partitioning.hub_partition import hub_partition
from asterism.values.amqp.message import BATCH_FORMAT
from asterism.values.amqp.types import InvalidAmqp

DECODE_ERROR: Final = "amqp:decode-error"
# How many partitions a batch without a key is offered to, if the store does not answer for them.
_PARTITIONS_TRIED_MAX: Final = 3


@dataclass(slots=True)
class _Append:
    """Deliveries that go to one partition together, in the order in which they came."""

    log: PartitionLog
    # True if the server has chosen the partition, and may choose another.
    is_movable: bool
    events: list[NewEvent] = field(default_factory=list)
    content_bytes: int = 0
    deliveries: list[int] = field(default_factory=list)

    def has_room(self, content_bytes: int, events: int) -> bool:
        return self.content_bytes + content_bytes <= CHUNK_BYTES_MAX and len(self.events) + events <= CHUNK_EVENTS_MAX


class HubIntake:
    """A link to a hub (`partition` None), or to a partition of it."""

    def __init__(self, hub: Hub, partition: int | None, *, on_closed: Callable[[], None]) -> None:
        self.reply = AttachReply(max_message_bytes=hub.message_bytes_max)
        self._hub = hub
        self._partition = partition
        self._on_closed = on_closed

    def closed(self) -> None:
        self._on_closed()

    async def take(self, deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        refused = unwritable(self._hub)
        if refused is not None:
            raise refused
        outcomes: list[Outcome] = [ACCEPTED] * len(deliveries)
        appends = self._plan(deliveries, outcomes)
        # All take their place before any is waited for.
        begun = [(append, append.log.append(append.events)) for append in appends]
        if len(begun) == 1:
            refusals = [await _refusal(*begun[0])]
        else:
            refusals = await asyncio.gather(*(_refusal(append, result) for append, result in begun))
        if self._hub.is_deleted:
            # Another process has deleted it, and perhaps created it again: clients try again with a new link.
            raise deleted_hub(self._hub)
        for append, refusal in zip(appends, refusals, strict=True):
            if refusal is not None and append.is_movable and refusal.is_movable:
                refusal = await self._moved(append, refusal)
            if refusal is not None:
                for place in append.deliveries:
                    outcomes[place] = Rejected(refusal.error)
        return outcomes

    def _plan(self, deliveries: Sequence[Delivery], outcomes: list[Outcome]) -> list[_Append]:
        """Place deliveries in partitions, and note the outcome of those that are refused."""
        bytes_max = self._hub.message_bytes_max
        appends: list[_Append] = []
        # The last append of each partition, and of those that the server chooses.
        open_appends: dict[int | None, _Append] = {}
        for place, delivery in enumerate(deliveries):
            refusal = _refused_delivery(delivery, bytes_max)
            if refusal is None:
                try:
                    key, events = events_of(delivery.payload, delivery.format)
                except InvalidAmqp as invalid:
                    refusal = AmqpError(DECODE_ERROR, f"The message cannot be read: {invalid}.")
            if refusal is not None:
                outcomes[place] = Rejected(refusal)
                continue
            partition = self._partition_of(key)
            # A batch is a round of its own: single events that came together stay together.
            is_round = partition is None and delivery.format == BATCH_FORMAT
            append = None if is_round else open_appends.get(partition)
            content_bytes = sum(len(event.content) for event in events)
            if append is None or not append.has_room(content_bytes, len(events)):
                log = self._hub.next_log() if partition is None else self._hub.log(partition)
                append = _Append(log, is_movable=partition is None)
                appends.append(append)
                if not is_round:
                    open_appends[partition] = append
            append.events += events
            append.content_bytes += content_bytes
            append.deliveries.append(place)
        return appends

    def _partition_of(self, key: str | None) -> int | None:
        if self._partition is not None:
            # Never by the key: Python's buffered producer hashes otherwise, and names the partition itself.
            return self._partition
        return None if key is None else hub_partition(key, self._hub.partition_count)

    async def _moved(self, append: _Append, refusal: _Refusal) -> _Refusal | None:
        """Offer events to other partitions than the one that was down."""
        last: _Refusal | None = refusal
        for _ in range(min(_PARTITIONS_TRIED_MAX, self._hub.partition_count - 1)):
            append.log = self._hub.next_log()
            last = await _refusal(append, append.log.append(append.events))
            if last is None or not last.is_movable:
                break
        return last


@dataclass(frozen=True, slots=True)
class _Refusal:
    error: AmqpError
    # True if another partition might take the events.
    is_movable: bool = False


async def _refusal(append: _Append, result: Awaitable[AppendResult]) -> _Refusal | None:
    """Wait for an append; return why it was refused, None if it was not."""
    try:
        outcome = await result
    except StorageUnavailable:
        return _Refusal(_busy(f"Partition {append.log.partition} does not answer at present. Try again later."), True)
    except AsterismError as error:
        return _Refusal(words(error))
    match outcome:
        case Appended():
            return None
        case Busy(reason, retry_after_seconds):
            text = f"{reason.value} Try again in {retry_after_seconds:.1f} seconds."
            return _Refusal(_busy(text), is_movable=append.log.is_down)


def _busy(text: str) -> AmqpError:
    return AmqpError(SERVER_BUSY, text)


def _refused_delivery(delivery: Delivery, bytes_max: int) -> AmqpError | None:
    if delivery.transaction is not None:
        return AmqpError(NOT_IMPLEMENTED, "Hubs have no transactions. Send the event without one.")
    if len(delivery.payload) > bytes_max:
        return AmqpError(
            SIZE_EXCEEDED,
            f"The message has {len(delivery.payload):,} bytes, and the hub takes at most {bytes_max:,}. "
            "Send smaller events, or fewer in a batch.",
        )
    return None


def unwritable(hub: Hub) -> AmqpError | None:
    """Return why a hub takes no events at present; None if it does."""
    if hub.is_deleted:
        return deleted_hub(hub)
    return None if hub.description.takes_events else disabled_hub(hub)


def deleted_hub(hub: Hub) -> AmqpError:
    return AmqpError(NOT_FOUND, f"The hub '{hub.name}' has been deleted.")


def disabled_hub(hub: Hub) -> AmqpError:
    return AmqpError(ENTITY_DISABLED, f"The hub '{hub.name}' is {hub.description.status}. Set its status to Active.")
