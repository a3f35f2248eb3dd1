"""Items are answered in the order of their creation, as the service does, also from a store that is older than that."""

from __future__ import annotations

from pathlib import Path

import pytest
from azure.cosmos import DatabaseProxy, PartitionKey

from tests.support.older_store import DELETED, unpack_older_store
from tests.support.server import MORE_OPTIONS, running_server
from tests.support.stores import is_postgres


def test_every_way_to_read_items_has_the_order_of_creation(database: DatabaseProxy) -> None:
    container = database.create_container("c", PartitionKey("/pk"))
    for name in "cbafed":
        container.create_item({"id": name, "pk": ord(name) % 2, "word": "same", "list": [1, 2]})
    container.upsert_item({"id": "b", "pk": 0, "word": "same", "list": [1, 2], "again": True})
    container.delete_item("a", 1)
    container.create_item({"id": "a", "pk": 1, "word": "same", "list": [1, 2]})
    everything = ["c", "b", "f", "e", "d", "a"]
    assert [item["id"] for item in container.read_all_items(max_item_count=2)] == everything

    def found(query: str, **more: object) -> list[str]:
        options = {"enable_cross_partition_query": True, "max_item_count": 2, **more}
        return [item["id"] for item in container.query_items(query, **options)]

    assert found("SELECT * FROM c") == everything
    assert found("SELECT * FROM c WHERE c.word = 'same'") == everything
    assert found("SELECT * FROM c WHERE c.word >= 'a'") == everything
    assert found("SELECT * FROM c WHERE c.id IN ('a', 'b', 'c', 'd')") == ["c", "b", "d", "a"]
    assert found("SELECT * FROM c WHERE LENGTH(c.word) = 4") == everything
    assert found("SELECT c.id, x FROM c JOIN x IN c.list") == [name for name in everything for _ in "12"]
    assert found("SELECT * FROM c", partition_key=1, enable_cross_partition_query=False) == ["c", "e", "a"]


def test_the_prefix_of_a_hierarchical_key_has_the_order_of_creation(database: DatabaseProxy) -> None:
    key = PartitionKey(["/tenant", "/user"], kind="MultiHash")
    container = database.create_container("c", key)
    for number, name in enumerate("cbafed"):
        container.create_item({"id": name, "tenant": number % 2, "user": str(number)})
    assert [item["id"] for item in container.query_items("SELECT * FROM c", partition_key=[0])] == ["c", "a", "e"]


@pytest.mark.skipif(is_postgres(), reason="the older store is a file of the embedded engine")
def test_a_store_of_the_version_before_is_converted_when_it_is_opened(tmp_path: Path) -> None:
    unpack_older_store(tmp_path)
    for _ in range(2):
        with running_server(tmp_path) as program:
            database = program.client().get_database_client("older")
            first = database.get_container_client("first")
            assert [item["n"] for item in first.read_all_items(max_item_count=7)] == list(range(60))
            in_key = first.query_items("SELECT VALUE c.n FROM c", partition_key="k1", max_item_count=7)
            assert list(in_key) == list(range(1, 60, 3))
            deep = database.get_container_client("deep")
            assert [item["n"] for item in deep.read_all_items()] == list(range(60))
            of_tenant = deep.query_items("SELECT VALUE c.n FROM c", partition_key=["t1"])
            assert list(of_tenant) == list(range(1, 60, 2))
            flat = database.get_container_client("flat")
            numbers = [number for number in range(60) if number not in DELETED]
            ordered = flat.query_items(
                "SELECT VALUE c.n FROM c ORDER BY c.m DESC, c.n ASC", enable_cross_partition_query=True
            )
            assert list(ordered) == sorted(numbers, key=lambda number: (-(number % 3), number))
            assert sorted(item["n"] for item in flat.read_all_items()) == numbers
            for pk in range(4):
                of_key = flat.query_items("SELECT VALUE c.n FROM c", partition_key=pk)
                assert list(of_key) == [number for number in numbers if number % 4 == pk]


@pytest.mark.skipif("--workers" in MORE_OPTIONS, reason="each process gives out numbers of its own")
def test_pages_of_a_feed_go_on_over_a_restart(tmp_path: Path) -> None:
    with running_server(tmp_path) as program:
        container = program.client().create_database("d").create_container("c", PartitionKey("/pk"))
        for number in range(9, -1, -1):
            container.create_item({"id": str(number), "pk": str(number % 3)})
        pages = container.query_items(
            "SELECT VALUE c.id FROM c", enable_cross_partition_query=True, max_item_count=4
        ).by_page()
        seen = list(next(pages))
        token = pages.continuation_token
    with running_server(tmp_path) as program:
        container = program.client().get_database_client("d").get_container_client("c")
        container.create_item({"id": "10", "pk": "1"})
        rest = container.query_items(
            "SELECT VALUE c.id FROM c", enable_cross_partition_query=True, max_item_count=4
        ).by_page(token)
        seen += [name for page in rest for name in page]
    assert seen == [str(number) for number in (*range(9, -1, -1), 10)]
