"""A store of the version before documents had codecs: opened as it is, read, queried, followed, written and split."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from asterism.clock import Clock
from asterism.errors import ItemNotFound, UniqueKeyViolation
from asterism.keyspaces.routing.families import VERSIONS
from asterism.languages.cosmos_sql import compile_query, parse_query
from asterism.models.documents.changes.feed import AllVersions, FeedLog, LatestVersions, read_feed_page
from asterism.models.documents.container import Container
from asterism.models.documents.pages import range_scope, read_items_page
from asterism.partitioning.feed_position import FeedPosition
from asterism.partitioning.key_range import FULL
from asterism.reading.continuation import BEGINNING
from asterism.reading.execute import run_page
from asterism.reading.pinned_scopes import scopes_of
from asterism.values.identifiers import Lsn
from asterism.values.json.text import dumps, loads
from tests.support.index_check import check_index
from tests.support.older_store import LAYOUT_2_WALL_SECONDS, LONG_ID, unpack_layout_2_store
from tests.support.stores import is_lmdb
from tests.support.world import ACCOUNT, World, open_world

pytestmark = [
    pytest.mark.lmdb,
    pytest.mark.skipif(not is_lmdb(), reason="the files are those of the embedded store"),
]

EVERYTHING = range_scope(FULL)
NAMES_IN_PLAIN = {
    *(f"i{n}" for n in range(40) if n not in (5, 6)),
    *(f"b{n}" for n in range(5)),
    "renamed",
    LONG_ID,
    "unindexed",
}
Row = dict[str, Any]


class Earlier:
    """The opened store, and a clock that begins where the store was written."""

    def __init__(self, world: World, wall_seconds: list[float]) -> None:
        self.world = world
        self.wall_seconds = wall_seconds

    def container(self, name: str) -> Container:
        return self.world.store.container_for_items(ACCOUNT, "earlier", name)

    async def feed(self, container: Container) -> list[Row]:
        page = await read_items_page(self.world.router, container, EVERYTHING, position=None, items_max=1000)
        return [cast(Row, loads(body)) for body in page.bodies]

    async def query(self, container: Container, text: str) -> list[Any]:
        query = compile_query(parse_query(text), {})
        page = await run_page(
            self.world.router,
            container,
            query,
            scopes_of(container, query, EVERYTHING),
            continuation=BEGINNING,
            items_max=1000,
            monotonic_seconds=lambda: 0.0,
            encode_result=dumps,
        )
        return [loads(result) for result in page.results]

    async def changes(self, container: Container, log: FeedLog) -> list[Row]:
        rows: list[bytes] = []
        position = FeedPosition.at(Lsn(0))
        while True:
            page = await read_feed_page(self.world.router, container, EVERYTHING, position, log, items_max=10)
            if not page.rows:
                return [cast(Row, loads(row)) for row in rows]
            rows += page.rows
            position = page.position

    async def split(self, container: Container, range_id: int) -> None:
        reshaper = self.world.reshaper
        await reshaper.finished(await reshaper.split(container.keyspace, range_id))


@pytest.fixture
async def earlier(tmp_path: Path) -> AsyncIterator[Earlier]:
    unpack_layout_2_store(tmp_path)
    wall_seconds = [LAYOUT_2_WALL_SECONDS]
    async with open_world(tmp_path, clock=Clock(lambda: wall_seconds[0], time.monotonic)) as world:
        yield Earlier(world, wall_seconds)


async def test_every_item_is_read_by_its_id_with_its_etag(earlier: Earlier) -> None:
    plain = earlier.container("plain")
    items = {item["id"]: item for item in await earlier.feed(plain)}
    assert items.keys() == NAMES_IN_PLAIN
    for name, item in items.items():
        answer = await plain.read_item(name.encode(), (item["pk"],))
        assert (loads(answer.body), answer.etag) == (item, item["_etag"])
        assert item["_ts"] == LAYOUT_2_WALL_SECONDS
    assert (items["i7"]["n"], items["i10"]["m"], items["renamed"]["n"]) == (107, 9, 6)
    assert len({item["_rid"] for item in items.values()}) == len(items)
    sizes = {"levels": 12, "first": 8, "fixed": 4, "fading": 6}
    for name, count in sizes.items():
        assert [item["n"] for item in await earlier.feed(earlier.container(name))] == list(range(count))


async def test_its_indexes_and_statistics_are_what_this_version_would_write(earlier: Earlier) -> None:
    for name in ("plain", "fading", "levels", "first", "fixed"):
        await check_index(earlier.world, earlier.container(name))
        await earlier.world.check_statistics(earlier.container(name))


async def test_queries_use_its_indexes(earlier: Earlier) -> None:
    plain = earlier.container("plain")
    assert await earlier.query(plain, "SELECT VALUE c.id FROM c WHERE c.n = 107") == ["i7"]
    assert sorted(await earlier.query(plain, "SELECT VALUE c.n FROM c WHERE c.m = 9")) == [0, 10, 20, 30]
    ordered = await earlier.query(plain, "SELECT VALUE [c.m, c.n] FROM c ORDER BY c.m DESC, c.n ASC")
    assert ordered == sorted(ordered, key=lambda pair: (-pair[0], pair[1]))
    assert len(ordered) == len(NAMES_IN_PLAIN) - 1, "the item that is not indexed has no place in an index"
    levels = earlier.container("levels")
    assert await earlier.query(levels, "SELECT VALUE c.n FROM c WHERE c.tenant = 't1' AND c.user = 1") == [1, 7]


async def test_its_change_feeds_have_every_change(earlier: Earlier) -> None:
    plain = earlier.container("plain")
    latest = await earlier.changes(plain, LatestVersions())
    assert {row["id"] for row in latest} == NAMES_IN_PLAIN
    versions = await earlier.changes(plain, AllVersions())
    kinds = [row["metadata"]["operationType"] for row in versions]
    # 40 items, the renamed, the long, the unindexed, a batch of five; four upserts and a patch; i5 and i6.
    assert [kinds.count(kind) for kind in ("create", "replace", "delete")] == [48, 5, 2]
    deleted = [row["metadata"] for row in versions if row["metadata"]["operationType"] == "delete"]
    assert [(row["id"], row["partitionKey"], row["timeToLiveExpired"]) for row in deleted] == [
        ("i5", {"pk": "k1"}, False),
        ("i6", {"pk": "k2"}, False),
    ]


async def test_its_items_expire_when_they_said_they_would(earlier: Earlier) -> None:
    fading = earlier.container("fading")
    earlier.wall_seconds[0] += 60
    assert [item["id"] for item in await earlier.feed(fading)] == ["t0", "t2", "t3", "t5"]
    with pytest.raises(ItemNotFound):
        await fading.read_item(b"t1", ("p",))
    earlier.wall_seconds[0] += 3540
    assert [item["id"] for item in await earlier.feed(fading)] == ["t0", "t3"]


async def test_it_is_written_and_split_like_a_store_of_this_version(earlier: Earlier) -> None:
    plain = earlier.container("plain")
    with pytest.raises(UniqueKeyViolation):
        await plain.create_item({"id": "new", "pk": "k0", "name": "name 0"}, None)
    await plain.upsert_item({"id": "i0", "pk": "k0", "n": -1, "m": 9, "name": "freed"}, None)
    await plain.create_item({"id": "new", "pk": "k0", "n": -2, "name": "name 0"}, None)
    await plain.delete_item(LONG_ID.encode(), ("k0",))
    await earlier.split(plain, 0)
    assert len(plain.keyspace.record.map.ranges) == 2
    names = (NAMES_IN_PLAIN | {"new"}) - {LONG_ID}
    assert {item["id"] for item in await earlier.feed(plain)} == names
    assert {row["id"] for row in await earlier.changes(plain, LatestVersions())} == names
    # Before the split 55, and the create, the upsert and the delete here.
    assert len(await earlier.changes(plain, AllVersions())) == 58
    assert await earlier.query(plain, "SELECT VALUE c.n FROM c WHERE c.name = 'freed'") == [-1]
    await check_index(earlier.world, plain)
    await earlier.world.check_statistics(plain)
    kept = [
        await earlier.world.everything(partition.partition, VERSIONS) for partition in plain.keyspace.record.map.ranges
    ]
    assert sum(map(len, kept)) == 58
