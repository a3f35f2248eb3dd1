"""The official Python client, as its users use it."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey, ThroughputProperties
from azure.cosmos import aio as cosmos_aio
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)
from azure.cosmos.partition_key import NonePartitionKeyValue

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from tests.support.server import PlainClient, RunningServer

SPLIT_SECONDS_MAX = 60.0
WHOLE_LINE = {"Range": {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}}


def ids(items: Any) -> list[str]:
    return sorted(item["id"] for item in items)


# --- items ----------------------------------------------------------------------------------------------------------


def test_an_item_is_created_read_replaced_and_deleted(container: ContainerProxy) -> None:
    created = container.create_item({"id": "a", "pk": "x", "name": "Ä ☃ \U0001f980", "n": 1.5, "none": None})
    read = container.read_item("a", "x")
    replaced = container.replace_item(created, {**created, "n": 2})
    container.delete_item(replaced, "x")
    assert read == created
    assert (read["name"], read["n"], read["none"]) == ("Ä ☃ \U0001f980", 1.5, None)
    assert replaced["n"] == 2
    assert replaced["_etag"] != created["_etag"]
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("a", "x")


@pytest.mark.parametrize("item_id", ["with space", "a+b", "100%", "ünïcode", "a;b=c&d", "x" * 1023, "(1)", "a.b"])
def test_an_id_may_hold_what_an_address_must_escape(container: ContainerProxy, item_id: str) -> None:
    created = container.create_item({"id": item_id, "pk": item_id})
    assert container.read_item(item_id, item_id) == created


# The client refuses to create these, and addresses them all the same.
@pytest.mark.parametrize(
    "item_id", ["a?b", "?", "tab\tbed", "line\nfeed", "return\rs", "Test ", "a?b=c&d e", "100%20", "~"]
)
def test_an_id_that_other_clients_create_is_read_and_deleted(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy, item_id: str
) -> None:
    link = f"dbs/{database.id}/colls/{container.id}"
    plain = PlainClient(server.port)
    item = {"id": item_id, "pk": "x"}
    headers = {"x-ms-documentdb-partitionkey": '["x"]'}
    status, _, created = plain.send("POST", f"/{link}/docs/", item, resource_type="docs", link=link, headers=headers)
    plain.close()
    assert status == 201
    assert container.read_item(item_id, "x") == created
    assert asyncio.run(_read_on_asyncio(server, database.id, container.id, item_id)) == created
    container.delete_item(item_id, "x")
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item(item_id, "x")


async def _read_on_asyncio(server: RunningServer, database: str, container: str, item_id: str) -> dict[str, Any]:
    async with cosmos_aio.CosmosClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY) as client:
        return await client.get_database_client(database).get_container_client(container).read_item(item_id, "x")


@pytest.mark.parametrize("pk", ["text", "", 7, -1.5, True, False, None])
def test_a_key_may_be_of_any_plain_type(container: ContainerProxy, pk: Any) -> None:
    container.create_item({"id": "a", "pk": pk})
    assert container.read_item("a", pk)["pk"] == pk
    found = container.query_items("SELECT * FROM c WHERE c.pk = @pk", parameters=[{"name": "@pk", "value": pk}])
    assert ids(found) == ["a"]


def test_an_item_without_the_key_is_found_by_the_absent_key(container: ContainerProxy) -> None:
    container.create_item({"id": "a"})
    assert container.read_item("a", NonePartitionKeyValue)["id"] == "a"
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("a", None)


def test_conditions_are_kept(container: ContainerProxy) -> None:
    first = container.create_item({"id": "a", "pk": "x"})
    second = container.upsert_item({"id": "a", "pk": "x", "n": 1})
    with pytest.raises(CosmosAccessConditionFailedError):
        container.replace_item(
            "a", {**second, "n": 2}, etag=first["_etag"], match_condition=MatchConditions.IfNotModified
        )
    third = container.replace_item(
        "a", {**second, "n": 3}, etag=second["_etag"], match_condition=MatchConditions.IfNotModified
    )
    assert third["n"] == 3


def test_an_id_is_taken_only_within_its_logical_partition(container: ContainerProxy) -> None:
    container.create_item({"id": "a", "pk": "x"})
    container.create_item({"id": "a", "pk": "y"})
    with pytest.raises(CosmosResourceExistsError):
        container.create_item({"id": "a", "pk": "x"})


def test_every_response_tells_its_charge(container: ContainerProxy) -> None:
    created = container.create_item({"id": "a", "pk": "x", "text": "y" * 500})
    read = container.read_item("a", "x")
    assert float(created.get_response_headers()["x-ms-request-charge"]) > 5
    assert float(read.get_response_headers()["x-ms-request-charge"]) == 1.0


def test_a_write_may_be_answered_without_its_item(container: ContainerProxy) -> None:
    answer = container.create_item({"id": "a", "pk": "x"}, no_response=True)
    assert answer == {}
    assert answer.get_response_headers()["etag"]


# --- feeds and queries ----------------------------------------------------------------------------------------------


def test_pages_go_on_where_they_stopped(container: ContainerProxy) -> None:
    made = [container.create_item({"id": f"i{number:02}", "pk": f"p{number % 5}"})["id"] for number in range(23)]
    pages = container.query_items("SELECT * FROM c", enable_cross_partition_query=True, max_item_count=5).by_page()
    first = ids(next(pages))
    rest = container.query_items("SELECT * FROM c", enable_cross_partition_query=True, max_item_count=5).by_page(
        pages.continuation_token
    )
    assert len(first) == 5
    assert sorted(first + [item["id"] for page in rest for item in page]) == made
    assert ids(container.read_all_items(max_item_count=4)) == made


def test_filters_and_parameters(container: ContainerProxy) -> None:
    for number in range(10):
        container.create_item({"id": f"i{number}", "pk": "x", "n": number, "tags": {"even": number % 2 == 0}})
    found = container.query_items(
        "SELECT * FROM c WHERE c.pk = @pk AND c.n >= @least AND c.tags.even = true",
        parameters=[{"name": "@pk", "value": "x"}, {"name": "@least", "value": 4}],
    )
    assert ids(found) == ["i4", "i6", "i8"]


def test_many_items_are_read_at_once(container: ContainerProxy) -> None:
    for number in range(12):
        container.create_item({"id": f"i{number}", "pk": f"p{number % 3}"})
    wanted = [(f"i{number}", f"p{number % 3}") for number in range(0, 12, 2)]
    assert ids(container.read_items(wanted)) == sorted(item_id for item_id, _ in wanted)


def test_feed_ranges_divide_a_container(database: DatabaseProxy) -> None:
    wide = database.create_container("wide", PartitionKey("/pk"), offer_throughput=30000)
    for number in range(40):
        wide.create_item({"id": f"i{number}", "pk": f"p{number}"})
    ranges = list(wide.read_feed_ranges())
    parts = [ids(wide.query_items("SELECT * FROM c", feed_range=feed_range)) for feed_range in ranges]
    assert len(ranges) == 5
    assert sorted(item_id for part in parts for item_id in part) == ids(wide.read_all_items())


def test_a_hierarchical_key_is_read_whole_and_by_its_prefix(database: DatabaseProxy) -> None:
    tree = database.create_container("tree", PartitionKey(["/tenant", "/user"], kind="MultiHash"))
    for tenant in ("a", "b"):
        for user in range(4):
            tree.create_item({"id": f"{tenant}{user}", "tenant": tenant, "user": str(user)})
    assert tree.read_item("a1", ["a", "1"])["user"] == "1"
    assert ids(tree.query_items("SELECT * FROM c", partition_key=["a"])) == ["a0", "a1", "a2", "a3"]
    assert ids(tree.query_items("SELECT * FROM c", partition_key=["a", "2"])) == ["a2"]


# --- databases, containers, throughput ------------------------------------------------------------------------------


def test_containers_are_listed_queried_replaced_and_recreated(database: DatabaseProxy) -> None:
    made = database.create_container("c", PartitionKey("/pk"))
    made.create_item({"id": "a", "pk": "x"})
    database.replace_container(made, PartitionKey("/pk"), default_ttl=60)
    found = list(database.query_containers("SELECT * FROM c WHERE c.id = 'c'"))
    database.delete_container("c")
    database.create_container("c", PartitionKey("/other"))
    assert [container["defaultTtl"] for container in found] == [60]
    assert made.create_item({"id": "a", "other": "y"})["other"] == "y"
    assert ids(made.read_all_items()) == ["a"]


def test_throughput_is_read_and_changed(database: DatabaseProxy) -> None:
    manual = database.create_container("manual", PartitionKey("/pk"), offer_throughput=500)
    scaled = database.create_container(
        "scaled",
        PartitionKey("/pk"),
        offer_throughput=ThroughputProperties(auto_scale_max_throughput=5000, auto_scale_increment_percent=2),
    )
    manual.replace_throughput(600)
    scaled.replace_throughput(ThroughputProperties(auto_scale_max_throughput=7000))
    assert manual.get_throughput().offer_throughput == 600
    assert scaled.get_throughput().auto_scale_max_throughput == 7000
    with pytest.raises(CosmosHttpResponseError) as refused:
        manual.replace_throughput(150)
    assert refused.value.status_code == 400


def test_a_client_never_notices_that_partitions_split(database: DatabaseProxy) -> None:
    growing = database.create_container("growing", PartitionKey("/pk"), offer_throughput=400)
    made = [growing.create_item({"id": f"i{number:03}", "pk": f"p{number}"})["id"] for number in range(120)]
    pages = growing.query_items("SELECT * FROM c", enable_cross_partition_query=True, max_item_count=50).by_page()
    ranged = growing.query_items("SELECT * FROM c", feed_range=WHOLE_LINE, max_item_count=50).by_page()
    first, first_ranged = ids(next(pages)), ids(next(ranged))
    growing.replace_throughput(25000)
    wait_for_splits(growing)
    rest_ranged = [item["id"] for page in ranged for item in page]
    growing.create_item({"id": "after", "pk": "p5"})
    rest = [item["id"] for page in pages for item in page]
    assert sorted(first_ranged + rest_ranged) == made
    assert len(list(growing.read_feed_ranges(force_refresh=True))) == 3
    assert set(made) <= set(first + rest)
    assert len(first + rest) == len(set(first + rest))
    assert growing.read_item("i007", "p7")["id"] == "i007"
    assert ids(growing.read_all_items()) == sorted([*made, "after"])


def wait_for_splits(container: ContainerProxy) -> None:
    give_up_at = time.monotonic() + SPLIT_SECONDS_MAX
    while container.get_throughput().properties["content"].get("isOfferReplacePending"):
        assert time.monotonic() < give_up_at, "the splits did not end"
        time.sleep(0.05)


# --- authorization --------------------------------------------------------------------------------------------------


def test_a_read_only_key_cannot_write(
    server: RunningServer, database: DatabaseProxy, container: ContainerProxy
) -> None:
    container.create_item({"id": "a", "pk": "x"})
    with CosmosClient(server.endpoint, derive_readonly_key(WELL_KNOWN_EMULATOR_KEY)) as reader:
        same = reader.get_database_client(database.id).get_container_client(container.id)
        assert same.read_item("a", "x")["id"] == "a"
        assert ids(same.query_items("SELECT * FROM c", partition_key="x")) == ["a"]
        with pytest.raises(CosmosHttpResponseError) as refused:
            same.create_item({"id": str(uuid.uuid4()), "pk": "x"})
    assert refused.value.status_code == 403


def test_a_wrong_key_cannot_even_connect(server: RunningServer) -> None:
    with pytest.raises(CosmosHttpResponseError) as refused:
        CosmosClient(server.endpoint, "bm90IHRoZSBrZXk=")
    assert refused.value.status_code == 401
