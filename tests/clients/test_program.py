"""The program as its user meets it: a process, its output, its exit status, its socket and its commands."""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import signal
import socket
import ssl
import stat
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.server.doors import DOORS
from tests.support import raw
from tests.support.ports import free_port
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, RunningServer, environment, running_server

# Of this module alone, on the server that it shares with others.
DATABASE = "program"
IDLE_CONNECTIONS = 10_000
OTHER_KEY = "bm90IHRoZSBlbXVsYXRvcidzIGtleQ=="
# Low enough that a test passes it with a few bytes.
REQUEST_BYTES_MAX = 64 * 1024


def run_command(*arguments: str, endpoint: str | None = None) -> subprocess.CompletedProcess[str]:
    given = environment() if endpoint is None else {**environment(), "ASTERISM_ENDPOINT": endpoint}
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, env=given, timeout=WAIT_SECONDS_MAX, check=False
    )


def one_line_of(finished: subprocess.CompletedProcess[str]) -> str:
    """The only line a command that failed has written."""
    (line,) = finished.stderr.splitlines()
    return line


def is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS_MAX)
    try:
        connection.request("GET", "/_asterism/health")
        response = connection.getresponse()
        return response.status == 200 and json.loads(response.read())["status"] == "ready"
    finally:
        connection.close()


