"""The official client's change feed, sync and on asyncio, through splits and merges in the middle of reading."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos import aio as cosmos_aio

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from asterism.cli.client import AdminClient
from tests.support.server import WAIT_SECONDS_MAX, RunningServer


class Partitions:
    """Splits and merges a container's partitions, and waits until it is done."""

    def __init__(self, server: RunningServer, database: str, container: str = "things") -> None:
        self._admin = AdminClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=False)
        self._names = {"database": database, "container": container}

    def split(self, range_id: int) -> None:
        self._admin.post("split", {**self._names, "range": range_id})
        self._wait()

    def merge(self, left: int, right: int) -> None:
        self._admin.post("merge", {**self._names, "ranges": [left, right]})
        self._wait()

    def _wait(self) -> None:
        give_up_at = time.monotonic() + WAIT_SECONDS_MAX
        while self._admin.get("jobs")["jobs"]:
            assert time.monotonic() < give_up_at, "the partitions did not come to rest"
            time.sleep(0.05)


@pytest.fixture
def partitions(server: RunningServer, database: DatabaseProxy) -> Partitions:
    return Partitions(server, database.id)


def write(container: ContainerProxy, first: int, last: int) -> None:
    for number in range(first, last):
        container.upsert_item({"id": f"i{number % 30}", "pk": f"p{number % 10}", "n": number})


class SeenChanges:
    """The numbers that a reader has received, by logical partition."""

    def __init__(self) -> None:
        self.numbers: dict[str, list[int]] = defaultdict(list)

    def add(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            self.numbers[item["pk"]].append(item["n"])

    def check(self, *, latest: range) -> None:
        assert all(numbers == sorted(set(numbers)) for numbers in self.numbers.values())
        assert {number for numbers in self.numbers.values() for number in numbers} >= set(latest)


def read_on(container: ContainerProxy, seen: SeenChanges, **start: Any) -> str:
    """Read all that is new, and return the position of the reader."""
    pages = container.query_items_change_feed(max_item_count=7, **start).by_page()
    for page in pages:
        seen.add(list(page))
    return str(container.client_connection.last_response_headers["etag"])


def test_a_feed_goes_on_through_splits_and_merges(container: ContainerProxy, partitions: Partitions) -> None:
    seen = SeenChanges()
    write(container, 0, 30)
    at = read_on(container, seen, start_time="Beginning")
    partitions.split(0)
    write(container, 30, 60)
    at = read_on(container, seen, continuation=at)
    partitions.split(1)
    write(container, 60, 90)
    at = read_on(container, seen, continuation=at)
    partitions.merge(4, 2)
    write(container, 90, 120)
    read_on(container, seen, continuation=at)
    seen.check(latest=range(120))


def test_a_split_between_two_pages_loses_nothing(container: ContainerProxy, partitions: Partitions) -> None:
    seen = SeenChanges()
    write(container, 0, 30)
    pages = container.query_items_change_feed(max_item_count=4, start_time="Beginning").by_page()
    seen.add(list(next(pages)))
    partitions.split(0)
    seen.add(list(next(pages)))
    write(container, 30, 45)
    for page in pages:
        seen.add(list(page))
    seen.check(latest=range(15, 45))


@pytest.mark.filterwarnings("ignore:'partition_key_range_id' is deprecated")
def test_the_old_form_reads_on_with_the_id_of_a_partition_that_was_split(
    container: ContainerProxy, partitions: Partitions
) -> None:
    seen = SeenChanges()
    write(container, 0, 30)
    at = read_on(container, seen, partition_key_range_id="0", start_time="Beginning")
    partitions.split(0)
    write(container, 30, 50)
    at = read_on(container, seen, partition_key_range_id="0", continuation=at)
    write(container, 50, 60)
    at = read_on(container, seen, partition_key_range_id="0", continuation=at)
    partitions.merge(1, 2)
    write(container, 60, 70)
    at = read_on(container, seen, partition_key_range_id="0", continuation=at)
    read_on(container, seen, partition_key_range_id="0", continuation=at)
    seen.check(latest=range(70))


def test_feed_ranges_of_before_a_split_stay_readers_of_their_own(
    container: ContainerProxy, partitions: Partitions
) -> None:
    partitions.split(0)
    write(container, 0, 30)
    seen, places = SeenChanges(), {}
    ranges = list(container.read_feed_ranges())
    for number, feed_range in enumerate(ranges):
        places[number] = read_on(container, seen, feed_range=feed_range, start_time="Beginning")
    partitions.split(2)
    write(container, 30, 60)
    for number in places:
        places[number] = read_on(container, seen, continuation=places[number])
    partitions.merge(3, 4)
    write(container, 60, 90)
    for number in places:
        read_on(container, seen, continuation=places[number])
    assert len(ranges) == 2
    seen.check(latest=range(90))


def test_a_partition_key_has_a_feed_of_its_own(container: ContainerProxy, partitions: Partitions) -> None:
    seen = SeenChanges()
    write(container, 0, 30)
    at = read_on(container, seen, partition_key="p3", start_time="Beginning")
    partitions.split(0)
    write(container, 30, 60)
    read_on(container, seen, continuation=at)
    assert seen.numbers == {"p3": [3, 13, 23, 33, 43, 53]}


def test_all_versions_and_deletes_go_through_a_split(
    server: RunningServer, database: DatabaseProxy, client: Any
) -> None:
    kept = database.create_container("kept", PartitionKey("/pk"), change_feed_policy={"retentionDuration": 10})
    mode = "AllVersionsAndDeletes"
    assert list(kept.query_items_change_feed(mode=mode)) == []
    at = kept.client_connection.last_response_headers["etag"]
    write(kept, 0, 20)
    Partitions(server, database.id, "kept").split(0)
    for number in range(10):
        kept.delete_item(f"i{number}", f"p{number}")
    rows = list(kept.query_items_change_feed(mode=mode, continuation=at))
    operations = [row["metadata"]["operationType"] for row in rows]
    assert (operations.count("create"), operations.count("delete")) == (20, 10)
    deleted = {row["metadata"]["id"]: row["previous"]["n"] for row in rows if not row["current"]}
    assert deleted == {f"i{number}": number for number in range(10)}


@pytest.fixture
async def things(server: RunningServer) -> AsyncIterator[cosmos_aio.ContainerProxy]:
    async with cosmos_aio.CosmosClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY) as client:
        database = await client.create_database(f"database-{uuid.uuid4()}")
        yield await database.create_container("things", PartitionKey("/pk"))
        await client.delete_database(database)


