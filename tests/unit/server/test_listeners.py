"""The callback between the HTTP server and the doors, with neither of them."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import logging
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from granian._granian import RSGIProtocolClosed

from asterism.apis.transports.http import Request, Response, StreamedResponse
from asterism.server.config import StartRefused
from asterism.server.listeners.addresses import bind_shared, choose_address
from asterism.server.listeners.answer_streams import AnswerStreams
from asterism.server.listeners.application import Port, make_application
from asterism.server.listeners.connection_rules import AnswerBudget, PortConnections
from asterism.server.listeners.group import Listener, ListenerGroup
from asterism.server.listeners.request_bodies import BodyBudget, BodyDeadlines, BodyReader

BYTES_MAX = 100


@dataclass
class FakeProtocol:
    body: bytes = b""
    client_is_gone: bool = False
    times_read: int = 0
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)

    async def __call__(self) -> bytes:
        self.times_read += 1
        if self.client_is_gone:
            raise RSGIProtocolClosed
        return self.body

    async def client_disconnect(self) -> None:
        await asyncio.Event().wait()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.body), 10):
            self.times_read += 1
            yield self.body[start : start + 10]

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.answers.append((status, dict(headers), body))

    def response_empty(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.answers.append((status, dict(headers), b""))


class FakeDoor:
    def __init__(self, name: bytes, failure: Exception | None = None, *, reads: bool = True) -> None:
        self.name = name
        self.reads = reads
        self.failure = failure
        self.requests: list[Request] = []

    async def answer(self, request: Request) -> Response:
        self.requests.append(request)
        if self.reads and request.read_body is not None:
            request.body = await request.read_body()
        if self.failure is not None:
            raise self.failure
        return Response(200, [("door", self.name.decode())], self.name)


def make_scope(path: str = "/dbs", *, method: str = "GET", version: str = "1.1", **headers: str) -> Any:
    return SimpleNamespace(
        method=method,
        path=path,
        query_string="a=b",
        scheme="http",
        authority=None,
        http_version=version,
        client="127.0.0.1:50000",
        headers={"host": "db.test:1", **{name.replace("_", "-"): value for name, value in headers.items()}},
    )


def make_port(*, pause_seconds_max: float = 60.0, seconds_max: float = 60.0, in_flight_max: int = 1000) -> Port:
    deadlines = BodyDeadlines(pause_seconds_max=pause_seconds_max, seconds_max=seconds_max)
    bodies = BodyReader(BodyBudget(in_flight_max), deadlines, bytes_max=BYTES_MAX)
    answers = AnswerBudget(1 << 20)
    return Port(PortConnections(10), bodies, answers, AnswerStreams(answers, lambda: None), lambda: None)


@dataclass
class Doors:
    nosql: FakeDoor = field(default_factory=lambda: FakeDoor(b"nosql"))
    admin: FakeDoor = field(default_factory=lambda: FakeDoor(b"admin"))
    port: Port = field(default_factory=lambda: make_port())

    async def call(self, scope: Any, protocol: FakeProtocol) -> tuple[int, dict[str, str], bytes]:
        application = make_application(admin=self.admin, door=self.nosql, port=self.port)
        await application(scope, protocol)
        return protocol.answers[0]


@pytest.mark.parametrize(
    ("path", "door"),
    [
        ("/", b"nosql"),
        ("/dbs/_asterism/", b"nosql"),
        ("/_asterism", b"nosql"),
        ("/_asterism/health", b"admin"),
    ],
)
async def test_the_path_chooses_the_door(path: str, door: bytes) -> None:
    _, _, body = await Doors().call(make_scope(path), FakeProtocol())
    assert body == door


async def test_a_door_gets_the_whole_request() -> None:
    doors = Doors()
    await doors.call(make_scope(method="POST", content_length="2"), FakeProtocol(b"{}"))
    (request,) = doors.nosql.requests
    assert (request.method, request.path, request.query_string) == ("POST", "/dbs", "a=b")
    assert (request.body, request.scheme, request.authority) == (b"{}", "http", "db.test:1")


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
async def test_a_request_without_a_body_is_not_waited_for(method: str) -> None:
    protocol = FakeProtocol(b"unwanted")
    await Doors().call(make_scope(method=method), protocol)
    assert protocol.times_read == 0


# S4 of asterism/server/DESIGN.md.
async def test_a_body_announced_too_large_is_not_read() -> None:
    protocol = FakeProtocol()
    status, headers, _ = await Doors().call(make_scope(method="POST", content_length=str(BYTES_MAX + 1)), protocol)
    assert (status, headers["connection"], protocol.times_read) == (413, "close", 0)


# S4 of asterism/server/DESIGN.md.
async def test_a_body_of_unknown_length_is_read_up_to_the_limit_and_no_further() -> None:
    protocol = FakeProtocol(bytes(1000))
    status, headers, _ = await Doors().call(make_scope(method="POST", version="2"), protocol)
    assert (status, protocol.times_read) == (413, 11)
    assert "connection" not in headers


async def test_a_body_of_unknown_length_at_the_limit_is_read_whole() -> None:
    doors = Doors()
    await doors.call(make_scope(method="PUT"), FakeProtocol(bytes(BYTES_MAX)))
    assert doors.nosql.requests[0].body == bytes(BYTES_MAX)


class SilentProtocol(FakeProtocol):
    """A client that has announced a body and does not send it."""

    async def __call__(self) -> bytes:
        await asyncio.Event().wait()
        return b""


@pytest.mark.parametrize("seconds_max", [{"pause_seconds_max": 0.01}, {"seconds_max": 0.01, "pause_seconds_max": 0.1}])
async def test_a_body_that_never_comes_is_given_up(seconds_max: dict[str, float]) -> None:
    doors = Doors(port=make_port(**seconds_max))
    status, headers, _ = await doors.call(make_scope(method="POST", content_length="2"), SilentProtocol())
    assert (status, headers["connection"]) == (408, "close")
    assert doors.port.bodies.budget.used_bytes == 0


async def test_a_body_the_door_does_not_ask_for_is_received_after_the_answer_and_not_kept() -> None:
    doors = Doors(nosql=FakeDoor(b"no", reads=False))
    protocol = FakeProtocol(bytes(50))
    status, _, _ = await doors.call(make_scope(method="POST", content_length="50"), protocol)
    assert (status, protocol.times_read) == (200, 5)
    assert doors.nosql.requests[0].body == b""


async def test_a_client_that_waits_for_permission_to_send_is_not_given_it_after_the_answer() -> None:
    protocol = FakeProtocol(bytes(50))
    doors = Doors(nosql=FakeDoor(b"no", reads=False))
    await doors.call(make_scope(method="POST", content_length="50", expect="100-continue"), protocol)
    assert protocol.times_read == 0


@pytest.mark.parametrize("headers", [{"content_length": "50"}, {}], ids=["announced", "in pieces"])
async def test_a_body_counts_until_its_request_is_answered(headers: dict[str, str]) -> None:
    port = make_port(in_flight_max=1000)
    counted: list[int] = []

    class CountingDoor(FakeDoor):
        async def answer(self, request: Request) -> Response:
            response = await super().answer(request)
            counted.append(port.bodies.budget.used_bytes)
            return response

    await Doors(nosql=CountingDoor(b""), port=port).call(make_scope(method="POST", **headers), FakeProtocol(bytes(50)))
    assert (counted, port.bodies.budget.used_bytes) == ([50], 0)


class ChunkDoor(FakeDoor):
    """A door that takes bodies in pieces, up to a given number of them."""

    def __init__(self, port: Port, *, pieces_max: int = 100, bytes_max: int | None = None) -> None:
        super().__init__(b"chunks")
        self.port = port
        self.pieces_max = pieces_max
        self.bytes_max = bytes_max
        self.pieces: list[bytes] = []
        self.counted: list[int] = []

    async def answer(self, request: Request) -> Response:
        async for piece in request.body_chunks(bytes_max=self.bytes_max):
            self.pieces.append(piece)
            self.counted.append(self.port.bodies.budget.used_bytes)
            if len(self.pieces) == self.pieces_max:
                break
        return Response(200, [], b"taken")


async def test_a_streamed_body_counts_one_piece_at_a_time() -> None:
    port = make_port()
    door = ChunkDoor(port)
    await Doors(nosql=door, port=port).call(make_scope(method="PUT", content_length="50"), FakeProtocol(bytes(50)))
    assert (b"".join(door.pieces), door.counted, port.bodies.budget.used_bytes) == (bytes(50), [10] * 5, 0)


async def test_a_streamed_body_is_refused_beyond_the_limit_of_its_route() -> None:
    port = make_port()
    door = ChunkDoor(port, bytes_max=20)
    status, _, _ = await Doors(nosql=door, port=port).call(make_scope(method="PUT"), FakeProtocol(bytes(50)))
    assert (status, len(door.pieces), port.bodies.budget.used_bytes) == (413, 2, 0)


async def test_the_rest_of_a_body_that_a_door_leaves_half_way_is_received_and_not_kept() -> None:
    port = make_port()
    door = ChunkDoor(port, pieces_max=1)
    protocol = FakeProtocol(bytes(50))
    status, _, _ = await Doors(nosql=door, port=port).call(make_scope(method="PUT", content_length="50"), protocol)
    assert (status, protocol.times_read, len(door.pieces)) == (200, 5, 1)


async def test_a_port_with_streams_lets_through_what_a_route_may_refuse() -> None:
    port = make_port()
    bodies = port.bodies.with_limits(bytes_max=BYTES_MAX, streamed_bytes_max=10 * BYTES_MAX)
    port = dataclasses.replace(port, bodies=bodies)
    size = str(5 * BYTES_MAX)
    streaming = Doors(nosql=ChunkDoor(port), port=port)
    status, _, _ = await streaming.call(
        make_scope(method="PUT", content_length=size), FakeProtocol(bytes(5 * BYTES_MAX))
    )
    assert status == 200
    reading = Doors(port=port)
    status, _, _ = await reading.call(make_scope(method="PUT", content_length=size), FakeProtocol(bytes(5 * BYTES_MAX)))
    assert (status, len(reading.nosql.requests)) == (413, 1)


class FastReader(FakeProtocol):
    """A client that takes everything at once, until it is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.sent_bytes = 0
        self.gone = asyncio.Event()

    async def client_disconnect(self) -> None:
        await self.gone.wait()

    def response_stream(self, status: int, headers: list[tuple[str, str]]) -> FastReader:
        return self

    async def send_bytes(self, data: bytes) -> None:
        self.sent_bytes += len(data)