def send_raw(port: int, *parts: bytes) -> bytes:
    """Return the server's answer to these bytes, up to the end of the connection or of the first answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS_MAX) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                connection.sendall(part)
        with contextlib.suppress(ConnectionResetError):
            return raw.answer_of(connection)
    return b""


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    limits = ["--limit", "item-bytes=32KB", "--limit", f"request-bytes={REQUEST_BYTES_MAX}"]
    with running_server(tmp_path_factory.mktemp("data"), *limits) as program:
        yield program


@pytest.fixture(scope="module")
def filled(server: RunningServer, client: CosmosClient) -> Iterator[RunningServer]:
    """The server with a container `orders` of 60 items in 20 logical partitions."""
    database = client.create_database(DATABASE)
    orders = database.create_container("orders", PartitionKey("/customer"))
    for number in range(60):
        orders.create_item({"id": str(number), "customer": f"c{number % 20}"})
    yield server
    client.delete_database(database)


# --- starting and stopping ------------------------------------------------------------------------------------------


def test_the_server_listens_at_every_port_of_every_door(server: RunningServer) -> None:
    assert set(server.ports) == {spec.name for door in DOORS for spec in door.ports}
    for port in server.ports.values():
        socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS_MAX).close()


def test_the_greeting_tells_the_endpoint_a_connection_string_and_where_the_data_is(server: RunningServer) -> None:
    assert f"AccountEndpoint={server.endpoint};AccountKey={WELL_KNOWN_EMULATOR_KEY};" in server.greeting
    assert "Data directory" in server.greeting


def test_the_readiness_probe_needs_no_key_and_answers_head_as_well(server: RunningServer) -> None:
    assert is_healthy(server.port)
    with raw.connect(server.port) as connection:
        connection.sendall(b"HEAD /_asterism/health HTTP/1.1\r\nhost: a\r\n\r\n")
        assert raw.status_of(connection) == 200


def test_sigterm_ends_the_server_with_status_0_and_without_a_word_on_standard_error(tmp_path: Path) -> None:
    with running_server(tmp_path) as program:
        assert program.end() == (0, "")


def test_a_request_under_way_is_answered_before_the_server_ends(tmp_path: Path) -> None:
    with (
        running_server(tmp_path) as program,
        socket.create_connection(("127.0.0.1", program.port), timeout=WAIT_SECONDS_MAX) as connection,
    ):
        connection.sendall(raw.head("POST", "/dbs", resource_type="dbs", link="", content_length="14") + b'{"id":')
        assert is_healthy(program.port)
        program.process.terminate()
        wait_until_refused(program.port)
        connection.sendall(b' "shop"}')
        assert connection.recv(65536).startswith(b"HTTP/1.1 201")
        assert program.process.wait(WAIT_SECONDS_MAX) == 0


def wait_until_refused(port: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return
        time.sleep(0.01)


def test_a_second_signal_ends_the_server_at_once(tmp_path: Path) -> None:
    with (
        running_server(tmp_path) as program,
        socket.create_connection(("127.0.0.1", program.port), timeout=WAIT_SECONDS_MAX) as connection,
    ):
        connection.sendall(raw.head("POST", "/dbs", resource_type="dbs", link="", content_length="12"))
        assert is_healthy(program.port)
        program.process.send_signal(signal.SIGINT)
        wait_until_refused(program.port)
        program.process.send_signal(signal.SIGINT)
        assert program.process.wait(WAIT_SECONDS_MAX) == 128 + signal.SIGINT


def test_written_items_exist_after_a_restart(tmp_path: Path) -> None:
    with running_server(tmp_path) as program:
        container = program.client().create_database("shop").create_container("orders", PartitionKey("/pk"))
        container.create_item({"id": "1", "pk": "a", "n": 7})
        program.end()
    with running_server(tmp_path) as program:
        container = program.client().get_database_client("shop").get_container_client("orders")
        assert container.read_item("1", "a")["n"] == 7


# --- refusing to start ----------------------------------------------------------------------------------------------


def test_a_port_in_use_is_one_line_and_status_1(server: RunningServer, tmp_path: Path) -> None:
    finished = run_command("serve", "--data", str(tmp_path), "--port", str(server.port))
    assert finished.returncode == 1
    assert "another process is listening there" in one_line_of(finished)


def test_a_second_server_on_the_same_data_directory_is_one_line_and_status_1(tmp_path: Path) -> None:
    with running_server(tmp_path) as program:
        finished = run_command("serve", "--data", str(tmp_path), "--port", str(free_port()))
        assert finished.returncode == 1
        assert f"another server (process {program.process.pid}) is using" in one_line_of(finished)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--limit", "item-bites=1KB"], "there is no limit 'item-bites'"),
        (["--key", "not base64!"], "base64"),
        (["--consistency", "Sometimes"], "there is no consistency level 'Sometimes'"),
        (["--host", "no.such.host.invalid"], "cannot be resolved"),
        (["--seed", "missing.json"], "cannot be read"),
        (["--https", "--tls-name", "münchen"], "cannot stand in a certificate"),
    ],
)
def test_an_invalid_option_is_one_line_and_status_1(options: Sequence[str], message: str, tmp_path: Path) -> None:
    finished = run_command("serve", "--data", str(tmp_path / "data"), "--port", "0", *options)
    assert finished.returncode == 1
    assert message in one_line_of(finished)


def test_a_data_directory_that_is_a_file_is_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finished = run_command("serve", "--data", str(tmp_path / "file"), "--port", "0")
    assert finished.returncode == 1
    assert "cannot be used" in one_line_of(finished)


def test_a_malformed_store_address_is_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "data.mdb").write_bytes(b"not a store" * 1000)
    finished = run_command("serve", "--data", str(tmp_path), "--port", "0")
    assert finished.returncode == 1
    assert "cannot be used" in one_line_of(finished)


# --- keys, certificates, seeds --------------------------------------------------------------------------------------


def test_a_key_of_ones_own_is_never_printed_and_opens_the_door(tmp_path: Path) -> None:
    with running_server(tmp_path, more_environment={"ASTERISM_KEY": OTHER_KEY}) as program:
        assert OTHER_KEY not in program.greeting
        assert run_command("jobs", "--key", OTHER_KEY, endpoint=program.endpoint).returncode == 0
        assert run_command("jobs", endpoint=program.endpoint).returncode == 1


def test_the_keys_command_shows_keys_that_open_as_far_as_they_say(tmp_path: Path) -> None:
    shown = run_command("keys", "--key", OTHER_KEY).stdout.splitlines()
    keys = {name: key for name, _, key in (line.rpartition(" ") for line in shown)}
    primary, secondary, read_only, _ = keys.values()
    assert primary == OTHER_KEY
    with running_server(tmp_path, more_environment={"ASTERISM_KEY": OTHER_KEY}) as program:
        program.client(key=secondary).create_database("d")
        reader = program.client(key=read_only)
        assert [database["id"] for database in reader.list_databases()] == ["d"]
        with pytest.raises(CosmosHttpResponseError) as refused:
            reader.create_database("e")
        assert refused.value.status_code == 403
        connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=WAIT_SECONDS_MAX)
        connection.request("GET", "/_asterism/metrics", headers={"Authorization": f"Bearer {read_only}"})
        assert b"asterism_store_bytes" in connection.getresponse().read()
        connection.close()
    assert "base64" in one_line_of(run_command("keys", "--key", "?"))


def test_the_certificate_is_kept_over_a_restart_and_its_key_is_private(tmp_path: Path) -> None:
    with running_server(tmp_path, "--https", "--tls-name", "db.test") as program:
        first = ssl.get_server_certificate(("127.0.0.1", program.port))
        jobs = run_command("jobs", endpoint=f"https://127.0.0.1:{program.port}")
        program.end()
    with running_server(tmp_path, "--https", "--tls-name", "db.test") as program:
        second = ssl.get_server_certificate(("127.0.0.1", program.port))
    assert (jobs.returncode, first) == (0, second)
    assert stat.S_IMODE((tmp_path / "tls" / "private-key.pem").stat().st_mode) == 0o600


def test_a_seed_file_is_applied_at_the_first_start_only(tmp_path: Path) -> None:
    seed = tmp_path / "seed.json"
    items = [{"id": str(number), "customer": "a"} for number in range(200)]
    container = {"id": "orders", "partitionKey": "/customer", "throughput": 400, "items": items}
    seed.write_text(json.dumps({"databases": [{"id": "shop", "containers": [container]}]}))
    with running_server(tmp_path / "data", "--seed", str(seed)) as program:
        orders = program.client().get_database_client("shop").get_container_client("orders")
        assert len(list(orders.read_all_items())) == 200
        orders.delete_item("7", "a")
        program.end()
    with running_server(tmp_path / "data", "--seed", str(seed)) as program:
        orders = program.client().get_database_client("shop").get_container_client("orders")
        assert len(list(orders.read_all_items())) == 199


def test_a_mistake_in_a_seed_file_names_its_place(tmp_path: Path) -> None:
    seed = tmp_path / "seed.json"
    container = {"id": "orders", "partitionKey": "/pk", "items": [{"id": "1"}, {"pk": "a"}]}
    seed.write_text(json.dumps({"databases": [{"id": "shop", "containers": [container]}]}))
    finished = run_command("serve", "--data", str(tmp_path / "data"), "--port", "0", "--seed", str(seed))
    assert finished.returncode == 1
    assert "databases[0].containers[0].items[1]: id is missing" in one_line_of(finished)


# --- bad input on the socket ----------------------------------------------------------------------------------------


def test_a_body_announced_too_large_is_refused_before_it_is_sent(limited: RunningServer) -> None:
    head = b"POST /dbs HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % (REQUEST_BYTES_MAX + 1)
    answer = send_raw(limited.port, head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"code":"RequestEntityTooLarge"' in answer
    assert rb"Message: {\"Errors\":[\"Request size is too large\"]}" in answer


def test_a_body_in_chunks_is_refused_when_it_passes_the_limit(limited: RunningServer) -> None:
    chunk = b"4000\r\n" + bytes(0x4000) + b"\r\n"
    head = raw.head("POST", "/dbs", resource_type="dbs", link="", transfer_encoding="chunked")
    assert send_raw(limited.port, head, *[chunk] * 5).startswith(b"HTTP/1.1 413")


def test_a_body_in_chunks_below_the_limit_is_read(limited: RunningServer) -> None:
    head = raw.head("POST", "/dbs", resource_type="dbs", link="", transfer_encoding="chunked")
    body = b'f\r\n{"id": "chunks"\r\n1\r\n}\r\n0\r\n\r\n'
    assert send_raw(limited.port, head, body).startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /dbs HT",
        b"POST /dbs HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nhalf",
        b"POST /dbs HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
    ],
)
def test_a_half_sent_request_leaves_the_server_well(server: RunningServer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(sent)
    assert is_healthy(server.port)


@pytest.mark.parametrize(
    "sent",
    [
        bytes(range(256)) * 4,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /dbs HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST /dbs HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999999\r\n\r\n",
    ],
)
def test_garbage_is_refused_and_leaves_the_server_well(server: RunningServer, sent: bytes) -> None:
    assert send_raw(server.port, sent)[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 413")
    assert is_healthy(server.port)


@pytest.mark.parametrize(
    "path", [b"/%", b"/%zz", b"/dbs/%ff%fe", b"/dbs/%00", b"//", b"/_asterism/", b"/_asterism/%2e%2e"]
)
def test_an_address_with_strange_escapes_is_answered(server: RunningServer, path: bytes) -> None:
    assert send_raw(server.port, b"GET %b HTTP/1.1\r\nhost: a\r\n\r\n" % path).startswith(b"HTTP/1.1 4")


def connections_possible() -> int:
    """As many as both processes may open files for, which most machines allow; up to ten thousand."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(IDLE_CONNECTIONS, hard - 1000)


