"""Links in both directions: credit, deliveries of many frames, settlement, and detaches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asterism.apis.amqp.engine.performatives import Performative
from asterism.apis.amqp.nodes import ACCEPTED, RELEASED, AmqpError, Modified, Rejected
from asterism.values.amqp.message import BATCH_FORMAT, encode_data_body
from asterism.values.amqp.types import Array, Described, Symbol, UInt, ULong
from tests.unit.amqp_engine.memory_stream import ACCEPTED_STATE, WireClient, value_body, wire_client
from tests.unit.amqp_engine.toy_host import ToyHost, toy_engine

RELEASED_STATE = Described(ULong(0x26), [])


def rejected(condition: str, description: str) -> Described:
    return Described(ULong(0x25), [Described(ULong(0x1D), [Symbol(condition), description, None])])


# --- attaching ------------------------------------------------------------------------------------------------------


async def test_a_sender_gets_its_own_words_back_and_credit_in_one_write() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        client.send_attach(3, "amqps://localhost:5671/small", is_receiver=False)
        answer = await client.expect(Performative.ATTACH)
        assert client.stream.sent.empty()
        flow = await client.expect(Performative.FLOW)
        assert answer[:5] == ["link-3", 3, True, None, None]
        assert answer[6].value == ["amqps://localhost:5671/small", *[None] * 6]
        assert answer[10] == 1000
        assert flow == [0, 5000, 0, 5000, 3, 0, 1000, None, False, False, None]


async def test_a_receiver_gets_its_source_back_with_what_the_node_has_settled() -> None:
    host = ToyHost()
    host.filters = {"com.microsoft:session-filter": "session 7"}
    selector = Described(Symbol("apache.org:selector-filter:string"), "text")
    filters = {Symbol("com.microsoft:session-filter"): None, Symbol("selector"): selector}
    source = Described(ULong(0x28), ["Queue/x", None, None, None, None, None, None, filters])
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        answer = await client.attach_receiver(0, "", source=source, properties={"com.microsoft:epoch": 4})
        assert answer[2] is False
        assert answer[5].value[0] == "Queue/x"
        assert answer[5].value[7] == {"com.microsoft:session-filter": "session 7", "selector": selector}
        assert answer[9] == 0
        assert answer[13] == {"com.microsoft:epoch": 4}
    assert host.attaches[0].filters == {"com.microsoft:session-filter": None, "selector": "text"}
    assert host.attaches[0].address == "Queue/x"
    assert host.attaches[0].properties == {"com.microsoft:epoch": 4}


@pytest.mark.parametrize(("is_receiver", "terminus"), [(True, 5), (False, 6)])
@pytest.mark.parametrize(("address", "condition"), [("missing", "amqp:not-found"), ("failing", "amqp:internal-error")])
async def test_a_refusal_is_an_attach_without_a_terminus_and_a_detach(
    address: str, condition: str, is_receiver: bool, terminus: int
) -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        client.send_attach(0, address, is_receiver=is_receiver)
        assert (await client.expect(Performative.ATTACH))[terminus] is None
        handle, closed, error = await client.expect(Performative.DETACH)
        assert (handle, closed, error.value[0]) == (0, True, condition)
        # Some clients answer the detach, and others do not; the handle is free for both.
        await client.attach_receiver(0, "queue")
        client.send(Performative.DETACH, [UInt(0), True])
        assert await client.expect(Performative.DETACH) == [0, True, None]


async def test_a_link_that_is_being_opened_can_be_given_up() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        client.send_attach(0, "never", is_receiver=True)
        await host.opening.wait()
        client.send(Performative.DETACH, [UInt(0), True])
        assert (await client.expect(Performative.ATTACH))[5] is None
        assert await client.expect(Performative.DETACH) == [0, True, None]
        assert host.closed == ["opening never"]
        await client.attach_receiver(0, "queue")


async def test_nodes_without_an_address_are_not_made() -> None:
    source = Described(ULong(0x28), [None, None, None, None, True])
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_receiver(0, None, source=source)
        assert (await client.expect(Performative.DETACH))[2].value[0] == "amqp:not-implemented"


# --- deliveries from the client -------------------------------------------------------------------------------------


async def test_transfers_of_one_read_are_taken_and_settled_together() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        for number in range(10):
            client.send_transfer(0, number, value_body(number))
        assert await client.expect(Performative.DISPOSITION) == [True, 0, 9, True, ACCEPTED_STATE, None]
    assert list(map(len, host.queue("queue").taken)) == [10]


async def test_ranges_of_equal_outcomes_are_merged_and_settled_deliveries_are_not_answered() -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        bodies = ["x", "x", "refuse me", "refuse me", "x", "settled", "x", "x"]
        for number, body in enumerate(bodies):
            client.send_transfer(0, number, value_body(body), is_settled=body == "settled")
        refused = rejected("amqp:not-allowed", "no")
        expected = [(0, 1, ACCEPTED_STATE), (2, 3, refused), (4, 4, ACCEPTED_STATE), (6, 7, ACCEPTED_STATE)]
        for first, last, state in expected:
            assert await client.expect(Performative.DISPOSITION) == [True, first, last, True, state, None]


async def test_transfers_of_several_links_and_sessions_are_kept_apart() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "a")
        await client.attach_sender(1, "b")
        client.send_transfer(0, 0, value_body("a0"))
        client.send_transfer(1, 1, value_body("b1"))
        client.send_transfer(0, 2, value_body("a2"))
        found = [tuple((await client.expect(Performative.DISPOSITION))[1:3]) for _ in range(3)]
        assert sorted(found) == [(0, 0), (1, 1), (2, 2)]
    assert list(host.queue("a").payloads) == [value_body("a0"), value_body("a2")]


async def test_what_comes_during_a_call_forms_the_next() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "gated")
        for number in range(6):
            client.send_transfer(0, number, value_body(number))
            await asyncio.sleep(0.01)
        host.gate.set()
        assert (await client.expect(Performative.DISPOSITION))[1:3] == [0, 0]
        assert (await client.expect(Performative.DISPOSITION))[1:3] == [1, 5]
    assert list(map(len, host.queue("gated").taken)) == [1, 5]


async def test_a_batch_keeps_its_format() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        payload = encode_data_body(value_body(1)) + encode_data_body(value_body(2))
        client.send_transfer(0, 0, payload, message_format=BATCH_FORMAT)
        await client.expect(Performative.DISPOSITION)
    assert list(host.queue("queue").payloads) == [value_body(1), value_body(2)]


@pytest.mark.parametrize("repeats_id", [True, False])
async def test_a_delivery_of_many_frames_is_put_together(repeats_id: bool) -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        payload = value_body(bytes(range(256)) * 10)
        for start in range(0, 2500, 500):
            delivery_id = 0 if start == 0 or repeats_id else None
            client.send_transfer(0, delivery_id, payload[start : start + 500], has_more=True)
        client.send_transfer(0, 0 if repeats_id else None, payload[2500:])
        assert (await client.expect(Performative.DISPOSITION))[1:3] == [0, 0]
    assert list(host.queue("queue").payloads) == [payload]


async def test_a_delivery_that_is_called_off_is_forgotten() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        client.send_transfer(0, 0, b"half", has_more=True)
        client.send_transfer(0, None, b"", is_aborted=True)
        client.send_transfer(0, 1, b"", is_aborted=True)
        client.send_transfer(0, 2, value_body("whole"))
        assert (await client.expect(Performative.DISPOSITION))[1:3] == [2, 2]
    assert list(host.queue("queue").payloads) == [value_body("whole")]


@pytest.mark.parametrize("frame_count", [1, 2, 100])
async def test_a_message_that_is_too_large_is_not_collected(frame_count: int) -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "small")
        for number in range(frame_count):
            client.send_transfer(0, 0 if number == 0 else None, bytes(1001), has_more=number < frame_count - 1)
        _, first, last, settled, state, _ = await client.expect(Performative.DISPOSITION)
        assert (first, last, settled, state.value[0].value[0]) == (0, 0, True, "amqp:link:message-size-exceeded")
        client.send_transfer(0, 1, value_body("fits"))
        assert (await client.expect(Performative.DISPOSITION))[4] == ACCEPTED_STATE
    assert list(host.queue("small").payloads) == [value_body("fits")]


async def test_messages_in_part_are_counted_with_the_bytes_under_way_and_have_a_limit() -> None:
    async with wire_client(toy_engine(ToyHost(), partial_bytes_max=1500)) as client:
        await client.open()
        await client.attach_sender(0, "a")
        await client.attach_sender(1, "b")
        client.send_transfer(0, 0, bytes(1000), has_more=True)
        client.send_flow(None, wants_echo=True)
        await client.expect(Performative.FLOW)
        await asyncio.sleep(0.01)
        assert client.stream.pending_bytes == 1000
        client.send_transfer(1, 1, bytes(1000), has_more=True)
        assert (await client.expect(Performative.CLOSE))[0].value[0] == "amqp:resource-limit-exceeded"


@pytest.mark.parametrize("frames", [[(0, True), (1, False)], [(None, False)]])
async def test_ids_that_make_no_sense_end_the_link(frames: list[tuple[int | None, bool]]) -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        for delivery_id, has_more in frames:
            client.send_transfer(0, delivery_id, value_body(1), has_more=has_more)
        assert (await client.expect(Performative.DETACH))[2].value[0] == "amqp:invalid-field"


@pytest.mark.parametrize(
    ("address", "condition"), [("broken", "amqp:internal-error"), ("unavailable", "com.microsoft:server-busy")]
)
async def test_a_node_that_fails_refuses_and_the_link_goes_on(address: str, condition: str) -> None:
    async with wire_client(toy_engine(ToyHost())) as client:
        await client.open()
        await client.attach_sender(0, address)
        for number in range(2):
            client.send_transfer(0, number, value_body(1))
            state = (await client.expect(Performative.DISPOSITION))[4]
            assert state.value[0].value[0] == condition


async def test_a_node_can_end_its_link() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "detaching")
        client.send_transfer(0, 0, value_body(1))
        assert (await client.expect(Performative.DETACH))[2].value[0] == "amqp:resource-deleted"
        client.send_transfer(0, 1, value_body(1))
        client.send(Performative.DETACH, [UInt(0), True])
        await client.attach_sender(0, "queue")
        assert host.closed == ["intake detaching"]


async def test_a_node_can_end_a_link_on_which_nothing_is_sent() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        [attach] = host.attaches
        attach.end(AmqpError("amqp:not-found", "it is gone"))
        assert (await client.expect(Performative.DETACH))[2].value[:2] == ["amqp:not-found", "it is gone"]
        assert host.closed == ["intake queue"]


async def test_credit_is_renewed_at_half() -> None:
    async with wire_client(toy_engine(ToyHost(), credit=10)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        for number in range(4):
            client.send_transfer(0, number, value_body(number))
        await client.expect(Performative.DISPOSITION)
        client.send_transfer(0, 4, value_body(4))
        await client.expect(Performative.DISPOSITION)
        assert (await client.expect(Performative.FLOW))[4:7] == [0, 5, 10]
        # Some clients go on without credit.
        for number in range(5, 25):
            client.send_transfer(0, number, value_body(number))
        assert (await client.expect(Performative.DISPOSITION))[1:3] == [5, 24]
        assert (await client.expect(Performative.FLOW))[4:7] == [0, 25, 10]


async def test_the_window_of_the_session_is_renewed_at_half() -> None:
    async with wire_client(toy_engine(ToyHost(), incoming_window=10)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        for number in range(5):
            client.send_transfer(0, number, value_body(number))
        assert (await client.expect(Performative.FLOW))[:5] == [5, 10, 0, 10, None]
        await client.expect(Performative.DISPOSITION)


async def test_messages_before_a_detach_are_taken_before_it_is_answered() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await client.attach_sender(0, "gated")
        for number in range(3):
            client.send_transfer(0, number, value_body(number))
            await asyncio.sleep(0.01)
        client.send(Performative.DETACH, [UInt(0), False])
        await asyncio.sleep(0.01)
        host.gate.set()
        assert (await client.expect(Performative.DISPOSITION))[1:3] == [0, 0]
        assert (await client.expect(Performative.DISPOSITION))[1:3] == [1, 2]
        assert await client.expect(Performative.DETACH) == [0, False, None]
        assert host.closed == ["intake gated"]


async def test_transactions_are_declared_and_named_in_answers() -> None:
    coordinator = Described(Symbol("amqp:coordinator:list"), [Array.of(Symbol, ["amqp:local-transactions"])])
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        source = Described(ULong(0x28), ["there"])
        client.send(Performative.ATTACH, ["control", UInt(0), False, None, None, source, coordinator])
        assert (await client.expect(Performative.ATTACH))[6] == coordinator
        await client.expect(Performative.FLOW)
        client.send_transfer(0, 0, value_body(Described(Symbol("amqp:declare:list"), [None])))
        declared = (await client.expect(Performative.DISPOSITION))[4]
        assert declared == Described(ULong(0x33), [b"transaction 1"])
        await client.attach_sender(1, "queue")
        state = Described(ULong(0x34), [b"transaction 1", None])
        client.send_transfer(1, 1, value_body(1), state=state)
        answer = (await client.expect(Performative.DISPOSITION))[4]
        assert answer == Described(ULong(0x34), [b"transaction 1", ACCEPTED_STATE])
        await client.attach_receiver(2, "queue")
        client.send_flow(2, credit=1)
        await client.expect(Performative.TRANSFER)
        client.send_disposition(0, 0, answer)
        assert (await client.expect(Performative.DISPOSITION))[:5] == [False, 0, 0, True, answer]
    assert host.queue("queue").taken[0][0].transaction == b"transaction 1"
    assert host.queue("queue").settled[0].transaction == b"transaction 1"


# --- deliveries to the client ---------------------------------------------------------------------------------------


async def receiving(client: WireClient, host: ToyHost, count: int, **options: Any) -> None:
    """Attach a receiver as handle 1, give credit for `count` messages, and receive them."""
    host.queue("queue").payloads += [value_body(number) for number in range(count)]
    await client.attach_receiver(1, "queue", **options)
    client.send_flow(1, credit=count)
    for number in range(count):
        transfer = await client.expect(Performative.TRANSFER)
        assert (transfer[0], transfer[1], transfer[-1]) == (1, number, value_body(number))


async def test_no_more_is_sent_than_there_is_credit_for() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await receiving(client, host, 3)
        host.queue("queue").payloads += [value_body("more")] * 10
        host.queue("queue").wake()
        client.send_flow(1, credit=3, delivery_count=1, wants_echo=True)
        assert (await client.expect(Performative.FLOW))[4:7] == [1, 3, 1]
        await client.expect(Performative.TRANSFER)
        # A client that does not know of a count yet means its first credit.
        client.send_flow(1, credit=5, delivery_count=None, wants_echo=True)
        assert (await client.expect(Performative.FLOW))[4:7] == [1, 4, 1]
        await client.expect(Performative.TRANSFER)
    assert len(host.queue("queue").payloads) == 8


async def test_a_drained_link_has_no_credit_left() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        host.queue("queue").payloads += [value_body(number) for number in range(2)]
        await client.attach_receiver(1, "queue")
        client.send_flow(1, credit=10, is_draining=True)
        for _ in range(2):
            await client.expect(Performative.TRANSFER)
        assert (await client.expect(Performative.FLOW))[4:9] == [1, 10, 0, None, True]
        # As clients do when they close.
        client.send_flow(1, credit=0, delivery_count=10, is_draining=True)
        assert (await client.expect(Performative.FLOW))[4:9] == [1, 10, 0, None, True]


async def test_settlements_are_echoed_in_ranges() -> None:
    host = ToyHost()
    modified = Described(ULong(0x27), [True, False, None])
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await receiving(client, host, 10)
        client.send_disposition(0, 3, ACCEPTED_STATE)
        assert await client.expect(Performative.DISPOSITION) == [False, 0, 3, True, ACCEPTED_STATE, None]
        client.send_disposition(4, 4, ACCEPTED_STATE, is_settled=True)
        client.send_disposition(5, None, modified)
        assert await client.expect(Performative.DISPOSITION) == [False, 5, 5, True, modified, None]
        client.send_disposition(6, 6, rejected("com.microsoft:dead-letter", "because"))
        answer = await client.expect(Performative.DISPOSITION)
        assert answer == [False, 6, 6, True, Described(ULong(0x25), [None]), None]
        # Known ones of a range that is as wide as can be; those that were settled are not settled again.
        client.send_disposition(0, 2**32 - 1, RELEASED_STATE, is_settled=True)
        client.send_disposition(0, 9, ACCEPTED_STATE)
        client.send_flow(1, credit=0, delivery_count=10, wants_echo=True)
        await client.expect(Performative.FLOW)
    found = [(int.from_bytes(each.tag, "big"), each.outcome) for each in host.queue("queue").settled]
    assert found[:6] == [*((number, ACCEPTED) for number in range(5)), (5, Modified(delivery_failed=True))]
    assert isinstance(found[6][1], Rejected)
    assert found[6][1].error is not None
    assert found[6][1].error.condition == "com.microsoft:dead-letter"
    assert found[7:] == [(7, RELEASED), (8, RELEASED), (9, RELEASED)]


async def test_deliveries_that_are_sent_settled_are_not_settled_again() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        host.queue("queue").payloads.append(value_body(1))
        await client.attach_receiver(1, "queue", sender_mode=1)
        client.send_flow(1, credit=1)
        assert (await client.expect(Performative.TRANSFER))[2:5] == [b"", 0, True]
        client.send_disposition(0, 0, ACCEPTED_STATE)
        client.send_flow(1, credit=0, wants_echo=True, delivery_count=1)
        await client.expect(Performative.FLOW)
    assert host.queue("queue").settled == []


async def test_a_settlement_that_fails_is_a_rejection_with_an_error() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        host.queue("broken").payloads.append(value_body(1))
        await client.attach_receiver(1, "broken")
        client.send_flow(1, credit=1)
        await client.expect(Performative.TRANSFER)
        client.send_disposition(0, 0, ACCEPTED_STATE)
        state = (await client.expect(Performative.DISPOSITION))[4]
        assert state.value[0].value[0] == "amqp:internal-error"


async def test_settlements_before_a_detach_count_and_those_behind_it_do_not() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await receiving(client, host, 2)
        client.send_disposition(0, 0, ACCEPTED_STATE, is_settled=True)
        client.send(Performative.DETACH, [UInt(1), True])
        client.send_disposition(1, 1, ACCEPTED_STATE, is_settled=True)
        assert await client.expect(Performative.DETACH) == [1, True, None]
    assert [each.outcome for each in host.queue("queue").settled] == [ACCEPTED]
    assert host.closed == ["outlet queue"]


async def test_a_node_ends_a_link_on_which_the_client_receives() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open()
        await receiving(client, host, 1)
        [link] = host.links
        link.detach(AmqpError("amqp:link:stolen", "another came", {"by": "other"}))
        link.detach(None)
        handle, closed, error = await client.expect(Performative.DETACH)
        assert (handle, closed, error.value) == (1, True, ["amqp:link:stolen", "another came", {"by": "other"}])
        assert link.is_closed
        assert host.closed == ["outlet queue"]
        link.send(b"", tag=b"", is_settled=True)
        await link.writable()
        client.send(Performative.DETACH, [UInt(1), True])
        await client.attach_receiver(1, "queue")


@pytest.mark.parametrize("frame_bytes_max", [512, 1000, 65_536])
async def test_large_messages_leave_in_frames_of_the_size_that_the_client_takes(frame_bytes_max: int) -> None:
    host = ToyHost()
    payload = value_body(bytes(range(256)) * 600)
    async with wire_client(toy_engine(host)) as client:
        await client.open(frame_bytes_max=frame_bytes_max)
        host.queue("queue").payloads += [payload, value_body(1)]
        await client.attach_receiver(1, "queue")
        client.send_flow(1, credit=2)
        first = await client.expect(Performative.TRANSFER)
        assert (first[1], first[5]) == (0, True)
        parts = [first[-1]]
        more = True
        while more:
            later = await client.expect(Performative.TRANSFER)
            assert later[1:4] == [None, None, None]
            assert len(later[-1]) <= frame_bytes_max
            more = later[5]
            parts.append(later[-1])
        assert b"".join(parts) == payload
        assert (await client.expect(Performative.TRANSFER))[1] == 1


async def test_no_more_frames_leave_than_the_window_of_the_client_takes() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open(frame_bytes_max=512, incoming_window=3)
        host.queue("queue").payloads += [value_body(number) for number in range(2)] + [value_body(bytes(1500))]
        await client.attach_receiver(1, "queue")
        client.send_flow(1, credit=10, incoming_window=3, is_draining=True)
        for _ in range(3):
            await client.expect(Performative.TRANSFER)
        client.send_flow(None, next_incoming_id=3, incoming_window=1, wants_echo=True)
        assert (await client.expect(Performative.TRANSFER))[5] is True
        await client.expect(Performative.FLOW)
        client.send_flow(None, next_incoming_id=4, incoming_window=3)
        later = [await client.expect(Performative.TRANSFER) for _ in range(2)]
        assert [frame[5] for frame in later] == [True, False]
        # The credit is given back behind the last of them.
        assert (await client.expect(Performative.FLOW))[4:9] == [1, 10, 0, None, True]


async def test_what_waits_for_a_window_is_dropped_with_its_link_and_leaves_no_gap_in_the_ids() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host)) as client:
        await client.open(incoming_window=0)
        await client.attach_receiver(1, "a")
        await client.attach_receiver(2, "b")
        host.queue("a").payloads += [value_body("a")] * 3
        host.queue("b").payloads.append(value_body("b"))
        [first, second] = host.links
        first.send(value_body("a"), tag=b"1", is_settled=False)
        second.send(value_body("b"), tag=b"2", is_settled=False)
        client.send(Performative.DETACH, [UInt(1), True])
        await client.expect(Performative.DETACH)
        client.send_flow(None, incoming_window=10)
        assert (await client.expect(Performative.TRANSFER))[:3] == [2, 0, b"2"]


async def test_a_node_waits_while_the_client_takes_nothing() -> None:
    host = ToyHost()
    async with wire_client(toy_engine(host, unsent_bytes_soft_max=1000)) as client:
        await client.open()
        await client.attach_receiver(1, "queue")
        client.stream.is_taking.clear()
        host.queue("queue").payloads += [value_body(bytes(600))] * 20
        client.send_flow(1, credit=20)
        await asyncio.sleep(0.05)
        assert len(host.queue("queue").payloads) >= 15
        client.stream.is_taking.set()
        for _ in range(20):
            await client.expect(Performative.TRANSFER)
