"""Messages from bytes: every form that clients send, and bytes that are not messages."""

from __future__ import annotations

import os
import struct
from typing import Any

import pytest
from bson import encode
from hypothesis import given
from hypothesis import strategies as some

from asterism.apis.mongo.checksum import crc32c
from asterism.apis.mongo.wire import MESSAGE_BYTES_MAX, Message, MongoCodec, encode_reply
from asterism.apis.transports.codec import MalformedBytes
from tests.support.mongo_messages import (
    CHECKSUM_PRESENT,
    EXHAUST_ALLOWED,
    MORE_TO_COME,
    OP_COMPRESSED,
    OP_REPLY,
    framed,
    op_compressed,
    op_msg,
    op_query,
    read_reply,
    sequence,
)

PING = {"ping": 1, "$db": "admin"}
INSERT = op_msg({"insert": "c", "$db": "d"}, sections=sequence("documents", encode({"_id": 1}), encode({"_id": 2})))


def messages_of(data: bytes) -> list[Message]:
    return list(MongoCodec().receive(data))


def only(data: bytes) -> Message:
    (message,) = messages_of(data)
    return message


@pytest.mark.parametrize(
    "data",
    [op_msg(PING), INSERT, op_msg(PING, flags=CHECKSUM_PRESENT), op_query({"ismaster": 1}), op_compressed(INSERT)],
    ids=["message", "sections", "checksum", "query", "compressed"],
)
def test_messages_are_the_same_however_their_bytes_arrive(data: bytes) -> None:
    codec = MongoCodec()
    single = [message for byte in data * 2 for message in codec.receive(bytes([byte]))]
    assert single == messages_of(data * 2)
    assert len(single) == 2
    assert codec.pending_bytes == 0


def test_a_message_that_is_cut_off_anywhere_is_waited_for() -> None:
    for size in range(len(INSERT)):
        codec = MongoCodec()
        assert list(codec.receive(INSERT[:size])) == []
        assert codec.pending_bytes >= size


def test_documents_beside_the_command_keep_their_bytes() -> None:
    message = only(INSERT)
    assert message.body == {"insert": "c", "$db": "d"}
    assert message.sections == {"documents": [encode({"_id": 1}), encode({"_id": 2})]}


def test_flags_say_how_a_message_is_answered() -> None:
    assert only(op_msg(PING, flags=MORE_TO_COME)).wants_no_reply
    assert only(op_msg(PING, flags=EXHAUST_ALLOWED)).allows_exhaust
    assert not only(op_msg(PING, flags=1 << 20)).wants_no_reply


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<iiii", 15, 1, 0, 2013),
        struct.pack("<iiii", -1, 1, 0, 2013),
        struct.pack("<iiii", MESSAGE_BYTES_MAX + 1, 1, 0, 2013),
        framed(2013, b""),
        framed(2013, b"\x00\x00"),
        *(op_msg(PING, flags=1 << bit) for bit in range(2, 16)),
        op_msg(PING, flags=CHECKSUM_PRESENT)[:-1] + b"\x00",
        framed(2013, b"\x01\x00\x00\x00"),
        framed(2004, b"\x00\x00\x00\x00admin.$cmd"),
        framed(2012, b"\x00"),
        op_compressed(op_msg(PING), size=5),
        op_compressed(op_msg(PING), size=MESSAGE_BYTES_MAX),
        op_compressed(op_msg(PING), size=-1),
        op_compressed(op_msg(PING), compressor=1),
        op_compressed(op_compressed(op_msg(PING))),
        framed(2012, struct.pack("<iiB", 2013, 30, 2) + b"not deflated at all"),
    ],
)
def test_bytes_that_are_no_message_end_the_connection(data: bytes) -> None:
    with pytest.raises(MalformedBytes):
        messages_of(data)


def nested(depth: int) -> bytes:
    heads = [struct.pack("<i", 5 + 8 * inner) + b"\x03a\x00" for inner in range(depth, 0, -1)]
    return b"".join(heads) + encode({}) + bytes(depth)


NO_FLAGS = b"\x00\x00\x00\x00"


@pytest.mark.parametrize(
    "data",
    [
        framed(2013, NO_FLAGS),
        framed(2013, NO_FLAGS + b"\x00\x05\x00"),
        framed(2013, NO_FLAGS + b"\x00" + struct.pack("<i", 1000) + b"\x00"),
        framed(2013, NO_FLAGS + b"\x00" + struct.pack("<i", -5) + b"\x00"),
        framed(2013, NO_FLAGS + b"\x02" + encode({})),
        op_msg(PING, sections=b"\x00" + encode(PING)),
        op_msg(PING, sections=b"\x01" + struct.pack("<i", 8) + b"name"),
    ],
)
def test_sections_that_are_wrong_are_a_problem_and_the_connection_goes_on(data: bytes) -> None:
    broken, whole = messages_of(data + op_msg(PING))
    assert broken.problem
    assert whole.body == PING


