"""`asterism rekey` as its user meets it, while clients write."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from tests.support.rekey import ITEM_COUNT, Writer, contents, fill, run_rekey, run_well, until_true
from tests.support.server import PROGRAM, RunningServer, environment


def test_a_container_is_copied_to_another_key_while_clients_write(
    server: RunningServer, database: DatabaseProxy
) -> None:
    source = database.create_container(
        "source",
        PartitionKey("/pk"),
        offer_throughput=12_000,
        default_ttl=-1,
        indexing_policy={"includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]},
    )
    fill(source)
    writers = [Writer(source, f"w{number}") for number in range(2)]
    for writer in writers:
        writer.start()
    answer = run_well(server, database.id, "source", "--to", "by-day", "--path", "/day")
    assert answer["phase"] == "following"
    for number in range(20):
        source.delete_item(f"old-{number}", f"k{number % 30}")
    until_true(lambda: all(writer.rounds > 10 for writer in writers))
    for writer in writers:
        writer.stopping.set()
        writer.join()
    assert [writer.refused for writer in writers] == [0, 0]
    switched = run_well(server, database.id, "source", "--to", "by-day", "--switch")
    target = database.get_container_client("by-day")
    assert contents(target) == contents(source)
    assert (switched["phase"], switched["source_items"]) == ("switched", switched["target_items"])
    assert switched["source_items"] == len(contents(source))
    assert target.read()["partitionKey"]["paths"] == ["/day"]
    assert target.read()["indexingPolicy"] == source.read()["indexingPolicy"]
    assert target.get_throughput().offer_throughput == 12_000
    assert source.read()["changeFeedPolicy"]["retentionDuration"] == 0
    writes: list[Callable[[], object]] = [
        lambda: source.create_item({"id": "later", "pk": "k", "day": 1}),
        lambda: source.delete_item("old-50", "k20"),
        lambda: source.patch_item("old-50", "k20", [{"op": "set", "path": "/n", "value": 1}]),
        lambda: source.execute_item_batch([("upsert", ({"id": "later", "pk": "k"},))], "k"),
        lambda: source.delete_all_items_by_partition_key("k20"),
    ]
    for write in writes:
        with pytest.raises(CosmosHttpResponseError, match="read-only: its items are in 'by-day' now") as refused:
            write()
        assert refused.value.status_code == 403
    assert source.read_item("old-50", "k20")["n"] == 50
    target.create_item({"id": "later", "pk": "k", "day": 1})
    assert len(contents(target)) == len(contents(source)) + 1
    database.delete_container(target)
    until_true(lambda: is_written(source))


@pytest.mark.parametrize("suffix", [None, {"kind": "hash", "path": "/n", "count": 7}, {"kind": "random", "count": 7}])
def test_a_container_is_copied_to_a_synthetic_key_while_clients_write(
    server: RunningServer, database: DatabaseProxy, suffix: dict[str, object] | None
) -> None:
    source = database.create_container("source", PartitionKey("/pk"), offer_throughput=12_000)
    fill(source)
    writer = Writer(source, "w")
    writer.start()
    rule = {"parts": ["/pk", "/day"], "missing": "absent"} | ({} if suffix is None else {"suffix": suffix})
    options = ("--to", "joined", "--path", "/joined", "--synthetic", json.dumps(rule))
    assert run_well(server, database.id, "source", *options)["phase"] == "following"
    source.delete_item("old-5", "k5")
    writer.stopping.set()
    writer.join()
    switched = run_well(server, database.id, "source", "--to", "joined", "--switch")
    assert (switched["phase"], switched["uncopied_count"]) == ("switched", 0)
    target = database.get_container_client("joined")
    items = list(target.read_all_items())
    assert {item["id"] for item in items} == {item["id"] for item in source.read_all_items()}
    assert all(item["joined"].startswith(f"{item['pk']}-{item['day']}") for item in items if "joined" in item)
    assert sum("joined" in item for item in items) > ITEM_COUNT // 2


def is_written(container: ContainerProxy) -> bool:
    try:
        container.upsert_item({"id": "later", "pk": "k"})
    except CosmosHttpResponseError:
        return False
    return True


def test_a_write_while_the_operator_switches_is_in_both_or_refused(
    server: RunningServer, database: DatabaseProxy
) -> None:
    source = database.create_container("source", PartitionKey("/pk"), offer_throughput=400)
    fill(source)
    run_well(server, database.id, "source", "--to", "by-day", "--path", "/day")
    writers = [Writer(source, f"w{number}") for number in range(3)]
    for writer in writers:
        writer.start()
    until_true(lambda: all(writer.rounds > 5 for writer in writers))
    switched = run_well(server, database.id, "source", "--to", "by-day", "--switch")
    for writer in writers:
        writer.join()
    assert [writer.refused for writer in writers] == [403] * 3
    target = database.get_container_client("by-day")
    assert contents(target) == contents(source)
    assert (switched["phase"], switched["is_source_read_only"]) == ("switched", True)
    found = {item["id"]: item["n"] for item in contents(target) if "n" in item}
    for writer in writers:
        assert {item_id: found.get(item_id) for item_id in writer.acknowledged} == writer.acknowledged


def test_a_copying_is_among_the_jobs(server: RunningServer, database: DatabaseProxy) -> None:
    source = database.create_container("source", PartitionKey("/pk"))
    fill(source)
    run_well(server, database.id, "source", "--to", "by-day", "--path", "/day")
    given = {**environment(), "ASTERISM_ENDPOINT": server.endpoint}
    command = [*PROGRAM, "jobs", "--format", "json"]
    answer = json.loads(subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout)
    (job,) = [job for job in answer["jobs"] if job["kind"] == "rekey" and job["database"] == database.id]
    assert (job["container"], job["reason"], job["step"]) == ("source", "to by-day", "following")
    assert job["entries_copied"] >= ITEM_COUNT
    run_well(server, database.id, "source", "--to", "by-day", "--switch")
    answer = json.loads(subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout)
    assert [job for job in answer["jobs"] if job["database"] == database.id] == []


def test_items_that_would_share_a_place_are_told_and_none_is_overwritten(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    for key in ("a", "b", "c"):
        container.create_item({"id": "same", "pk": key, "day": 1})
    container.create_item({"id": "other", "pk": "a", "day": "x" * 3000})
    names = (database.id, "things", "--to", "by-day")
    finished = run_rekey(server, *names, "--path", "/day")
    assert finished.returncode == 1
    assert "3 items do not fit" in finished.stderr
    assert "same id and the same new partition key" in finished.stderr
    assert "longer than 2048 bytes" in finished.stderr
    refused = run_rekey(server, *names, "--switch")
    assert (refused.returncode, "3 of the source's items" in refused.stderr) == (1, True)
    target = database.get_container_client("by-day")
    (kept,) = contents(target)
    container.delete_item("same", kept["pk"])
    left = [item["pk"] for item in contents(container) if item["id"] == "same"]
    container.upsert_item({"id": "same", "pk": left[0], "day": 2})
    container.delete_item("other", "a")
    until_true(lambda: len(contents(target)) == 2)
    assert run_well(server, *names, "--switch")["target_items"] == 2
    assert contents(target) == contents(container)


def test_a_copy_that_cannot_begin_is_refused_in_one_line(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    names = (database.id, container.id, "--to")
    cases = {
        ("new",): "start the copy with --path",
        ("new", "--path", "no-slash"): "",
        ("things", "--path", "/day"): "exists already",
    }
    for arguments, message in cases.items():
        finished = run_rekey(server, *names, *arguments)
        (line,) = finished.stderr.splitlines()
        assert (finished.returncode, message in line) == (1, True)
    run_well(server, *names, "new", "--path", "/day")
    assert "being copied to another key already" in run_rekey(server, *names, "newer", "--path", "/day").stderr
