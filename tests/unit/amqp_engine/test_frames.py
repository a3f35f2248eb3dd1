"""Frames and performatives as bytes: however they are divided, and in all their forms."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.amqp.engine.frame_codec import (
    AMQP_HEADER,
    EMPTY_FRAME,
    SASL_HEADER,
    Frame,
    FrameCodec,
    ProtocolHeader,
    encode_frame,
)
from asterism.apis.amqp.engine.outcomes import described_error, encoded_state, error_of, state_of
from asterism.apis.amqp.engine.performatives import Performative, decode_performative, encode_performative
from asterism.apis.amqp.engine.transfer_codec import (
    ACCEPTED_STATE,
    continuation_payload_bytes_max,
    decode_disposition,
    decode_transfer,
    encode_continuation,
    encode_disposition,
    encode_transfer,
    transfer_payload_bytes_max,
)
from asterism.apis.amqp.nodes import ACCEPTED, RELEASED, AmqpError, Declared, Modified, Outcome, Rejected
from asterism.apis.transports.codec import MalformedBytes
from asterism.values.amqp.types import Described, InvalidAmqp, Symbol, UInt, ULong
from asterism.values.amqp.value_codec import decode_value, encode_value

FRAME_BYTES_MAX = 1000

MESSAGES = st.lists(
    st.builds(Frame, st.integers(0, 1), st.integers(0, 65_535), st.binary(max_size=300))
    | st.sampled_from([ProtocolHeader(AMQP_HEADER), ProtocolHeader(SASL_HEADER)]),
    max_size=8,
)
NUMBERS = st.integers(0, 2**32 - 1)


def encode_all(messages: list[Frame | ProtocolHeader]) -> bytes:
    return b"".join(
        message.content
        if isinstance(message, ProtocolHeader)
        else encode_frame(message.channel, message.body, kind=message.kind)
        for message in messages
    )


@given(MESSAGES, st.data())
def test_messages_are_the_same_however_their_bytes_are_divided(
    messages: list[Frame | ProtocolHeader], data: st.DataObject
) -> None:
    encoded = encode_all(messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(encoded)), max_size=10)))
    codec = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX)
    pieces = [encoded[start:end] for start, end in zip([0, *cuts], [*cuts, len(encoded)], strict=True)]
    assert [message for piece in pieces for message in codec.receive(piece)] == messages
    assert codec.pending_bytes == 0


@given(MESSAGES)
def test_messages_arrive_byte_by_byte(messages: list[Frame | ProtocolHeader]) -> None:
    codec = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX)
    encoded = encode_all(messages)
    assert [message for byte in encoded for message in codec.receive(bytes([byte]))] == messages


def test_the_size_of_a_frame_under_way_is_known() -> None:
    codec = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX)
    frame = encode_frame(1, b"body")
    assert list(codec.receive(frame[:3])) == []
    assert codec.pending_bytes == 8
    assert list(codec.receive(frame[3:9])) == []
    assert codec.pending_bytes == len(frame)
    assert list(codec.receive(frame[9:])) == [Frame(0, 1, b"body")]
    assert codec.pending_bytes == 0


def test_an_extended_head_is_skipped() -> None:
    codec = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX)
    assert list(codec.receive(bytes.fromhex("00000010 03000002 ffffffff") + b"body")) == [Frame(0, 2, b"body")]
    assert list(codec.receive(EMPTY_FRAME)) == [Frame(0, 0, b"")]


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("000003e9 02000000", id="a frame above the limit"),
        pytest.param("ffffffff 02000000", id="a frame of 4 GiB"),
        pytest.param("00000007 02000000", id="a frame that is shorter than its head"),
        pytest.param("00000008 01000000", id="a body within the head"),
        pytest.param("00000008 03000000", id="a head that is longer than the frame"),
        pytest.param("47455420 2f204854", id="another protocol"),
    ],
)
def test_frames_that_cannot_be_are_refused_before_they_arrive(head: str) -> None:
    codec = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX)
    messages = codec.receive(EMPTY_FRAME + bytes.fromhex(head))
    assert next(messages) == Frame(0, 0, b"")
    with pytest.raises(MalformedBytes):
        next(messages)


# --- performatives --------------------------------------------------------------------------------------------------


def test_every_field_is_written_behind_a_short_descriptor() -> None:
    frame = encode_performative(3, Performative.FLOW, [UInt(1)])
    assert frame.hex() == "0000001a02000003" + "005313" + "c00d0b" + "5201" + "40" * 10


@pytest.mark.parametrize("descriptor", [ULong(0x16), Symbol("amqp:detach:list")])
def test_descriptors_have_three_forms_and_lists_may_end_early(descriptor: object) -> None:
    long_form = b"\0\x80" + (0x16).to_bytes(8, "big") + encode_value([UInt(7)])
    for body in (encode_value(Described(descriptor, [UInt(7)])), long_form):
        assert decode_performative(body + b"payload") == (Performative.DETACH, [UInt(7), None, None], len(body))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        b"\0\x53",
        b"\0\x53\x99\x45",
        b"\0\x53\x16",
        b"\x45",
        b"\0\x53\x16\xc1\x01\0",
        b"\0\xa3\x01x\x45",
        encode_value(Described(ULong(0x18), [None, None])),
        b"\0\x53\x14\xc0",
    ],
)
def test_bodies_that_are_no_performative_are_invalid(body: bytes) -> None:
    with pytest.raises(InvalidAmqp):
        decode_performative(body)


@given(st.binary(max_size=60))
def test_any_body_is_a_performative_or_invalid(body: bytes) -> None:
    for prefix in (b"", b"\0\x53\x14\xc0", b"\0\x53\x15\xc0", b"\0\x53\x12\xc0"):
        for decode in (decode_performative, decode_transfer, decode_disposition):
            with contextlib.suppress(InvalidAmqp):
                decode(prefix + body)


# --- transfers and dispositions -------------------------------------------------------------------------------------

STATES = st.none() | st.just(Described(ULong(0x34), [b"t", None]))


@given(
    handle=NUMBERS,
    delivery_id=st.none() | NUMBERS,
    tag=st.none() | st.binary(max_size=40),
    message_format=st.none() | NUMBERS,
    flags=st.lists(st.none() | st.booleans(), min_size=5, max_size=5),
    state=STATES,
    length=st.integers(5, 11),
    payload=st.binary(max_size=20),
)
def test_transfers_are_read_as_any_performative(
    handle: int,
    delivery_id: int | None,
    tag: bytes | None,
    message_format: int | None,
    flags: list[bool | None],
    state: Any,
    length: int,
    payload: bytes,
) -> None:
    number = None if delivery_id is None else UInt(delivery_id)
    wanted_format = None if message_format is None else UInt(message_format)
    settled, more, resume, aborted, batchable = flags
    fields = [UInt(handle), number, tag, wanted_format, settled, more, None, state, resume, aborted, batchable][:length]
    body = b"\0\x53\x14" + encode_value(fields) + payload
    _, padded, end = decode_performative(body)
    transfer = decode_transfer(body)
    assert transfer[:3] == (handle, delivery_id, tag)
    assert transfer.format == (message_format or 0)
    assert (transfer.is_settled, transfer.has_more, transfer.is_aborted) == (
        padded[4] is True,
        padded[5] is True,
        padded[9] is True,
    )
    assert transfer.state == padded[7]
    assert transfer.payload == body[end:] == payload


@given(NUMBERS, st.none() | NUMBERS, st.booleans(), st.booleans(), st.sampled_from([ACCEPTED_STATE, None, RELEASED]))
def test_dispositions_are_read_as_any_performative(
    first: int, last: int | None, is_from_receiver: bool, is_settled: bool, state: Any
) -> None:
    described = Described(ULong(0x26), []) if state is RELEASED else state
    number = None if last is None else UInt(last)
    fields = [is_from_receiver, UInt(first), number, is_settled, described, None]
    for content in (encode_value(fields), encode_value(fields[:5])):
        disposition = decode_disposition(b"\0\x53\x15" + content)
        assert disposition == (is_from_receiver, first, first if last is None else last, is_settled, described)


@given(NUMBERS, st.binary(max_size=32), st.booleans(), st.booleans(), st.binary(max_size=50))
def test_written_transfers_have_every_field(
    delivery_id: int, tag: bytes, is_settled: bool, has_more: bool, payload: bytes
) -> None:
    frame = encode_transfer(
        9, 200, delivery_id=delivery_id, tag=tag, is_settled=is_settled, has_more=has_more, payload=payload
    )
    [message] = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX).receive(frame)
    assert isinstance(message, Frame)
    assert decode_value(message.body, 3)[0] == [200, delivery_id, tag, 0, is_settled, has_more, *[None] * 5]
    assert message.body.endswith(payload)
    assert transfer_payload_bytes_max(len(frame), tag) == len(payload)


@given(st.booleans(), st.booleans(), st.binary(max_size=50))
def test_later_frames_of_a_delivery_have_no_id(is_settled: bool, has_more: bool, payload: bytes) -> None:
    frame = encode_continuation(9, 200, is_settled=is_settled, has_more=has_more, payload=payload)
    [message] = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX).receive(frame)
    assert isinstance(message, Frame)
    assert decode_value(message.body, 3)[0] == [200, None, None, None, is_settled, has_more, *[None] * 5]
    assert continuation_payload_bytes_max(len(frame)) == len(payload)


@given(NUMBERS, NUMBERS, st.booleans(), st.integers(0, 600))
def test_written_dispositions_are_read_again(first: int, last: int, is_from_receiver: bool, length: int) -> None:
    state = Described(ULong(0x25), [Described(ULong(0x1D), [Symbol("c"), "x" * length, None])])
    frame = encode_disposition(5, is_from_receiver=is_from_receiver, first=first, last=last, state=encode_value(state))
    [message] = FrameCodec(frame_bytes_max=FRAME_BYTES_MAX).receive(frame)
    assert isinstance(message, Frame)
    assert message.channel == 5
    assert decode_performative(message.body)[1] == [is_from_receiver, first, last, True, state, None]


# --- outcomes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (ACCEPTED, 0x24),
        (RELEASED, 0x26),
        (Rejected(), 0x25),
        (Modified(delivery_failed=True), 0x27),
        (Modified(undeliverable_here=True, annotations={Symbol("a"): 1}), 0x27),
    ],
)
@pytest.mark.parametrize("transaction", [None, b"t"])
def test_outcomes_are_read_as_they_are_written(outcome: Outcome, code: int, transaction: bytes | None) -> None:
    state, _ = decode_value(encoded_state(outcome, transaction))
    assert state_of(state) == (outcome, transaction)
    assert (state if transaction is None else state.value[1]).descriptor == code


def test_outcomes_may_have_symbols_for_descriptors() -> None:
    assert state_of(Described(Symbol("amqp:released:list"), [])).outcome is RELEASED
    assert state_of(Described(Symbol("amqp:received:list"), [UInt(0), ULong(0)])).outcome is None


def test_a_declaration_is_answered_by_the_name_of_a_transaction() -> None:
    assert decode_value(encoded_state(Declared(b"t")))[0] == Described(ULong(0x33), [b"t"])


def test_errors_keep_their_fields() -> None:
    error = error_of(described_error(AmqpError("a:b", "sentence", {"key": "value"})))
    assert (error.condition, error.description, error.info) == ("a:b", "sentence", {"key": "value"})


def test_an_error_without_a_form_loses_what_cannot_be_written() -> None:
    error = error_of(described_error(AmqpError("é", "x" * 10_000 + "\ud800", {"key": object()})))
    assert error.condition == "amqp:internal-error"
    assert len(error.description) <= 2048
    assert error.info is None


@pytest.mark.parametrize(
    "state",
    [
        "text",
        Described(ULong(0x24), {}),
        Described(ULong(0x25), [1]),
        Described(ULong(0x25), [None, None]),
        Described(ULong(0x25), [Described(ULong(0x1D), [None])]),
        Described(ULong(0x27), [None, None, []]),
        Described(ULong(0x34), [None]),
    ],
)
def test_states_of_another_form_are_invalid(state: Any) -> None:
    with pytest.raises(InvalidAmqp):
        state_of(state)