async def test_a_stream_to_a_fast_reader_lets_others_run_and_ends_with_it() -> None:
    ended: list[str] = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield bytes(100_000)
        finally:
            ended.append("chunks")

    class StreamDoor:
        async def answer(self, request: Request) -> StreamedResponse:
            return StreamedResponse(200, [], endless())

    protocol = FastReader()
    application = make_application(admin=FakeDoor(b""), door=StreamDoor(), port=make_port())
    answering = asyncio.create_task(application(make_scope(), protocol))
    async with asyncio.timeout(180):
        while protocol.sent_bytes < 10_000_000:
            await asyncio.sleep(0)
        protocol.gone.set()
        await answering
    assert ended == ["chunks"]


async def test_messages_get_room_in_the_order_they_asked_for_it() -> None:
    budget = BodyBudget(100)
    await budget.wait_to_take(70)
    order: list[str] = []

    async def take(name: str, size: int) -> None:
        await budget.wait_to_take(size)
        order.append(name)

    tasks = [asyncio.create_task(take(name, size)) for name, size in [("a", 60), ("gives up", 70), ("b", 10)]]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    assert order == []
    budget.give_back(70)
    await asyncio.sleep(0)
    assert (order, budget.used_bytes) == (["a", "b"], 70)


async def test_room_that_is_given_to_a_message_whose_client_just_left_is_given_back() -> None:
    budget = BodyBudget(100)
    await budget.wait_to_take(70)
    waiting = asyncio.create_task(budget.wait_to_take(70))
    await asyncio.sleep(0)
    budget.give_back(70)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert budget.used_bytes == 0


