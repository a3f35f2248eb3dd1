"""Searches at the NoSQL door: the container's policy says how vectors are compared; one key is ranked by the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.nosql.door_at_hand import CROSSING, DoorAtHand, door_at_hand, key

EMBEDDING = {"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"}
VECTORS = {
    "id": "vectors",
    "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
    "vectorEmbeddingPolicy": {"vectorEmbeddings": [EMBEDDING]},
}
IS_QUERY = {"x-ms-documentdb-isquery": "True"}
NEAREST = "SELECT TOP 2 c.id, VectorDistance(c.v, [0, 1]) AS far FROM c ORDER BY VectorDistance(c.v, [0, 1])"


async def _with_vectors(door: DoorAtHand) -> str:
    assert (await door.send("POST", "dbs/d/colls", VECTORS)).status == 201
    items = "dbs/d/colls/vectors/docs"
    for item_id, vector in (("far", [0, 9]), ("near", [1, 1]), ("there", [0, 1])):
        item = {"id": item_id, "pk": "a", "v": vector}
        assert (await door.send("POST", items, item, headers=key("a"))).status == 201
    return items


async def test_vectors_are_compared_as_their_container_says(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        items = await _with_vectors(door)
        answer = await door.send("POST", items, {"query": NEAREST}, headers={**IS_QUERY, **key("a")})
    assert answer.body["Documents"] == [{"id": "there", "far": 0}, {"id": "near", "far": 1}]


async def test_a_plan_knows_the_order_of_the_containers_vectors(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        items = await _with_vectors(door)
        headers = {**CROSSING, "x-ms-cosmos-is-query-plan-request": "True"}
        headers["x-ms-cosmos-supported-query-features"] = "OrderBy, Top, NonStreamingOrderBy"
        answer = await door.send("POST", items, {"query": NEAREST}, headers=headers)
    assert answer.body["queryInfo"]["orderBy"] == ["Ascending"]


@pytest.mark.parametrize("page_size", ["1", "10"])
async def test_the_server_ranks_the_items_of_one_key_in_pages(tmp_path: Path, page_size: str) -> None:
    text = "SELECT VALUE c.id FROM c WHERE c.kept ORDER BY RANK FullTextScore(c.text, 'sea', 'ice')"
    async with door_at_hand(tmp_path) as door:
        for item_id, words, kept in (("1", "sea", True), ("2", "ice", True), ("3", "ice", False), ("4", "", True)):
            await door.create(item_id, text=words, kept=kept)
        await door.create("5", pk="b", text="sea of ice", kept=True)
        headers = {**key("a"), "x-ms-max-item-count": page_size}
        answer = await door.query(text, headers=headers)
        found = answer.body["Documents"]
        while "x-ms-continuation" in answer.headers:
            answer = await door.query(
                text, headers=headers | {"x-ms-continuation": answer.headers["x-ms-continuation"]}
            )
            found += answer.body["Documents"]
    # Two have the ice, one of them without being kept, so that the sea is rarer.
    assert found == ["1", "2", "4"]


async def test_a_search_over_all_keys_needs_a_plan(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        answer = await door.query("SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.text, 'x')", headers=CROSSING)
    assert (answer.status, answer.headers["x-ms-substatus"]) == (400, "1004")


async def test_items_without_the_text_are_ranked_last(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        for item_id, more in (("1", {}), ("2", {"text": 5}), ("3", {"text": "sea"}), ("4", {})):
            await door.create(item_id, **more)
        text = "SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'sea')"
        found = (await door.query(text, headers=key("a"))).body["Documents"]
    assert found[0] == "3"
    assert sorted(found) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(("distance", "places"), [("euclidean", slice(2)), ("cosine", slice(-2, None))])
async def test_items_without_the_vector_stay_in_its_order(tmp_path: Path, distance: str, places: slice) -> None:
    policy = {"vectorEmbeddings": [{**EMBEDDING, "distanceFunction": distance}]}
    text = (
        "SELECT c.id, [{'item': VectorDistance(c[@name], @to)}] AS orderByItems FROM c "
        "ORDER BY VectorDistance(c[@name], @to)"
    )
    parameters = [{"name": "@name", "value": "v"}, {"name": "@to", "value": [1, 0]}]
    async with door_at_hand(tmp_path) as door:
        assert (await door.send("POST", "dbs/d/colls", {**VECTORS, "vectorEmbeddingPolicy": policy})).status == 201
        items = "dbs/d/colls/vectors/docs"
        for item_id, more in (
            ("none", {}),
            ("long", {"v": [1, 0, 0]}),
            ("there", {"v": [1, 0]}),
            ("far", {"v": [0, 9]}),
        ):
            item = {"id": item_id, "pk": "a", **more}
            assert (await door.send("POST", items, item, headers=key("a"))).status == 201
        headers = {**IS_QUERY, **key("a")}
        answer = await door.send("POST", items, {"query": text, "parameters": parameters}, headers=headers)
    found = answer.body["Documents"]
    assert sorted(row["id"] for row in found[places]) == ["long", "none"]
    assert [row["orderByItems"] for row in found[places]] == [[{}], [{}]]
    assert [row["id"] for row in found if row["orderByItems"] != [{}]] == ["there", "far"]
