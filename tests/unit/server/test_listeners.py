"""The callback between the HTTP server and the doors, with neither of them."""

from __future__ import annotations

import asyncio
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

from asterism.apis.http import Request, Response
from asterism.server.config import StartRefused
from asterism.server.connection_rules import AnswerBudget, PortConnections
from asterism.server.listeners import Listener, ListenerGroup, Port, choose_address, make_application
from asterism.server.request_bodies import BodyBudget, BodyDeadlines, BodyReading

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
    bodies = BodyReading(BodyBudget(in_flight_max), deadlines, bytes_max=BYTES_MAX)
    return Port(PortConnections(10), bodies, AnswerBudget(1 << 20), lambda: None)


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


async def test_a_body_announced_too_large_is_not_read() -> None:
    protocol = FakeProtocol()
    status, headers, _ = await Doors().call(make_scope(method="POST", content_length=str(BYTES_MAX + 1)), protocol)
    assert (status, headers["connection"], protocol.times_read) == (413, "close", 0)


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


async def test_a_body_without_room_is_refused_and_the_sender_comes_again_later() -> None:
    port = make_port(in_flight_max=60)
    assert port.bodies.budget.take(50, is_small=True)
    protocol = FakeProtocol(bytes(50))
    status, headers, _ = await Doors(port=port).call(make_scope(method="POST", content_length="50"), protocol)
    assert (status, headers["retry-after"], headers["x-ms-retry-after-ms"]) == (429, "1", "1000")
    assert port.bodies.budget.used_bytes == 50


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


async def test_an_error_of_a_door_is_a_500_without_its_details_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doors = Doors(nosql=FakeDoor(b"", failure=ValueError("a secret detail")))
    with caplog.at_level(logging.ERROR):
        status, _, body = await doors.call(make_scope(), FakeProtocol())
    assert status == 500
    assert b"secret" not in body
    assert "a secret detail" in caplog.text


async def test_a_client_that_has_gone_gets_no_answer() -> None:
    protocol = FakeProtocol(client_is_gone=True)
    application = make_application(admin=FakeDoor(b""), door=FakeDoor(b""), port=make_port())
    await application(make_scope(method="POST", content_length="2"), protocol)
    assert protocol.answers == []


def test_port_0_becomes_a_port_of_the_systems_choice() -> None:
    address, port = choose_address("localhost", 0)
    assert address == "127.0.0.1"
    assert port > 0


def test_a_port_somebody_listens_on_is_refused_even_if_they_would_share_it() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(StartRefused, match="another process is listening there"):
            choose_address("127.0.0.1", taken.getsockname()[1])


def test_an_address_of_another_machine_is_refused_with_the_systems_reason() -> None:
    with pytest.raises(StartRefused) as refused:
        choose_address("192.0.2.1", 0)
    assert str(refused.value).endswith(os.strerror(errno.EADDRNOTAVAIL))


async def test_the_port_with_the_readiness_probe_opens_last() -> None:
    """Who has heard of it that the server is ready may connect to any of its ports."""
    opened: list[int] = []

    class OnePort:
        def __init__(self, number: int) -> None:
            self.number = number

        async def start(self) -> None:
            await asyncio.sleep(0)
            opened.append(self.number)

    await ListenerGroup([cast(Listener, OnePort(number)) for number in range(3)]).start()
    assert opened[-1] == 0
