"""Clients that send too slowly, too much or nothing, that do not read, and that never leave."""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from azure.cosmos import ContainerProxy, PartitionKey

from tests.clients.table_server import TableServer
from tests.support.raw import (
    HTTP2_PING,
    HTTP2_START,
    answer_of,
    connect,
    connect_tls,
    create_item,
    head,
    http2_frame,
    http2_frames,
    http2_post,
    status_of,
    wait_until,
    was_closed,
)
from tests.support.server import WAIT_SECONDS_MAX, PlainClient, RunningServer, running_server

MIB = 1024 * 1024
HEALTH = b"GET /_asterism/health HTTP/1.1\r\nhost: a\r\n\r\n"


def limits(**chosen: str) -> list[str]:
    pairs = (f"{name.replace('_', '-')}={value}" for name, value in chosen.items())
    return [text for pair in pairs for text in ("--limit", pair)]


def make_container(server: RunningServer, name: str = "c") -> ContainerProxy:
    return server.client().create_database_if_not_exists("d").create_container(name, PartitionKey("/pk"))


def is_served(port: int, host: str = "127.0.0.1") -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=WAIT_SECONDS_MAX)
    try:
        connection.request("GET", "/_asterism/health")
        return connection.getresponse().status == 200
    finally:
        connection.close()


def memory_bytes(server: RunningServer) -> int:
    return int(psutil.Process(server.process.pid).memory_info().rss)


# --- bodies ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("data"), "--no-throttle", alone=True) as server:
        make_container(server)
        yield server


UNKNOWN_SENDERS = [
    create_item("c", 4 * MIB - 1, signed=False),
    create_item("c", None, signed=False),
    head(
        "POST", "/_asterism/query", resource_type="asterism", link="_asterism/query", signed=False, content_length="9"
    ),
    head("POST", "/dbs", resource_type="dbs", link="", signed=False, content_length="4000000"),
]


@pytest.mark.parametrize("request_head", UNKNOWN_SENDERS)
def test_a_sender_without_a_key_is_refused_before_its_body_is_read(patient: RunningServer, request_head: bytes) -> None:
    with connect(patient.port) as connection:
        connection.sendall(request_head)
        assert status_of(connection) == 401


def test_a_path_that_leads_nowhere_is_refused_before_its_body_is_read(patient: RunningServer) -> None:
    with connect(patient.port) as connection:
        connection.sendall(head("POST", "/nowhere/at/all", resource_type="", link="", content_length="4000000"))
        assert 400 <= status_of(connection) < 500


def test_tables_refuse_strangers_and_large_bodies_before_they_are_read(tables: TableServer) -> None:
    stranger = b"POST /devstoreaccount1/things HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4000000\r\n\r\n"
    for port in (tables.port, tables.cosmos_port):
        with connect(port) as connection:
            connection.sendall(stranger)
            assert status_of(connection) == 401


def test_a_refused_sender_may_finish_its_body_and_use_the_connection_again(patient: RunningServer) -> None:
    with connect(patient.port) as connection:
        connection.sendall(create_item("c", 3 * MIB, signed=False))
        assert status_of(connection) == 401
        connection.sendall(bytes(3 * MIB))
        connection.sendall(head("GET", "/dbs/d", resource_type="dbs", link="dbs/d"))
        assert status_of(connection) == 200


def test_a_refused_sender_of_http2_hears_why_and_may_finish_its_body(patient: RunningServer) -> None:
    with connect(patient.port) as connection:
        connection.sendall(http2_post("/dbs", content_length=30_000, start=bytes(15_000)))
        frames = http2_frames(connection)
        answer = [next(frames), next(frames)]
        connection.sendall(http2_frame(0, 1, bytes(15_000)) + HTTP2_PING)
        assert [kind for kind, _ in answer] == [1, 0]
        assert b"authorization is missing" in answer[1][1]
        assert 3 not in [kind for kind, _ in frames]


