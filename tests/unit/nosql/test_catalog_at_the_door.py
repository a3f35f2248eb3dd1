"""Databases, containers and offers, as the door answers them on a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.nosql.door_at_hand import DoorAtHand, door_at_hand, key


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[DoorAtHand]:
    async with door_at_hand(tmp_path) as at_hand:
        yield at_hand


async def test_lists_come_in_pages_and_can_be_queried(door: DoorAtHand) -> None:
    for name in ("x", "y", "z"):
        await door.send("POST", "dbs", {"id": name})
    first = await door.send("GET", "dbs", headers={"x-ms-max-item-count": "3"})
    more = {"x-ms-max-item-count": "3", "x-ms-continuation": first.headers["x-ms-continuation"]}
    second = await door.send("GET", "dbs", headers=more)
    query = {"query": "SELECT * FROM root r WHERE r.id = @id", "parameters": [{"name": "@id", "value": "y"}]}
    found = await door.send("POST", "dbs", query, headers={"x-ms-documentdb-isquery": "true"})
    names = [database["id"] for database in first.body["Databases"] + second.body["Databases"]]
    assert names == ["d", "x", "y", "z"]
    assert [database["id"] for database in found.body["Databases"]] == ["y"]


async def test_databases_and_containers_heed_if_match(door: DoorAtHand) -> None:
    stale = {"if-match": '"another"'}
    container = await door.send("GET", "dbs/d/colls/c")
    assert (await door.send("PUT", "dbs/d/colls/c", container.body, headers=stale)).status == 412
    assert (await door.send("DELETE", "dbs/d/colls/c", headers=stale)).status == 412
    assert (await door.send("DELETE", "dbs/d", headers=stale)).status == 412
    current = {"if-match": container.headers["etag"]}
    replaced = await door.send("PUT", "dbs/d/colls/c", {**container.body, "defaultTtl": 5}, headers=current)
    assert (replaced.status, replaced.body["defaultTtl"]) == (200, 5)


async def test_a_container_tells_its_sizes_when_asked(door: DoorAtHand) -> None:
    for number in range(3):
        await door.create(str(number), x="y" * 2000)
    asked = {"x-ms-documentdb-populatequotainfo": "True", "x-ms-documentdb-populatepartitionstatistics": "True"}
    answer = await door.send("GET", "dbs/d/colls/c", headers=asked)
    assert [partition["documentCount"] for partition in answer.body["statistics"]] == [3]
    assert "documentsCount=3;" in answer.headers["x-ms-resource-usage"]
    assert answer.headers["x-ms-documentdb-collection-index-transformation-progress"] == "100"


async def test_the_quota_of_a_container_of_one_partition_is_ten_gigabytes(door: DoorAtHand) -> None:
    asked = {"x-ms-documentdb-populatequotainfo": "True"}
    await door.send("POST", "dbs/d/colls", {"id": "fixed"})
    for name in ("c", "fixed"):
        quota = (await door.send("GET", f"dbs/d/colls/{name}", headers=asked)).headers["x-ms-resource-quota"]
        assert "documentsSize=10485760;" in quota
        assert "collectionSize=10485760;" in quota
    await door.split()
    quota = (await door.send("GET", "dbs/d/colls/c", headers=asked)).headers["x-ms-resource-quota"]
    assert "documentsSize=104857600;" in quota


async def test_a_key_without_version_is_version_1_and_stays_so(door: DoorAtHand) -> None:
    made = await door.send("POST", "dbs/d/colls", {"id": "one", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}})
    assert made.body["partitionKey"] == {"paths": ["/pk"], "kind": "Hash", "version": 1}
    replaced = await door.send("PUT", "dbs/d/colls/one", {"id": "one", "partitionKey": {"paths": ["/pk"]}})
    assert replaced.body["partitionKey"] == made.body["partitionKey"]
    levels = {"id": "levels", "partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash"}}
    assert (await door.send("POST", "dbs/d/colls", levels)).body["partitionKey"]["version"] == 2


@pytest.mark.parametrize("path", ["/id ds", "/a/*", "/a/", "a"])
async def test_a_key_path_that_the_service_refuses_is_400(door: DoorAtHand, path: str) -> None:
    refused = await door.send("POST", "dbs/d/colls", {"id": "other", "partitionKey": {"paths": [path]}})
    assert (refused.status, refused.body["code"]) == (400, "BadRequest")
    assert "Partition key paths must contain only valid characters" in refused.body["message"]
    assert (await door.send("GET", "dbs/d/colls/other")).status == 404


async def test_a_quoted_key_path_is_accepted_and_found_in_items(door: DoorAtHand) -> None:
    settings = {"id": "quoted", "partitionKey": {"paths": ['/"a b"/c'], "kind": "Hash", "version": 2}}
    assert (await door.send("POST", "dbs/d/colls", settings)).status == 201
    item = {"id": "i", "a b": {"c": "k"}}
    assert (await door.send("POST", "dbs/d/colls/quoted/docs", item, headers=key("k"))).status == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ms-offer-throughput": "450"},
        {"x-ms-offer-throughput": "many"},
        {"x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":1500}'},
        {"x-ms-cosmos-offer-autopilot-settings": "[]"},
        {"x-ms-offer-throughput": "400", "x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":1000}'},
    ],
)
async def test_throughput_that_cannot_be_is_refused_at_creation(door: DoorAtHand, headers: dict[str, str]) -> None:
    body = {"id": "other", "partitionKey": {"paths": ["/pk"]}}
    answer = await door.send("POST", "dbs/d/colls", body, headers=headers)
    assert (answer.status, answer.body["code"]) == (400, "BadRequest")


async def test_an_offer_is_found_by_its_resource_read_and_replaced(door: DoorAtHand) -> None:
    container = await door.send("GET", "dbs/d/colls/c")
    query = {
        "query": "SELECT * FROM root r WHERE r.resource=@link",
        "parameters": [{"name": "@link", "value": container.body["_self"]}],
    }
    found = await door.send("POST", "offers", query, headers={"x-ms-documentdb-isquery": "true"})
    (offer,) = found.body["Offers"]
    offer["content"]["offerThroughput"] = 700
    replaced = await door.send("PUT", offer["_self"].strip("/"), offer)
    read = await door.send("GET", f"offers/{offer['id']}")
    offer["content"]["offerThroughput"] = 710
    refused = await door.send("PUT", offer["_self"].strip("/"), offer)
    assert (replaced.status, read.body["content"]["offerThroughput"]) == (200, 700)
    assert "offerAutopilotSettings" not in read.body["content"]
    assert read.headers["x-ms-cosmos-min-throughput"] == "400"
    assert refused.status == 400


async def test_an_offer_sent_to_the_address_of_another_is_refused(door: DoorAtHand) -> None:
    (offer,) = (await door.send("GET", "offers")).body["Offers"]
    changed = {**offer, "_rid": "AAAA", "content": {"offerThroughput": 700}}
    refused = await door.send("PUT", offer["_self"].strip("/"), changed)
    assert (refused.status, "_rid" in refused.body["message"]) == (400, True)
    read = await door.send("GET", f"offers/{offer['id']}")
    assert read.body["content"]["offerThroughput"] == offer["content"]["offerThroughput"]
    del changed["_rid"]
    assert (await door.send("PUT", offer["_self"].strip("/"), changed)).status == 200


async def test_an_autoscale_offer_tells_its_maximum(door: DoorAtHand) -> None:
    settings = {"x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":5000}'}
    await door.send("POST", "dbs/d/colls", {"id": "auto", "partitionKey": {"paths": ["/pk"]}}, headers=settings)
    offers = (await door.send("GET", "offers")).body["Offers"]
    contents = [offer["content"] for offer in offers if "offerAutopilotSettings" in offer["content"]]
    assert [content["offerAutopilotSettings"]["maxThroughput"] for content in contents] == [5000]
