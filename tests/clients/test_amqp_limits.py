"""Clients of AMQP that take or send without an end, that wait, or that never leave: bounded memory, and room for
others."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient as AsyncServiceBusClient
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusConnectionError, SessionLockLostError

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.apis.amqp.engine.frame_codec import SASL_HEADER
from asterism.apis.amqp.engine.performatives import Performative
from asterism.testing.admin import AdminRequests
from asterism.values.amqp.message import BATCH_FORMAT, encode_data_body, encode_value_body
from asterism.values.amqp.types import UInt
from tests.clients.amqp_door import arm, goes_on, serving, signed_in
from tests.clients.amqp_raw import ACCEPTED, ConnectionEnded, RawClient, message_of, token_for
from tests.clients.messaging_server import WAIT_SECONDS, MessagingServer
from tests.support.ports import free_port
from tests.support.raw import connect, wait_until, was_closed
from tests.support.server import WAIT_SECONDS_MAX, running_server

KIB = 1024
MIB = KIB * KIB
FORCED, RESOURCE_LIMIT = "amqp:connection:forced", "amqp:resource-limit-exceeded"
UNAUTHORIZED = "amqp:unauthorized-access"
CREDIT_MAX = 2**32 - 1


def limits(**chosen: int) -> list[str]:
    pairs = (f"{name.replace('_', '-')}={value}" for name, value in chosen.items())
    return [text for pair in pairs for text in ("--limit", pair)]


def own_bytes(door: MessagingServer) -> int:
    """Return the memory that is the server's alone: not the pages of its store, which are the system's to keep."""
    return int(psutil.Process(door.server.process.pid).memory_full_info().uss)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessagingServer]:
    with serving(tmp_path_factory.mktemp("limits") / "data", "--no-throttle") as made:
        yield made


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- links and connections ------------------------------------------------------------------------------------------


def test_a_connection_has_5000_links_and_not_one_more(door: MessagingServer) -> None:
    before = own_bytes(door)
    with signed_in(door) as client:
        # The session of the request for the token has two already.
        for number in range(4998):
            channel, handle = 1 + number // 250, number % 250
            if handle == 0:
                client.begin(channel)
            assert client.attach(handle, "queue", is_receiver=number % 2 == 0, channel=channel) is None
        for is_receiver in (False, True, False):
            refusal = client.attach(254, "queue", is_receiver=is_receiver)
            assert refusal is not None
            assert (refusal[0], "5000" in refusal[1]) == (RESOURCE_LIMIT, True)
        assert own_bytes(door) - before < 100 * MIB
        client.send(Performative.DETACH, [UInt(0), True], channel=1)
        client.wait_for(Performative.DETACH)
        assert client.attach(0, "queue", is_receiver=False, channel=1) is None
        assert client.deliver(0, message_of(b"x"), channel=1) == ACCEPTED
        assert goes_on(door)
    assert wait_until(lambda: goes_on(door))


def test_a_connection_without_a_token_has_few_links(door: MessagingServer) -> None:
    with RawClient(door.amqp_port) as client:
        client.open()
        for handle in range(100):
            assert client.attach(handle, "$cbs", is_receiver=True) is None
        refusal = client.attach(100, "$cbs", is_receiver=True)
        assert refusal is not None
        assert (refusal[0], "token" in refusal[1]) == (UNAUTHORIZED, True)
    assert goes_on(door)


def test_1000_idle_connections_take_less_than_100_mb(door: MessagingServer, many_files: None) -> None:
    before = own_bytes(door)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(signed_in(door)) for _ in range(1000)]
        for client in clients:
            assert client.attach(0, "queue", is_receiver=False) is None
        assert own_bytes(door) - before < 100 * MIB
        assert goes_on(door)
        for client in clients:
            assert client.deliver(0, message_of(b"x")) == ACCEPTED


def test_receivers_and_connections_have_limits(tmp_path: Path) -> None:
    chosen = limits(bus_receivers=3, messaging_connections=20, messaging_links=8)
    with serving(tmp_path / "data", *chosen) as door, contextlib.ExitStack() as stack:
        client = stack.enter_context(signed_in(door))
        for handle in range(3):
            assert client.attach(handle, "queue", is_receiver=True) is None
        refusal = client.attach(3, "queue", is_receiver=True)
        assert refusal is not None
        assert (refusal[0], "3" in refusal[1]) == (RESOURCE_LIMIT, True)
        others = [stack.enter_context(signed_in(door)) for _ in range(19)]
        with connect(door.amqp_port) as late:
            late.sendall(SASL_HEADER)
            assert was_closed(late)
        others[0].socket.close()
        assert wait_until(lambda: is_welcome(door))


def is_welcome(door: MessagingServer) -> bool:
    """Return whether the server has room for a connection."""
    with RawClient(door.amqp_port) as client:
        try:
            client.open()
        except (ConnectionEnded, OSError):
            return False
        return True


# --- receivers and senders ------------------------------------------------------------------------------------------


def fill(door: MessagingServer, queue: str, *, batches: int, count: int, size: int) -> None:
    batch = b"".join(encode_data_body(message_of(bytes(size))) for _ in range(count))
    with signed_in(door) as client:
        assert client.attach(0, queue, is_receiver=False) is None
        for _ in range(batches):
            assert client.deliver(0, batch, message_format=BATCH_FORMAT) == ACCEPTED


def test_a_receiver_that_never_settles_takes_bounded_memory(door: MessagingServer) -> None:
    queue = door.new_queue(lock_duration="PT5M")
    fill(door, queue, batches=200, count=100, size=1000)
    before = own_bytes(door)
    with signed_in(door) as client:
        assert client.attach(0, queue, is_receiver=True) is None
        client.send_flow(0, CREDIT_MAX)
        delivery_ids = [client.next_delivery()[0] for _ in range(20_000)]
        assert own_bytes(door) - before < 60 * MIB
        assert goes_on(door)
        # The first of them is remembered as well as the last.
        assert client.settle(delivery_ids[0]) == ACCEPTED
        assert client.settle(delivery_ids[-1]) == ACCEPTED


@pytest.mark.parametrize("address", ["queue", "hub"])
def test_a_receiver_that_does_not_read_takes_bounded_memory(door: MessagingServer, address: str) -> None:
    place = door.new_queue(lock_duration="PT5M") if address == "queue" else "hub/Partitions/0"
    fill(door, place, batches=60, count=10, size=24 * KIB)
    source = place if address == "queue" else "hub/ConsumerGroups/$Default/Partitions/0"
    before = own_bytes(door)
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(RawClient(door.amqp_port, receive_bytes=4096))
            client.open()
            client.put_token("")
            assert client.attach(0, source, is_receiver=True) is None
            client.send_flow(0, CREDIT_MAX)
        assert goes_on(door)
        assert own_bytes(door) - before < 150 * MIB
        assert goes_on(door)


def test_a_receiver_without_a_window_takes_bounded_memory(door: MessagingServer) -> None:
    queue = door.new_queue(lock_duration="PT5M")
    fill(door, queue, batches=100, count=1, size=200 * KIB)
    before = own_bytes(door)
    with RawClient(door.amqp_port) as client:
        client.open()
        client.put_token("")
        client.begin(1, incoming_window=0)
        for handle in range(50):
            assert client.attach(handle, queue, is_receiver=True, channel=1) is None
            flow = [UInt(0), UInt(0), UInt(0), UInt(5000), UInt(handle), UInt(0), UInt(CREDIT_MAX)]
            client.send(Performative.FLOW, flow, channel=1)
        assert goes_on(door)
        assert own_bytes(door) - before < 100 * MIB


def test_requests_whose_answers_are_not_read_take_bounded_memory(door: MessagingServer) -> None:
    queue = door.new_queue()
    fill(door, queue, batches=4, count=1, size=250 * KIB)
    before = own_bytes(door)
    with RawClient(door.amqp_port, receive_bytes=4096) as client:
        client.open()
        client.put_token("")
        peek = {"from-sequence-number": 0, "message-count": 4}
        assert client.manage(queue, "peek-message", encode_value_body(peek))[0] == 200
        client.socket.settimeout(2.0)
        # The server stops reading, so that not all of them can be sent; or it has read them, and answers in turn.
        with contextlib.suppress(TimeoutError):
            for _ in range(20_000):
                client.send_request(f"{queue}/$management", "com.microsoft:peek-message", encode_value_body(peek))
        assert goes_on(door)
        assert own_bytes(door) - before < 100 * MIB


def test_a_sender_that_never_stops_takes_bounded_memory(door: MessagingServer) -> None:
    before = own_bytes(door)
    queue = door.new_queue()
    payload = message_of(bytes(4 * KIB))
    with signed_in(door) as client:
        assert client.attach(0, queue, is_receiver=False) is None
        sending = threading.Thread(target=send_settled, args=(client, payload, 15_000))
        sending.start()
        while sending.is_alive():
            assert goes_on(door)
            assert own_bytes(door) - before < 150 * MIB
        sending.join()
        assert client.deliver(0, message_of(b"last")) == ACCEPTED
    with door.administration() as administration:
        assert administration.get_queue_runtime_properties(queue).active_message_count == 15_001


def send_settled(client: RawClient, payload: bytes, count: int) -> None:
    for _ in range(count):
        client.send_transfer(0, payload, is_settled=True)


def test_a_sender_that_reads_no_answer_is_read_no_further(door: MessagingServer) -> None:
    with RawClient(door.amqp_port, receive_bytes=4096) as client:
        client.open()
        client.put_token("")
        assert client.attach(0, "hub", is_receiver=False) is None
        client.socket.settimeout(5.0)
        with pytest.raises(TimeoutError):
            send_by_turns(client, 1_000_000)
    assert goes_on(door)


def send_by_turns(client: RawClient, count: int) -> None:
    """Send messages of which every other is refused, so that each is settled by a frame of its own."""
    for _ in range(count // 2):
        client.send_transfer(0, b"noise")
        client.send_transfer(0, message_of(b"x"))


# --- time -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessagingServer]:
    chosen = limits(
        messaging_token_seconds=1, messaging_linkless_seconds=2, messaging_idle_seconds=3, first_request_seconds=1
    )
    with serving(tmp_path_factory.mktemp("impatient") / "data", *chosen) as made:
        yield made


def test_a_connection_without_a_token_is_closed(impatient: MessagingServer) -> None:
    with RawClient(impatient.amqp_port) as client, signed_in(impatient) as other:
        assert other.attach(0, "queue", is_receiver=False) is None
        client.open()
        assert client.attach(0, "$cbs", is_receiver=False) is None
        condition, sentence = client.closing_error()
        assert (condition, "token within 1 s" in sentence) == (FORCED, True)
        assert other.deliver(0, message_of(b"x")) == ACCEPTED


def test_a_connection_without_links_is_closed(impatient: MessagingServer) -> None:
    with signed_in(impatient) as fresh, signed_in(impatient) as used:
        assert used.attach(0, "queue", is_receiver=False) is None
        used.send(Performative.DETACH, [UInt(0), True])
        for client, seconds in ((fresh, "2 s"), (used, "3 s")):
            condition, sentence = client.closing_error()
            assert (condition, seconds in sentence) == (FORCED, True), sentence


@pytest.mark.parametrize("sent", [b"", b"A", b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00"], ids=repr)
def test_a_client_that_begins_and_says_no_more_is_closed(impatient: MessagingServer, sent: bytes) -> None:
    for port in ("amqp", "messaging"):
        with connect(impatient.server.ports[port]) as connection:
            connection.sendall(sent)
            assert was_closed(connection)


def test_a_client_that_is_silent_is_closed_and_one_that_lives_is_not(tmp_path: Path) -> None:
    silence = limits(messaging_silence_seconds=8)
    with (
        serving(tmp_path / "data", *silence) as door,
        signed_in(door) as silent,
        signed_in(door) as living,
    ):
        assert silent.attach(0, "queue", is_receiver=True) is None
        assert living.attach(0, "queue", is_receiver=True) is None
        ending = threading.Thread(target=silent.wait_for, args=(Performative.CLOSE,))
        ending.start()
        while ending.is_alive():
            living.send_bytes(b"\x00\x00\x00\x08\x02\x00\x00\x00")
            ending.join(0.5)
        assert living.attach(1, "queue", is_receiver=False) is None


def test_a_token_that_expires_ends_its_links_and_another_opens_them_again(door: MessagingServer) -> None:
    with RawClient(door.amqp_port) as client:
        client.open()
        assert client.put_token("queue", token_for("queue", lives_seconds=3)) == 202
        assert client.put_token("topic") == 202
        for handle, address, is_receiver in ((0, "queue", False), (1, "queue", True), (2, "topic", False)):
            assert client.attach(handle, address, is_receiver=is_receiver) is None
        for _ in range(2):
            condition, sentence = client.detached()
            assert (condition, "expired" in sentence) == (UNAUTHORIZED, True)
        refusal = client.attach(3, "queue", is_receiver=True)
        assert refusal is not None
        assert refusal[0] == UNAUTHORIZED
        assert client.manage("queue", "peek-message", encode_value_body({"from-sequence-number": 0}))[0] == 401
        assert client.deliver(2, message_of(b"x")) == ACCEPTED
        assert client.put_token("queue") == 202
        assert client.attach(0, "queue", is_receiver=False) is None
        assert client.deliver(0, message_of(b"x")) == ACCEPTED


@pytest.fixture(scope="module")
def shifting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MessagingServer, AdminRequests]]:
    """A server whose clock can be set, and the means to set it."""
    data = tmp_path_factory.mktemp("shifting") / "data"
    with running_server(data, "--test-controls", doors=("nosql", "amqp"), alone=True, embedded=True) as running:
        properties = {"partitionCount": 1, "messageRetentionInDays": 7}
        assert arm(running, "PUT", "Microsoft.EventHub", "eventhubs/hub", properties)[0] in (200, 201)
        yield MessagingServer(running), AdminRequests(running.endpoint, WELL_KNOWN_EMULATOR_KEY)
        status, log = running.end()
        assert (status, "Traceback" in log) == (0, False), log


def set_clock(controls: AdminRequests, seconds: float) -> None:
    controls.post("testing/clock-skew", {"seconds": seconds})


def test_a_lock_that_expires_before_its_message_is_completed_is_lost(
    shifting: tuple[MessagingServer, AdminRequests],
) -> None:
    door, controls = shifting
    # The server wakes up for a lock that ends in its own time, whatever its clock says meanwhile.
    queue = door.new_queue(lock_duration="PT5S")
    ordered = door.new_queue(lock_duration="PT5S", requires_session=True)
    with door.client() as client:
        with client.get_queue_sender(queue) as sender, client.get_queue_sender(ordered) as sessions:
            sender.send_messages(ServiceBusMessage("x"))
            sessions.send_messages(ServiceBusMessage("x", session_id="s"))
        set_clock(controls, 0)
        with client.get_queue_receiver(queue) as receiver:
            (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            set_clock(controls, 3600)
            with pytest.raises(MessageLockLostError):
                receiver.complete_message(message)
            (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            assert message.delivery_count == 1
            receiver.complete_message(message)
        with client.get_queue_receiver(ordered, session_id="s") as receiver:
            (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            set_clock(controls, 7200)
            with pytest.raises(SessionLockLostError):
                receiver.complete_message(message)
        with client.get_queue_receiver(ordered, session_id="s") as receiver:
            (message,) = receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            receiver.complete_message(message)
        set_clock(controls, 0)


def test_a_clock_that_jumps_stops_nothing(shifting: tuple[MessagingServer, AdminRequests]) -> None:
    door, controls = shifting
    queue = door.new_queue(requires_duplicate_detection=True, default_message_time_to_live="P1D")
    with signed_in(door) as client:
        assert client.attach(0, queue, is_receiver=False) is None
        assert client.attach(1, queue, is_receiver=True) is None
        assert client.attach(2, "hub/Partitions/0", is_receiver=False) is None
        client.send_flow(1, CREDIT_MAX)
        for number, jump in enumerate((0, 86_400 * 3, -86_400 * 3, 0, 86_400 * 30_000, -(10**9), 5, 0)):
            set_clock(controls, jump)
            body = message_of(b"%d" % number, message_id=f"{number}")
            client.send_transfer(0, body)
            delivery_id, received = client.next_delivery()
            assert received.endswith(body)
            assert client.settle(delivery_id) == ACCEPTED
            assert client.deliver(2, body) == ACCEPTED
        peek = encode_value_body({"from-sequence-number": 0, "message-count": 10})
        assert client.manage(queue, "peek-message", peek)[0] == 204


# --- the end --------------------------------------------------------------------------------------------------------


async def send_until(client: AsyncServiceBusClient, name: str, stop: asyncio.Event) -> list[str]:
    """Send messages one by one until `stop` is set; return those that the server has accepted."""
    accepted: list[str] = []
    async with client.get_queue_sender("queue") as sender:
        while not stop.is_set():
            body = f"{name}-{len(accepted)}"
            await sender.send_messages(ServiceBusMessage(body))
            accepted.append(body)
            # The receivers have to keep up.
            await asyncio.sleep(0.02)
    return accepted


async def receive_until(client: AsyncServiceBusClient, received: set[str], stop: asyncio.Event) -> None:
    async with client.get_queue_receiver("queue") as receiver:
        while not stop.is_set():
            # The client tries no longer to connect again than it waits for a message.
            with contextlib.suppress(ServiceBusConnectionError, MessageLockLostError):
                for message in await receiver.receive_messages(100, max_wait_time=1):
                    received.add(str(message))
                    await receiver.complete_message(message)


async def test_a_server_that_ends_under_load_ends_well_and_its_clients_go_on_with_the_next(tmp_path: Path) -> None:
    port = free_port()
    string = "Endpoint=sb://localhost:{};SharedAccessKeyName={};SharedAccessKey={};UseDevelopmentEmulator=true"
    string = string.format(port, "RootManageSharedAccessKey", "SAS_KEY_VALUE")
    stop, received = asyncio.Event(), set[str]()
    options = ("--amqp-port", str(port))
    client = AsyncServiceBusClient.from_connection_string(string, retry_total=30, retry_backoff_max=1)
    async with client:
        with running_server(tmp_path, *options, doors=("amqp",)) as first:
            with MessagingServer(first).administration() as administration:
                administration.create_queue("queue")
            senders = [asyncio.create_task(send_until(client, f"s{number}", stop)) for number in range(5)]
            receivers = [asyncio.create_task(receive_until(client, received, stop)) for _ in range(2)]
            while len(received) < 100:
                await asyncio.sleep(0.05)
            status, log = await asyncio.to_thread(first.end)
            assert (status, "Traceback" in log) == (0, False), log
        seen = len(received)
        with running_server(tmp_path, *options, doors=("amqp",)) as second:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                while len(received) < seen + 100:
                    await asyncio.sleep(0.05)
                stop.set()
                accepted = {body for bodies in await asyncio.gather(*senders) for body in bodies}
                await asyncio.gather(*receivers)
                rest = asyncio.Event()
                last = asyncio.create_task(receive_until(client, received, rest))
                while accepted - received:
                    await asyncio.sleep(0.05)
                rest.set()
                await last
            status, log = await asyncio.to_thread(second.end)
            assert (status, "Traceback" in log) == (0, False), log