@pytest.mark.serial
def test_ten_thousand_idle_connections_leave_the_server_answering(limited: RunningServer) -> None:
    with contextlib.ExitStack() as open_connections:
        for _ in range(connections_possible()):
            open_connections.enter_context(socket.create_connection(("127.0.0.1", limited.port)))
        assert is_healthy(limited.port)
    assert is_healthy(limited.port)


# --- the commands ---------------------------------------------------------------------------------------------------


def partitions_of(server: RunningServer, container: str = "orders") -> list[dict[str, object]]:
    finished = run_command("partitions", DATABASE, container, "--format", "json", "--details", endpoint=server.endpoint)
    assert finished.returncode == 0, finished.stderr
    shown: list[dict[str, object]] = json.loads(finished.stdout)["partitions"]
    return shown


def test_the_partitions_command_shows_a_table(filled: RunningServer) -> None:
    finished = run_command("partitions", DATABASE, "orders", endpoint=filled.endpoint)
    assert finished.returncode == 0
    for word in ("range", "bytes", "items", "RU/s share", "state", "parents", "online"):
        assert word in finished.stdout


def test_split_and_merge_by_command_keep_every_item(filled: RunningServer) -> None:
    container = filled.client().get_database_client(DATABASE).create_container("moved", PartitionKey("/pk"))
    for number in range(40):
        container.create_item({"id": str(number), "pk": f"p{number % 10}"})
    split = run_command("split", DATABASE, "moved", "0", "--wait", endpoint=filled.endpoint)
    assert (split.returncode, split.stderr) == (0, "")
    assert "is done: partitions 1 and 2" in split.stdout
    children = partitions_of(filled, "moved")
    assert [(partition["id"], partition["parents"]) for partition in children] == [("1", ["0"]), ("2", ["0"])]
    assert sum(int(str(partition["items"])) for partition in children) == 40

    plan = run_command("merge", DATABASE, "moved", "--plan", endpoint=filled.endpoint)
    assert f"asterism merge {DATABASE} moved 1 2" in plan.stdout
    merge = run_command("merge", DATABASE, "moved", "--accept-plan", "--wait", endpoint=filled.endpoint)
    assert (merge.returncode, merge.stderr) == (0, "")
    assert [(partition["id"], partition["items"]) for partition in partitions_of(filled, "moved")] == [("3", 40)]
    assert len(list(container.read_all_items())) == 40


