"""Connections: how they begin, what is wrong on them, and how they end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.apis.amqp.engine.frame_codec import (
    AMQP_HEADER,
    EMPTY_FRAME,
    SASL_FRAME,
    SASL_HEADER,
    ProtocolHeader,
    encode_frame,
)
from asterism.apis.amqp.engine.performatives import Performative, encode_performative
from asterism.values.amqp.types import Symbol, UByte, UInt, UShort
from tests.unit.amqp_engine.memory_stream import WireClient, value_body, wire_client
from tests.unit.amqp_engine.toy_host import KEY, KEY_NAME, ToyHost, toy_engine


async def closing_condition(client: WireClient) -> str:
    """Return the condition that the server closes the connection with, and see that it ends."""
    [error] = await client.expect(Performative.CLOSE)
    assert await client.receive() is None
    return str(error.value[0])


async def test_a_connection_begins_with_sasl_and_is_answered_with_every_field() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        client.send_bytes(SASL_HEADER)
        assert await client.receive() == ProtocolHeader(SASL_HEADER)
        [mechanisms] = await client.expect(Performative.SASL_MECHANISMS)
        assert mechanisms == ["MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"]
        client.send(Performative.SASL_INIT, [Symbol("MSSBCBS"), b"\0keyname"], kind=SASL_FRAME)
        assert await client.expect(Performative.SASL_OUTCOME) == [UByte(0), None]
        client.send_bytes(AMQP_HEADER + EMPTY_FRAME)
        assert await client.receive() == ProtocolHeader(AMQP_HEADER)
        client.send(Performative.OPEN, ["client", "localhost"])
        assert await client.expect(Performative.OPEN) == ["asterism", None, 65_536, 4999, 120_000, *[None] * 5]
        client.send(Performative.BEGIN, [None, UInt(0), UInt(10), UInt(10)], channel=7)
        assert await client.expect(Performative.BEGIN) == [UShort(7), 0, 5000, 5000, 255, None, None, None]
        client.send(Performative.CLOSE, [])
        assert await client.expect(Performative.CLOSE) == [None]
        assert await client.receive() is None


async def test_everything_may_be_sent_at_once() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        client.send_bytes(
            SASL_HEADER
            + encode_performative(0, Performative.SASL_INIT, [Symbol("EXTERNAL")], kind=SASL_FRAME)
            + AMQP_HEADER
            + encode_performative(0, Performative.OPEN, ["client"])
            + encode_performative(0, Performative.BEGIN, [None, UInt(0), UInt(10), UInt(10)])
        )
        assert await client.receive() == ProtocolHeader(SASL_HEADER)
        await client.expect(Performative.SASL_MECHANISMS)
        await client.expect(Performative.SASL_OUTCOME)
        assert await client.receive() == ProtocolHeader(AMQP_HEADER)
        await client.expect(Performative.OPEN)
        await client.expect(Performative.BEGIN)


@pytest.mark.parametrize(
    ("first", "answer"),
    [
        (AMQP_HEADER, [ProtocolHeader(SASL_HEADER)]),
        (b"AMQP\x02\x01\x00\x00", [ProtocolHeader(SASL_HEADER)]),
        (b"AMQP\x03\x02\x00\x00", [ProtocolHeader(SASL_HEADER)]),
        (b"GET / HTTP/1.1\r\n\r\n", []),
        (EMPTY_FRAME, []),
    ],
)
async def test_another_protocol_is_answered_by_the_header_of_this_one_at_most(
    first: bytes, answer: list[ProtocolHeader]
) -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        client.send_bytes(first)
        assert [await client.receive() for _ in answer] == answer
        assert await client.receive() is None


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", f"\0{KEY_NAME}\0wrong".encode()),
        ("PLAIN", f"\0nobody\0{KEY}".encode()),
        ("PLAIN", b"no zeros"),
        ("PLAIN", None),
        ("SCRAM-SHA-256", b""),
    ],
)
async def test_a_client_that_cannot_log_in_is_told_and_left(mechanism: str, response: bytes | None) -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        client.send_bytes(SASL_HEADER)
        await client.receive()
        await client.expect(Performative.SASL_MECHANISMS)
        client.send(Performative.SASL_INIT, [Symbol(mechanism), response], kind=SASL_FRAME)
        assert await client.expect(Performative.SASL_OUTCOME) == [UByte(1), None]
        assert await client.receive() is None


async def test_a_key_gives_rights_on_the_whole_namespace() -> None:
    host = ToyHost()
    host.is_guarded = True
    async with wire_client(toy_engine(host)) as client:
        await client.open(mechanism="PLAIN", response=f"\0{KEY_NAME}\0{KEY}".encode())
        await client.attach_sender(0, "any")
        await client.attach_receiver(1, "other/path")


async def test_a_key_of_one_namespace_is_of_no_use_in_another() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        client.send_bytes(SASL_HEADER)
        await client.receive()
        await client.expect(Performative.SASL_MECHANISMS)
        response = f"\0{KEY_NAME}\0{KEY}".encode()
        client.send(Performative.SASL_INIT, [Symbol("PLAIN"), response, "asterism.host"], kind=SASL_FRAME)
        await client.expect(Performative.SASL_OUTCOME)
        client.send_bytes(AMQP_HEADER)
        await client.receive()
        client.send(Performative.OPEN, ["client", "other.host"])
        await client.expect(Performative.OPEN)
        assert await closing_condition(client) == "amqp:unauthorized-access"


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        (encode_performative(0, Performative.OPEN, ["c", None, UInt(511)]), "amqp:invalid-field"),
        (encode_performative(0, Performative.OPEN, [None]), "amqp:decode-error"),
        (encode_performative(0, Performative.CLOSE, []), "amqp:connection:framing-error"),
        (encode_frame(0, b"\0\x53"), "amqp:decode-error"),
        (AMQP_HEADER, "amqp:connection:framing-error"),
    ],
)
async def test_a_wrong_open_is_answered_by_open_and_close(body: bytes, condition: str) -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        client.send_bytes(SASL_HEADER)
        await client.receive()
        await client.expect(Performative.SASL_MECHANISMS)
        client.send(Performative.SASL_INIT, [Symbol("ANONYMOUS")], kind=SASL_FRAME)
        await client.expect(Performative.SASL_OUTCOME)
        client.send_bytes(AMQP_HEADER)
        await client.receive()
        client.send_bytes(body)
        await client.expect(Performative.OPEN)
        assert await closing_condition(client) == condition


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        pytest.param(b"\0\x01\0\x01\x02\0\0\0", "amqp:connection:framing-error", id="a frame above the limit"),
        pytest.param(b"\0\0\0\x07\x02\0\0\0", "amqp:connection:framing-error", id="a frame without a head"),
        pytest.param(SASL_HEADER, "amqp:connection:framing-error", id="a header"),
        pytest.param(encode_frame(0, b"x", kind=SASL_FRAME), "amqp:connection:framing-error", id="a frame of SASL"),
        pytest.param(encode_frame(0, b"\0\x53\x99\x45"), "amqp:decode-error", id="an unknown performative"),
        pytest.param(encode_performative(0, Performative.FLOW, []), "amqp:decode-error", id="a flow without a window"),
        pytest.param(
            encode_performative(0, Performative.OPEN, ["c"]), "amqp:connection:framing-error", id="a second open"
        ),
        pytest.param(
            encode_performative(3, Performative.FLOW, []), "amqp:not-allowed", id="a channel without a session"
        ),
        pytest.param(
            encode_performative(0, Performative.BEGIN, [None, UInt(0), UInt(1), UInt(1)]),
            "amqp:illegal-state",
            id="a second begin",
        ),
        pytest.param(
            encode_performative(5000, Performative.BEGIN, [None, UInt(0), UInt(1), UInt(1)]),
            "amqp:connection:framing-error",
            id="a channel above channel-max",
        ),
        pytest.param(
            encode_performative(1, Performative.BEGIN, [None, None, UInt(1)]), "amqp:decode-error", id="a half begin"
        ),
        pytest.param(
            encode_performative(0, Performative.ATTACH, ["n", UInt(256), True]),
            "amqp:connection:framing-error",
            id="a handle above handle-max",
        ),
        pytest.param(
            encode_performative(0, Performative.ATTACH, [None, UInt(1), True]), "amqp:decode-error", id="a half attach"
        ),
    ],
)
async def test_a_connection_is_closed_with_the_condition_of_what_is_wrong(data: bytes, condition: str) -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        client.send_bytes(data)
        assert await closing_condition(client) == condition


async def test_an_error_of_one_session_leaves_the_others() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.begin(channel=1)
        await client.attach_sender(4, "queue")
        client.send_transfer(5, 0, b"")
        [error] = await client.expect(Performative.END)
        assert error.value[0] == "amqp:session:unattached-handle"
        # Still on its way when the session ended, and the client's own end: no error.
        client.send_transfer(4, 0, b"")
        client.send(Performative.DETACH, [UInt(4), True])
        client.send(Performative.END, [])
        client.send(Performative.ATTACH, ["n", UInt(1), True], channel=1)
        await client.expect(Performative.ATTACH)
        await client.begin()
        await client.attach_sender(4, "queue")


async def test_a_handle_is_attached_once() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_sender(4, "queue")
        client.send_attach(4, "queue", is_receiver=False)
        [error] = await client.expect(Performative.END)
        assert error.value[0] == "amqp:session:handle-in-use"


async def test_frames_behind_the_end_of_a_session_are_ignored() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        client.send(Performative.END, [])
        client.send(Performative.DETACH, [UInt(0), True])
        client.send_disposition(0, 10, None, is_settled=True)
        assert await client.expect(Performative.END) == [None]
        await client.begin()
        assert host.closed == ["intake queue"]


async def test_links_have_a_limit() -> None:
    engine = toy_engine(ToyHost(), links_per_connection_max=3)
    async with wire_client(engine) as client:
        await client.open()
        for handle in range(3):
            await client.attach_receiver(handle, "queue")
        assert (await client.attach_receiver(3, "queue"))[5] is None
        assert (await client.expect(Performative.DETACH))[2].value[0] == "amqp:resource-limit-exceeded"
        # The refused one takes no place, whether its client answers the detach or not.
        assert engine.counters.links == 3
        client.send(Performative.DETACH, [UInt(0), True])
        await client.expect(Performative.DETACH)
        client.send(Performative.DETACH, [UInt(3), True])
        await client.attach_receiver(4, "queue")


async def test_the_server_finishes_and_closes_when_it_stops() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "gated")
        client.send_attach(1, "never", is_receiver=True)
        await host.opening.wait()
        client.send_transfer(0, 0, value_body(1))
        client.stream.drain()
        await asyncio.sleep(0)
        host.gate.set()
        assert (await client.expect(Performative.DISPOSITION))[:4] == [True, 0, 0, True]
        assert await closing_condition(client) == "amqp:connection:forced"
    assert len(host.queue("gated").payloads) == 1
    assert sorted(host.closed) == ["intake gated", "opening never"]


async def test_messages_are_taken_although_their_client_has_gone() -> None:
    host = ToyHost()
    engine = toy_engine(host)
    async with wire_client(engine) as client:
        await client.open()
        await client.attach_sender(0, "gated")
        client.send_transfer(0, 0, value_body(1), is_settled=True)
        client.send_transfer(0, 1, value_body(2))
        client.send(Performative.CLOSE, [])
        client.stream.feed_eof()
        client.stream.is_gone = True
        await asyncio.sleep(0.01)
        host.gate.set()
    assert len(host.queue("gated").payloads) == 2
    assert host.closed == ["intake gated"]
    assert (engine.counters.connections, engine.counters.links) == (0, 0)


async def test_nodes_are_let_go_when_the_server_waits_no_longer() -> None:
    host = ToyHost()
    engine = toy_engine(host)
    client = WireClient(engine)
    await client.open()
    await client.attach_sender(0, "gated")
    await client.attach_receiver(1, "queue")
    for number in range(2):
        client.send_transfer(0, number, value_body(1))
        await asyncio.sleep(0.01)
    client.serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await client.serving
    assert sorted(host.closed) == ["intake gated", "outlet queue"]
    await asyncio.sleep(0)
    assert (engine.counters.waiting_bytes, engine.counters.links) == (0, 0)


async def test_a_client_that_sends_faster_than_its_messages_are_taken_is_read_no_further() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host, waiting_count_max=5)) as client:
        await client.open()
        await client.attach_sender(0, "gated")
        for number in range(20):
            client.send_transfer(0, number, value_body(number))
            for _ in range(20):
                await asyncio.sleep(0)
        assert client.stream.has_unread
        host.gate.set()
        settled = 0
        while settled < 20:
            _, first, last, *_ = await client.expect(Performative.DISPOSITION)
            settled += last - first + 1
    # A message alone, those that came meanwhile, and the rest.
    assert len(host.queue("gated").payloads) == 20


async def test_a_client_that_takes_nothing_is_read_no_further() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host, unsent_bytes_max=1000)) as client:
        await client.open()
        await client.attach_receiver(0, "queue")
        client.stream.is_taking.clear()
        host.queue("queue").payloads += [value_body(bytes(900))] * 3
        client.send_flow(0, credit=3)
        for _ in range(50):
            await asyncio.sleep(0)
        # The first is read by the read that was under way.
        for _ in range(2):
            client.send_flow(0, credit=3, wants_echo=True)
            for _ in range(50):
                await asyncio.sleep(0)
        assert client.stream.has_unread
        client.stream.is_taking.set()
        for _ in range(3):
            await client.expect(Performative.TRANSFER)
        for _ in range(2):
            await client.expect(Performative.FLOW)


CONVERSATION = [
    SASL_HEADER,
    encode_performative(0, Performative.SASL_INIT, [Symbol("ANONYMOUS")], kind=SASL_FRAME),
    AMQP_HEADER,
    encode_performative(0, Performative.OPEN, ["client", "localhost", UInt(65_536)]),
    encode_performative(0, Performative.BEGIN, [None, UInt(0), UInt(100), UInt(100)]),
]


def conversation() -> bytes:
    client = object.__new__(WireClient)
    sent: list[bytes] = list(CONVERSATION)
    client.send_bytes = sent.append  # type: ignore[method-assign]
    client.send_attach(0, "queue", is_receiver=False)
    client.send_attach(1, "queue", is_receiver=True)
    client.send_transfer(0, 0, value_body("whole"))
    client.send_transfer(0, 1, b"\0\x53", has_more=True)
    client.send_transfer(0, None, b"\x77\x40")
    client.send_flow(1, credit=5)
    client.send_disposition(0, 1, None, is_settled=True)
    client.send(Performative.DETACH, [UInt(0), True])
    client.send(Performative.END, [])
    client.send(Performative.CLOSE, [])
    return b"".join(sent)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_whatever_arrives_the_connection_ends_and_the_process_goes_on(data: st.DataObject) -> None:
    conversation_bytes = bytearray(conversation())
    for _ in range(data.draw(st.integers(0, 3))):
        position = data.draw(st.integers(0, len(conversation_bytes) - 1))
        conversation_bytes[position] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(conversation_bytes)))
    divisions = sorted(data.draw(st.lists(st.integers(0, cut), max_size=4)))
    host = ToyHost()

    async def play() -> Any:
        engine = toy_engine(host)
        client = WireClient(engine)
        for start, end in zip([0, *divisions], [*divisions, cut], strict=True):
            client.send_bytes(bytes(conversation_bytes[start:end]))
            await asyncio.sleep(0)
        client.stream.feed_eof()
        await client.ended()
        return engine.counters

    counters = asyncio.run(play())
    assert (counters.connections, counters.links, counters.failures) == (0, 0, 0)
    assert host.closed.count("intake queue") <= 1


async def test_a_connection_with_more_than_its_share_is_read_no_further_when_all_hold_too_much() -> None:
    host = ToyHost()
    engine = toy_engine(host, waiting_bytes_total_max=3000, waiting_bytes_share=500)
    async with wire_client(engine) as greedy, wire_client(engine) as modest:
        for client, body in [(greedy, bytes(1000)), (modest, bytes(100))]:
            await client.open()
            await client.attach_sender(0, "gated")
            for number in range(5):
                client.send_transfer(0, number, value_body(body))
                for _ in range(20):
                    await asyncio.sleep(0)
        assert greedy.stream.has_unread
        assert not modest.stream.has_unread
        host.gate.set()
        for client in (greedy, modest):
            last = -1
            while last < 4:
                last = (await client.expect(Performative.DISPOSITION))[2]
    assert engine.counters.waiting_bytes == 0
