"""TCP doors through real sockets: codec and handler, limits, deadlines and stops."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from asterism.apis.transports.http import ClientGone
from asterism.apis.transports.tcp import ByteStream
from asterism.limits import KIB, MIB, Limits
from asterism.server.listeners.connection_rules import AnswerBudget, PortConnections
from asterism.server.listeners.group import PortLimits
from asterism.server.listeners.request_bodies import BodyBudget
from asterism.server.listeners.tcp_stream import LINGER_SECONDS_MAX, TcpPort, TcpStream
from asterism.server.listeners.tls import CertificateFiles, server_context
from tests.support.ports import free_port
from tests.toy_door.echo import MESSAGE_BYTES_MAX, encode
from tests.unit.listeners.echo_server import (
    BUFFERED_BYTES_MAX,
    WAIT_SECONDS_MAX,
    Client,
    EchoServer,
    echo_server,
    settled,
    wait_until,
)


@pytest.fixture(params=["plain", "tls"])
async def server(request: pytest.FixtureRequest, certificate: CertificateFiles) -> AsyncIterator[EchoServer]:
    async with echo_server("tcp", certificate=certificate if request.param == "tls" else None) as running:
        yield running


async def test_messages_are_answered_in_order_however_they_are_cut(server: EchoServer) -> None:
    client = await server.connect()
    messages = [b"", b"a", bytes(100_000), b"z" * MESSAGE_BYTES_MAX]
    data = b"".join(map(encode, messages))
    cuts = [0, 1, 5, 9, 60_000, len(data) - 1, len(data)]
    for start, end in itertools.pairwise(cuts):
        await client.send(data[start:end])
    assert [await client.receive() for _ in messages] == messages


async def test_messages_that_are_sent_together_are_all_answered(server: EchoServer) -> None:
    client = await server.connect()
    await client.send(b"".join(encode(b"%d" % number) for number in range(5000)))
    assert [await client.receive() for _ in range(5000)] == [b"%d" % number for number in range(5000)]


async def test_a_message_above_the_limit_is_refused_in_words_while_it_is_sent(server: EchoServer) -> None:
    client = await server.connect()
    await client.send(encode(b"before"))
    with contextlib.suppress(ConnectionError):
        await client.send(encode(bytes(2 * MESSAGE_BYTES_MAX)))
    assert await client.receive() == b"before"
    assert await client.receive() == b"refused: a message of %d bytes" % (2 * MESSAGE_BYTES_MAX)
    assert await client.ended()


async def test_a_door_can_close_behind_an_answer(server: EchoServer) -> None:
    client = await server.connect()
    await client.send(encode(b"quit") + encode(b"never read"))
    assert await client.receive() == b"bye"
    assert await client.ended()


async def test_a_client_that_only_stops_sending_gets_its_answers() -> None:
    async with echo_server("tcp") as server:
        client = await server.connect()
        await client.send(encode(b"last words"))
        client.writer.write_eof()
        assert await client.receive() == b"last words"
        assert await client.ended()


def test_tls_is_of_version_1_2_at_least(certificate: CertificateFiles) -> None:
    assert server_context(certificate).minimum_version == ssl.TLSVersion.TLSv1_2


async def test_a_client_without_tls_is_not_served_on_a_port_with_tls(certificate: CertificateFiles) -> None:
    async with echo_server("tcp", certificate=certificate) as server:
        reader, writer = await asyncio.open_connection("localhost", server.port)
        plain = Client(reader, writer)
        await plain.send(encode(b"hello"))
        assert await plain.receive() != b"hello"
        with_tls = await server.connect()
        await with_tls.send(encode(b"hello"))
        assert await with_tls.receive() == b"hello"


class Script:
    """A door that does as its test says, once for each connection."""

    def __init__(self, act: Callable[[ByteStream], Awaitable[None]]) -> None:
        self._act = act
        self.has_begun = asyncio.Event()
        self.ends: list[str] = []

    async def serve(self, stream: ByteStream) -> None:
        self.has_begun.set()
        try:
            await self._act(stream)
            self.ends.append("returned")
        except ClientGone:
            self.ends.append("gone")
            raise
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise


async def test_a_door_knows_its_client_and_the_name_it_asked_for(certificate: CertificateFiles) -> None:
    known: list[tuple[str, str, bool, str | None]] = []

    async def act(stream: ByteStream) -> None:
        known.append((stream.peer_address, stream.local_address, stream.is_tls, stream.server_name))

    async with echo_server("tcp", certificate=certificate, door=Script(act)) as server:
        client = await server.connect()
        host, port = client.writer.get_extra_info("sockname")[:2]
        await client.send(b"x")
        await client.ended()
    assert known == [(f"{host}:{port}", f"127.0.0.1:{server.port}", True, "localhost")]


@pytest.fixture(params=["plain", "tls"])
def files(request: pytest.FixtureRequest, certificate: CertificateFiles) -> CertificateFiles | None:
    return certificate if request.param == "tls" else None


async def test_a_slow_reader_makes_the_door_wait(files: CertificateFiles | None) -> None:
    sent_bytes = 0

    async def flood(stream: ByteStream) -> None:
        nonlocal sent_bytes
        while True:
            sent_bytes += 64 * KIB
            await stream.write(bytes(64 * KIB))

    async with echo_server("tcp", certificate=files, door=Script(flood)) as server:
        client = await server.connect()
        await client.send(b"x")
        held = await settled(lambda: sent_bytes)
        assert 0 < held < BUFFERED_BYTES_MAX
        await client.reader.readexactly(held)
        await wait_until(lambda: sent_bytes > held)
        client.vanish()


class FastTransport(asyncio.Transport):
    """A client that takes everything at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sent_bytes = 0
        self.is_gone = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent_bytes += len(data)

    def is_closing(self) -> bool:
        return self.is_gone


