"""Queries that would take all memory or all time, at the door: refused, paid for, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest

from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.limits import DEFAULT_LIMITS
from asterism.models.documents.results import Scope
from asterism.reading import limits, turns
from asterism.reading.execute import run_page
from asterism.reading.limits import QueryMemory
from asterism.reading.page_progress import QueryAbandoned
from asterism.reading.pinned_scopes import scopes_of
from asterism.values.json.text import dumps, loads
from tests.support.world import World, open_world
from tests.unit.nosql.door_at_hand import ITEMS, DoorAtHand, door_at_hand, key

MIB = 1024 * 1024
NUMBERS = ("@numbers", list(range(1000)))
PRODUCT = "FROM a IN (SELECT VALUE @numbers) JOIN b IN (SELECT VALUE @numbers)"
SLOW = f"SELECT VALUE COUNT(1) {PRODUCT} WHERE CONTAINS(CONCAT(ToString(a), ToString(b)), 'x')"
FUNCTIONS = "dbs/d/colls/c/udfs"


async def read_while(door: DoorAtHand, query: asyncio.Task[object]) -> None:
    """A point read that is answered although the query is not over."""
    for _ in range(3):
        assert (await door.send("GET", f"{ITEMS}/1", headers=key("a"))).status == 200
        await asyncio.sleep(0.01)
    assert not query.done()
    query.cancel()


@pytest.mark.parametrize(
    "text",
    [
        SLOW,
        f"SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE a {PRODUCT} WHERE CONTAINS(ToString(a), 'x')))",
        f"SELECT VALUE a {PRODUCT} WHERE CONTAINS(ToString(a), 'x')",
        "SELECT VALUE COUNT(1) FROM a IN (SELECT VALUE @numbers) WHERE udf.slow(a) < 0",
    ],
)
async def test_a_point_read_is_answered_while_a_query_works_on_one_item(tmp_path: Path, text: str) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("1")
        slow = {"id": "slow", "body": "function (n) { var t = Date.now(); while (Date.now() - t < 40); return n; }"}
        await door.send("POST", FUNCTIONS, slow)
        await read_while(door, asyncio.ensure_future(door.query(text, NUMBERS, headers=key("a"))))


async def test_a_point_read_is_answered_while_a_list_of_containers_is_queried(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("1")
        body = {"query": SLOW, "parameters": [{"name": NUMBERS[0], "value": NUMBERS[1]}]}
        query = door.send("POST", "dbs/d/colls", body, headers={"x-ms-documentdb-isquery": "True"})
        await read_while(door, asyncio.ensure_future(query))


async def test_functions_of_several_queries_are_waited_for_at_the_same_time(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("1", n=1)
        body = "function (n) { var t = Date.now(); while (Date.now() - t < 20); return n + 1; }"
        await door.send("POST", FUNCTIONS, {"id": "next", "body": body})
        text = "SELECT VALUE udf.next(a) FROM a IN (SELECT VALUE @few)"
        queries = [door.query(text, ("@few", [number, 10, 20]), headers=key("a")) for number in range(6)]
        answers = await asyncio.gather(*queries)
        assert [answer.body["Documents"] for answer in answers] == [[number + 1, 11, 21] for number in range(6)]


async def test_work_beyond_what_an_item_may_take_is_a_408_that_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STEPS_PER_ITEM_MAX", 10_000)
    async with door_at_hand(tmp_path) as door:
        await door.create("1")
        container = door.world.store.container_for_items("test", "d", "c")
        usage = container.keyspace.usage
        before = sum(partition.request_units for partition in usage.values())
        answer = await door.query(SLOW, NUMBERS, headers=key("a"))
        assert (answer.status, answer.body["code"]) == (408, "RequestTimeout")
        assert sum(partition.request_units for partition in usage.values()) - before > 10
        assert (await door.query("SELECT VALUE 1", headers=key("a"))).body["Documents"] == [1]


async def test_a_result_that_is_too_large_is_a_413(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        text = f'SELECT VALUE ARRAY(SELECT VALUE CONCAT(REPLICATE("x", 10000), ToString(a)) {PRODUCT})'
        answer = await door.query(text, NUMBERS, headers=key("a"))
        assert (answer.status, answer.body["code"]) == (413, "RequestEntityTooLarge")


async def test_queries_that_find_the_memory_in_use_are_asked_to_come_again(tmp_path: Path) -> None:
    small = DEFAULT_LIMITS.with_changes(query_memory_bytes_max=2 * MIB)
    async with door_at_hand(tmp_path, limits=small) as door:
        for number in range(5):
            await door.create(f"{number}", long=f"{number}" + "x" * MIB)
        refused = await door.query("SELECT DISTINCT VALUE c.long FROM c", headers=key("a"))
        assert (refused.status, refused.headers["x-ms-substatus"]) == (429, "3200")
        assert int(refused.headers["x-ms-retry-after-ms"]) > 0
        assert (await door.query("SELECT DISTINCT VALUE c.pk FROM c", headers=key("a"))).body["Documents"] == ["a"]


async def test_rows_and_bytes_are_part_of_the_charge(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("1", tags=["a", "b", "c"])

        async def charge(text: str, *parameters: tuple[str, object]) -> float:
            answer = await door.query(text, *parameters, headers=key("a"))
            assert answer.status == 200
            return float(answer.headers["x-ms-request-charge"])

        few = ("@numbers", list(range(50)))
        assert await charge("SELECT VALUE 1") == 2.26
        assert await charge("SELECT t FROM c JOIN t IN c.tags WHERE CONTAINS(t, 'a')") < 2.5
        made = await charge(f"SELECT VALUE COUNT(1) {PRODUCT} WHERE LENGTH(REPLICATE('x', 10000)) > a", few)
        held = await charge(f'SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE REPLICATE("x", 10000) {PRODUCT}))', few)
        counted = await charge(f"SELECT VALUE COUNT(1) {PRODUCT}", few)
        assert counted > 3
        assert made > 100
        assert held > 100


# --- one page at a time ----------------------------------------------------------------------------------------------


async def page_of(world: World, text: str, **more: object) -> object:
    container = world.store.container_for_items("test", "d", "c")
    query = compile_query(parse_query(text), dict([NUMBERS]))
    return await run_page(
        world.router,
        container,
        query,
        scopes_of(container, query, Scope(b"", b"\xff")),
        items_max=100,
        **more,  # type: ignore[arg-type],
        encode_result=dumps,
    )


async def test_a_client_that_leaves_ends_the_work_on_one_item_and_leaves_no_memory_taken(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        await container.create_item({"id": "1", "pk": "a"}, ("a",))
        memory = QueryMemory(100 * MIB)
        # Every reading of the clock ends a turn.
        clock = count(step=turns.TURN_SECONDS).__next__

        async def gone() -> None:
            return

        text = f"SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE REPLICATE('x', 50) {PRODUCT}))"
        with pytest.raises(QueryAbandoned):
            await page_of(world, f"{text} FROM c", monotonic_seconds=clock, client_gone=gone, memory=memory)
        assert memory.held_bytes == 0


async def test_a_page_ends_between_the_rows_of_one_item_and_the_next_goes_on_there(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        container = await world.container()
        await container.create_item({"id": "1", "pk": "a", "numbers": list(range(1000))}, ("a",))
        query = compile_query(parse_query("SELECT VALUE n FROM c JOIN n IN c.numbers"), {})
        found: list[object] = []
        pages = 0
        place = None
        while place is not None or not pages:
            ticks = count(step=0.2)
            page = await run_page(
                world.router,
                container,
                query,
                scopes_of(container, query, Scope(b"", b"\xff")),
                items_max=1000,
                monotonic_seconds=ticks.__next__,
                **({} if place is None else {"continuation": place}),
                encode_result=dumps,
            )
            found += map(loads, page.results)
            place = page.continuation
            pages += 1
        assert found == list(range(1000))
        assert pages > 2


async def test_the_condition_of_a_patch_is_little_work_or_refused(tmp_path: Path) -> None:
    async with door_at_hand(tmp_path) as door:
        await door.create("1", many=list(range(1000)))
        joined = "EXISTS(SELECT VALUE a FROM a IN c.many JOIN b IN c.many WHERE a + b < 0)"
        patch = {"operations": [{"op": "set", "path": "/n", "value": 1}]}
        refused = await door.send(
            "PATCH", f"{ITEMS}/1", {**patch, "condition": f"FROM c WHERE {joined}"}, headers=key("a")
        )
        assert refused.status == 408
        small = "FROM c WHERE EXISTS(SELECT VALUE a FROM a IN c.many WHERE a = 5)"
        assert (await door.send("PATCH", f"{ITEMS}/1", {**patch, "condition": small}, headers=key("a"))).status == 200
