"""The values of messages and their states, and the facts about a stored message by which it is changed or removed."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from asterism.errors import StoredDamage
from asterism.models.messages.layout import NEVER
from asterism.models.messages.messages import NO_PROPERTIES, MessageState
from asterism.values.amqp.value_codec import decode_value, encode_value

_HAS_SESSION: Final = 1
_HAS_PARTITION_KEY: Final = 2
_HAS_SOURCE: Final = 4
_HAS_BODY_ELSEWHERE: Final = 8

# flags, hops, enqueued, expires, scheduled, number in the first entity, lengths of the four texts
_HEAD = struct.Struct(">BBqqqQHHHH")
_BODY = struct.Struct(">QI")
_STATE = struct.Struct(">BI")
_REFERENCES = struct.Struct(">II")
_LOCK = struct.Struct(">16sq")
_SESSION_LOCK = struct.Struct(">8sq")
_DUPLICATE = struct.Struct(">QQ")
_SESSION = struct.Struct(">qH?")

NO_OVERLAY: Final = b""


class BodyPlace(NamedTuple):
    """A content that several messages share: its number in the fragment, and its length."""

    number: int
    length: int


class MessageRecord(NamedTuple):
    """The value of a message. Times are milliseconds; `expires_ms` may be NEVER, `scheduled_ms` and `original` 0."""

    enqueued_ms: int
    expires_ms: int
    scheduled_ms: int
    # The sequence number in the entity that the message was first sent to, if it was forwarded since.
    original: int
    hops: int
    message_id: str
    session_id: str | None
    partition_key: str | None
    dead_letter_source: str | None
    # b"" if the body is elsewhere.
    content: bytes
    body: BodyPlace | None


def pack_record(record: MessageRecord) -> bytes:
    session_id, partition_key, source, body = record[6], record[7], record[8], record[10]
    message_id = record.message_id.encode("utf-8", "surrogatepass")
    flags = 0
    session = key = path = b""
    if session_id is not None:
        flags = _HAS_SESSION
        session = session_id.encode("utf-8", "surrogatepass")
    if partition_key is not None:
        flags |= _HAS_PARTITION_KEY
        key = partition_key.encode("utf-8", "surrogatepass")
    if source is not None:
        flags |= _HAS_SOURCE
        path = source.encode("utf-8", "surrogatepass")
    content = record.content
    if body is not None:
        flags |= _HAS_BODY_ELSEWHERE
        content = _BODY.pack(*body)
    head = _HEAD.pack(
        flags,
        record.hops,
        record.enqueued_ms,
        record.expires_ms,
        record.scheduled_ms,
        record.original,
        len(message_id),
        len(session),
        len(key),
        len(path),
    )
    return b"".join((head, message_id, session, key, path, content))


_HEAD_BYTES: Final = _HEAD.size


def unpack_record(value: bytes) -> MessageRecord:
    try:
        flags, hops, enqueued, expires, scheduled, original, id_bytes, session_bytes, key_bytes, source_bytes = (
            _HEAD.unpack_from(value)
        )
        at_session = _HEAD_BYTES + id_bytes
        message_id = value[_HEAD_BYTES:at_session].decode("utf-8", "surrogatepass")
        session_id = partition_key = source = body = None
        content_at = at_session
        if flags:
            at_key = at_session + session_bytes
            at_source = at_key + key_bytes
            content_at = at_source + source_bytes
            if flags & _HAS_SESSION:
                session_id = value[at_session:at_key].decode("utf-8", "surrogatepass")
            if flags & _HAS_PARTITION_KEY:
                partition_key = value[at_key:at_source].decode("utf-8", "surrogatepass")
            if flags & _HAS_SOURCE:
                source = value[at_source:content_at].decode("utf-8", "surrogatepass")
        content = value[content_at:]
        if flags & _HAS_BODY_ELSEWHERE:
            body = BodyPlace(*_BODY.unpack(content))
            content = b""
    except (struct.error, UnicodeDecodeError):
        raise StoredDamage(what="message") from None
    # As `MessageRecord(…)` makes it, without the function in Python that this calls.
    return tuple.__new__(
        MessageRecord,
        (enqueued, expires, scheduled, original, hops, message_id, session_id, partition_key, source, content, body),
    )


# --- states ---------------------------------------------------------------------------------------------------------


class StateRecord(NamedTuple):
    """The state of a message, where it is not the default."""

    state: MessageState = MessageState.ACTIVE
    # Deliveries that have failed.
    delivery_count: int = 0
    # An AMQP map of the application properties to set on delivery; empty without any.
    overlay: bytes = NO_OVERLAY


DEFAULT_STATE: Final = StateRecord()
_STATES: Final = {int(state): state for state in MessageState}


def pack_state(state: StateRecord) -> bytes:
    return _STATE.pack(state.state, state.delivery_count) + state.overlay


def unpack_state(value: bytes | None) -> StateRecord:
    if value is None:
        return DEFAULT_STATE
    try:
        state, count = _STATE.unpack_from(value)
        return StateRecord(_STATES[state], count, value[_STATE.size :])
    except (struct.error, KeyError):
        raise StoredDamage(what="state of a message") from None


def pack_overlay(properties: Mapping[str, Any]) -> bytes:
    return encode_value(dict(properties)) if properties else NO_OVERLAY


def unpack_overlay(overlay: bytes) -> Mapping[str, Any]:
    return dict(decode_value(overlay)[0]) if overlay else NO_PROPERTIES


def merge_overlay(overlay: bytes, properties: Mapping[str, Any]) -> bytes:
    """Return an overlay with further properties, which replace those of the same names."""
    return pack_overlay({**unpack_overlay(overlay), **properties}) if properties else overlay


# --- facts ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Facts:
    """All that has to be known of a stored message to change or remove it without reading it again."""

    channel: bytes
    number: int
    # Of the value of the message.
    size: int
    expires_ms: int
    session_id: str | None
    body: BodyPlace | None
    state: StateRecord

    @property
    def has_state(self) -> bool:
        """Return whether a state is stored."""
        return self.state is not DEFAULT_STATE


@dataclass(slots=True)
class StoredMessage:
    """A message as it was read."""

    facts: Facts
    record: MessageRecord


def stored_message(channel: bytes, number: int, value: bytes, state: bytes | None) -> StoredMessage:
    record = unpack_record(value)
    known_state = DEFAULT_STATE if state is None else unpack_state(state)
    return StoredMessage(Facts(channel, number, len(value), record[1], record[6], record[10], known_state), record)


def ttl_of(record: MessageRecord) -> int | None:
    """Return the time to live from the moment at which the message was, or will be, active."""
    if record.expires_ms == NEVER:
        return None
    return record.expires_ms - max(record.enqueued_ms, record.scheduled_ms)


# --- small records --------------------------------------------------------------------------------------------------


def pack_references(count: int, length: int) -> bytes:
    return _REFERENCES.pack(count, length)


def unpack_references(value: bytes) -> tuple[int, int]:
    count, length = _REFERENCES.unpack(value)
    return count, length


def pack_lock(token: bytes, until_ms: int) -> bytes:
    return _LOCK.pack(token, until_ms)


def unpack_lock(value: bytes) -> tuple[bytes, int]:
    token, until_ms = _LOCK.unpack(value)
    return token, until_ms


def pack_session_lock(token: bytes, until_ms: int) -> bytes:
    return _SESSION_LOCK.pack(token, until_ms)


def unpack_session_lock(value: bytes) -> tuple[bytes, int]:
    token, until_ms = _SESSION_LOCK.unpack(value)
    return token, until_ms


def pack_duplicate(until_ms: int, number: int) -> bytes:
    return _DUPLICATE.pack(until_ms, number)


def unpack_duplicate(value: bytes) -> tuple[int, int]:
    until_ms, number = _DUPLICATE.unpack(value)
    return until_ms, number


class SessionRecord(NamedTuple):
    """The state of a session."""

    changed_ms: int
    session_id: str
    # None after it was cleared.
    state: bytes | None


def pack_session(record: SessionRecord) -> bytes:
    session_id = record.session_id.encode("utf-8", "surrogatepass")
    return (
        _SESSION.pack(record.changed_ms, len(session_id), record.state is not None) + session_id + (record.state or b"")
    )


def unpack_session(value: bytes) -> SessionRecord:
    try:
        changed_ms, length, has_state = _SESSION.unpack_from(value)
        at_state = _SESSION.size + length
        session_id = value[_SESSION.size : at_state].decode("utf-8", "surrogatepass")
    except (struct.error, UnicodeDecodeError):
        raise StoredDamage(what="session") from None
    return SessionRecord(changed_ms, session_id, value[at_state:] if has_state else None)
