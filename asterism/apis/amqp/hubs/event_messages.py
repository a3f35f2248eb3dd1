"""Events and the messages that they come in and go out as.

The content of a stored event is the message as it was sent, without the annotations that the server writes. Mostly
nothing is left before the properties, and the message goes out as fresh annotations followed by the stored bytes.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from asterism.models.event_logs.events import Event, offset_text
from asterism.models.event_logs.layout import NewEvent
from asterism.values.amqp.message import (
    BATCH_FORMAT,
    Message,
    batch_parts,
    encode_annotations,
    encode_delivery_annotations,
    text_of,
)
from asterism.values.amqp.types import InvalidAmqp, Timestamp

PARTITION_KEY: Final = "x-opt-partition-key"
SEQUENCE_NUMBER: Final = "x-opt-sequence-number"
OFFSET: Final = "x-opt-offset"
ENQUEUED_TIME: Final = "x-opt-enqueued-time"
# Written by the server: a received event that is sent again brings those of its earlier life.
_OF_SERVER: Final = frozenset((PARTITION_KEY, SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME, "x-opt-publisher"))
# The service's limit is 128 characters.
PARTITION_KEY_CHARACTERS_MAX: Final = 128

_HEADER: Final = b"\x00\x53\x70"
_DELIVERY_ANNOTATIONS: Final = b"\x00\x53\x71"
_ANNOTATIONS: Final = b"\x00\x53\x72"
_BEFORE_PROPERTIES: Final = (_HEADER, _DELIVERY_ANNOTATIONS, _ANNOTATIONS)

# The annotations section as it is without a partition key: a map of three, its size in one byte.
_NUMBER = struct.Struct(">Q")
_START: Final = b"\x00\x53\x72\xc1"
_ENTRIES: Final = 6
_SEQUENCE_ENTRY: Final = b"\xa3%c%s\x81" % (len(SEQUENCE_NUMBER), SEQUENCE_NUMBER.encode())
_OFFSET_ENTRY: Final = b"\xa3%c%s\xa1" % (len(OFFSET), OFFSET.encode())
_TIME_ENTRY: Final = b"\xa3%c%s\x83" % (len(ENQUEUED_TIME), ENQUEUED_TIME.encode())
_KEY_ENTRY: Final = b"\xa3%c%s\xa1" % (len(PARTITION_KEY), PARTITION_KEY.encode())
_MAP_BYTES_MAX: Final = 0xFF


# --- in ---------------------------------------------------------------------------------------------------------------


def partition_key_of(message: Message) -> str | None:
    """Return the partition key of a message or of the envelope of a batch; InvalidAmqp if it is no text."""
    if not message.annotations_bytes:
        return None
    value = message.annotations.get(PARTITION_KEY)
    if value is None:
        return None
    # A received event that Python sends again has it as binary.
    key = text_of(value)
    if key is None or len(key) > PARTITION_KEY_CHARACTERS_MAX:
        raise InvalidAmqp(f"a partition key is a text of at most {PARTITION_KEY_CHARACTERS_MAX} characters")
    return key


def events_of(payload: bytes, message_format: int) -> tuple[str | None, list[NewEvent]]:
    """Return the partition key by which a payload is placed, None without it, and its events; InvalidAmqp if it has
    none."""
    if message_format != BATCH_FORMAT:
        message = Message.parse(payload)
        key = partition_key_of(message)
        return key, [_event_of(message, key)]
    envelope, parts = batch_parts(payload)
    batch_key = partition_key_of(envelope)
    events = []
    for part in parts:
        message = Message.parse(part)
        key = partition_key_of(message)
        events.append(_event_of(message, batch_key if key is None else key))
        if batch_key is None:
            # The events of a batch have one key, and an envelope may come without it.
            batch_key = key
    return batch_key, events


def _event_of(message: Message, key: str | None) -> NewEvent:
    return NewEvent(_content_of(message), None if key is None else key.encode())


def _content_of(message: Message) -> bytes:
    # Clients get their delivery annotations back, although these are between two peers by the standard.
    before = message.header_bytes + message.delivery_annotations_bytes
    if message.delivery_annotations_bytes:
        # Those that cannot be read are refused here, not when they are sent to receivers.
        encode_delivery_annotations(message.delivery_annotations)
    if not message.annotations_bytes:
        return before + message.bare if before else message.bare
    own = {name: value for name, value in message.annotations.items() if name not in _OF_SERVER}
    return before + (encode_annotations(own) if own else b"") + message.bare


# --- out --------------------------------------------------------------------------------------------------------------


def message_of(event: Event) -> bytes:
    """Return an event as a receiver without metrics gets it; kept with the event, for other receivers."""
    rendered = event.rendered
    if rendered is None:
        rendered = event.rendered = _rendered(event)
    return rendered


def _rendered(event: Event) -> bytes:
    content = event.content
    if content.startswith(_BEFORE_PROPERTIES):
        return _rendered_with_sections(event)
    offset = offset_text(event.sequence).encode()
    entries = b"%b%b%b%c%b%b%b" % (
        _SEQUENCE_ENTRY,
        _NUMBER.pack(event.sequence),
        _OFFSET_ENTRY,
        len(offset),
        offset,
        _TIME_ENTRY,
        _NUMBER.pack(event.enqueued_ms),
    )
    key = event.partition_key
    count = _ENTRIES
    if key is not None:
        if len(key) + len(_KEY_ENTRY) + len(entries) + 2 > _MAP_BYTES_MAX:
            return _rendered_with_sections(event)
        entries = b"%b%b%c%b" % (entries, _KEY_ENTRY, len(key), key)
        count += 2
    return b"%b%c%c%b%b" % (_START, len(entries) + 1, count, entries, content)


def _rendered_with_sections(event: Event) -> bytes:
    message = Message.parse(event.content)
    annotations: dict[str, Any] = {
        SEQUENCE_NUMBER: event.sequence,
        OFFSET: offset_text(event.sequence),
        ENQUEUED_TIME: Timestamp(event.enqueued_ms),
    }
    if event.partition_key is not None:
        annotations[PARTITION_KEY] = event.partition_key.decode()
    annotations.update(message.annotations)
    before = message.header_bytes + message.delivery_annotations_bytes
    return before + encode_annotations(annotations) + message.bare


class RuntimeMetrics:
    """Delivery annotations that tell a receiver how far it is behind."""

    def __init__(self, *, last_sequence: int, last_enqueued_ms: int, now_ms: int) -> None:
        self._annotations = {
            "last_enqueued_sequence_number": last_sequence,
            "last_enqueued_offset": offset_text(last_sequence),
            "last_enqueued_time_utc": Timestamp(last_enqueued_ms),
            "runtime_info_retrieval_time_utc": Timestamp(now_ms),
        }
        self._section = encode_delivery_annotations(self._annotations)

    def within(self, rendered: bytes) -> bytes:
        """Return a message with the metrics, beside delivery annotations of its own."""
        if not rendered.startswith((_HEADER, _DELIVERY_ANNOTATIONS)):
            return self._section + rendered
        message = Message.parse(rendered)
        header, own = message.header_bytes, message.delivery_annotations_bytes
        section = encode_delivery_annotations({**message.delivery_annotations, **self._annotations})
        return header + section + rendered[len(header) + len(own) :]
