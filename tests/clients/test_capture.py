"""`asterism capture` as its user meets it: requests of the official client, kept, shown and bounded."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from asterism.advisor.captured_request import CapturedRequest, CaptureHeader, read_capture
from asterism.advisor.value_digests import digest
from asterism.cli.client import AdminClient
from asterism.cli.failure import CommandFailed
from asterism.cli.options import DEFAULT_KEY
from asterism.values.undefined import UNDEFINED
from tests.support.server import PROGRAM, RunningServer, environment, running_server

SCRIPT = "function run() { getContext().getResponse().setBody(1); }"


def run_capture(server: RunningServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "capture", *arguments, "--endpoint", server.endpoint, "--insecure"]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)


def run_well(server: RunningServer, *arguments: str) -> str:
    done = run_capture(server, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(server: RunningServer, *arguments: str) -> str:
    done = run_capture(server, *arguments)
    assert done.returncode == 1, done.stdout
    return done.stderr


def admin(server: RunningServer) -> AdminClient:
    return AdminClient(server.endpoint, DEFAULT_KEY, insecure=True)


def start(server: RunningServer, database: str, container: str, **terms: object) -> dict[str, Any]:
    body = {"database": database, "container": container, "sampling": 1, "values": "plain", **terms}
    begun: dict[str, Any] = admin(server).post("capture/start", body)["capture"]
    return begun


def stop(server: RunningServer, database: str, container: str) -> list[CapturedRequest]:
    """End a capture; return its requests in the order of their times."""
    admin(server).post("capture/stop", {"database": database, "container": container})
    return requests_of(server, database, container)


def requests_of(server: RunningServer, database: str, container: str) -> list[CapturedRequest]:
    lines = admin(server).lines("capture/records", database=database, container=container)
    found = [entry for entry in read_capture(lines) if not isinstance(entry, CaptureHeader)]
    assert all(isinstance(entry, CapturedRequest) for entry in found)
    return sorted((entry for entry in found if isinstance(entry, CapturedRequest)), key=lambda entry: entry.at)


def test_every_operation_on_an_item_is_kept(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> None:
    container.create_item({"id": "before", "pk": "ada"})
    start(server, database.id, container.id)
    container.create_item({"id": "1", "pk": "ada", "n": 5, "in": {"town": "London", "tags": ["a"]}})
    container.read_item("1", "ada")
    container.upsert_item({"id": "1", "pk": "ada", "n": 6})
    container.replace_item("1", {"id": "1", "pk": "ada", "n": 7})
    operations = [{"op": "set", "path": "/n", "value": 8}, {"op": "incr", "path": "/m", "value": 1}]
    container.patch_item("1", "ada", operations)
    container.delete_item("1", "ada")
    with pytest.raises(CosmosHttpResponseError):
        container.read_item("1", "ada")
    found = stop(server, database.id, container.id)
    assert [(request.operation, request.status) for request in found] == [
        ("create", 201),
        ("read", 200),
        ("upsert", 200),
        ("replace", 200),
        ("patch", 200),
        ("delete", 204),
        ("read", 404),
    ]
    assert {request.item_id for request in found} == {"1"}
    assert {request.key for request in found} == {("ada",)}
    assert [dict(request.values) for request in found] == [
        {"/id": "1", "/pk": "ada", "/n": 5, "/in/town": "London"},
        {},
        {"/id": "1", "/pk": "ada", "/n": 6},
        {"/id": "1", "/pk": "ada", "/n": 7},
        {"/n": 8},
        {},
        {},
    ]
    assert all(request.charge for request in found)
    assert all(request.size_bytes for request in found[:4])


def test_queries_are_kept_with_their_filters(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> None:
    for number in range(30):
        container.create_item({"id": str(number), "pk": "ada", "n": number, "at": f"2026-01-{number + 1:02}"})
    start(server, database.id, container.id)
    text = "SELECT * FROM c WHERE c.n IN (3, 4, 5) AND c.at >= '2026-01-02' AND c.at < @end AND c.kind != 'secret'"
    list(container.query_items(text, parameters=[{"name": "@end", "value": "2026-01-06"}], partition_key="ada"))
    list(container.query_items("SELECT c.id FROM c WHERE c.pk = 'ada'", partition_key="ada", max_item_count=20))
    list(container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n DESC", enable_cross_partition_query=True))
    list(container.read_all_items())
    filtered, first, second, ordered, feed = stop(server, database.id, container.id)
    assert filtered.equal == {"/n": (3, 4, 5)}
    assert filtered.between == {"/at": ("2026-01-02", "2026-01-06")}
    assert filtered.shape is not None
    assert "IN (@1)" in filtered.shape
    assert "secret" not in filtered.shape
    assert (filtered.results, filtered.key, filtered.partitions, filtered.of_range) == (0, ("ada",), 1, False)
    assert (first.equal, first.results, first.continued) == ({"/pk": ("ada",)}, 20, False)
    assert (second.results, second.continued) == (10, True)
    assert (ordered.operation, ordered.order, ordered.results, ordered.of_range) == ("query", ("/n",), 30, True)
    assert (feed.operation, feed.results, feed.loaded, feed.key) == ("feed", 30, 30, None)


def test_operations_of_a_batch_share_its_name(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> None:
    container.create_item({"id": "old", "pk": "ada"})
    start(server, database.id, container.id)
    container.execute_item_batch(
        [
            ("create", ({"id": "new", "pk": "ada", "n": 1},)),
            ("read", ("old",)),
            ("patch", ("old", [{"op": "add", "path": "/n", "value": 2}])),
            ("delete", ("new",)),
        ],
        "ada",
    )
    with pytest.raises(CosmosBatchOperationError):
        container.execute_item_batch([("read", ("old",)), ("create", ({"id": "old", "pk": "ada"},))], "ada")
    found = stop(server, database.id, container.id)
    first, second = found[:4], found[4:]
    assert [(request.operation, request.item_id, request.status) for request in first] == [
        ("create", "new", 201),
        ("read", "old", 200),
        ("patch", "old", 200),
        ("delete", "new", 204),
    ]
    assert [request.status for request in second] == [424, 409]
    names = [{request.batch for request in batch} for batch in (first, second)]
    assert [len(name) for name in names] == [1, 1]
    assert names[0] != names[1]
    assert (first[0].values, first[2].values) == ({"/id": "new", "/pk": "ada", "/n": 1}, {"/n": 2})


def test_stored_procedures_and_change_feeds_are_kept(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> None:
    container.create_item({"id": "1", "pk": "ada"})
    container.scripts.create_stored_procedure({"id": "one", "body": SCRIPT})
    start(server, database.id, container.id)
    container.scripts.execute_stored_procedure("one", partition_key="ada")
    list(container.query_items_change_feed(start_time="Beginning"))
    script, *changes = stop(server, database.id, container.id)
    assert (script.operation, script.key, script.shape) == ("script", ("ada",), "one")
    assert {(request.operation, request.shape) for request in changes} == {("feed", "(change feed)")}


def test_digests_are_those_of_the_salt(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> None:
    start(server, database.id, container.id, values="digests")
    container.create_item({"id": "1", "pk": "a secret name", "n": 5})
    container.read_item("1", "a secret name")
    created, read = stop(server, database.id, container.id)
    names = {"database": database.id, "container": container.id}
    assert b"secret" not in b"".join(admin(server).lines("capture/records", **names))
    salt = bytes.fromhex(admin(server).get("capture/salt", **names)["salt"])
    assert created.values == {
        "/id": digest("1", salt=salt),
        "/pk": digest("a secret name", salt=salt),
        "/n": digest(5, salt=salt),
    }
    assert (read.item_id, read.key) == (digest("1", salt=salt), (digest("a secret name", salt=salt),))


def test_hierarchical_keys_and_absent_values_are_kept_as_they_were_named(
    server: RunningServer, database: DatabaseProxy
) -> None:
    container = database.create_container("levels", PartitionKey(["/tenant", "/user"], kind="MultiHash"))
    plain = database.create_container("plain", PartitionKey("/pk"))
    start(server, database.id, "levels")
    start(server, database.id, "plain")
    container.create_item({"id": "1", "tenant": "t", "user": 7})
    list(container.query_items("SELECT * FROM c WHERE c.tenant = 't'", enable_cross_partition_query=True))
    plain.create_item({"id": "1"})
    created, queried = stop(server, database.id, "levels")
    assert created.key == ("t", 7)
    assert queried.equal == {"/tenant": ("t",)}
    (unkeyed,) = stop(server, database.id, "plain")
    assert unkeyed.key == (UNDEFINED,)


def test_a_summary_shows_kinds_of_requests_and_filters(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy, tmp_path: Path
) -> None:
    names = database.id, container.id
    begun = run_well(server, "start", *names, "--sample", "1", "--minutes", "5", "--bytes-max", "1MB", "--plain")
    assert f"every request on {names[0]}/{names[1]} for 5 minutes or 1.0 MB, with plain values" in begun
    container.create_item({"id": "1", "pk": "ada", "n": 5})
    list(container.query_items("SELECT * FROM c WHERE c.n = 5", partition_key="ada"))
    shown = run_well(server, "show", *names)
    assert "running for" in shown
    assert "key named, /n =" in shown
    listed = run_well(server, "list")
    assert f"{names[0]}/{names[1]}" in listed
    assert "ended because it was stopped" in run_well(server, "stop", *names)
    summary = json.loads(run_well(server, "show", *names, "--format", "json"))
    assert {name: totals["requests"] for name, totals in summary["operations"].items()} == {"create": 1, "query": 1}
    output = tmp_path / "requests.jsonl"
    run_well(server, "show", *names, "--output", str(output))
    header, created, queried = read_capture(output.read_bytes().splitlines(keepends=True))
    assert isinstance(header, CaptureHeader)
    assert (header.database, header.container, header.values) == (*names, "plain")
    assert isinstance(created, CapturedRequest)
    assert isinstance(queried, CapturedRequest)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600


def test_a_sample_has_a_part_of_the_requests(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> None:
    container.create_item({"id": "1", "pk": "ada"})
    start(server, database.id, container.id, sampling=0.2)
    for _ in range(200):
        container.read_item("1", "ada")
    # Fewer than 5 or more than 120 of 200 happen once in a million runs of a million.
    assert 5 < len(stop(server, database.id, container.id)) < 120


def test_a_capture_ends_at_its_size_and_requests_go_on(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> None:
    start(server, database.id, container.id, bytes_max=64 * 1024)
    item = {"pk": "ada", **{f"property{number}": "x" * 200 for number in range(60)}}
    for number in range(10):
        container.create_item({"id": str(number), **item})
    names = {"database": database.id, "container": container.id}
    found = requests_of(server, **names)
    captured = admin(server).get("capture", **names)["capture"]
    assert 1 <= len(found) < 10
    assert captured["ended_because"] == "its records reached 65,536 bytes"
    assert 0 < captured["bytes"] <= 64 * 1024
    container.create_item({"id": "later", "pk": "ada"})
    assert len(requests_of(server, **names)) == len(found)


def test_what_makes_no_sense_is_refused_with_a_sentence(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> None:
    names = database.id, container.id
    assert "There is no database 'nowhere'" in refusal(server, "start", "nowhere", "c")
    assert "There is no container 'nothing'" in refusal(server, "start", database.id, "nothing")
    assert "--sample 0 is not a fraction" in refusal(server, "start", *names, "--sample", "0")
    assert "--sample 1.5 is not a fraction" in refusal(server, "start", *names, "--sample", "1.5")
    assert "--minutes 0 is no time" in refusal(server, "start", *names, "--minutes", "0")
    assert "the size 'much' must be" in refusal(server, "start", *names, "--bytes-max", "much")
    assert "'bytes_max' must be a number from 65,536" in refusal(server, "start", *names, "--bytes-max", "1KB")
    assert "'seconds_max' must be a number from 1 to 604,800" in refusal(server, "start", *names, "--minutes", "99999")
    assert "No capture of this container is running" in refusal(server, "stop", *names)
    assert "There is no capture of 'things'" in refusal(server, "show", *names)
    start(server, *names)
    assert "A capture of this container is running" in refusal(server, "start", *names)


def test_the_capture_of_a_deleted_container_is_gone_with_it(server: RunningServer, database: DatabaseProxy) -> None:
    container = database.create_container("short", PartitionKey("/pk"))
    start(server, database.id, "short")
    container.create_item({"id": "1", "pk": "ada"})
    database.delete_container("short")
    assert "There is no container 'short'" in refusal(server, "show", database.id, "short")
    captures = admin(server).get("capture")["captures"]
    assert (database.id, "short") not in [(capture["database"], capture["container"]) for capture in captures]


def test_requests_without_a_key_of_the_account_see_no_capture(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> None:
    start(server, database.id, container.id)
    stranger = AdminClient(server.endpoint, "c3RyYW5nZXI=", insecure=True)
    names = {"database": database.id, "container": container.id}
    for name in ("capture", "capture/records", "capture/salt"):
        with pytest.raises(CommandFailed, match="does not accept the key"):
            stranger.get(name, **names)


# --- servers of their own ---------------------------------------------------------------------------------------------


def test_all_workers_capture_from_the_first_request_on(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--workers", "2") as server, server.client() as client:
        container = client.create_database("d").create_container("c", PartitionKey("/pk"))
        start(server, "d", "c")
        for number in range(20):
            # A connection each, which the system hands to either worker.
            with server.client() as another:
                reader = another.get_database_client("d").get_container_client("c")
                reader.create_item({"id": str(number), "pk": "ada"})
        found = stop(server, "d", "c")
        container.create_item({"id": "later", "pk": "ada"})
        assert len(requests_of(server, "d", "c")) == len(found)
    assert [request.item_id for request in found if request.operation == "create"] == [str(n) for n in range(20)]


def test_a_capture_goes_on_after_a_restart_of_the_server(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.client() as client:
        container = client.create_database("d").create_container("c", PartitionKey("/pk"))
        start(server, "d", "c")
        container.create_item({"id": "before", "pk": "ada"})
        server.end()
    with running_server(tmp_path / "data") as server, server.client() as client:
        container = client.get_database_client("d").get_container_client("c")
        container.create_item({"id": "after", "pk": "ada"})
        found = stop(server, "d", "c")
    assert [request.item_id for request in found] == ["before", "after"]


def test_a_crash_leaves_what_was_written_and_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, server.client() as client:
        container = client.create_database("d").create_container("c", PartitionKey("/pk"))
        start(server, "d", "c")
        for number in range(5):
            container.create_item({"id": str(number), "pk": "ada"})
        assert len(requests_of(server, "d", "c")) == 5
        server.kill()
    (torn,) = (tmp_path / "data" / "captures").glob("*/*.jsonl")
    torn.write_bytes(torn.read_bytes()[:-20])
    with running_server(tmp_path / "data") as server:
        shown = run_well(server, "show", "d", "c")
    assert "running for" in shown
    assert "1 lines were passed over" in shown


def test_a_server_in_memory_captures_in_memory(tmp_path: Path) -> None:
    with running_server(Path(":memory:")) as server, server.client() as client:
        container = client.create_database("d").create_container("c", PartitionKey("/pk"))
        start(server, "d", "c")
        container.create_item({"id": "1", "pk": "ada"})
        assert [request.item_id for request in stop(server, "d", "c")] == ["1"]
