"""Bytes and frames that no client sends: whatever comes, the engine ends or goes on, and nothing in it fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.apis.amqp.engine.frame_codec import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from asterism.apis.amqp.engine.performatives import Performative, encode_performative
from asterism.values.amqp.message import encode_application_properties
from asterism.values.amqp.message import encode_value_body as value_body
from asterism.values.amqp.types import (
    Array,
    Described,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Uuid,
)
from asterism.values.amqp.value_codec import encode_value
from tests.unit.amqp_engine.memory_stream import ACCEPTED_STATE, WAIT_SECONDS_MAX, MemoryStream
from tests.unit.amqp_engine.toy_host import KEY, KEY_NAME, ToyHost, toy_engine


def beginning() -> bytes:
    """Return the first messages of a client that gives a key, up to a session."""
    response = f"\0{KEY_NAME}\0{KEY}".encode()
    return b"".join(
        (
            SASL_HEADER,
            encode_performative(0, Performative.SASL_INIT, [Symbol("PLAIN"), response], kind=SASL_FRAME),
            AMQP_HEADER,
            encode_performative(0, Performative.OPEN, ["client", "localhost", UInt(4096)]),
            encode_performative(0, Performative.BEGIN, [None, UInt(0), UInt(100), UInt(100)]),
        )
    )


def attach(handle: int, address: str, *, is_receiver: bool) -> bytes:
    termini = [Described(ULong(0x28), [address]), Described(ULong(0x29), [address])]
    return encode_performative(
        0, Performative.ATTACH, [f"link {handle}", UInt(handle), is_receiver, None, None, *termini, None, None, UInt(0)]
    )


def transfer(handle: int, number: int, payload: bytes, *, has_more: bool = False) -> bytes:
    tag = number.to_bytes(4, "big")
    fields = [UInt(handle), UInt(number), tag, UInt(0), False, has_more]
    return encode_performative(0, Performative.TRANSFER, fields, payload=payload)


def conversation() -> bytes:
    """Return everything that a client with a sender, a receiver and requests sends."""
    request = encode_application_properties({"operation": "x"}) + value_body({"a": 1})
    session = [UInt(0), UInt(100), UInt(0), UInt(100)]
    return b"".join(
        (
            beginning(),
            attach(0, "queue", is_receiver=False),
            attach(1, "queue", is_receiver=True),
            attach(2, "$management", is_receiver=False),
            attach(3, "$management", is_receiver=True),
            encode_performative(0, Performative.FLOW, [*session, UInt(1), UInt(0), UInt(10)]),
            encode_performative(0, Performative.FLOW, [*session, UInt(3), UInt(0), UInt(10)]),
            transfer(0, 0, value_body("first")),
            transfer(0, 1, value_body("second")[:3], has_more=True),
            transfer(0, 1, value_body("second")[3:]),
            transfer(2, 2, request),
            encode_performative(0, Performative.DISPOSITION, [True, UInt(0), UInt(1), False, ACCEPTED_STATE]),
            encode_performative(0, Performative.DETACH, [UInt(0), True]),
            encode_performative(0, Performative.END, []),
            encode_performative(0, Performative.CLOSE, []),
        )
    )


CONVERSATION = conversation()


def failures_after(*pieces: bytes) -> int:
    """Serve a client that sends these bytes and leaves; return how many failures were not foreseen."""

    async def serve() -> int:
        engine = toy_engine(ToyHost())
        stream = MemoryStream()
        serving = asyncio.create_task(engine.serve(stream))
        for piece in pieces:
            stream.feed(piece)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        stream.feed_eof()
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            await serving
        counters = engine.counters
        assert (counters.connections, counters.links, counters.waiting_bytes) == (0, 0, 0)
        return counters.failures

    return asyncio.run(serve())


def test_the_conversation_itself_is_without_fault() -> None:
    assert failures_after(CONVERSATION) == 0


@given(st.integers(0, len(CONVERSATION)), st.integers(1, 50))
def test_bytes_may_end_anywhere_and_come_in_pieces(length: int, count: int) -> None:
    sent = CONVERSATION[:length]
    size = max(1, length // count)
    assert failures_after(*(sent[start : start + size] for start in range(0, length, size))) == 0


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, len(CONVERSATION) - 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_bytes_may_be_any(flips: list[tuple[int, int]]) -> None:
    sent = bytearray(CONVERSATION)
    for place, mask in flips:
        sent[place] ^= mask
    assert failures_after(bytes(sent)) == 0


UINTS = st.sampled_from([0, 1, 2, 3, 4, 255, 256, 2**31 - 1, 2**31, 2**32 - 1]).map(UInt)
SIMPLE: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    UINTS,
    st.sampled_from([ULong(2**64 - 1), Int(-1), -1, -(2**63), Short(-5), UShort(65535), UByte(1), UByte(7)]),
    st.sampled_from(
        ["", "queue", "missing", "$cbs", "$management", "never", Symbol("x"), b"", b"\xff", Uuid(bytes(16))]
    ),
    st.sampled_from([Timestamp(-1), float("nan"), float("inf")]),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.none(), st.text(max_size=3), UINTS), inner, max_size=3),
        st.builds(Described, st.one_of(st.integers(0x20, 0x35).map(ULong), inner), st.lists(inner, max_size=4)),
        st.builds(Described, inner, inner),
        st.just(Array.of(Symbol, ["a", "b"])),
    ),
    max_leaves=8,
)
AMQP_CODES = [code for code in Performative if code < Performative.SASL_MECHANISMS and code != Performative.CLOSE]
FIELD_COUNTS = {
    Performative.OPEN: 10,
    Performative.BEGIN: 8,
    Performative.ATTACH: 14,
    Performative.FLOW: 11,
    Performative.TRANSFER: 11,
    Performative.DISPOSITION: 6,
    Performative.DETACH: 3,
    Performative.END: 1,
}
FRAMES = st.builds(
    lambda channel, code, fields, payload: encode_performative(
        channel, code, fields[: FIELD_COUNTS[code]], payload=payload
    ),
    st.sampled_from([0, 0, 0, 1, 4999, 5000, 65535]),
    st.sampled_from(AMQP_CODES),
    st.lists(VALUES, min_size=14, max_size=14),
    st.sampled_from([b"", b"\x00\x53\x77\xa1\x01a", b"\x00", bytes(100)]),
)
SET_UP = (
    beginning()
    + attach(0, "queue", is_receiver=False)
    + attach(1, "queue", is_receiver=True)
    + attach(2, "$cbs", is_receiver=False)
    + attach(3, "$cbs", is_receiver=True)
)
GOOD = (transfer(0, 0, value_body("a")), encode_performative(0, Performative.FLOW, [*map(UInt, (0, 9, 0, 9, 1, 0, 9))]))


@settings(max_examples=200)
@given(st.lists(FRAMES, min_size=1, max_size=6))
def test_fields_may_have_any_value(frames: list[bytes]) -> None:
    assert failures_after(SET_UP, *GOOD, *frames) == 0


# Fields that are likely, with one that is not: deeper than values that are all random.
LIKELY: dict[Performative, list[Any]] = {
    Performative.BEGIN: [None, UInt(0), UInt(10), UInt(10)],
    Performative.ATTACH: [
        "name", UInt(5), True, UByte(0), UByte(1), Described(ULong(0x28), ["queue"]), Described(ULong(0x29), ["x"]),
        None, None, UInt(0), None, None, None, None,
    ],
    Performative.FLOW: [UInt(0), UInt(9), UInt(0), UInt(9), UInt(1), UInt(0), UInt(9), None, True, True, None],
    Performative.TRANSFER: [UInt(0), UInt(7), b"t", UInt(0), False, False, None, None, None, False, False],
    Performative.DISPOSITION: [True, UInt(0), UInt(5), False, Described(ULong(0x24), []), None],
    Performative.DETACH: [UInt(0), True, None],
    Performative.END: [None],
}  # fmt: skip


ODD: list[Any] = [
    None, True, UInt(0), UInt(255), UInt(256), UInt(2**32 - 1), ULong(2**64 - 1), Int(-1), -1, -(2**63), UByte(7), "",
    "x", b"", b"\xff", Symbol("x"), Uuid(bytes(16)), Timestamp(-1), float("nan"), [], {}, [None], {None: [1]},
    Array.of(str, []), Described(ULong(0x24), []), Described(ULong(0x25), [1]),
    Described(ULong(0x27), [None, None, {b"a": 1}]),
    Described(ULong(0x34), [b"t", Described(ULong(0x24), [])]), Described(ULong(0x34), [None]),
    Described(ULong(0x28), [1, 2, 3, 4, True]), Described(ULong(0x28), ["queue"] + [[1]] * 10), Described([], []),
    Described(ULong(0x30), []), Described(ULong(0x29), [None] * 20),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "place"), [(code, place) for code, fields in LIKELY.items() for place in range(len(fields))]
)
def test_any_single_field_may_have_any_value(code: Performative, place: int) -> None:
    for value in ODD:
        fields = [*LIKELY[code][:place], value, *LIKELY[code][place + 1 :]]
        channel = 1 if code == Performative.BEGIN else 0
        frame = encode_performative(channel, code, fields, payload=value_body("x"))
        # Behind it what uses the state that it may have left: the numbers of the session, and the links.
        assert failures_after(SET_UP, *GOOD, frame, *GOOD, transfer(5, 3, b"")) == 0, value


@pytest.mark.parametrize(
    "field", [None, [], {}, [[1]], "x", ULong(2**64 - 1), Described([1], 2), float("nan")], ids=repr
)
def test_descriptors_may_be_any_value(field: Any) -> None:
    described = Described(field, [field])
    assert failures_after(SET_UP, encode_frame(0, encode_value(described))) == 0
    state = encode_performative(0, Performative.DISPOSITION, [True, UInt(0), UInt(0), False, described])
    assert failures_after(SET_UP, *GOOD, state) == 0