def test_half_sent_bodies_of_strangers_take_no_memory(patient: RunningServer) -> None:
    before = memory_bytes(patient)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(patient.port)) for _ in range(150)]
        for connection in connections:
            connection.sendall(create_item("c", 4 * MIB, signed=False))
            with contextlib.suppress(OSError):
                connection.sendall(bytes(2 * MIB))
        assert is_served(patient.port)
        # They have sent 300 MB.
        assert memory_bytes(patient) - before < 100 * MIB


def test_a_body_in_a_million_pieces_is_refused_after_a_few_thousand(patient: RunningServer) -> None:
    with connect(patient.port) as connection:
        connection.sendall(create_item("c", None))
        with contextlib.suppress(OSError):
            for _ in range(100):
                connection.sendall(b"1\r\n \r\n" * 10_000)
        assert status_of(connection) == 400
    assert is_served(patient.port)


@pytest.mark.parametrize("size", [None, 3 * MIB // 2], ids=["in chunks", "large"])
def test_a_body_that_is_read_piece_by_piece_arrives_whole(patient: RunningServer, size: int | None) -> None:
    text = json.dumps({"id": f"pieces-{size}", "pk": "a", "text": "x" * (3 * MIB // 2)}).encode()[: size and None]
    with connect(patient.port) as connection:
        connection.sendall(create_item("c", None if size is None else len(text)))
        for start in range(0, len(text), 50_000):
            piece = text[start : start + 50_000]
            connection.sendall(piece if size is not None else b"%x\r\n%b\r\n" % (len(piece), piece))
        if size is None:
            connection.sendall(b"0\r\n\r\n")
        assert status_of(connection) == 201


def test_a_body_that_is_cut_short_is_not_taken_for_a_whole_one(patient: RunningServer) -> None:
    item = b'{"id": "cut", "pk": "a"}'
    with connect(patient.port) as connection:
        connection.sendall(create_item("c", None) + b"%x\r\n%b\r\n" % (len(item), item))
        connection.shutdown(socket.SHUT_WR)
        assert was_closed(connection)
    container = patient.client().get_database_client("d").get_container_client("c")
    assert list(container.query_items("SELECT * FROM c WHERE c.id = 'cut'", partition_key="a")) == []


def test_bodies_in_flight_are_bounded_and_small_ones_still_pass(tmp_path: Path) -> None:
    chosen = limits(body_bytes_in_flight="8MB", body_pause_seconds="8")
    with running_server(tmp_path, "--no-throttle", *chosen, alone=True) as server, contextlib.ExitStack() as stack:
        make_container(server)
        connections = [stack.enter_context(connect(server.port)) for _ in range(8)]
        for connection in connections:
            connection.sendall(create_item("c", 2 * MIB) + b" " * MIB)
        small = PlainClient(server.port)
        assert small.write_item("c", {"id": "small", "pk": "a"}, key="a")[0] == 201
        statuses = sorted(status_of(connection) for connection in connections)
        # Three fit into three quarters of 8 MB, and never become whole; the others are sent away at once.
        assert statuses == [408] * 3 + [429] * 5
        large = {"id": "large", "pk": "a", "text": "x" * (3 * MIB // 2)}
        assert small.write_item("c", large, key="a")[0] == 201


def test_a_refusal_for_want_of_room_says_when_to_come_again(tmp_path: Path) -> None:
    with running_server(tmp_path, *limits(body_bytes_in_flight="3MB"), alone=True) as server:
        make_container(server)
        with connect(server.port) as holder, connect(server.port) as other:
            holder.sendall(create_item("c", 2 * MIB))
            assert is_served(server.port)
            other.sendall(create_item("c", 2 * MIB))
            answer = answer_of(other).lower()
        assert answer.startswith(b"http/1.1 429")
        assert b"x-ms-retry-after-ms: 1000\r\n" in answer
        assert b"body-bytes-in-flight" in answer


def test_a_body_that_trickles_in_is_given_up_in_the_end(tmp_path: Path) -> None:
    with running_server(tmp_path, *limits(body_seconds="2", body_pause_seconds="1"), alone=True) as server:
        make_container(server)
        with connect(server.port) as connection:
            connection.sendall(create_item("c", 2 * MIB))
            connection.settimeout(0.2)

            def is_answered() -> bool:
                connection.sendall(b" ")
                return connection.recv(12) == b"HTTP/1.1 408"

            assert wait_until(is_answered)


# --- answers --------------------------------------------------------------------------------------------------------


def fill(container: ContainerProxy) -> None:
    for number in range(4):
        container.create_item({"id": str(number), "pk": "a", "text": "x" * 900_000})


def read_feed() -> bytes:
    link = "dbs/d/colls/c"
    return head("GET", f"/{link}/docs", resource_type="docs", link=link, x_ms_max_item_count="-1")


def test_a_client_that_does_not_read_is_closed_and_what_it_held_is_freed(tmp_path: Path) -> None:
    with running_server(tmp_path, "--no-throttle", *limits(answer_pause_seconds="2"), alone=True) as server:
        fill(make_container(server))
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(connect(server.port, receive_bytes=8192)) for _ in range(40)]
            ports = {reader.getsockname()[1] for reader in readers}
            for reader in readers:
                reader.sendall(read_feed())
            # The answer to each has begun; it can be looked at also when the server has given it up meanwhile.
            assert all(reader.recv(1, socket.MSG_PEEK) == b"H" for reader in readers)

            def were_closed() -> bool:
                found = psutil.Process(server.process.pid).net_connections("tcp")
                return not ports & {connection.raddr.port for connection in found if connection.raddr}

            assert wait_until(were_closed)
            assert is_served(server.port)


def test_a_client_that_reads_slowly_gets_its_whole_answer(tmp_path: Path) -> None:
    with running_server(tmp_path, "--no-throttle", *limits(answer_pause_seconds="5"), alone=True) as server:
        fill(make_container(server))
        with connect(server.port, receive_bytes=8192) as reader:
            reader.sendall(read_feed())
            begun = time.monotonic()
            answer = reader.recv(65536)
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            wanted = length + answer.index(b"\r\n\r\n") + 4
            size = len(answer)
            while size < wanted:
                # 3.6 MB in some 8 seconds: longer than the deadline allows to pause, and never pausing.
                time.sleep(max(0.0, begun + 8.0 * size / wanted - time.monotonic()))
                piece = reader.recv(65536)
                assert piece, "the connection was closed"
                size += len(piece)
            assert size == wanted
            assert time.monotonic() - begun > 5.0


def test_answers_in_flight_are_bounded(tmp_path: Path) -> None:
    chosen = limits(answer_bytes_in_flight="8MB", answer_pause_seconds="600")
    with running_server(tmp_path, "--no-throttle", *chosen, alone=True) as server, contextlib.ExitStack() as stack:
        fill(make_container(server))
        before = memory_bytes(server)
        for _ in range(150):
            stack.enter_context(connect(server.port, receive_bytes=8192)).sendall(read_feed())
        # A client that does read is served between them; the others would hold 150 times 3.6 MB.
        container = server.client().get_database_client("d").get_container_client("c")
        assert container.read_item("0", "a")["id"] == "0"
        assert wait_until(lambda: memory_bytes(server) - before < 150 * MIB)


# --- connections ----------------------------------------------------------------------------------------------------

# Long enough for a test that is held up while it is its turn to send.
IMPATIENT = limits(first_request_seconds="3", idle_connection_seconds="3", answer_pause_seconds="60")


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("data"), *IMPATIENT, alone=True) as server:
        yield server


@pytest.fixture(scope="module")
def impatient_tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("data"), "--https", *IMPATIENT, alone=True) as server:
        yield server


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nhost: a\r\n", HTTP2_START], ids=repr)
def test_a_connection_without_a_whole_request_is_closed(impatient: RunningServer, sent: bytes) -> None:
    with connect(impatient.port) as connection:
        connection.sendall(sent)
        assert was_closed(connection)


def test_a_connection_that_only_pings_is_closed(impatient: RunningServer) -> None:
    with connect(impatient.port) as connection:
        connection.sendall(HTTP2_START)
        assert wait_until(lambda: not is_pinging(connection))


def is_pinging(connection: socket.socket) -> bool:
    try:
        connection.sendall(HTTP2_PING)
    except OSError:
        return False
    return not is_closed(connection)


@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
def test_a_connection_that_is_silent_after_its_handshake_is_closed(impatient_tls: RunningServer, protocol: str) -> None:
    with connect_tls(impatient_tls.port, protocol) as connection:
        assert was_closed(connection)


def test_a_connection_that_is_idle_after_a_request_is_closed(impatient: RunningServer) -> None:
    with connect(impatient.port) as connection:
        connection.sendall(HEALTH)
        assert status_of(connection) == 200
        assert was_closed(connection)


def test_a_connection_in_use_stays_open(impatient: RunningServer) -> None:
    with connect(impatient.port) as busy, connect(impatient.port) as silent:
        assert wait_until(lambda: ask_for_health(busy) == 200 and is_closed(silent))
        assert ask_for_health(busy) == 200


def ask_for_health(connection: socket.socket) -> int:
    connection.sendall(HEALTH)
    return status_of(connection)


def is_closed(connection: socket.socket) -> bool:
    """Return whether the server has closed a connection by now."""
    connection.settimeout(0.1)
    try:
        return connection.recv(65536) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_a_request_under_way_outlives_the_deadlines_of_idle_connections(impatient: RunningServer) -> None:
    make_container(impatient)
    item = b'{"id": "slow", "pk": "a"}'
    with connect(impatient.port) as connection, connect(impatient.port) as silent:
        connection.sendall(create_item("c", len(item)))
        assert was_closed(silent)
        connection.sendall(item)
        assert status_of(connection) == 201


def test_connections_of_ipv6_have_the_same_deadlines(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, "--host", "::1", *IMPATIENT, alone=True) as server,
        connect(server.port, host="::1") as silent,
        connect(server.port, host="::1") as busy,
    ):
        assert wait_until(lambda: ask_for_health(busy) == 200 and is_closed(silent))
        assert ask_for_health(busy) == 200


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("data"), *limits(connections="20"), alone=True) as server:
        yield server


@pytest.mark.parametrize("sent", [b"", HTTP2_START, HEALTH], ids=repr)
def test_at_the_limit_idle_connections_make_room(crowded: RunningServer, sent: bytes) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(connect(crowded.port)).sendall(sent)
        assert is_served(crowded.port)


def test_at_the_limit_silent_tls_connections_make_room(tmp_path: Path) -> None:
    chosen = limits(connections="20")
    with running_server(tmp_path, "--https", *chosen, alone=True) as server, contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connect(server.port))
        for _ in range(40):
            stack.enter_context(connect_tls(server.port, "h2"))
        with connect_tls(server.port, "http/1.1") as other:
            other.sendall(HEALTH)
            assert status_of(other) == 200


def test_at_the_limit_a_request_under_way_is_not_disturbed(crowded: RunningServer) -> None:
    make_container(crowded)
    with contextlib.ExitStack() as stack:
        item = b'{"id": "slow", "pk": "a"}'
        under_way = stack.enter_context(connect(crowded.port))
        under_way.sendall(create_item("c", len(item)))
        # Answered when the request has been looked at: before that its connection is as idle as the others.
        assert is_served(crowded.port)
        for _ in range(60):
            stack.enter_context(connect(crowded.port))
        assert is_served(crowded.port)
        under_way.sendall(item)
        assert status_of(under_way) == 201


def test_connections_leave_descriptors_to_the_rest_of_the_server(tmp_path: Path) -> None:
    def few_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256))

    with running_server(tmp_path, before_start=few_descriptors, alone=True) as server:
        container = make_container(server)
        body = "function () { getContext().getResponse().setBody(7); }"
        with contextlib.ExitStack() as stack:
            for _ in range(400):
                stack.enter_context(connect(server.port))
            container.scripts.create_stored_procedure({"id": "seven", "body": body})
            assert container.scripts.execute_stored_procedure("seven", partition_key="a") == 7
            assert psutil.Process(server.process.pid).num_fds() < 256 - 32
