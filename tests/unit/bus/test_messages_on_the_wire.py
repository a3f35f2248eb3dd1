"""Messages from a sender to the model, and from the model to a receiver."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.amqp.bus.incoming import MessageReader
from asterism.apis.amqp.bus.limits import BusLimits
from asterism.apis.amqp.bus.outgoing import encode_answer, encode_delivery, tag_of
from asterism.apis.amqp.nodes import NOT_ALLOWED, SIZE_EXCEEDED, AmqpError
from asterism.models.messages.messages import MessageState, NewMessage, Received
from asterism.values.amqp.message import (
    BATCH_FORMAT,
    Header,
    Message,
    Properties,
    encode_annotations,
    encode_application_properties,
    encode_data_body,
    encode_delivery_annotations,
    encode_header,
    encode_properties,
)
from asterism.values.amqp.types import Int, Timestamp, UByte, Uuid

KIB = 1024
TOKEN = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
READER = MessageReader(BusLimits(), lambda size: b"\x5a" * size)
BODY = encode_data_body(b"body")


def read(payload: bytes) -> NewMessage:
    return READER.read(payload, bytes_max=256 * KIB)


def received(content: bytes, **changes: Any) -> Received:
    fields: dict[str, Any] = {
        "sequence_number": 7,
        "enqueued_ms": 1_000_000,
        "expires_ms": None,
        "locked_until_ms": 1_060_000,
        "delivery_count": 0,
        "state": MessageState.ACTIVE,
        "message_id": "m",
        "session_id": None,
        "partition_key": None,
        "fragment": 0,
        "enqueued_sequence_number": None,
        "dead_letter_source": None,
        "scheduled_ms": None,
        "lock_token": TOKEN.bytes,
        "content": content,
    }
    return Received(**{**fields, **changes})


def test_a_message_without_an_id_is_given_32_hexadecimal_digits() -> None:
    new = read(BODY)
    assert new.message_id == "5a" * 16
    assert Message.parse(new.content).properties.message_id == new.message_id


def test_a_generated_id_leaves_the_other_properties_as_they_were() -> None:
    new = read(encode_properties(Properties(subject="s", correlation_id=Uuid(TOKEN.bytes))) + BODY)
    assert Message.parse(new.content).properties == Properties("5a" * 16, subject="s", correlation_id=Uuid(TOKEN.bytes))


def test_the_model_gets_ids_keys_and_times_whatever_their_types() -> None:
    payload = b"".join(
        (
            encode_header(Header(ttl=5_000)),
            encode_annotations(
                {"x-opt-partition-key": b"key", "x-opt-scheduled-enqueue-time": Timestamp(9_000), "mine": 1}
            ),
            encode_properties(Properties(message_id=Uuid(TOKEN.bytes), group_id=b"session")),
            BODY,
        )
    )
    new = read(payload)
    assert (new.message_id, new.session_id, new.partition_key) == (TOKEN.hex, "session", "key")
    assert (new.ttl_ms, new.scheduled_ms) == (5_000, 9_000)
    assert new.content == payload


def test_annotations_of_an_earlier_delivery_are_dropped() -> None:
    first = encode_delivery(received(read(encode_annotations({"mine": 1}) + BODY).content, enqueued_sequence_number=3))
    again = read(first)
    assert Message.parse(again.content).annotations == {"mine": 1}
    assert again.content.endswith(BODY)


def test_a_batch_has_the_key_of_its_envelope() -> None:
    parts = [encode_properties(Properties(message_id=name)) + BODY for name in ("a", "b")]
    payload = encode_annotations({"x-opt-partition-key": "key"}) + b"".join(map(encode_data_body, parts))
    parcel = READER.read_transfer(payload, BATCH_FORMAT, bytes_max=256 * KIB)
    assert [message.message_id for message in parcel.messages] == ["a", "b"]
    assert [message.content for message in parcel.messages] == parts
    assert parcel.key == "key"


@pytest.mark.parametrize(
    ("payload", "condition"),
    [
        (encode_data_body(b"x" * 256 * KIB), SIZE_EXCEEDED),
        (encode_application_properties({"large": "x" * 33 * KIB}) + BODY, SIZE_EXCEEDED),
        (encode_application_properties({str(n): "x" * 16 * KIB for n in range(5)}) + BODY, SIZE_EXCEEDED),
        (encode_properties(Properties(message_id="m" * 129)) + BODY, NOT_ALLOWED),
        (encode_properties(Properties(group_id="s" * 129)) + BODY, NOT_ALLOWED),
        (b"\x00\x53\x79\x40", "amqp:decode-error"),
        (b"\x00", "amqp:decode-error"),
    ],
)
def test_a_message_beyond_the_limits_is_refused(payload: bytes, condition: str) -> None:
    with pytest.raises(AmqpError) as refused:
        READER.read_transfer(payload, 0, bytes_max=256 * KIB)
    assert refused.value.condition == condition


def test_a_locked_delivery_has_exactly_the_annotations_of_the_service() -> None:
    message = Message.parse(encode_delivery(received(BODY)))
    assert message.annotations == {
        "x-opt-enqueued-time": Timestamp(1_000_000),
        "x-opt-sequence-number": 7,
        "x-opt-locked-until": Timestamp(1_060_000),
    }
    assert message.delivery_annotations == {"x-opt-lock-token": Uuid(TOKEN.bytes)}
    assert message.header == Header(delivery_count=0)
    assert message.bare == BODY


def test_a_deleting_delivery_has_empty_delivery_annotations() -> None:
    encoded = encode_delivery(received(BODY, locked_until_ms=None, lock_token=None))
    message = Message.parse(encoded)
    assert set(message.annotations) == {"x-opt-enqueued-time", "x-opt-sequence-number"}
    assert message.delivery_annotations_bytes != b""
    assert message.delivery_annotations == {}


def test_annotations_of_forwarded_deferred_and_dead_messages_follow() -> None:
    encoded = encode_answer(
        received(
            BODY, enqueued_sequence_number=3, state=MessageState.DEFERRED, dead_letter_source="orders", lock_token=None
        )
    )
    annotations = Message.parse(encoded).annotations
    assert annotations["x-opt-enqueue-sequence-number"] == 3
    assert annotations["x-opt-message-state"] == Int(1)
    assert annotations["x-opt-deadletter-source"] == "orders"


def test_sections_of_the_sender_come_back_beside_those_of_the_server() -> None:
    content = b"".join(
        (
            encode_header(Header(durable=True, priority=UByte(5), ttl=60_000)),
            encode_delivery_annotations({"theirs": 1}),
            encode_annotations({f"key-{n}": "x" * 40 for n in range(10)}),
            BODY,
        )
    )
    message = Message.parse(encode_delivery(received(content, expires_ms=1_030_000, delivery_count=2)))
    assert message.header == Header(durable=True, priority=UByte(5), ttl=30_000, delivery_count=2)
    assert message.delivery_annotations["theirs"] == 1
    assert len(message.annotations) == 13


def test_settlements_set_application_properties_and_nothing_else() -> None:
    content = encode_properties(Properties("m")) + encode_application_properties({"a": 1, "b": 2}) + BODY
    message = Message.parse(encode_delivery(received(content, overlay={"b": 3, "DeadLetterReason": "why"})))
    assert message.application_properties == {"a": 1, "b": 3, "DeadLetterReason": "why"}
    assert message.properties_bytes == encode_properties(Properties("m"))
    assert message.body_bytes == BODY


def test_a_tag_is_the_token_in_the_order_of_dot_net() -> None:
    assert tag_of(TOKEN.bytes) == TOKEN.bytes_le


@given(st.dictionaries(st.text("abc-", min_size=1, max_size=9), st.text(max_size=300), max_size=12))
def test_every_map_of_annotations_survives_a_delivery(annotations: dict[str, str]) -> None:
    content = encode_annotations(annotations) + BODY
    delivered = Message.parse(encode_delivery(received(content)))
    own = {"x-opt-enqueued-time", "x-opt-sequence-number", "x-opt-locked-until"}
    assert {name: value for name, value in delivered.annotations.items() if name not in own} == annotations
    assert read(encode_delivery(received(content))).message_id == "5a" * 16
