"""Changes of a queue as batches: planned on what was read, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from asterism.keyspaces.routing.families import ITEMS
from asterism.models.queues.layout import (
    NEVER,
    STATE_BYTES,
    DueMessage,
    MessageState,
    StoredMessage,
    count_key,
    expiry_key,
    expiry_value,
    pack_state,
    removal_key,
    text_key,
    unpack_message,
    visibility_key,
)
from asterism.models.queues.messages import Message
from asterism.models.queues.record import QueueRecord
from asterism.storage.contract import Add, Batch, Expectation
from asterism.throughput import charge

# Every value begins so: the key is present.
_PRESENT: Final = b""


def record_key(point: bytes) -> bytes:
    return ITEMS + point


@dataclass(slots=True)
class QueueChange:
    """A batch, what it costs, and what it adds to the sizes of the partition."""

    batch: Batch = field(default_factory=Batch)
    cost: float = 0.0
    bytes_delta: int = 0
    items_delta: int = 0


class Planner:
    """Plans changes of one generation of one queue."""

    __slots__ = ("generation", "point")

    def __init__(self, point: bytes, generation: bytes) -> None:
        self.point = point
        self.generation = generation

    # --- messages ---------------------------------------------------------------------------------------------------

    def put(self, message_id: bytes, visible_at: int, state: MessageState, text: bytes) -> QueueChange:
        change = self._expecting_queue()
        self._put_state(change.batch, visible_at, message_id, state)
        change.batch.puts.append((text_key(self.point, self.generation, message_id), text))
        self._count(change, 1, stored_bytes(state))
        change.cost = charge.write(stored_bytes(state), 0)
        return change

    def take(
        self, found: Sequence[StoredMessage], texts: Sequence[bytes], *, until: int
    ) -> tuple[QueueChange, list[Message]]:
        """Make messages invisible until a moment, each a tick after the one before so that they keep their order."""
        change = self._expecting_queue()
        taken: list[Message] = []
        for position, (message, text) in enumerate(zip(found, texts, strict=True)):
            state = message.state._replace(dequeue_count=message.state.dequeue_count + 1)
            visible_at = self._move(change.batch, message, state, until + position)
            taken.append(Message(message.message_id, self.generation, visible_at, state, text))
            change.cost += charge.write(stored_bytes(state), 0)
        return change, taken

    def update(self, message: StoredMessage, *, visible_at: int, text: bytes | None) -> tuple[QueueChange, int]:
        """Return the change, and the moment from which the message is visible: another than before, so that the old
        receipt is no longer valid."""
        change = self._expecting_queue()
        state = message.state
        if text is not None:
            state = state._replace(text_bytes=len(text))
            change.batch.puts.append((text_key(self.point, self.generation, message.message_id), text))
            self._count(change, 0, stored_bytes(state) - stored_bytes(message.state))
        change.cost = charge.replace(
            before_bytes=stored_bytes(message.state), after_bytes=stored_bytes(state), indexed_paths=0
        )
        return change, self._move(change.batch, message, state, visible_at)

    def delete(self, message: StoredMessage) -> QueueChange:
        change = self._expecting_queue()
        self.remove(change, message)
        return change

    def remove(self, change: QueueChange, message: StoredMessage) -> None:
        batch = change.batch
        batch.expectations.append(Expectation(message.key, message.value))
        batch.deletes.append(message.key)
        batch.deletes.append(text_key(self.point, self.generation, message.message_id))
        if message.state.expires_at != NEVER:
            batch.deletes.append(expiry_key(message.state.expires_at, message.message_id))
        self._count(change, -1, -stored_bytes(message.state))
        change.cost += charge.delete(stored_bytes(message.state), 0)

    def _move(self, batch: Batch, message: StoredMessage, state: MessageState, visible_at: int) -> int:
        visible_at += visible_at == message.visible_at
        batch.expectations.append(Expectation(message.key, message.value))
        batch.deletes.append(message.key)
        self._put_state(batch, visible_at, message.message_id, state)
        return visible_at

    def _put_state(self, batch: Batch, visible_at: int, message_id: bytes, state: MessageState) -> None:
        point, generation = self.point, self.generation
        key = visibility_key(point, generation, visible_at=visible_at, message_id=message_id)
        batch.puts.append((key, pack_state(state)))
        if state.expires_at != NEVER:
            place = expiry_value(point, generation, visible_at)
            batch.puts.append((expiry_key(state.expires_at, message_id), place))

    def _expecting_queue(self) -> QueueChange:
        return QueueChange(Batch(expectations=[Expectation(record_key(self.point), self.generation)]))

    def _count(self, change: QueueChange, items: int, size_bytes: int) -> None:
        change.items_delta += items
        change.bytes_delta += size_bytes
        if items:
            change.batch.adds.append(Add(count_key(self.point, self.generation), (items,)))

    # --- removal in the background ----------------------------------------------------------------------------------

    def remove_left(self, messages: Sequence[StoredMessage], *, is_last: bool) -> QueueChange:
        """Remove messages of a generation that is over; with the last of them, all that is known of it."""
        change = QueueChange()
        removal = removal_key(self.point, self.generation)
        change.batch.expectations.append(Expectation(removal, _PRESENT))
        change.batch.may_use_reserve = True
        for message in messages:
            self.remove(change, message)
        change.cost = 0.0
        if is_last:
            change.batch.deletes.append(removal)
        return change

    def remove_due(self, due: Sequence[DueMessage], states: Sequence[bytes | None]) -> QueueChange:
        """Remove messages that have expired, with their states as they were read; entries of messages that are gone are
        removed as well."""
        change = QueueChange()
        for message, value in zip(due, states, strict=True):
            if value is None:
                change.batch.expectations.append(
                    Expectation(message.key, expiry_value(self.point, self.generation, message.visible_at))
                )
                change.batch.deletes.append(message.key)
                continue
            self.remove(change, stored_message(message, value))
        change.cost = 0.0
        return change


def stored_message(due: DueMessage, value: bytes) -> StoredMessage:
    key = visibility_key(due.point, due.generation, visible_at=due.visible_at, message_id=due.message_id)
    return unpack_message(key, value)


def stored_bytes(state: MessageState) -> int:
    """Return the size of a message as partitions count it."""
    return state.text_bytes + STATE_BYTES


# --- queues ---------------------------------------------------------------------------------------------------------


def plan_creation(point: bytes, record: QueueRecord) -> QueueChange:
    key = record_key(point)
    stored = record.to_bytes()
    batch = Batch(expectations=[Expectation(key, None)], puts=[(key, stored)])
    return QueueChange(batch, cost=charge.write(len(stored), 0), bytes_delta=len(stored))


def plan_replacement(point: bytes, before: bytes, after: QueueRecord) -> QueueChange:
    """Replace the record `before`. The messages of a generation that is over are left for removal."""
    key = record_key(point)
    stored = after.to_bytes()
    batch = Batch(expectations=[Expectation(key, before)], puts=[(key, stored)])
    generation = QueueRecord.from_bytes(before).generation
    if generation != after.generation:
        batch.puts.append((removal_key(point, generation), b""))
        batch.may_use_reserve = True
    return QueueChange(batch, cost=charge.write(len(stored), 0), bytes_delta=len(stored) - len(before))


def plan_deletion(point: bytes, before: bytes) -> QueueChange:
    key = record_key(point)
    generation = QueueRecord.from_bytes(before).generation
    batch = Batch(
        expectations=[Expectation(key, before)],
        deletes=[key],
        puts=[(removal_key(point, generation), b"")],
        may_use_reserve=True,
    )
    return QueueChange(batch, cost=charge.delete(len(before), 0), bytes_delta=-len(before))
