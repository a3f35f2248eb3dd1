"""Codecs: whatever way the bytes are cut, the messages are the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.transports.codec import ByteBuffer, MalformedBytes
from tests.toy_door.echo import LengthPrefixedCodec, encode


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    for start, end in itertools.pairwise(places):
        yield data[start:end]


def messages_of(codec: LengthPrefixedCodec, data: Iterator[bytes] | list[bytes]) -> list[bytes | str]:
    """Return what comes out of the codec; an error as its text, after which nothing is fed any more."""
    messages: list[bytes | str] = []
    try:
        for piece in data:
            messages.extend(codec.receive(piece))
    except MalformedBytes as error:
        messages.append(str(error))
    return messages


@given(st.lists(st.binary(max_size=50)), st.lists(st.integers(min_value=0)))
def test_any_division_of_the_bytes_gives_the_same_messages(messages: list[bytes], cuts: list[int]) -> None:
    data = b"".join(map(encode, messages))
    codec = LengthPrefixedCodec()
    assert messages_of(codec, pieces(data, cuts)) == messages
    assert codec.pending_bytes == 0


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_a_codec_that_is_fed_one_byte_at_a_time_gives_the_same_messages(messages: list[bytes]) -> None:
    data = b"".join(map(encode, messages))
    assert messages_of(LengthPrefixedCodec(), [data[at : at + 1] for at in range(len(data))]) == messages


@given(st.lists(st.binary(max_size=8), max_size=3), st.binary(min_size=9, max_size=20), st.lists(st.integers(0)))
def test_the_messages_before_an_error_come_out_however_the_bytes_are_cut(
    good: list[bytes], too_long: bytes, cuts: list[int]
) -> None:
    data = b"".join(map(encode, [*good, too_long]))
    found = messages_of(LengthPrefixedCodec(message_bytes_max=8), pieces(data, cuts))
    assert found == [*good, f"a message of {len(too_long)} bytes"]


def test_a_message_that_is_too_long_is_refused_before_its_bytes_arrive() -> None:
    with pytest.raises(MalformedBytes):
        list(LengthPrefixedCodec(message_bytes_max=8).receive(b"\x00\x00\x00\x09"))


def test_the_size_of_a_message_under_way_is_known_from_its_beginning() -> None:
    codec = LengthPrefixedCodec()
    assert list(codec.receive(encode(bytes(1000))[:10])) == []
    assert codec.pending_bytes == 1004


@given(st.lists(st.one_of(st.binary(max_size=300_000), st.integers(min_value=0, max_value=400_000)), max_size=20))
def test_a_buffer_gives_back_what_was_put_in_in_the_same_order(steps: list[bytes | int]) -> None:
    buffer, left = ByteBuffer(), b""
    for step in steps:
        if isinstance(step, bytes):
            buffer.append(step)
            left += step
        else:
            size = min(step, len(left))
            assert buffer.peek(size) == left[:size]
            assert buffer.peek(5, offset=size) == left[size : size + 5]
            assert buffer.take(size) == left[:size]
            left = left[size:]
        assert len(buffer) == len(left)


@given(st.binary(max_size=30), st.binary(max_size=30), st.integers(min_value=0, max_value=10))
def test_a_buffer_finds_bytes_behind_what_was_taken(first: bytes, second: bytes, offset: int) -> None:
    buffer = ByteBuffer()
    buffer.append(first + second)
    buffer.skip(len(first))
    assert buffer.find(b"\r\n", offset=offset) == second.find(b"\r\n", offset)