async def test_a_door_that_sends_as_fast_as_its_client_reads_lets_others_run() -> None:
    port = TcpPort(PortConnections(10), BodyBudget(MIB), AnswerBudget(MIB), lambda: None)
    stream, transport = TcpStream(port), FastTransport()
    stream.connection_made(transport)
    flooding = asyncio.create_task(send_for_ever(stream))
    await wait_until(lambda: transport.sent_bytes > MIB)
    # As after a write that failed: the event loop tells of it later.
    transport.is_gone = True
    await asyncio.wait({flooding}, timeout=WAIT_SECONDS_MAX)
    assert isinstance(flooding.exception(), ClientGone)


async def test_a_slow_door_makes_the_sender_wait() -> None:
    release = asyncio.Event()
    taken_bytes = sent_bytes = 0

    async def slow(stream: ByteStream) -> None:
        nonlocal taken_bytes
        await release.wait()
        while data := await stream.read():
            taken_bytes += len(data)

    async with echo_server("tcp", door=Script(slow)) as server:
        client = await server.connect()

        async def send() -> None:
            nonlocal sent_bytes
            while sent_bytes < BUFFERED_BYTES_MAX:
                await client.send(bytes(64 * KIB))
                sent_bytes += 64 * KIB
            client.writer.write_eof()

        sending = asyncio.create_task(send())
        assert await settled(lambda: sent_bytes) < BUFFERED_BYTES_MAX
        release.set()
        await sending
        await wait_until(lambda: taken_bytes == BUFFERED_BYTES_MAX)


async def wait_for_bytes(stream: ByteStream) -> None:
    while await stream.read():
        pass


async def wait_for_events(stream: ByteStream) -> None:
    await stream.while_connected(asyncio.Event().wait())


async def send_for_ever(stream: ByteStream) -> None:
    while True:
        await stream.write(bytes(64 * KIB))


@pytest.mark.parametrize(
    ("act", "end"), [(wait_for_bytes, "returned"), (wait_for_events, "gone"), (send_for_ever, "gone")]
)
async def test_a_client_that_vanishes_ends_the_handler(
    act: Callable[[ByteStream], Awaitable[None]], end: str, files: CertificateFiles | None
) -> None:
    door = Script(act)
    async with echo_server("tcp", certificate=files, door=door) as server:
        client = await server.connect()
        await client.send(b"x")
        await door.has_begun.wait()
        await asyncio.sleep(0.05)
        client.vanish()
        await wait_until(lambda: bool(door.ends))
    assert door.ends == [end]


