"""Messages as receivers get them: the sections in front of the bare message made new, everything else passed on.

A message that is only passed on costs one walk over its sections: the annotations of the server are packed in front of
those of the sender, which stay encoded [contract, section E].
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from asterism.models.messages.messages import MessageState, Received
from asterism.values.amqp.message import Message, encode_application_properties, encode_header, leading_ends
from asterism.values.amqp.types import Symbol
from asterism.values.amqp.value_codec import encode_value

# The header counts milliseconds in 32 bits.
TTL_MS_MAX: Final = 2**32 - 1

ENQUEUED_TIME: Final = "x-opt-enqueued-time"
SEQUENCE_NUMBER: Final = "x-opt-sequence-number"
LOCKED_UNTIL: Final = "x-opt-locked-until"
ENQUEUED_SEQUENCE_NUMBER: Final = "x-opt-enqueue-sequence-number"
MESSAGE_STATE: Final = "x-opt-message-state"
DEAD_LETTER_SOURCE: Final = "x-opt-deadletter-source"
LOCK_TOKEN: Final = "x-opt-lock-token"

# Annotations that only the server gives: those that a message brings along from an earlier delivery are dropped.
OWN_ANNOTATIONS: Final = frozenset(
    (ENQUEUED_TIME, SEQUENCE_NUMBER, LOCKED_UNTIL, ENQUEUED_SEQUENCE_NUMBER, MESSAGE_STATE, DEAD_LETTER_SOURCE)
)

_MAP_8: Final = 0xC1
_NO_DELIVERY_ANNOTATIONS: Final = b"\x00\x53\x71\xc1\x01\x00"
# A map of 32 bits: size, count, then the entries.
_ANNOTATIONS_HEAD: Final = struct.Struct(">4sII")
_ANNOTATIONS: Final = b"\x00\x53\x72\xd1"
_DELIVERY_ANNOTATIONS: Final = b"\x00\x53\x71\xd1"


def _key(name: str) -> bytes:
    return encode_value(Symbol(name))


# Key, constructor, value: of the annotations that every delivery has.
_TIMESTAMP: Final = b"\x83"
_LONG: Final = b"\x81"
_UUID: Final = b"\x98"
_ENQUEUED_HEAD: Final = _key(ENQUEUED_TIME) + _TIMESTAMP
_SEQUENCE_HEAD: Final = _key(SEQUENCE_NUMBER) + _LONG
_LOCKED_HEAD: Final = _key(LOCKED_UNTIL) + _TIMESTAMP
_TOKEN_HEAD: Final = _key(LOCK_TOKEN) + _UUID
_ENQUEUED_SEQUENCE_HEAD: Final = _key(ENQUEUED_SEQUENCE_NUMBER) + _LONG
_STATE_HEAD: Final = _key(MESSAGE_STATE) + b"\x71"
_SOURCE_HEAD: Final = _key(DEAD_LETTER_SOURCE)

_UNLOCKED: Final = struct.Struct(f">{len(_ENQUEUED_HEAD)}sq{len(_SEQUENCE_HEAD)}sq")
_LOCKED: Final = struct.Struct(f">{len(_ENQUEUED_HEAD)}sq{len(_SEQUENCE_HEAD)}sq{len(_LOCKED_HEAD)}sq")
# Whole sections: the delivery annotations of a lock but for the token, and annotations with nothing but these three.
_TOKEN_SECTION: Final = _ANNOTATIONS_HEAD.pack(_DELIVERY_ANNOTATIONS, len(_TOKEN_HEAD) + 16 + 4, 2) + _TOKEN_HEAD
_LOCKED_SECTION_HEAD: Final = _ANNOTATIONS_HEAD.pack(_ANNOTATIONS, _LOCKED.size + 4, 6) + _ENQUEUED_HEAD
_LOCKED_SECTION: Final = struct.Struct(f">{len(_LOCKED_SECTION_HEAD)}sq{len(_SEQUENCE_HEAD)}sq{len(_LOCKED_HEAD)}sq")
_NUMBER: Final = struct.Struct(">q")
_STATE: Final = struct.Struct(">i")


def tag_of(token: bytes) -> bytes:
    """Return the delivery tag of a lock token: the same 16 bytes in the order of .NET [A6]."""
    return token[3::-1] + token[5:3:-1] + token[7:5:-1] + token[8:]


def encode_delivery(received: Received) -> bytes:
    """Return a message as a receiving link carries it."""
    content, token = received.content, received.lock_token
    # It was parsed when it was sent: all but these sections is passed on as it is.
    header_end, delivery_end, annotations_end = leading_ends(content)
    if delivery_end > header_end:
        own = b"" if token is None else _TOKEN_HEAD + token
        sent = content[header_end:delivery_end]
        delivery_annotations = _map_section(_DELIVERY_ANNOTATIONS, own, 0 if token is None else 1, sent)
    else:
        delivery_annotations = _NO_DELIVERY_ANNOTATIONS if token is None else _TOKEN_SECTION + token
    return b"".join(
        (
            _header_of(content[:header_end], received),
            delivery_annotations,
            _annotations_of(content[delivery_end:annotations_end], received),
            content[annotations_end:] if not received.overlay else _overlaid(Message.parse(content), received),
        )
    )


def encode_answer(received: Received) -> bytes:
    """Return a message as an answer to a request carries it: the token of a lock stands beside it."""
    message = Message.parse(received.content)
    return b"".join(
        (
            _header_of(message.header_bytes, received),
            message.delivery_annotations_bytes,
            _annotations_of(message.annotations_bytes, received),
            message.bare if not received.overlay else _overlaid(message, received),
        )
    )


def _annotations_of(sent: bytes, received: Received) -> bytes:
    locked_until_ms = received.locked_until_ms
    if not (
        sent
        or locked_until_ms is None
        or received.state
        or received.enqueued_sequence_number is not None
        or received.dead_letter_source is not None
    ):
        # The annotations of most deliveries: written at once.
        return _LOCKED_SECTION.pack(
            _LOCKED_SECTION_HEAD,
            received.enqueued_ms,
            _SEQUENCE_HEAD,
            received.sequence_number,
            _LOCKED_HEAD,
            locked_until_ms,
        )
    if locked_until_ms is None:
        count = 2
        own = _UNLOCKED.pack(_ENQUEUED_HEAD, received.enqueued_ms, _SEQUENCE_HEAD, received.sequence_number)
    else:
        count = 3
        own = _LOCKED.pack(
            _ENQUEUED_HEAD,
            received.enqueued_ms,
            _SEQUENCE_HEAD,
            received.sequence_number,
            _LOCKED_HEAD,
            locked_until_ms,
        )
    if received.enqueued_sequence_number is not None:
        own += _ENQUEUED_SEQUENCE_HEAD + _NUMBER.pack(received.enqueued_sequence_number)
        count += 1
    if received.state is not MessageState.ACTIVE:
        own += _STATE_HEAD + _STATE.pack(received.state)
        count += 1
    if received.dead_letter_source is not None:
        own += _SOURCE_HEAD + encode_value(received.dead_letter_source)
        count += 1
    return _map_section(_ANNOTATIONS, own, count, sent)


def _map_section(head: bytes, own: bytes, count: int, sent: bytes) -> bytes:
    """Return a section whose map has `own` entries, and those of the section that the sender gave."""
    if not sent:
        if not own:
            return _NO_DELIVERY_ANNOTATIONS
        return _ANNOTATIONS_HEAD.pack(head, len(own) + 4, 2 * count) + own
    if sent[3] == _MAP_8:
        sent_count, entries = sent[5], sent[6:]
    else:
        sent_count, entries = int.from_bytes(sent[8:12]), sent[12:]
    return b"".join((_ANNOTATIONS_HEAD.pack(head, len(own) + len(entries) + 4, 2 * count + sent_count), own, entries))


def _header_of(sent: bytes, received: Received) -> bytes:
    ttl_ms = None if received.expires_ms is None else min(received.expires_ms - received.enqueued_ms, TTL_MS_MAX)
    return _encode_header(sent, ttl_ms, received.delivery_count)


@lru_cache(maxsize=1024)
def _encode_header(sent: bytes, ttl_ms: int | None, delivery_count: int) -> bytes:
    """Return a header with the sender's fields but for the two that are the server's."""
    header = Message.parse(sent).header
    # A dead letter has no time to live any more, and still shows the one that it was sent with.
    return encode_header(
        header._replace(ttl=header.ttl if ttl_ms is None else max(ttl_ms, 0), delivery_count=delivery_count)
    )


def _overlaid(message: Message, received: Received) -> bytes:
    """Return the bare message with application properties that settlements have set."""
    properties = {**message.application_properties, **received.overlay}
    return b"".join(
        (
            message.properties_bytes,
            encode_application_properties(properties),
            message.body_bytes,
            message.footer_bytes,
        )
    )
