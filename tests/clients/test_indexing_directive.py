"""Items that are left out of the index, or taken into it, as a request or a script says."""

from __future__ import annotations

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.documents import IndexingDirective
from azure.cosmos.exceptions import CosmosHttpResponseError

from tests.support.headers import always_sent
from tests.support.rekey import until_true

ALL = "SELECT VALUE c.id FROM c"
BY_INDEX = "SELECT VALUE c.id FROM c WHERE c.n = 1"
BY_ID = "SELECT VALUE c.id FROM c WHERE c.id = 'out'"
IN_ORDER = "SELECT VALUE c.id FROM c ORDER BY c.n"
BY_SCAN = "SELECT VALUE c.id FROM c WHERE c.free = 1"
POLICY = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/free/?"}]}
DIRECTIVE = "x-ms-indexing-directive"


def found(container: ContainerProxy, query: str) -> list[str]:
    in_one = sorted(container.query_items(query, partition_key="a"))
    assert sorted(container.query_items(query, enable_cross_partition_query=True)) == in_one
    return in_one


def item(item_id: str) -> dict[str, object]:
    return {"id": item_id, "pk": "a", "n": 1, "free": 1}


def is_indexed(container: ContainerProxy, item_id: str) -> bool:
    return item_id in found(container, BY_INDEX)


@pytest.fixture
def indexed(database: DatabaseProxy) -> ContainerProxy:
    return database.create_container("indexed", PartitionKey("/pk"), indexing_policy=POLICY)


def test_an_excluded_item_is_read_and_scanned_and_found_by_no_index(indexed: ContainerProxy) -> None:
    indexed.create_item(item("in"))
    indexed.create_item(item("out"), indexing_directive=IndexingDirective.Exclude)
    assert indexed.read_item("out", "a")["n"] == 1
    assert [item["id"] for item in indexed.read_all_items()] == ["in", "out"]
    assert found(indexed, ALL) == found(indexed, BY_SCAN) == ["in", "out"]
    assert found(indexed, BY_INDEX) == found(indexed, IN_ORDER) == ["in"]
    assert found(indexed, BY_ID) == []
    for query, count in {"SELECT VALUE COUNT(1) FROM c": 2, "SELECT VALUE COUNT(c.n) FROM c": 1}.items():
        assert list(indexed.query_items(query, partition_key="a")) == [count]
    assert len(list(indexed.query_items_change_feed(start_time="Beginning"))) == 2


def test_each_write_says_anew_whether_the_item_is_indexed(indexed: ContainerProxy) -> None:
    writes = {
        "upsert": lambda: indexed.upsert_item(item("x")),
        "replace": lambda: indexed.replace_item("x", item("x")),
        "patch": lambda: indexed.patch_item("x", "a", [{"op": "add", "path": "/more", "value": 1}]),
    }
    indexed.create_item(item("x"))
    for write in writes.values():
        with always_sent(indexed, DIRECTIVE, "Exclude"):
            write()
        assert not is_indexed(indexed, "x")
        write()
        assert is_indexed(indexed, "x")
    with always_sent(indexed, DIRECTIVE, "exclude"):
        indexed.upsert_item(item("x"))
    indexed.delete_item("x", "a")
    assert found(indexed, ALL) == []
    with always_sent(indexed, DIRECTIVE, "perhaps"), pytest.raises(CosmosHttpResponseError) as refused:
        indexed.create_item(item("x"))
    assert refused.value.status_code == 400


def test_without_automatic_indexing_only_included_items_are_indexed(database: DatabaseProxy) -> None:
    policy = {**POLICY, "automatic": False}
    container = database.create_container("manual", PartitionKey("/pk"), indexing_policy=policy)
    assert container.read()["indexingPolicy"]["automatic"] is False
    container.create_item(item("out"))
    container.create_item(item("in"), indexing_directive=IndexingDirective.Include)
    assert found(container, ALL) == ["in", "out"]
    assert found(container, BY_INDEX) == ["in"]
    policy = {"indexingMode": "none"}
    container = database.create_container("none", PartitionKey("/pk"), indexing_policy=policy)
    container.create_item(item("out"), indexing_directive=IndexingDirective.Exclude)
    assert found(container, BY_INDEX) == ["out"]
    database.replace_container(container, PartitionKey("/pk"), indexing_policy=POLICY)
    until_true(lambda: is_transformed(container))
    assert found(container, BY_INDEX) == found(container, IN_ORDER) == ["out"]


def is_transformed(container: ContainerProxy) -> bool:
    container.read(populate_quota_info=True)
    headers = container.client_connection.last_response_headers
    return bool(headers["x-ms-documentdb-collection-index-transformation-progress"] == "100")


def test_a_changed_policy_leaves_excluded_items_out(database: DatabaseProxy, indexed: ContainerProxy) -> None:
    indexed.create_item(item("in"))
    indexed.create_item(item("out"), indexing_directive=IndexingDirective.Exclude)
    database.replace_container(indexed, PartitionKey("/pk"), indexing_policy={"includedPaths": [{"path": "/*"}]})
    until_true(lambda: is_transformed(indexed))
    assert found(indexed, BY_SCAN) == found(indexed, BY_INDEX) == ["in"]
    assert found(indexed, ALL) == ["in", "out"]


def test_a_script_says_it_as_index_action(indexed: ContainerProxy) -> None:
    body = """function (action) {
        var collection = getContext().getCollection(), link = collection.getSelfLink();
        var item = { id: "x", pk: "a", n: 1, free: 1 };
        collection.upsertDocument(link, item, { indexAction: action }, function (error) {
            if (error) throw error;
            collection.queryDocuments(link, "SELECT VALUE c.id FROM c WHERE c.n = 1", function (error, byIndex) {
                if (error) throw error;
                collection.queryDocuments(link, "SELECT VALUE c.id FROM c WHERE c.id = 'x'", function (error, byId) {
                    if (error) throw error;
                    collection.queryDocuments(link, "SELECT VALUE c.id FROM c", function (error, all) {
                        getContext().getResponse().setBody([byIndex, byId, all]);
                    });
                });
            });
        });
    }"""
    indexed.scripts.create_stored_procedure({"id": "put", "body": body})
    for action, sees in (("exclude", []), ("include", ["x"]), ("exclude", []), ("default", ["x"])):
        result = indexed.scripts.execute_stored_procedure("put", partition_key="a", params=[action])
        assert result == [sees, sees, ["x"]]
        assert found(indexed, BY_INDEX) == sees
    with pytest.raises(CosmosHttpResponseError, match="it is Default, Include or Exclude"):
        indexed.scripts.execute_stored_procedure("put", partition_key="a", params=["perhaps"])
