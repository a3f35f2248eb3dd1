"""Quiet connections, expired tokens and disuse, with a clock that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from asterism.apis.amqp.engine.frame_codec import EMPTY_FRAME
from asterism.apis.amqp.engine.performatives import Performative
from asterism.clock import Clock
from asterism.values.amqp.types import UInt
from tests.unit.amqp_engine.memory_stream import WAIT_SECONDS_MAX, WireClient, wire_client
from tests.unit.amqp_engine.tokens import shared_access
from tests.unit.amqp_engine.toy_host import ToyHost, toy_engine

# Connections are looked at a few times in this.
HEARTBEAT_SECONDS = 0.02
NOW = 2_000_000_000


@dataclass
class SetTime:
    seconds: float = NOW

    def clock(self) -> Clock:
        return Clock(lambda: self.seconds, lambda: self.seconds)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not is_so():
            await asyncio.sleep(0.005)


async def put_token(client: WireClient, *, expires: int, delivery_id: int = 0) -> None:
    properties = {"operation": "put-token", "name": "sb://localhost/queue"}
    token = shared_access("sb://localhost/queue", expires=expires)
    answer = await client.ask(properties, token, delivery_id=delivery_id)
    assert answer.application_properties["status-code"] == 202


async def closing_sentence(client: WireClient) -> str:
    [error] = await client.expect(Performative.CLOSE)
    assert error.value[0] == "amqp:connection:forced"
    assert await client.receive() is None
    return str(error.value[1])


async def test_a_quiet_connection_gets_empty_frames() -> None:
    engine = toy_engine(ToyHost(), clock=SetTime().clock(), heartbeat_seconds=HEARTBEAT_SECONDS)
    async with wire_client(engine) as client:
        await client.open()
        for _ in range(3):
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                assert await client.stream.sent.get() == EMPTY_FRAME
        assert engine.counters.heartbeats >= 3


async def test_one_timer_serves_all_connections_and_rests_without_any() -> None:
    engine = toy_engine(ToyHost(), clock=SetTime().clock(), heartbeat_seconds=HEARTBEAT_SECONDS)
    for _ in range(2):
        async with wire_client(engine) as first, wire_client(engine) as second:
            await first.open()
            await second.open()
            seen = engine.counters.heartbeats
            await until(lambda seen=seen: engine.counters.heartbeats >= seen + 4)  # type: ignore[misc]
        assert engine.pulse.is_resting


async def test_a_connection_without_a_token_is_closed() -> None:
    time = SetTime()
    async with wire_client(toy_engine(ToyHost(), clock=time.clock(), heartbeat_seconds=HEARTBEAT_SECONDS)) as client:
        await client.open()
        await client.attach_sender(0, "queue")
        time.seconds += 21
        assert "no token within 20 seconds" in await closing_sentence(client)


async def test_a_connection_that_never_logs_in_is_closed() -> None:
    time = SetTime()
    engine = toy_engine(ToyHost(), clock=time.clock(), heartbeat_seconds=HEARTBEAT_SECONDS)
    async with wire_client(engine) as client:
        await until(lambda: engine.counters.connections == 1)
        time.seconds += 21
        assert await client.receive() is None


@pytest.mark.parametrize(("had_links", "allowed"), [(False, 60), (True, 300)])
async def test_a_connection_without_links_is_closed_in_time(had_links: bool, allowed: int) -> None:
    time = SetTime()
    engine = toy_engine(ToyHost(), clock=time.clock(), heartbeat_seconds=HEARTBEAT_SECONDS)
    async with wire_client(engine) as client:
        await client.open()
        await client.attach_requests("$cbs")
        await put_token(client, expires=NOW + 10_000)
        for handle in range(had_links):
            await client.attach_sender(handle, "queue")
            time.seconds += 1000
            seen = engine.counters.heartbeats
            await until(lambda seen=seen: engine.counters.heartbeats > seen)  # type: ignore[misc]
            client.send(Performative.DETACH, [UInt(handle), True])
            await client.expect(Performative.DETACH)
        time.seconds += allowed - 1
        seen = engine.counters.heartbeats
        await until(lambda: engine.counters.heartbeats > seen + 1)
        time.seconds += 2
        assert f"more than the allowed {allowed} seconds" in await closing_sentence(client)


async def test_a_link_counts_as_use_however_short_it_was() -> None:
    time = SetTime()
    engine = toy_engine(ToyHost(), clock=time.clock(), heartbeat_seconds=HEARTBEAT_SECONDS)
    async with wire_client(engine) as client:
        await client.open()
        await client.attach_requests("$cbs")
        await put_token(client, expires=NOW + 10_000)
        time.seconds += 59
        await client.attach_sender(0, "queue")
        client.send(Performative.DETACH, [UInt(0), True])
        await client.expect(Performative.DETACH)
        time.seconds += 299
        seen = engine.counters.heartbeats
        await until(lambda: engine.counters.heartbeats > seen + 1)
        time.seconds += 2
        assert "more than the allowed 300 seconds" in await closing_sentence(client)


async def test_a_silent_client_is_left() -> None:
    engine = toy_engine(
        ToyHost(), clock=SetTime().clock(), heartbeat_seconds=HEARTBEAT_SECONDS, silence_seconds_max=0.1
    )
    async with wire_client(engine) as client:
        await client.open()
        assert "sent nothing" in await closing_sentence(client)


async def test_links_end_with_the_token_that_opened_them_unless_it_is_renewed() -> None:
    time = SetTime()
    host = ToyHost()
    host.is_guarded = True
    async with wire_client(toy_engine(host, clock=time.clock(), heartbeat_seconds=HEARTBEAT_SECONDS)) as client:
        await client.open()
        await client.attach_requests("$cbs")
        await put_token(client, expires=NOW + 100)
        await client.attach_sender(0, "queue")
        await client.attach_receiver(1, "queue")
        time.seconds += 90
        await put_token(client, expires=NOW + 200, delivery_id=1)
        time.seconds += 20
        # Nothing happens, as the next answer is that to a request.
        await asyncio.sleep(5 * HEARTBEAT_SECONDS)
        await put_token(client, expires=NOW + 150, delivery_id=2)
        time.seconds += 50
        ended = [await client.expect(Performative.DETACH) for _ in range(2)]
        assert sorted(handle for handle, *_ in ended) == [0, 1]
        assert {error.value[0] for *_, error in ended} == {"amqp:unauthorized-access"}
