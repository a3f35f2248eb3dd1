"""`asterism rekey` as its user meets it, while clients write."""

from __future__ import annotations

from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey

from tests.support.rekey import Writer, contents, fill, run_rekey, run_well, until_true
from tests.support.server import RunningServer


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
    told = run_well(server, database.id, "source", "--to", "by-day", "--path", "/day")
    assert told["phase"] == "following"
    for number in range(20):
        source.delete_item(f"old-{number}", f"k{number % 30}")
    for writer in writers:
        writer.stopping.set()
        writer.join()
    switched = run_well(server, database.id, "source", "--to", "by-day", "--switch")
    target = database.get_container_client("by-day")
    assert min(writer.rounds for writer in writers) > 10
    assert contents(target) == contents(source)
    assert (switched["phase"], switched["source_items"]) == ("switched", switched["target_items"])
    assert switched["source_items"] == len(contents(source))
    assert target.read()["partitionKey"]["paths"] == ["/day"]
    assert target.read()["indexingPolicy"] == source.read()["indexingPolicy"]
    assert target.get_throughput().offer_throughput == 12_000
    assert source.read()["changeFeedPolicy"]["retentionDuration"] == 0
    source.create_item({"id": "later", "pk": "k", "day": 1})
    assert len(contents(target)) == len(contents(source)) - 1


def test_items_that_would_share_a_place_are_told_and_none_is_overwritten(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    for key in ("a", "b", "c"):
        container.create_item({"id": "same", "pk": key, "day": 1})
    container.create_item({"id": "other", "pk": "a", "day": "x" * 3000})
    names = (database.id, "things", "--to", "by-day")
    finished = run_rekey(server, *names, "--path", "/day")
    assert finished.returncode == 1
    assert "3 items have no place" in finished.stderr
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


def test_what_cannot_be_begun_is_said_in_one_line(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    names = (database.id, container.id, "--to")
    cases = {
        ("new",): "--path begins that",
        ("new", "--path", "no-slash"): "",
        ("things", "--path", "/day"): "exists already",
    }
    for arguments, told in cases.items():
        finished = run_rekey(server, *names, *arguments)
        (line,) = finished.stderr.splitlines()
        assert (finished.returncode, told in line) == (1, True)
    run_well(server, *names, "new", "--path", "/day")
    assert "being copied to another key already" in run_rekey(server, *names, "newer", "--path", "/day").stderr
