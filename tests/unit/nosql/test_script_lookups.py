"""Documents that a script knows by their links alone, as those of `SELECT c._self FROM c`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from asterism.apis.nosql.scripts import operations
from asterism.models.documents.creation_order import walk_bodies
from asterism.models.documents.item_position import Position
from tests.unit.nosql.door_at_hand import door_at_hand, key

CONTAINER = "dbs/d/colls/c"
ITEM_COUNT = 60
READ_ALL = """function (order) {
    var collection = getContext().getCollection(), link = collection.getSelfLink();
    collection.queryDocuments(link, "SELECT c._self FROM c", {}, function (error, feed) {
        if (error) throw error;
        if (order === "backwards") feed.reverse();
        (function next(place) {
            if (place === feed.length) {
                return collection.deleteDocument(feed[0]._self, {}, function (error) {
                    if (error) throw error;
                    collection.readDocument(feed[0]._self, {}, function (error) {
                        getContext().getResponse().setBody([place, error.number]);
                    });
                });
            }
            // What is read so is known by its id from then on.
            collection.readDocument(feed[place]._self, {}, function (error, item) {
                if (error || item._self !== feed[place]._self) throw error;
                next(place + 1);
            });
        })(0);
    });
}"""


@pytest.mark.parametrize(("order", "looks_max"), [("forwards", 3 * ITEM_COUNT), ("backwards", ITEM_COUNT**2)])
async def test_each_is_found_and_the_next_one_without_looking_at_all_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, looks_max: int
) -> None:
    looks = 0

    async def counted(*arguments: Any) -> AsyncIterator[tuple[Position, bytes]]:
        nonlocal looks
        async for entry in walk_bodies(*arguments):
            looks += 1
            yield entry

    monkeypatch.setattr(operations, "walk_bodies", counted)
    async with door_at_hand(tmp_path) as door:
        for number in range(ITEM_COUNT):
            await door.create(f"{number}")
        await door.create("kept", "other")
        await door.send("POST", f"{CONTAINER}/sprocs", {"id": "s", "body": READ_ALL})
        answer = await door.send("POST", f"{CONTAINER}/sprocs/s", [order], headers=key("a"))
        assert (answer.status, answer.body) == (200, [ITEM_COUNT, 404])
        assert looks <= looks_max
        assert len((await door.send("GET", f"{CONTAINER}/docs")).body["Documents"]) == ITEM_COUNT