def test_details_name_the_largest_and_the_hottest_logical_partitions(filled: RunningServer) -> None:
    (partition,) = partitions_of(filled)
    assert partition["logical_partitions"] == 20
    largest, hottest = partition["largest"], partition["hottest"]
    assert isinstance(largest, list)
    assert isinstance(hottest, list)
    assert {len(largest), len(hottest)} == {5}
    assert largest[0]["partition_key"][0].startswith("c")
    assert hottest[0]["request_units"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["partitions", DATABASE, "nothing"], "There is no container 'nothing'."),
        (["partitions", "nowhere", "nothing"], "There is no database 'nowhere'."),
        (["split", DATABASE, "orders", "77"], "There is no partition 77"),
        (["split", DATABASE, "orders", "first"], "A partition range is named by its id"),
        (["merge", DATABASE, "orders", "0", "77"], "There is no partition 77"),
        (["jobs", "--key", OTHER_KEY], "the server does not accept the key"),
        (["jobs", "--key", "?"], "the key is not base64 text"),
        (["jobs", "--endpoint", "nonsense"], "is not a URL"),
        (["jobs", "--endpoint", "http://127.0.0.1:1"], "no server answers at http://127.0.0.1:1"),
    ],
)
def test_a_command_that_cannot_be_done_is_one_line_and_status_1(
    filled: RunningServer, arguments: Sequence[str], message: str
) -> None:
    finished = run_command(*arguments, endpoint=filled.endpoint)
    assert finished.returncode == 1
    assert message in one_line_of(finished)


def test_a_partition_with_one_logical_key_refuses_to_split_and_says_so(filled: RunningServer) -> None:
    container = filled.client().get_database_client(DATABASE).create_container("narrow", PartitionKey("/pk"))
    container.create_item({"id": "1", "pk": "only"})
    finished = run_command("split", DATABASE, "narrow", "0", endpoint=filled.endpoint)
    assert finished.returncode == 1
    assert "one partition key value" in one_line_of(finished)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_lenient_server_answers_what_the_service_refuses(tmp_path: Path, workers: str) -> None:
    text = "SELECT VALUE ARRAY(SELECT TOP 1 VALUE x FROM x IN c.a ORDER BY x) FROM c"
    with running_server(tmp_path, "--workers", workers, more_environment={"ASTERISM_LENIENT_SQL": "1"}) as program:
        container = program.client().create_database("d").create_container("c", PartitionKey("/pk"))
        container.create_item({"id": "1", "pk": "p", "a": [3, 1, 2]})
        assert list(container.query_items(text, partition_key="p")) == [[1]]
        assert list(container.query_items(text, enable_cross_partition_query=True)) == [[1]]
    with running_server(tmp_path, "--workers", workers) as program:
        container = program.client().get_database_client("d").get_container_client("c")
        with pytest.raises(CosmosHttpResponseError) as refused:
            list(container.query_items(text, partition_key="p"))
        assert refused.value.status_code == 400
        assert "SC220" in str(refused.value)


def test_wrong_usage_is_status_2() -> None:
    assert run_command("merge", DATABASE, "orders").returncode == 2
    assert run_command("serve", "--port", "many").returncode == 2
    assert run_command("explode").returncode == 2


def test_help_teaches_by_example() -> None:
    shown = run_command("serve", "--help").stdout
    assert "asterism serve --https --tls-name db.test" in shown
    assert "ASTERISM_KEY" in shown


def test_the_version_is_told() -> None:
    assert run_command("version").stdout.startswith("asterism ")