async def test_a_door_that_fails_ends_its_connection_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(stream: ByteStream) -> None:
        if await stream.read() == b"fail":
            raise ValueError("a detail for the log")
        await stream.write(b"fine")

    with caplog.at_level(logging.ERROR):
        async with echo_server("tcp", door=Script(fail)) as server:
            failing, other = await server.connect(), await server.connect()
            await failing.send(b"fail")
            assert await failing.ended()
            await other.send(b"x")
            assert await other.reader.read(4) == b"fine"
    assert "a detail for the log" in caplog.text


async def test_a_client_that_reads_late_gets_the_whole_of_the_last_answer() -> None:
    async def act(stream: ByteStream) -> None:
        await stream.read()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await stream.write(bytes(16 * MIB))

    async with echo_server("tcp", door=Script(act)) as server:
        client = await server.connect()
        await client.send(b"x")
        await asyncio.sleep(LINGER_SECONDS_MAX + 1)
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            assert len(await client.reader.read(-1)) == 16 * MIB


# --- limits and deadlines -------------------------------------------------------------------------------------------


async def test_a_connection_that_sends_nothing_has_a_deadline() -> None:
    async with echo_server("tcp", limits=Limits(first_request_seconds_max=3)) as server:
        silent, used = await server.connect(), await server.connect()
        await used.send(encode(b"a"))
        assert await used.receive() == b"a"
        assert await silent.ended()
        await used.send(encode(b"b"))
        assert await used.receive() == b"b"


async def test_a_message_that_does_not_go_on_has_a_deadline_and_drops_of_it_do_not_help() -> None:
    async with echo_server("tcp", limits=Limits(body_pause_seconds_max=1)) as server:
        client, idle = await server.connect(), await server.connect()
        await idle.send(encode(b"a"))
        await client.send(encode(bytes(1000))[:10])

        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                while True:
                    await client.send(b"x")
                    await asyncio.sleep(0.2)

        dripping = asyncio.create_task(drip())
        assert await client.ended()
        dripping.cancel()
        assert await idle.receive() == b"a"


async def test_an_idle_connection_has_a_deadline_that_the_port_and_the_door_can_move() -> None:
    async def act(stream: ByteStream) -> None:
        while data := await stream.read():
            stream.idle_seconds_max = 3600 if data == b"keep" else None
            await stream.write(data)

    patient = PortLimits(body_bytes_max=MIB, idle_seconds_max=3600)
    limits = Limits(idle_connection_seconds_max=1)
    async with (
        echo_server("tcp", door=Script(act), limits=limits) as server,
        echo_server("tcp", limits=limits, port_limits=patient) as other,
    ):
        kept, closed, elsewhere = await server.connect(), await server.connect(), await other.connect()
        await kept.send(b"keep")
        await closed.send(b"x")
        await elsewhere.send(encode(b"x"))
        assert await closed.reader.read(1) == b"x"
        assert await closed.ended()
        assert await kept.reader.read(4) == b"keep"
        assert await elsewhere.receive() == b"x"
        await kept.send(b"keep")
        assert await kept.reader.read(4) == b"keep"
        await elsewhere.send(encode(b"y"))
        assert await elsewhere.receive() == b"y"


async def test_idle_connections_make_room_for_new_ones() -> None:
    async with echo_server("tcp", limits=Limits(connections_max=10)) as server:
        for number in range(25):
            client = await server.connect()
            await client.send(encode(b"%d" % number))
            assert await client.receive() == b"%d" % number


async def test_no_more_connections_are_served_than_the_port_may_have() -> None:
    served = 0
    release = asyncio.Event()

    async def busy(stream: ByteStream) -> None:
        nonlocal served
        served += 1
        await stream.read()
        await release.wait()
        await stream.write(b"done")

    async with echo_server("tcp", door=Script(busy), limits=Limits(connections_max=5)) as server:
        clients = [await server.connect() for _ in range(8)]
        for client in clients:
            await client.send(b"x")
        assert await settled(lambda: served) == 5
        release.set()
        for client in clients:
            assert await client.reader.read(4) == b"done"
            client.writer.close()


