"""Messages as slices: what is passed on stays as it came, and sections are decoded when they are asked for."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.values.amqp.message import (
    Header,
    Message,
    Properties,
    batch_parts,
    encode_annotations,
    encode_application_properties,
    encode_data_body,
    encode_delivery_annotations,
    encode_header,
    encode_properties,
    encode_value_body,
    leading_ends,
    text_of,
)
from asterism.values.amqp.types import Described, InvalidAmqp, Symbol, Timestamp, UInt, ULong, Uuid
from asterism.values.amqp.value_codec import encode_value
from tests.unit.amqp_values.strategies import payloads


def ask_for_everything(message: Message) -> None:
    """Use every accessor."""
    assert message.header is not None
    assert message.annotations is not None
    assert message.delivery_annotations is not None
    assert message.properties is not None
    assert message.application_properties is not None
    assert message.body is message.body


@given(payloads())
def test_the_sections_of_a_message_are_its_payload(payload: bytes) -> None:
    message = Message.parse(payload)
    before = message.header_bytes + message.delivery_annotations_bytes + message.annotations_bytes
    behind = message.properties_bytes + message.application_properties_bytes + message.body_bytes + message.footer_bytes
    assert before + message.bare == before + behind == payload
    ask_for_everything(message)


@given(payloads())
def test_the_leading_sections_end_where_the_whole_message_says(payload: bytes) -> None:
    message = Message.parse(payload)
    header = len(message.header_bytes)
    delivery_annotations = header + len(message.delivery_annotations_bytes)
    assert leading_ends(message.payload) == (
        header,
        delivery_annotations,
        delivery_annotations + len(message.annotations_bytes),
    )


@given(payloads(), st.data())
def test_a_changed_message_is_another_message_or_invalid(payload: bytes, data: st.DataObject) -> None:
    changed = bytearray(payload or b"\0")
    position = data.draw(st.integers(0, len(changed) - 1))
    changed[position] ^= data.draw(st.integers(1, 255))
    for candidate in (bytes(changed), payload[:position]):
        with contextlib.suppress(InvalidAmqp):
            ask_for_everything(Message.parse(candidate))
        with contextlib.suppress(InvalidAmqp):
            batch_parts(candidate)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_message_or_invalid(data: bytes) -> None:
    with contextlib.suppress(InvalidAmqp):
        ask_for_everything(Message.parse(data))


def properties_of(section: bytes) -> Properties | None:
    """Return the properties of a message that has nothing else; None if they are invalid."""
    with contextlib.suppress(InvalidAmqp):
        return Message.parse(section).properties
    return None


@given(
    st.text(max_size=40),
    st.none() | st.text(max_size=20),
    st.none() | st.text(max_size=20),
    st.integers(3, 60),
    st.integers(0, 255),
)
def test_short_and_long_lists_of_properties_are_read_alike(
    message_id: str, subject: str | None, group_id: str | None, position: int, change: int
) -> None:
    section = bytearray(encode_properties(Properties(message_id=message_id, subject=subject, group_id=group_id)))
    # Also with a byte that is another: lengths that are too large, counts that are too small.
    section[6 + position % (len(section) - 6)] ^= change
    short = bytes(section)
    count, content = short[5], short[6:]
    size = (len(content) + 4).to_bytes(4, "big")
    long = b"\x00\x53\x73\xd0" + size + count.to_bytes(4, "big") + content
    assert properties_of(short) == properties_of(long)


def test_a_text_that_is_longer_than_its_list_is_invalid() -> None:
    with pytest.raises(InvalidAmqp, match="cut short"):
        _ = Message.parse(b"\x00\x53\x73\xc0\x03\x01\xa1\x50\x00\x53\x77\x40").properties


def test_a_message_is_read_section_by_section() -> None:
    header = encode_header(Header(durable=True, priority=4, ttl=60_000, delivery_count=2))
    delivery_annotations = encode_delivery_annotations({"x-opt-lock-token": Uuid(bytes(16))})
    annotations = encode_annotations({"x-opt-partition-key": "k", "x-opt-sequence-number": 5})
    properties = encode_properties(Properties(message_id="m", subject="s", group_sequence=3, creation_time=9))
    application_properties = encode_application_properties({"a": 1, "b": None})
    body = encode_value_body({"x": [1]})
    message = Message.parse(header + delivery_annotations + annotations + properties + application_properties + body)
    assert message.header == Header(durable=True, priority=4, ttl=60_000, delivery_count=2)
    assert message.delivery_annotations == {"x-opt-lock-token": Uuid(bytes(16))}
    assert message.annotations == {"x-opt-partition-key": "k", "x-opt-sequence-number": 5}
    assert message.properties == Properties(message_id="m", subject="s", group_sequence=3, creation_time=9)
    assert type(message.properties.creation_time) is Timestamp
    assert message.application_properties == {"a": 1, "b": None}
    assert message.body == {"x": [1]}
    assert message.bare == properties + application_properties + body
    assert message.annotations_bytes == annotations


def test_an_empty_message_has_nothing_of_anything() -> None:
    message = Message.parse(b"")
    assert message.header == Header()
    assert message.properties == Properties()
    assert (message.annotations, message.application_properties, message.body) == ({}, {}, None)
    assert message.bare == b""


def test_every_field_of_a_section_is_written() -> None:
    assert encode_header(Header()).hex() == "005370" + "c00605" + "40" * 5
    assert encode_properties(Properties()).hex() == "005373" + "c00e0d" + "40" * 13


def test_fields_at_the_end_may_be_missing() -> None:
    section = encode_value(Described(ULong(0x73), ["m"]))
    assert Message.parse(section).properties == Properties(message_id="m")


@pytest.mark.parametrize("descriptor", [ULong(0x73), Symbol("amqp:properties:list")])
def test_long_descriptors_are_written_anew_as_short_ones(descriptor: object) -> None:
    long_form = b"\0\x80" + (0x73).to_bytes(8, "big") if descriptor == 0x73 else b"\0" + encode_value(descriptor)
    body = b"\0\x80" + (0x75).to_bytes(8, "big") + encode_value(b"data")
    message = Message.parse(long_form + encode_value(["m"]) + body)
    assert message.properties.message_id == "m"
    assert message.bare == b"\0\x53\x73" + encode_value(["m"]) + encode_data_body(b"data")


def test_data_sections_are_joined_and_sequences_are_not() -> None:
    assert Message.parse(encode_data_body(b"ab") + encode_data_body(b"cd")).body == b"abcd"
    sequence = encode_value(Described(ULong(0x76), [1, 2]))
    assert Message.parse(sequence + sequence).body == [[1, 2], [1, 2]]


def test_a_described_body_is_read() -> None:
    body = Described(ULong(0x31), [None])
    assert Message.parse(encode_value_body(body)).body == body


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(encode_value_body(1) + encode_value_body(2), id="two values"),
        pytest.param(encode_data_body(b"") + encode_value_body(2), id="two kinds of body"),
        pytest.param(encode_properties(Properties()) + encode_header(Header()), id="the header at the end"),
        pytest.param(encode_header(Header()) * 2, id="two headers"),
        pytest.param(b"\0\x53\x79\x45", id="an unknown section"),
        pytest.param(b"\0\x53\x73\xc1\x01\x00", id="properties as a map"),
        pytest.param(b"\0\x53\x75\x40", id="data that is null"),
        pytest.param(b"\0\x53", id="half a descriptor"),
        pytest.param(b"\x40", id="a value without a section"),
        pytest.param(b"\0\xa3\x01x\x45", id="an unknown symbol"),
    ],
)
def test_sections_out_of_place_are_invalid(payload: bytes) -> None:
    with pytest.raises(InvalidAmqp):
        Message.parse(payload)


def test_a_header_of_other_types_is_invalid() -> None:
    message = Message.parse(encode_value(Described(ULong(0x70), [None, "high"])))
    with pytest.raises(InvalidAmqp):
        assert message.header


def test_more_fields_than_are_known_are_invalid() -> None:
    message = Message.parse(encode_value(Described(ULong(0x70), [None] * 6)))
    with pytest.raises(InvalidAmqp):
        assert message.header


def test_a_batch_is_its_envelope_and_its_messages() -> None:
    messages = [encode_value_body(number) for number in range(3)]
    envelope = encode_annotations({"x-opt-partition-key": "k"}) + encode_properties(Properties(group_id="g"))
    envelope_message, parts = batch_parts(envelope + b"".join(map(encode_data_body, messages)))
    assert envelope_message.payload == envelope
    assert envelope_message.annotations == {"x-opt-partition-key": "k"}
    assert envelope_message.properties.group_id == "g"
    assert parts == messages


@pytest.mark.parametrize("payload", [b"", encode_value_body(1), encode_properties(Properties())])
def test_a_batch_without_data_is_invalid(payload: bytes) -> None:
    with pytest.raises(InvalidAmqp):
        batch_parts(payload)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        (Symbol("a"), "a"),
        (b"a", "a"),
        (b"\xff", None),
        (Uuid(bytes(16)), None),
        (None, None),
        (UInt(1), None),
    ],
)
def test_texts_may_come_as_binary(value: object, text: str | None) -> None:
    assert text_of(value) == text
