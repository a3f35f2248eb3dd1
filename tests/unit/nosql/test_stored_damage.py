"""Stored data that is not what was written: a 500 and a line in the log that names it, and the server goes on."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from asterism.errors import StoredDamage
from asterism.keyspaces.catalog.store import CATALOG_EPOCH, CATALOG_PARTITION, KEYSPACE
from asterism.keyspaces.routing.families import LOGICAL_SIZES, TOTALS_KEY
from asterism.storage.contract import Batch
from tests.support.stores import is_postgres
from tests.support.world import open_world
from tests.unit.nosql.door_at_hand import CROSSING, ITEMS, DoorAtHand, door_at_hand, key

SECRET = "nobody-may-read-this-in-a-log"
# How the record of an item is damaged; its body is JSON at its end.
CUT_SHORT, WITHOUT_HEADER, BAD_JSON = (
    lambda stored: stored[:-5],
    lambda stored: stored[:20],
    lambda stored: stored.replace(b'"pk":', b'"pk";'),
)


async def damage_item(door: DoorAtHand, damage: object) -> str:
    """Change the stored record of the item `bad`; return its key as the log names it."""
    (partition,) = door.world.store.container_for_items("test", "d", "c").keyspace.record.map.ranges
    entries = await door.world.everything(partition.partition)
    (found,) = [(name, stored) for name, stored in entries if b'"id":"bad"' in stored]
    assert callable(damage)
    batch = Batch(puts=[(found[0], damage(found[1]))])
    await door.world.engine.apply(partition.partition, partition.epoch, batch)
    return found[0].hex()


@pytest.mark.parametrize("damage", [CUT_SHORT, WITHOUT_HEADER], ids=["cut short", "without a header"])
async def test_a_point_read_of_a_damaged_record_is_500_and_the_log_names_its_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: object
) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("bad", secret=SECRET)
        await door.create("good")
        name = await damage_item(door, damage)
        answer = await door.send("GET", f"{ITEMS}/bad", headers=key("a"))
        assert (answer.status, answer.body["code"]) == (500, "InternalServerError")
        assert (await door.send("GET", f"{ITEMS}/good", headers=key("a"))).status == 200
    assert name in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("damage", [CUT_SHORT, WITHOUT_HEADER, BAD_JSON], ids=["cut short", "no header", "bad JSON"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT VALUE c.secret FROM c",
        "SELECT * FROM c WHERE c.secret != 1",
        "SELECT * FROM c ORDER BY c.n",
        "SELECT VALUE COUNT(c.secret) FROM c",
        "SELECT * FROM c WHERE c.n = 1",
    ],
)
async def test_a_query_that_meets_a_damaged_record_is_500_and_the_log_names_its_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, damage: object
) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("bad", n=1, secret=SECRET)
        name = await damage_item(door, damage)
        answer = await door.query(text, headers=key("a"))
        assert (answer.status, answer.body["code"]) == (500, "InternalServerError")
        assert SECRET not in answer.body["message"]
        # Requests for undamaged data are answered.
        assert (await door.query("SELECT VALUE 1", headers=CROSSING)).status == 200
    assert name in caplog.text
    assert SECRET not in caplog.text


async def test_a_feed_with_a_record_that_was_cut_short_is_500(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("bad")
        name = await damage_item(door, CUT_SHORT)
        assert (await door.send("GET", ITEMS)).status == 500
    assert name in caplog.text


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_a_change_of_an_item_whose_json_is_damaged_is_500_or_done_and_never_the_clients_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    bodies = {
        "PUT": {"id": "bad", "pk": "a", "n": 2},
        "PATCH": {"operations": [{"op": "set", "path": "/n", "value": 2}]},
        "DELETE": None,
    }
    async with door_at_hand(tmp_path) as door:
        await door.create("bad", n=1, secret=SECRET)
        await damage_item(door, BAD_JSON)
        answer = await door.send(method, f"{ITEMS}/bad", bodies[method], headers=key("a"))
        assert answer.status in (200, 204, 500)
        errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert bool(errors) == (answer.status == 500)
    assert SECRET not in caplog.text


@pytest.mark.skipif(is_postgres(), reason="PostgreSQL adds up its counters itself")
@pytest.mark.parametrize("family", [TOTALS_KEY, LOGICAL_SIZES], ids=["totals", "logical sizes"])
async def test_damaged_counters_refuse_writes_with_500_and_reads_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, family: bytes
) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("good")
        (partition,) = door.world.store.container_for_items("test", "d", "c").keyspace.record.map.ranges
        ((name, stored),) = await door.world.everything(partition.partition, family)
        await door.world.engine.apply(partition.partition, partition.epoch, Batch(puts=[(name, stored + b"zz")]))
        answer = await door.send("POST", ITEMS, {"id": "new", "pk": "a"}, headers=key("a"))
        assert (answer.status, answer.body["code"]) == (500, "InternalServerError")
        assert (await door.send("GET", f"{ITEMS}/good", headers=key("a"))).status == 200
    assert name.hex() in caplog.text


async def test_a_damaged_record_of_the_catalog_is_named_when_the_store_is_opened(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        name = KEYSPACE + container.record.rid
        (stored,) = await world.engine.read_unfenced(CATALOG_PARTITION, [name])
        assert stored is not None
        await world.engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, Batch(puts=[(name, stored[:-9])]))
    with pytest.raises(StoredDamage, match=name.hex()):
        async with open_world(tmp_path):
            pass