@pytest.mark.parametrize(
    "raw",
    [
        b"\x05\x00\x00\x00\x01",
        b"\x0a\x00\x00\x00\x10a\x00\x01\x00\x00",
        encode({"a": True})[:-2] + b"\x02\x00",
        b"\x0e\x00\x00\x00\x02a\x00\x02\x00\x00\x00\xff\x00\x00",
        b"\x0c\x00\x00\x00\x99a\x00\x00\x00\x00\x00\x00",
        nested(1000),
        nested(100_000),
    ],
    ids=["end", "cut", "boolean", "utf8", "type", "depth 1,000", "depth 100,000"],
)
def test_a_command_that_is_no_document_has_a_problem_and_the_connection_goes_on(raw: bytes) -> None:
    broken, whole = messages_of(op_msg(raw) + op_msg(PING))
    assert broken.problem
    assert whole.body == PING


def test_a_field_that_is_there_twice_is_noticed() -> None:
    raw = encode({"find": "c", "filter": {}, "$db": "d"})
    doubled = encode({"find": "c"})[4:-1] + raw[4:-1]
    assert only(op_msg(struct.pack("<i", len(doubled) + 5) + doubled + b"\x00")).duplicate == "find"
    assert only(op_msg(raw)).duplicate == ""


def test_documents_of_a_wrong_length_are_a_problem_of_their_message() -> None:
    for broken in (b"\x04\x00\x00\x00\x00", b"\x00", struct.pack("<i", 100) + b"\x00", b"\xff\xff\xff\xff\xff"):
        assert only(op_msg({"insert": "c"}, sections=sequence("documents", broken))).problem
    assert only(op_msg({"insert": "c"}, sections=sequence("documents") * 2)).problem


@pytest.mark.parametrize("opcode", [1, 1000, 2001, 2002, 2005, 2006, 2007, 2010, 2011, 77])
def test_other_opcodes_are_answered_in_the_old_form(opcode: int) -> None:
    message = only(framed(opcode, b"anything"))
    assert message.problem
    reply = read_reply(encode_reply(message, encode({"ok": 0.0}), reply_id=3, is_failure=True))
    assert (reply.opcode, reply.response_to, reply.flags & 2) == (OP_REPLY, 7, 2)


def test_an_answer_has_the_compressor_of_its_request_but_for_secrets() -> None:
    answer = encode({"ok": 1.0})
    plain = encode_reply(only(op_msg(PING)), answer, reply_id=3)
    packed = encode_reply(only(op_compressed(op_msg(PING))), answer, reply_id=3)
    assert (read_reply(plain).opcode, read_reply(packed).opcode) == (2013, OP_COMPRESSED)
    assert read_reply(plain).body == read_reply(packed).body
    for name in ("hello", "saslStart", "createUser"):
        secret = only(op_compressed(op_msg({name: 1, "$db": "admin"})))
        assert read_reply(encode_reply(secret, answer, reply_id=3)).opcode == 2013


def test_the_checksum_is_that_of_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


@given(some.binary(min_size=500, max_size=4000), some.integers(0, 3999))
def test_a_checksum_notices_a_changed_bit(data: bytes, place: int) -> None:
    changed = bytearray(data)
    changed[place % len(data)] ^= 4
    assert crc32c(bytes(changed)) != crc32c(data)


def test_the_checksum_of_a_long_message_is_that_of_its_parts() -> None:
    # A CRC is linear: that of a sum of three is the sum of the three.
    for size in (513, 514, 1000, 4097, 70_001):
        first, second, third = (os.urandom(size) for _ in range(3))
        mixed = bytes(a ^ b ^ c for a, b, c in zip(first, second, third, strict=True))
        assert crc32c(mixed) == crc32c(first) ^ crc32c(second) ^ crc32c(third)


@given(some.binary(max_size=300))
def test_garbage_is_refused_or_waited_for(data: bytes) -> None:
    codec = MongoCodec()
    try:
        list(codec.receive(data))
    except MalformedBytes:
        return


@given(some.binary(max_size=200), some.sampled_from([2004, 2012, 2013]))
def test_garbage_in_a_frame_is_a_message_or_malformed(content: bytes, opcode: int) -> None:
    try:
        (message,) = messages_of(framed(opcode, content))
    except MalformedBytes:
        return
    assert message.problem or message.body == {} or message.raw_body


VALUES: Any = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**63), 2**63 - 1) | some.floats() | some.text() | some.binary(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text("abc$.", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(some.dictionaries(some.text("abc", min_size=1), VALUES, max_size=4), some.data())
def test_a_damaged_command_is_read_or_refused_and_raises_nothing_else(body: dict[str, Any], data: Any) -> None:
    whole = bytearray(op_msg(body))
    for _ in range(data.draw(some.integers(1, 4))):
        place = data.draw(some.integers(20, len(whole) - 1))
        whole[place] = data.draw(some.integers(0, 255))
    try:
        messages_of(bytes(whole))
    except MalformedBytes:
        return
