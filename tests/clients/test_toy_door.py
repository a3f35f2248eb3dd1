"""A door is one row and one folder: tests/toy_door has both, and a server serves it as it serves the others."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.support.server import WAIT_SECONDS_MAX, environment, running_program
from tests.toy_door.echo import LENGTH_BYTES, encode

PROGRAM = [sys.executable, "-m", "tests.toy_door", "serve"]

PROTOCOLS = "nosql, table, queue, blob, mongo, gremlin, amqp, portal, echo"


@dataclass(frozen=True)
class EchoServer:
    greeting: str

    def port(self, name: str) -> int:
        found = re.search(rf"  {name} +\w+://127\.0\.0\.1:(\d+)/", self.greeting)
        assert found is not None, self.greeting
        return int(found[1])

    def ask(self, method: str, path: str, body: bytes = b"", *, name: str = "Echo") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port(name), timeout=WAIT_SECONDS_MAX)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def connect(self, name: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port(name)), timeout=WAIT_SECONDS_MAX)


@contextmanager
def echo_server(data: Path, *options: str, **variables: str) -> Iterator[EchoServer]:
    """Start a server with the echo door alone, on ports that the system chooses."""
    ports = [f"--echo-{name}port=0" for name in ("", "websocket-", "tcp-")]
    command = [*PROGRAM, "--data", str(data), *ports, *options]
    with running_program(command, {**environment(), "ASTERISM_APIS": "echo", **variables}) as program:
        yield EchoServer(program.greeting)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EchoServer]:
    with echo_server(tmp_path_factory.mktemp("echo") / "data", "--limit", "echo-request-bytes=1KB") as running:
        yield running


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *options],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


def say(connection: socket.socket, message: bytes) -> bytes:
    """Return the answer to a message, each behind its length."""
    connection.sendall(encode(message))
    stream = connection.makefile("rb")
    return stream.read(int.from_bytes(stream.read(LENGTH_BYTES), "big"))


def test_a_door_with_a_row_is_served(server: EchoServer) -> None:
    assert server.ask("POST", "/", b"hello") == (200, b"hello")
    assert "AccountEndpoint" not in server.greeting


def test_its_http_ports_answer_the_operator_too(server: EchoServer) -> None:
    for name in ("Echo", "Echo-websocket"):
        status, body = server.ask("GET", "/_asterism/health", name=name)
        assert (status, b'"ready"' in body) == (200, True)


async def test_it_is_served_over_websockets(server: EchoServer) -> None:
    address = f"http://127.0.0.1:{server.port('Echo-websocket')}/"
    async with aiohttp.ClientSession() as session, session.ws_connect(address) as connection:
        await connection.send_str("hello")
        assert (await connection.receive(WAIT_SECONDS_MAX)).data == "hello"
        await connection.send_bytes(bytes(1025))
        assert (await connection.receive(WAIT_SECONDS_MAX)).type == aiohttp.WSMsgType.CLOSE
        assert connection.close_code == 1009


def test_it_is_served_over_tcp(server: EchoServer) -> None:
    with server.connect("Echo-tcp") as connection:
        assert [say(connection, message) for message in (b"hello", b"", b"again")] == [b"hello", b"", b"again"]
        assert say(connection, b"quit") == b"bye"


def test_a_port_with_optional_encryption_is_served_with_it_as_well(server: EchoServer) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with server.connect("Echo-tcp") as plain, context.wrap_socket(plain) as connection:
        assert say(connection, b"hello") == b"hello"


def test_its_limits_are_changed_like_those_of_the_database(server: EchoServer) -> None:
    assert server.ask("POST", "/", bytes(1024))[0] == 200
    assert server.ask("POST", "/", bytes(1025))[0] == 413
    assert server.ask("POST", "/stream", bytes(1025), name="Echo-websocket") == (200, bytes(1025))


def test_workers_share_its_ports_and_a_variable_gives_its_option(tmp_path: Path) -> None:
    with echo_server(tmp_path, "--workers", "2", ASTERISM_ECHO_PREFIX="> ") as server:
        assert [server.ask("POST", "/", b"hello") for _ in range(6)] == [(200, b"> hello")] * 6
        for _ in range(6):
            with server.connect("Echo-tcp") as connection:
                assert say(connection, b"hello") == b"hello"


def test_the_help_shows_its_options_and_its_limit() -> None:
    # The list is broken into lines, as wide as the terminal lets it be.
    shown = " ".join(run("--help").stdout.replace("│", " ").split())
    words = ("--echo-port", "ASTERISM_ECHO_PORT", "7007", "--echo-prefix", "echo-request-bytes", PROTOCOLS)
    assert [word for word in words if word not in shown] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--echo-prefix", "ä"], "the prefix 'ä' is not ASCII"),
        (
            ["--apis", "ecco"],
            f"there is no protocol 'ecco'; the protocols are {PROTOCOLS}",
        ),
        (["--apis", "nosql,echo", "--port", "9000", "--echo-port", "9000"], "change --port or --echo-port"),
    ],
)
def test_a_refused_option_is_one_line_and_status_1(tmp_path: Path, options: list[str], message: str) -> None:
    finished = run("--data", str(tmp_path), *options)
    (line,) = finished.stderr.splitlines()
    assert finished.returncode == 1
    assert message in line
