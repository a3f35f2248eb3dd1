"""Scripts while other clients write the same item all the time: all of them make progress."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.nosql.door_at_hand import ITEMS, DoorAtHand, door_at_hand, key

CONTAINER = "dbs/d/colls/c"
# Reads the item often enough that others are sure to change it meanwhile.
COUNT_UP = """function () {
    var collection = getContext().getCollection();
    (function look(times) {
        collection.readDocument(collection.getAltLink() + "/docs/hot", {}, function (error, item) {
            if (error) throw error;
            if (times > 0) return look(times - 1);
            item.scripts += 1;
            collection.replaceDocument(item._self, item, {}, function (error) { if (error) throw error; });
        });
    })(100);
}"""
MARK = """function () {
    var request = getContext().getRequest(), item = request.getBody();
    item.marked = true;
    request.setBody(item);
}"""
WRITERS = 12


async def patch(door: DoorAtHand, name: str, **more: str) -> int:
    body = {"operations": [{"op": "incr", "path": f"/{name}", "value": 1}]}
    return (await door.send("PATCH", f"{ITEMS}/hot", body, headers={**key("a"), **more})).status


async def test_busy_writers_of_an_item_do_not_keep_scripts_and_triggers_from_it(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("hot", plain=0, scripts=0, triggers=0)
        await door.send("POST", f"{CONTAINER}/sprocs", {"id": "s", "body": COUNT_UP})
        trigger = {"id": "t", "body": MARK, "triggerType": "Pre", "triggerOperation": "All"}
        await door.send("POST", f"{CONTAINER}/triggers", trigger)
        stopping = asyncio.Event()
        written: list[int] = []

        async def write() -> None:
            while not stopping.is_set():
                written.append(await patch(door, "plain"))

        writers = [asyncio.create_task(write()) for _ in range(WRITERS)]
        statuses = []
        for _ in range(8):
            statuses.append((await door.send("POST", f"{CONTAINER}/sprocs/s", [], headers=key("a"))).status)
            statuses.append(await patch(door, "triggers", **{"x-ms-documentdb-pre-trigger-include": "t"}))
        stopping.set()
        await asyncio.gather(*writers)
        assert statuses == [200] * 16
        assert set(written) == {200}
        item = (await door.send("GET", f"{ITEMS}/hot", headers=key("a"))).body
        assert (item["plain"], item["scripts"], item["triggers"]) == (len(written), 8, 8)
