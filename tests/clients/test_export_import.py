"""`asterism export` and `asterism import` as their user meets them, on data of the official client."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey, ThroughputProperties
from azure.cosmos.documents import IndexingDirective

from tests.support.commands import failure_of, run_well
from tests.support.server import RunningServer

ITEM_COUNT = 2500
FUNCTION = {"id": "twice", "body": "function twice(n) { return 2 * n; }"}
PROCEDURE = {"id": "hello", "body": "function hello() { getContext().getResponse().setBody('hello'); }"}
TRIGGER = {"id": "check", "body": "function check() {}", "triggerType": "Pre", "triggerOperation": "All"}


def contents(container: ContainerProxy) -> dict[str, dict[str, Any]]:
    """The items by their ids, without what the server adds."""
    return {
        item["id"]: {name: value for name, value in item.items() if not name.startswith("_")}
        for item in container.read_all_items()
    }


@pytest.fixture
def orders(database: DatabaseProxy) -> ContainerProxy:
    made = database.create_container(
        "orders",
        PartitionKey("/customer/name"),
        indexing_policy={"includedPaths": [{"path": "/total/?"}], "excludedPaths": [{"path": "/*"}]},
        default_ttl=-1,
        unique_key_policy={"uniqueKeys": [{"paths": ["/serial"]}]},
        offer_throughput=12_000,
    )
    made.scripts.create_user_defined_function(FUNCTION)
    made.scripts.create_stored_procedure(PROCEDURE)
    made.scripts.create_trigger(TRIGGER)
    made.create_item({"id": "no key", "serial": "none", "text": "ä\u2028\n😀", "large": 2**60, "x": 0.1})
    made.create_item({"id": "wide", "customer": {"name": "wide"}, "serial": "wide", "pad": "x" * 1_500_000})
    return made


def test_a_container_comes_back_with_its_settings_scripts_and_items(
    server: RunningServer, database: DatabaseProxy, orders: ContainerProxy, tmp_path: Path
) -> None:
    file = tmp_path / "orders.jsonl"
    assert run_well(server, "export", database.id, "orders", "--to", str(file)) == (
        f"{database.id}/orders: 2 items exported.\n"
    )
    imported = run_well(server, "import", str(file), "--container", "copy", "--format", "json")
    assert json.loads(imported) == {"containers": [{"database": database.id, "container": "copy", "items": 2}]}
    copy = database.get_container_client("copy")
    before, after = orders.read(), copy.read()
    for name in ("indexingPolicy", "partitionKey", "defaultTtl", "uniqueKeyPolicy", "conflictResolutionPolicy"):
        assert after[name] == before[name]
    assert copy.get_throughput().offer_throughput == 12_000
    assert copy.scripts.get_user_defined_function("twice")["body"] == FUNCTION["body"]
    assert copy.scripts.execute_stored_procedure("hello", "any") == "hello"
    assert copy.scripts.get_trigger("check")["triggerType"] == "Pre"
    assert contents(copy) == contents(orders)


def test_an_import_can_be_repeated_and_brings_items_back(
    server: RunningServer, container: ContainerProxy, database: DatabaseProxy, tmp_path: Path
) -> None:
    file = tmp_path / "things.jsonl"
    header = {"asterism_container": 1, "database": database.id, "settings": {"id": "things"}}
    lines = [header, *({"id": f"i{n}", "pk": f"k{n % 50}", "n": n} for n in range(ITEM_COUNT))]
    file.write_text("\n".join(json.dumps(line) for line in lines))
    run_well(server, "import", str(file))
    written = contents(container)
    container.delete_item("i7", "k7")
    container.upsert_item({"id": "i8", "pk": "k8", "n": "changed"})
    assert f"{ITEM_COUNT:,} items imported" in run_well(server, "import", str(file))
    assert len(written) == ITEM_COUNT
    assert contents(container) == written
    again = tmp_path / "again.jsonl"
    run_well(server, "export", database.id, "things", "--to", str(again))
    assert len(again.read_text().splitlines()) == ITEM_COUNT + 1


def test_a_database_is_exported_whole_and_imported_under_another_name(
    server: RunningServer, database: DatabaseProxy, tmp_path: Path
) -> None:
    first = database.create_container("first", PartitionKey("/pk"))
    second = database.create_container(
        "second", PartitionKey(["/a", "/b"], kind="MultiHash"), offer_throughput=ThroughputProperties(4000)
    )
    first.create_item({"id": "one", "pk": 1})
    second.create_item({"id": "two", "a": "x", "b": True})
    file = tmp_path / "all.jsonl"
    run_well(server, "export", database.id, "--to", str(file))
    run_well(server, "import", str(file), "--database", f"{database.id}-copy")
    with server.client() as client:
        copy = client.get_database_client(f"{database.id}-copy")
        assert contents(copy.get_container_client("first")) == contents(first)
        assert contents(copy.get_container_client("second")) == contents(second)
        client.delete_database(copy)


@pytest.mark.parametrize(("automatic", "marked"), [(True, "Exclude"), (False, "Include")])
def test_items_that_were_indexed_against_the_policy_come_back_so(
    server: RunningServer, database: DatabaseProxy, tmp_path: Path, automatic: bool, marked: str
) -> None:
    made = database.create_container("marked", PartitionKey("/pk"), indexing_policy={"automatic": automatic})
    made.create_item({"id": "in", "pk": "a"}, indexing_directive=IndexingDirective.Include)
    made.create_item({"id": "out", "pk": "a"}, indexing_directive=IndexingDirective.Exclude)
    for number in range(3):
        made.create_item({"id": f"out{number}", "pk": number}, indexing_directive=IndexingDirective.Exclude)
    file = tmp_path / "marked.jsonl"
    run_well(server, "export", database.id, "marked", "--to", str(file))
    lines = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    assert {line["indexing"] for line in lines if "asterism_item" in line} == {marked}
    run_well(server, "import", str(file), "--container", "copy")
    copy = database.get_container_client("copy")
    by_index = "SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.id)"
    assert list(copy.query_items(by_index, enable_cross_partition_query=True)) == ["in"]
    assert contents(copy) == contents(made)


@pytest.mark.parametrize("throughput", [1000, ThroughputProperties(auto_scale_max_throughput=5000)])
def test_throughput_that_containers_share_comes_back_as_shared(
    server: RunningServer, tmp_path: Path, throughput: int | ThroughputProperties
) -> None:
    file, name = tmp_path / "shared.jsonl", f"shared-{uuid.uuid4()}"
    with server.client() as client:
        made = client.create_database(name, offer_throughput=throughput)
        made.create_container("own", PartitionKey("/pk"), offer_throughput=500)
        made.create_container("shared", PartitionKey("/pk"))
        run_well(server, "export", name, "--to", str(file))
        run_well(server, "import", str(file), "--database", f"{name}-copy")
        before = [json.loads(line) for line in file.read_text().splitlines()]
        run_well(server, "export", f"{name}-copy", "--to", str(file))
        after = [json.loads(line) for line in file.read_text().splitlines()]
        copy = client.get_database_client(f"{name}-copy")
        assert copy.get_throughput().properties["content"] == made.get_throughput().properties["content"]
        client.delete_database(made)
        client.delete_database(copy)
    assert [line["throughput"] for line in before] == [{"manual": 500}, None]
    assert [{**line, "database": name} for line in after] == before


def test_system_properties_stay_when_they_are_asked_for(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy, tmp_path: Path
) -> None:
    made = container.create_item({"id": "one", "pk": "a"})
    file = tmp_path / "things.jsonl"
    run_well(server, "export", database.id, "things", "--to", str(file))
    assert json.loads(file.read_text().splitlines()[1]) == {"id": "one", "pk": "a"}
    run_well(server, "export", database.id, "things", "--to", str(file), "--system-properties")
    assert json.loads(file.read_text().splitlines()[1]) == dict(made)


@pytest.mark.parametrize(
    ("second_line", "message"),
    [
        ("{", "line 2: The text is not valid JSON"),
        ("[1]", "line 2: the line is not a JSON object"),
        ('{"name": 1}', "line 2: the line is neither an item"),
        ('{"id": "a/b"}', "line 2: "),
        ('{"asterism_item": {"pk": 1}, "indexing": "Exclude"}', "line 2: it needs an item with an 'id'"),
        ('{"asterism_item": {"id": "a"}, "indexing": "never"}', "line 2: it needs an item with an 'id'"),
        ('{"id": "good"}\n{"id": 7}', "line 3: "),
    ],
)
def test_a_bad_line_is_named_in_one_line(
    server: RunningServer, database: DatabaseProxy, tmp_path: Path, second_line: str, message: str
) -> None:
    file = tmp_path / "bad.jsonl"
    settings = {"id": "bad", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}}
    header = {"asterism_container": 1, "database": database.id, "settings": settings}
    file.write_text(f"{json.dumps(header)}\n{second_line}\n")
    assert message in failure_of(server, "import", str(file))


def test_an_export_or_import_that_fails_is_reported_in_one_line(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy, tmp_path: Path
) -> None:
    file = tmp_path / "things.jsonl"
    assert "cannot be read" in failure_of(server, "import", str(file))
    failure_of(server, "export", database.id, "nowhere", "--to", str(file))
    assert not list(tmp_path.iterdir())
    file.write_text('{"id": "an item"}\n')
    assert "line 1: the file does not begin with a container" in failure_of(server, "import", str(file))
    settings = {"id": container.id, "partitionKey": {"paths": ["/other"], "kind": "Hash", "version": 2}}
    file.write_text(json.dumps({"asterism_container": 1, "database": database.id, "settings": settings}))
    assert "already exists with the partition key /pk" in failure_of(server, "import", str(file))
