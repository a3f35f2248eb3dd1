"""The keys and values of queues inside a partition (docs/storage-format.md has them byte by byte).

A queue is one logical partition, at the point of its name. Its messages lie under the *generation* of the queue: eight
random bytes that are new for each creation and each clearing, so that a queue can be cleared, or deleted and created
again, without waiting for the removal of its old messages.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from asterism.errors import StoredDamage
from asterism.values.ordered_text import leading_part

# point, generation, moment from which the message is visible, message id -> state
VISIBILITY: Final = b"\x18"
# point, generation, message id -> text
TEXTS: Final = b"\x19"
# point, generation -> number of messages
COUNTS: Final = b"\x1a"
# point, generation -> nothing; its messages are to be removed
REMOVALS: Final = b"\x1b"
# moment of expiry, message id -> point, generation, moment from which the message is visible
EXPIRY: Final = b"\x98"

GENERATION_BYTES: Final = 8
MESSAGE_ID_BYTES: Final = 16
TICKS_BYTES: Final = 8
# The expiry of a message that never expires: behind every moment.
NEVER: Final = 2**63 - 1

_TICKS = struct.Struct(">Q")
_STATE = struct.Struct(">QQLL")
_PLACE = struct.Struct(f">{GENERATION_BYTES}sQ")
_EXPIRY_TAIL = struct.Struct(f">Q{MESSAGE_ID_BYTES}s")
STATE_BYTES: Final = _STATE.size


class MessageState(NamedTuple):
    """A message without its text. Moments are ticks of 100 ns since 1970."""

    inserted_at: int
    expires_at: int
    dequeue_count: int
    text_bytes: int


class StoredMessage(NamedTuple):
    """A message in the order of visibility. `key` and `value` are the entry, which changes expect."""

    visible_at: int
    message_id: bytes
    state: MessageState
    key: bytes
    value: bytes


class DueMessage(NamedTuple):
    """A message whose time to live has ended, as its expiry entry places it."""

    key: bytes
    expires_at: int
    message_id: bytes
    point: bytes
    generation: bytes
    visible_at: int


def point_of(queue: str) -> bytes:
    return leading_part(queue)


def pack_state(state: MessageState) -> bytes:
    return _STATE.pack(*state)


def unpack_state(value: bytes) -> MessageState:
    try:
        return MessageState(*_STATE.unpack(value))
    except struct.error:
        raise StoredDamage(what="queue message") from None


def visibility_prefix(point: bytes, generation: bytes) -> bytes:
    return VISIBILITY + point + generation


def visibility_key(point: bytes, generation: bytes, *, visible_at: int, message_id: bytes) -> bytes:
    return b"%b%b%b%b%b" % (VISIBILITY, point, generation, _TICKS.pack(visible_at), message_id)


def visible_until(point: bytes, generation: bytes, moment: int) -> bytes:
    """Return the first key behind all messages that are visible at a moment."""
    return VISIBILITY + point + generation + _TICKS.pack(moment + 1)


def unpack_message(key: bytes, value: bytes) -> StoredMessage:
    id_at = len(key) - MESSAGE_ID_BYTES
    (visible_at,) = _TICKS.unpack(key[id_at - TICKS_BYTES : id_at])
    return StoredMessage(visible_at, key[id_at:], unpack_state(value), key, value)


def text_key(point: bytes, generation: bytes, message_id: bytes) -> bytes:
    return TEXTS + point + generation + message_id


def count_key(point: bytes, generation: bytes) -> bytes:
    return COUNTS + point + generation


def removal_key(point: bytes, generation: bytes) -> bytes:
    return REMOVALS + point + generation


def removal_of(key: bytes) -> tuple[bytes, bytes]:
    """Return the point and the generation of a removal."""
    return key[1:-GENERATION_BYTES], key[-GENERATION_BYTES:]


def expiry_key(expires_at: int, message_id: bytes) -> bytes:
    return EXPIRY + _EXPIRY_TAIL.pack(expires_at, message_id)


def expiry_value(point: bytes, generation: bytes, visible_at: int) -> bytes:
    return point + _PLACE.pack(generation, visible_at)


def due_until(moment: int) -> bytes:
    """Return the first key behind all messages that have expired at a moment."""
    return EXPIRY + _TICKS.pack(moment + 1)


def unpack_due(key: bytes, value: bytes) -> DueMessage:
    try:
        expires_at, message_id = _EXPIRY_TAIL.unpack(key[1:])
        generation, visible_at = _PLACE.unpack(value[-_PLACE.size :])
    except struct.error:
        raise StoredDamage(what="expiry of a queue message") from None
    return DueMessage(key, expires_at, message_id, value[: -_PLACE.size], generation, visible_at)
