"""Messages as senders bring them: checked, and taken apart as far as the model needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.amqp.bus.limits import BusLimits
from asterism.apis.amqp.bus.outgoing import OWN_ANNOTATIONS
from asterism.apis.amqp.errors import DECODE_ERROR
from asterism.apis.amqp.nodes import INVALID_FIELD, NOT_ALLOWED, SIZE_EXCEEDED, AmqpError
from asterism.models.messages.messages import NewMessage
from asterism.values.amqp.message import (
    BATCH_FORMAT,
    Message,
    batch_parts,
    encode_annotations,
    encode_properties,
    text_of,
)
from asterism.values.amqp.types import InvalidAmqp, Uuid
from asterism.values.amqp.value_codec import encode_value

PARTITION_KEY: Final = "x-opt-partition-key"
SCHEDULED_TIME: Final = "x-opt-scheduled-enqueue-time"

_MESSAGE_ID_BYTES: Final = 16
# Names of the server's annotations begin so, as do a few of the sender's.
_OWN_PREFIX: Final = b"x-opt-"
# Properties of which only the message id is there: 32 hexadecimal digits.
_GENERATED_PROPERTIES: Final = b"\x00\x53\x73\xc0\x23\x01\xa1\x20"


@dataclass(frozen=True, slots=True)
class Parcel:
    """The messages of one transfer, which enter together or not at all."""

    messages: Sequence[NewMessage]
    # The key that the envelope of a batch gives; decides about the fragment.
    key: str | None


class MessageReader:
    """Makes messages for the model of transfers and of requests to schedule."""

    def __init__(self, limits: BusLimits, random_bytes: Callable[[int], bytes]) -> None:
        self._limits = limits
        self._random_bytes = random_bytes

    def read_transfer(self, payload: bytes, message_format: int, *, bytes_max: int) -> Parcel:
        """Return the messages of a transfer; AmqpError refuses it as a whole."""
        try:
            if message_format != BATCH_FORMAT:
                return Parcel((self.read(payload, bytes_max=bytes_max),), None)
            if len(payload) > bytes_max:
                raise too_large(len(payload), bytes_max)
            envelope, payloads = batch_parts(payload)
            key = text_of(envelope.annotations.get(PARTITION_KEY)) if envelope.annotations_bytes else None
            return Parcel([self.read(part, bytes_max=bytes_max) for part in payloads], key)
        except InvalidAmqp as error:
            raise AmqpError(DECODE_ERROR, f"The message cannot be decoded: {error}.") from error

    def read(self, payload: bytes, *, bytes_max: int) -> NewMessage:
        """Return one message; AmqpError or InvalidAmqp refuses it."""
        if len(payload) > bytes_max:
            raise too_large(len(payload), bytes_max)
        message = Message.parse(payload)
        properties = message.properties
        message_id = properties.message_id
        if type(message_id) is not str:
            message_id = _id_text(message_id)
        content = message.payload
        if not message_id:
            # Clients cannot dead-letter a message without an id [A10].
            message_id = self._random_bytes(_MESSAGE_ID_BYTES).hex()
            content = _with_message_id(message, message_id)
        session_id = None if properties.group_id is None else text_of(properties.group_id)
        limits = self._limits
        if len(message_id) > limits.id_characters_max:
            raise AmqpError(NOT_ALLOWED, f"The message id is longer than {limits.id_characters_max} characters.")
        if session_id is not None and len(session_id) > limits.id_characters_max:
            raise AmqpError(NOT_ALLOWED, f"The session id is longer than {limits.id_characters_max} characters.")
        if len(message.application_properties_bytes) > limits.property_bytes_max:
            self._check_properties(message)
        new = NewMessage(content, message_id=message_id, session_id=session_id)
        ttl_ms = message.header.ttl
        if ttl_ms:
            new.ttl_ms = int(ttl_ms)
        sent = message.annotations_bytes
        if _OWN_PREFIX in sent:
            self._read_annotations(message, new)
        return new

    def _read_annotations(self, message: Message, new: NewMessage) -> None:
        annotations = message.annotations
        new.partition_key = text_of(annotations.get(PARTITION_KEY))
        scheduled = annotations.get(SCHEDULED_TIME)
        if scheduled is not None:
            if not isinstance(scheduled, int):
                raise AmqpError(INVALID_FIELD, f"The annotation {SCHEDULED_TIME} is not a timestamp.")
            new.scheduled_ms = int(scheduled)
        if not OWN_ANNOTATIONS.isdisjoint(annotations):
            kept = {name: value for name, value in annotations.items() if name not in OWN_ANNOTATIONS}
            section = message.annotations_bytes
            # The content may have been given a message id: only the sections before the properties are as they came.
            start = len(message.header_bytes) + len(message.delivery_annotations_bytes)
            replaced = encode_annotations(kept) if kept else b""
            new.content = new.content[:start] + replaced + new.content[start + len(section) :]

    def _check_properties(self, message: Message) -> None:
        limits = self._limits
        if len(message.application_properties_bytes) > limits.properties_bytes_max:
            raise AmqpError(
                SIZE_EXCEEDED, f"The application properties have more than {limits.properties_bytes_max} bytes."
            )
        for name, value in message.application_properties.items():
            if len(name) + len(encode_value(value)) > limits.property_bytes_max:
                raise AmqpError(
                    SIZE_EXCEEDED,
                    f"The application property {name[:64]!r} has more than {limits.property_bytes_max} bytes.",
                )


def too_large(size: int, bytes_max: int) -> AmqpError:
    return AmqpError(SIZE_EXCEEDED, f"The message has {size} bytes; the entity takes at most {bytes_max}.")


def _id_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Uuid):
        return value.hex()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def _with_message_id(message: Message, message_id: str) -> bytes:
    if message.properties_bytes:
        properties = encode_properties(message.properties._replace(message_id=message_id))
    else:
        properties = _GENERATED_PROPERTIES + message_id.encode()
    return b"".join(
        (
            message.header_bytes,
            message.delivery_annotations_bytes,
            message.annotations_bytes,
            properties,
            message.application_properties_bytes,
            message.body_bytes,
            message.footer_bytes,
        )
    )