async def test_large_messages_wait_for_room_in_memory() -> None:
    """Three quarters of the bytes in flight are for large ones, so two of these do not fit."""
    under_way = most = 0

    async def count(stream: ByteStream) -> None:
        nonlocal under_way, most
        size = 512 * KIB
        received = len(await stream.read())
        while received < size:
            received += len(await stream.read(pending_bytes=size))
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.1)
        under_way -= 1
        await stream.write(b"done")

    limits = Limits(body_bytes_in_flight_max=MIB)
    async with echo_server("tcp", door=Script(count), limits=limits) as server:
        clients = [await server.connect() for _ in range(4)]

        async def exchange(client: Client) -> bytes:
            await client.send(bytes(512 * KIB))
            return await client.reader.read(4)

        assert await asyncio.gather(*map(exchange, clients)) == [b"done"] * 4
    assert most == 1


# --- stopping -------------------------------------------------------------------------------------------------------


async def test_a_server_that_stops_answers_what_is_under_way_and_closes_the_rest() -> None:
    release = asyncio.Event()
    working = asyncio.Event()

    async def slow_echo(stream: ByteStream) -> None:
        while data := await stream.read():
            working.set()
            await release.wait()
            await stream.write(data)

    async with echo_server("tcp", door=Script(slow_echo)) as server:
        idle, busy = await server.connect(), await server.connect()
        await busy.send(b"under way")
        await working.wait()
        stopping = asyncio.create_task(server.group.stop(drain_seconds_max=WAIT_SECONDS_MAX))
        assert await idle.ended()
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await server.connect()
        release.set()
        assert await busy.reader.read(20) == b"under way"
        assert await busy.ended()
        assert await stopping


async def test_a_message_that_is_arriving_while_the_server_stops_is_answered() -> None:
    async with echo_server("tcp") as server:
        client = await server.connect()
        whole = encode(bytes(1000))
        await client.send(encode(b"first") + whole[:500])
        assert await client.receive() == b"first"
        stopping = asyncio.create_task(server.group.stop(drain_seconds_max=WAIT_SECONDS_MAX))
        await asyncio.sleep(0.05)
        await client.send(whole[500:])
        assert await client.receive() == bytes(1000)
        assert await client.ended()
        assert await stopping


async def test_a_door_that_waits_for_events_hears_that_the_server_stops() -> None:
    is_waiting = asyncio.Event()

    async def act(stream: ByteStream) -> None:
        await stream.read()
        is_waiting.set()
        await stream.until_draining()
        assert stream.is_draining
        await stream.write(b"bye")

    async with echo_server("tcp", door=Script(act)) as server:
        client = await server.connect()
        await client.send(b"x")
        await is_waiting.wait()
        assert await server.group.stop(drain_seconds_max=WAIT_SECONDS_MAX)
        assert await client.reader.read(3) == b"bye"


async def test_a_door_that_does_not_end_in_time_is_cancelled() -> None:
    is_waiting = asyncio.Event()

    async def act(stream: ByteStream) -> None:
        await stream.read()
        is_waiting.set()
        await asyncio.Event().wait()

    door = Script(act)
    async with echo_server("tcp", door=door) as server:
        client = await server.connect()
        await client.send(b"x")
        await is_waiting.wait()
        assert not await server.group.stop(drain_seconds_max=0.1)
        assert await client.ended()
    assert door.ends == ["cancelled"]


# --- processes ------------------------------------------------------------------------------------------------------


async def test_two_processes_share_a_port_and_one_can_leave() -> None:
    port = free_port()
    command = [sys.executable, "-m", "tests.toy_door.echo_worker", str(port)]
    workers = [await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE) for _ in range(2)]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert await worker.stdout.readline() == b"ready\n"
        answered: set[bytes] = set()
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while len(answered) < 2:
                answered.add(await ask(port))
        assert answered == {str(worker.pid).encode() for worker in workers}
        workers[0].send_signal(signal.SIGTERM)
        assert await workers[0].wait() == 0
        assert {await ask(port) for _ in range(20)} == {str(workers[1].pid).encode()}
    finally:
        for worker in workers:
            if worker.returncode is None:
                worker.terminate()
                await worker.wait()


async def ask(port: int) -> bytes:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    await client.send(encode(b"who?"))
    answer = await client.receive()
    client.writer.close()
    return answer
