"""Other protocols at the ports of AMQP, in their right form and otherwise: websockets, HTTP and TLS."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub import TransportType as HubTransportType
from azure.eventhub.aio import EventHubProducerClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType
from azure.servicebus.aio import ServiceBusClient as AsyncServiceBusClient
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as connect_websocket
from websockets.typing import Subprotocol

from asterism.apis.amqp.engine.frame_codec import SASL_HEADER
from tests.clients.amqp_door import CONVERSATION, goes_on, serving
from tests.clients.messaging_server import WAIT_SECONDS, MessagingServer
from tests.support.raw import connect, connect_tls, was_closed
from tests.support.server import WAIT_SECONDS_MAX

NOT_FOUND, NOT_ALLOWED, UNAUTHORIZED = "amqp:not-found", "amqp:not-allowed", "amqp:unauthorized-access"
INVALID, DECODE, FRAMING = "amqp:invalid-field", "amqp:decode-error", "amqp:connection:framing-error"
ILLEGAL, SIZE = "amqp:illegal-state", "amqp:link:message-size-exceeded"
ARGUMENT, OUT_OF_RANGE = "com.microsoft:argument-error", "com.microsoft:argument-out-of-range"
UNIMPLEMENTED = "amqp:not-implemented"
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessagingServer]:
    with serving(tmp_path_factory.mktemp("bad") / "data") as made:
        yield made


# --- websockets, HTTP and TLS -----------------------------------------------------------------------------------------

SOCKET_PATH = "/$servicebus/websocket"


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def websocket(door: MessagingServer, *, path: str = SOCKET_PATH, **options: Any) -> Any:
    options.setdefault("subprotocols", ["AMQPWSB10"])
    return connect_websocket(f"ws://localhost:{door.amqp_port}{path}", open_timeout=WAIT_SECONDS, **options)


@pytest.mark.parametrize(
    ("path", "subprotocols", "status"),
    [
        (SOCKET_PATH, None, 400),
        (SOCKET_PATH, ["graphql-ws"], 400),
        ("/", ["AMQPWSB10"], 404),
        ("/elsewhere", ["AMQPWSB10"], 404),
    ],
)
def test_a_websocket_that_is_not_of_the_service_is_refused(
    door: MessagingServer, path: str, subprotocols: Any, status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused, websocket(door, path=path, subprotocols=subprotocols):
        pass
    assert refused.value.response.status_code == status


def test_a_websocket_takes_frames_cut_anywhere(door: MessagingServer) -> None:
    with websocket(door, path=f"{SOCKET_PATH}/") as connection:
        assert connection.subprotocol == "AMQPWSB10"
        for place in range(0, len(CONVERSATION), 7):
            connection.send(CONVERSATION[place : place + 7])
        answered = b"".join(connection)
        assert answered.startswith(SASL_HEADER)
        assert connection.close_code == 1000


def test_a_websocket_of_texts_is_closed(door: MessagingServer) -> None:
    with websocket(door) as connection:
        connection.send("AMQP")
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=WAIT_SECONDS)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1003


def test_a_websocket_message_above_the_limit_is_closed(door: MessagingServer) -> None:
    with websocket(door) as connection:
        with contextlib.suppress(ConnectionClosed):
            connection.send(bytes(5 * MIB))
        with pytest.raises(ConnectionClosed):
            connection.recv(timeout=WAIT_SECONDS)
    assert goes_on(door)


def test_empty_messages_and_pings_of_a_websocket_are_nothing(door: MessagingServer) -> None:
    with websocket(door) as connection:
        connection.send(b"")
        connection.ping().wait(WAIT_SECONDS)
        connection.send(SASL_HEADER)
        assert connection.recv(timeout=WAIT_SECONDS)[:8] == SASL_HEADER


@pytest.mark.parametrize("port", ["amqp", "amqps", "messaging"])
def test_requests_of_http_are_answered_on_each_port(door: MessagingServer, port: str) -> None:
    number = door.server.ports[port]
    for connection in (
        http.client.HTTPConnection("localhost", number, timeout=WAIT_SECONDS_MAX),
        http.client.HTTPSConnection("localhost", number, timeout=WAIT_SECONDS_MAX, context=unverified()),
    ):
        with contextlib.closing(connection):
            for path, statuses in (("/health", {200}), ("/queue", {401}), ("/$servicebus/websocket", {401, 404, 426})):
                connection.request("GET", path)
                response = connection.getresponse()
                response.read()
                assert response.status in statuses, (port, path, response.status)


def test_tls_is_served_on_each_port_and_required_on_one(door: MessagingServer) -> None:
    for port in ("amqp", "amqps", "messaging"):
        with connect_tls(door.server.ports[port]) as secured:
            secured.sendall(SASL_HEADER)
            assert secured.recv(8) == SASL_HEADER
    with connect(door.server.ports["amqps"]) as plain:
        plain.sendall(SASL_HEADER)
        assert was_closed(plain)
    with pytest.raises(InvalidStatus) as refused:
        connect_websocket(
            f"ws://localhost:{door.server.ports['amqps']}{SOCKET_PATH}", subprotocols=[Subprotocol("AMQPWSB10")]
        )
    assert refused.value.response.status_code == 403


def test_a_handshake_that_is_none_is_closed(door: MessagingServer) -> None:
    for hello in (b"\x16\x03\x01\x00\x05hello", b"\x16" + bytes(300), b"\x16\x03\x01\xff\xff" + bytes(70_000)):
        with connect(door.amqp_port) as connection:
            try:
                connection.sendall(hello)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                continue
            assert was_closed(connection)
    assert goes_on(door)


def without_emulator(door: MessagingServer) -> str:
    """Return a connection string of clients that use TLS."""
    return door.connection_string().replace(";UseDevelopmentEmulator=true", "").replace(f":{door.amqp_port}", "")


def secure_websocket_client(door: MessagingServer) -> ServiceBusClient:
    return ServiceBusClient.from_connection_string(
        without_emulator(door),
        custom_endpoint_address=f"sb://localhost:{door.server.ports['amqps']}",
        transport_type=TransportType.AmqpOverWebsocket,
        ssl_context=unverified(),
    )


def test_the_official_client_goes_over_tls_and_over_websockets(door: MessagingServer) -> None:
    queue = door.new_queue()
    for made in (door.tls_client(), door.websocket_client(), secure_websocket_client(door)):
        with made as client, client.get_queue_sender(queue) as sender, client.get_queue_receiver(queue) as own:
            sender.send_messages([ServiceBusMessage("x" * 100_000), ServiceBusMessage("y")])
            received: list[str] = []
            while len(received) < 2:
                for message in own.receive_messages(2, max_wait_time=WAIT_SECONDS):
                    own.complete_message(message)
                    received.append(str(message))
            assert received == ["x" * 100_000, "y"]


async def test_the_official_clients_of_asyncio_go_over_tls_and_over_websockets(door: MessagingServer) -> None:
    queue = door.new_queue()
    string = door.connection_string()
    over: dict[str, Any] = {
        "transport_type": TransportType.AmqpOverWebsocket,
        "custom_endpoint_address": f"http://localhost:{door.amqp_port}",
    }
    async with AsyncServiceBusClient.from_connection_string(string, **over) as client:
        async with client.get_queue_sender(queue) as sender:
            await sender.send_messages(ServiceBusMessage("over a websocket"))
        async with client.get_queue_receiver(queue) as receiver:
            (message,) = await receiver.receive_messages(max_wait_time=WAIT_SECONDS)
            assert str(message) == "over a websocket"
            await receiver.dead_letter_message(message, reason="read")
    over["transport_type"] = HubTransportType.AmqpOverWebsocket
    async with EventHubProducerClient.from_connection_string(string, eventhub_name="hub", **over) as producer:
        await producer.send_batch([EventData("over a websocket")], partition_id="1")
        assert (await producer.get_partition_properties("1"))["last_enqueued_sequence_number"] >= 0
    secured: dict[str, Any] = {
        "transport_type": HubTransportType.Amqp,
        "custom_endpoint_address": f"sb://localhost:{door.server.ports['amqps']}",
        "ssl_context": unverified(),
    }
    string = without_emulator(door)
    async with EventHubProducerClient.from_connection_string(string, eventhub_name="hub", **secured) as producer:
        await producer.send_batch([EventData("over TLS")], partition_id="1")