# S5 of asterism/server/DESIGN.md.
async def test_a_body_without_room_is_refused_and_the_sender_comes_again_later() -> None:
    port = make_port(in_flight_max=60)
    assert port.bodies.budget.take(50, is_small=True)
    protocol = FakeProtocol(bytes(50))
    status, headers, _ = await Doors(port=port).call(make_scope(method="POST", content_length="50"), protocol)
    assert (status, headers["retry-after"], headers["x-ms-retry-after-ms"]) == (429, "1", "1000")
    assert port.bodies.budget.used_bytes == 50


# S5 of asterism/server/DESIGN.md.
async def test_requests_are_refused_while_clients_leave_too_many_answers_unread() -> None:
    doors = Doors()
    doors.port.answers.is_exceeded = True
    status, headers, _ = await doors.call(make_scope(), FakeProtocol())
    assert (status, headers["retry-after"], doors.nosql.requests) == (429, "1", [])


async def test_a_connection_is_known_by_its_requests() -> None:
    doors = Doors()
    for _ in range(2):
        await doors.call(make_scope(), FakeProtocol())
    connection = doors.port.connections.by_client["127.0.0.1:50000"]
    assert (connection.request_count, connection.under_way, connection.answered_bytes) == (2, 0, 2 * len(b"nosql"))


