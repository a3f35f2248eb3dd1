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
from asterism.server import listeners
from asterism.server.config import StartRefused
from asterism.server.listeners import Listener, ListenerGroup, choose_address, make_application

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
    def __init__(self, name: bytes, failure: Exception | None = None) -> None:
        self.name = name
        self.failure = failure
        self.requests: list[Request] = []

    async def answer(self, request: Request) -> Response:
        self.requests.append(request)
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


@dataclass
class Doors:
    nosql: FakeDoor = field(default_factory=lambda: FakeDoor(b"nosql"))
    admin: FakeDoor = field(default_factory=lambda: FakeDoor(b"admin"))

    async def call(self, scope: Any, protocol: FakeProtocol) -> tuple[int, dict[str, str], bytes]:
        application = make_application(admin=self.admin, door=self.nosql, request_bytes_max=BYTES_MAX)
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


async def test_a_body_that_never_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners.SlowBodies.__init__, "__defaults__", (0.01,))
    status, headers, _ = await Doors().call(make_scope(method="POST", content_length="2"), SilentProtocol())
    assert (status, headers["connection"]) == (408, "close")


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
    application = make_application(admin=FakeDoor(b""), door=FakeDoor(b""), request_bytes_max=BYTES_MAX)
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

    class Port:
        def __init__(self, number: int) -> None:
            self.number = number

        async def start(self) -> None:
            await asyncio.sleep(0)
            opened.append(self.number)

    await ListenerGroup([cast(Listener, Port(number)) for number in range(3)]).start()
    assert opened[-1] == 0
