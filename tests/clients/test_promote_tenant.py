"""`asterism promote-tenant` as its user meets it: clients of the old container go on, before, during and after."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from tests.support.promotion import BIG, BIG_ITEMS, OTHER_ITEMS, fill, promote, promote_well
from tests.support.rekey import until_true
from tests.support.server import RunningServer, running_server

IN_BIG = "SELECT VALUE c.id FROM c WHERE c.pk = 'big'"


@pytest.fixture
def source(database: DatabaseProxy) -> ContainerProxy:
    made = database.create_container("tenants", PartitionKey("/pk"), offer_throughput=12_000, default_ttl=-1)
    fill(made)
    return made


class TenantWriter(threading.Thread):
    """Client of the old container that creates, changes and deletes items of one key, and reads each of them back."""

    def __init__(self, container: ContainerProxy, name: str, key: str) -> None:
        super().__init__()
        self._container = container
        self._name = name
        self._key = key
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self.rounds = 0
        self.acknowledged: dict[str, int | None] = {}

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                self.rounds += 1
                self._write(f"{self._name}-{self.rounds % 20}")
        except BaseException as failure:
            self.failure = failure

    def _write(self, item_id: str) -> None:
        container, key, number = self._container, self._key, self.rounds
        container.upsert_item({"id": item_id, "pk": key, "n": number})
        self.acknowledged[item_id] = number
        assert container.read_item(item_id, key)["n"] == number
        container.patch_item(item_id, key, [{"op": "incr", "path": "/n", "value": 1}])
        self.acknowledged[item_id] = number + 1
        (found,) = results(container, f"SELECT VALUE c.n FROM c WHERE c.id = '{item_id}'", partition_key=key)
        assert found == number + 1
        if number % 3 == 0:
            container.delete_item(item_id, key)
            self.acknowledged[item_id] = None


def results(container: ContainerProxy, text: str, **options: Any) -> list[Any]:
    return list(container.query_items(text, **options))


def ids(container: ContainerProxy, **options: Any) -> list[str]:
    return sorted(results(container, "SELECT VALUE c.id FROM c", **options))


def test_clients_of_the_old_container_go_on_while_a_tenant_moves(
    server: RunningServer, database: DatabaseProxy, source: ContainerProxy
) -> None:
    keys = (BIG, BIG, "k1")
    writers = [TenantWriter(source, f"w{number}", key) for number, key in enumerate(keys)]
    for writer in writers:
        writer.start()
    until_true(lambda: all(writer.rounds > 3 for writer in writers))
    job = promote_well(server, database.id, "tenants", BIG, "--to", "big", "--ru", "4000")
    rounds = [writer.rounds for writer in writers]
    until_true(lambda: all(writer.rounds > before + 10 for writer, before in zip(writers, rounds, strict=True)))
    for writer in writers:
        writer.stopping.set()
        writer.join()
    assert [writer.failure for writer in writers] == [None] * 3
    assert (job["phase"], job["state"], job["source_items"]) == ("forwarding", "forwarding", 0)
    target = database.get_container_client("big")
    assert target.get_throughput().offer_throughput == 4_000
    found = {item["id"]: item["n"] for item in target.read_all_items()}
    for writer in writers[:2]:
        assert {item_id: found.get(item_id) for item_id in writer.acknowledged} == writer.acknowledged
    assert sum(item_id.startswith("i") for item_id in found) == BIG_ITEMS
    status = promote_well(server, database.id, "tenants", BIG, "--status")
    assert status["forwarded_requests"] > 0
    assert status["last_forwarded_at"]
    source.read_item("i0", BIG)
    more = status["forwarded_requests"]
    until_true(lambda: promote_well(server, database.id, "tenants", BIG, "--status")["forwarded_requests"] == more + 1)


def test_every_process_forwards_from_the_same_moment_on(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--no-throttle", "--workers", "2") as server:
        # Clients with connections of their own, so that both processes serve some.
        clients = [server.client() for _ in range(4)]
        database = clients[0].create_database("d")
        fill(database.create_container("tenants", PartitionKey("/pk")))
        containers = [client.get_database_client("d").get_container_client("tenants") for client in clients]
        writers = [TenantWriter(container, f"w{number}", BIG) for number, container in enumerate(containers)]
        for writer in writers:
            writer.start()
        until_true(lambda: all(writer.rounds > 3 for writer in writers))
        promote_well(server, "d", "tenants", BIG, "--to", "big")
        rounds = [writer.rounds for writer in writers]
        until_true(lambda: all(writer.rounds > before + 10 for writer, before in zip(writers, rounds, strict=True)))
        for writer in writers:
            writer.stopping.set()
            writer.join()
        assert [writer.failure for writer in writers] == [None] * 4
        found = {item["id"]: item["n"] for item in database.get_container_client("big").read_all_items()}
        for writer in writers:
            assert {item_id: found.get(item_id) for item_id in writer.acknowledged} == writer.acknowledged
        assert ids(containers[0], enable_cross_partition_query=True) == sorted(f"i{n}" for n in range(OTHER_ITEMS))
        promote_well(server, "d", "tenants", BIG, "--end")
        for container in containers:
            with pytest.raises(CosmosHttpResponseError, match="in the container 'big' now"):
                container.upsert_item({"id": "late", "pk": BIG})


def test_every_kind_of_request_for_the_key_is_forwarded(
    server: RunningServer, database: DatabaseProxy, source: ContainerProxy
) -> None:
    source.scripts.create_stored_procedure(
        {
            "id": "add",
            "body": "function add(id) { const c = getContext(); c.getCollection().createDocument("
            "c.getCollection().getSelfLink(), {id: id, pk: 'big', n: 1}, (e, d) => c.getResponse().setBody(d.id)); }",
        }
    )
    held, renamed, removed = (source.read_item(item_id, BIG) for item_id in ("i1", "i2", "i3"))
    promote_well(server, database.id, "tenants", BIG, "--to", "big")
    target = database.get_container_client("big")
    with pytest.raises(CosmosResourceExistsError):
        source.create_item({"id": "i1", "pk": BIG})
    assert source.create_item({"id": "new", "pk": BIG})["id"] == "new"
    # Items that the client had read before: by their links, and with their etags.
    condition: dict[str, Any] = {"etag": held["_etag"], "match_condition": MatchConditions.IfNotModified}
    source.replace_item(held, {**held, "n": "changed"}, **condition)
    with pytest.raises(CosmosAccessConditionFailedError):
        source.replace_item(held, held, **condition)
    source.replace_item("i2", {**renamed, "id": "i2-renamed"})
    source.delete_item(removed, BIG)
    with pytest.raises(CosmosResourceNotFoundError):
        source.read_item("i3", BIG)
    source.patch_item("i4", BIG, [{"op": "set", "path": "/n", "value": "patched"}])
    # A parameter of a script may be anything; the client's annotation says otherwise.
    arguments: list[Any] = ["scripted"]
    source.execute_item_batch([("upsert", ({"id": "i5", "pk": BIG, "n": "batch"},)), ("delete", ("i6",))], BIG)
    assert source.scripts.execute_stored_procedure("add", partition_key=BIG, params=arguments) == "scripted"
    found = {
        item["id"]: item["n"] for item in target.query_items("SELECT c.id, c.n ?? 0 AS n FROM c", partition_key=BIG)
    }
    assert (found["i1"], found["i4"], found["i5"]) == ("changed", "patched", "batch")
    assert {"new", "i2-renamed", "scripted"} <= found.keys()
    assert found.keys().isdisjoint({"i2", "i3", "i6"})
    assert ids(source, partition_key=BIG) == sorted(found)
    assert sorted(results(source, IN_BIG, enable_cross_partition_query=True)) == sorted(found)
    assert sorted(results(source, f"{IN_BIG} ORDER BY c.id", enable_cross_partition_query=True)) == sorted(found)
    changes = source.query_items_change_feed(partition_key=BIG, start_time="Beginning")
    assert sorted(item["id"] for item in changes) == sorted(found)
    source.delete_all_items_by_partition_key(BIG)
    until_true(lambda: not list(target.read_all_items()))


def test_reads_of_all_keys_leave_the_promoted_one_out_from_the_switch_on(
    server: RunningServer, database: DatabaseProxy, source: ContainerProxy
) -> None:
    counts = "SELECT VALUE COUNT(1) FROM c"
    every: dict[str, Any] = {"enable_cross_partition_query": True}
    assert results(source, counts, **every) == [BIG_ITEMS + OTHER_ITEMS]
    promote_well(server, database.id, "tenants", BIG, "--to", "big")
    assert results(source, counts, **every) == [OTHER_ITEMS]
    assert len(list(source.read_all_items())) == OTHER_ITEMS
    assert len(list(source.query_items_change_feed(start_time="Beginning"))) == OTHER_ITEMS
    assert len(list(database.get_container_client("big").read_all_items())) == BIG_ITEMS
    with pytest.raises(CosmosHttpResponseError, match="of several containers"):
        results(source, "SELECT * FROM c WHERE c.pk IN ('big', 'k1')", **every)


def test_a_paged_query_is_continued_in_the_new_container(
    server: RunningServer, database: DatabaseProxy, source: ContainerProxy
) -> None:
    pages = source.query_items("SELECT VALUE c.id FROM c", partition_key=BIG, max_item_count=40).by_page()
    found: list[Any] = list(next(pages))
    promote_well(server, database.id, "tenants", BIG, "--to", "big")
    found += [item_id for page in pages for item_id in page]
    assert sorted(found) == sorted(f"i{number}" for number in range(BIG_ITEMS))


def test_the_items_may_be_spread_over_their_ids(
    server: RunningServer, database: DatabaseProxy, source: ContainerProxy
) -> None:
    names = (database.id, "tenants", BIG)
    promote_well(server, *names, "--to", "big", "--path", "/pk", "--path", "/id")
    target = database.get_container_client("big")
    assert target.read()["partitionKey"]["paths"] == ["/pk", "/id"]
    assert source.read_item("i1", BIG)["n"] == 1
    source.create_item({"id": "new", "pk": BIG})
    source.upsert_item({"id": "new", "pk": BIG, "n": 1})
    source.replace_item("new", {"id": "new", "pk": BIG, "n": 2})
    source.patch_item("new", BIG, [{"op": "incr", "path": "/n", "value": 1}])
    assert target.read_item("new", [BIG, "new"])["n"] == 3
    source.delete_item("new", BIG)
    assert len(ids(source, partition_key=BIG)) == BIG_ITEMS
    with pytest.raises(CosmosHttpResponseError, match="cannot span them"):
        source.execute_item_batch([("upsert", ({"id": "new", "pk": BIG},))], BIG)


def test_after_the_end_the_old_container_refuses_writes_and_names_the_new_one(
    server: RunningServer, database: DatabaseProxy, source: ContainerProxy
) -> None:
    names = (database.id, "tenants", BIG)
    promote_well(server, *names, "--to", "big")
    assert promote(server, *names, "--forget").returncode == 1
    assert promote_well(server, *names, "--end")["state"] == "ended"
    assert ids(source, partition_key=BIG) == []
    with pytest.raises(CosmosResourceNotFoundError):
        source.read_item("i1", BIG)
    with pytest.raises(CosmosHttpResponseError, match="in the container 'big' now") as refused:
        source.upsert_item({"id": "i1", "pk": BIG})
    assert refused.value.status_code == 403
    assert "not forwarded any more" in promote(server, database.id, "tenants").stdout
    promote_well(server, *names, "--forget")
    source.upsert_item({"id": "i1", "pk": BIG})
    assert len(list(database.get_container_client("big").read_all_items())) == BIG_ITEMS


def test_a_promotion_that_cannot_begin_is_refused_in_one_line(
    server: RunningServer, database: DatabaseProxy, source: ContainerProxy
) -> None:
    assert source.id == "tenants"
    cases = {
        ("tenants", "nobody", "--to", "new"): "has no items with this partition key",
        ("tenants", BIG, "--to", "tenants"): "exists already",
        ("tenants", BIG): "name a new container with --to",
        ("tenants", "[", "--to", "new"): "begins like a JSON array",
        ("tenants", '["a", "b"]', "--to", "new"): "",
        ("missing", BIG, "--to", "new"): "",
        ("tenants", BIG, "--end"): "",
        ("tenants", BIG, "--to", "new", "--path", "/user"): "and /id behind it",
    }
    for arguments, message in cases.items():
        finished = promote(server, database.id, *arguments)
        (line,) = finished.stderr.splitlines()
        assert (finished.returncode, message in line) == (1, True)
    promote_well(server, database.id, "tenants", BIG, "--to", "new")
    assert "promoted to 'new' already" in promote(server, database.id, "tenants", BIG, "--to", "newer").stderr