# S9 of asterism/server/DESIGN.md.
async def test_an_error_of_a_door_is_a_500_without_its_details_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doors = Doors(nosql=FakeDoor(b"", failure=ValueError("a secret detail")))
    with caplog.at_level(logging.ERROR):
        status, _, body = await doors.call(make_scope(), FakeProtocol())
    assert status == 500
    assert b"secret" not in body
    assert "a secret detail" in caplog.text


async def test_a_client_that_ends_before_its_body_is_told_in_case_it_still_reads() -> None:
    protocol = FakeProtocol(client_is_gone=True)
    application = make_application(admin=FakeDoor(b""), door=FakeDoor(b""), port=make_port())
    await application(make_scope(method="POST", content_length="2"), protocol)
    ((status, headers, body),) = protocol.answers
    assert (status, headers["connection"]) == (400, "close")
    assert b"ended before the body" in body


def test_port_0_becomes_a_port_of_the_systems_choice() -> None:
    address, port = choose_address("localhost", 0)
    assert address == "127.0.0.1"
    assert port > 0


def test_a_port_in_use_is_refused_even_if_its_user_would_share_it() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(StartRefused, match="another process is listening there"):
            choose_address("127.0.0.1", taken.getsockname()[1])


def test_a_held_port_is_given_to_no_other_server_and_free_afterwards() -> None:
    address, port = choose_address("127.0.0.1", 0)
    with bind_shared(address, port), socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind((address, port))
        # As the listeners of this server do.
        with bind_shared(address, port) as listener:
            listener.listen()
            with socket.create_connection((address, port)):
                listener.accept()[0].close()
    assert choose_address(address, port) == (address, port)


def test_an_address_of_another_machine_is_refused_with_the_systems_reason() -> None:
    with pytest.raises(StartRefused) as refused:
        choose_address("192.0.2.1", 0)
    assert str(refused.value).endswith(os.strerror(errno.EADDRNOTAVAIL))


# S8 of asterism/server/DESIGN.md.
async def test_the_port_with_the_readiness_probe_opens_last() -> None:
    """A client that has heard that the server is ready may connect to any of its ports."""
    opened: list[int] = []

    class OnePort:
        def __init__(self, number: int) -> None:
            self.number = number

        async def start(self) -> None:
            await asyncio.sleep(0)
            opened.append(self.number)

    await ListenerGroup([cast(Listener, OnePort(number)) for number in range(3)]).start()
    assert opened[-1] == 0