async def test_on_asyncio_a_feed_goes_on_through_a_split_and_a_merge(
    server: RunningServer, things: cosmos_aio.ContainerProxy
) -> None:
    seen, at = SeenChanges(), None
    partitions = Partitions(server, (await things.read())["_self"].split("/")[1])

    async def write_and_read(first: int, last: int, at: str | None) -> str:
        for number in range(first, last):
            await things.upsert_item({"id": f"i{number % 30}", "pk": f"p{number % 10}", "n": number})
        start = {"start_time": "Beginning"} if at is None else {"continuation": at}
        seen.add([item async for item in things.query_items_change_feed(max_item_count=7, **start)])
        return str(things.client_connection.last_response_headers["etag"])

    at = await write_and_read(0, 30, at)
    partitions.split(0)
    at = await write_and_read(30, 60, at)
    partitions.merge(1, 2)
    await write_and_read(60, 90, at)
    seen.check(latest=range(90))


async def test_on_asyncio_a_feed_from_now_on_has_only_new_changes(things: cosmos_aio.ContainerProxy) -> None:
    await things.create_item({"id": "a", "pk": "x"})
    assert [item async for item in things.query_items_change_feed()] == []
    at = things.client_connection.last_response_headers["etag"]
    await things.create_item({"id": "b", "pk": "x"})
    assert [item["id"] async for item in things.query_items_change_feed(continuation=at)] == ["b"]
