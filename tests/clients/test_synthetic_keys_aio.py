"""Containers with a synthetic partition key, as the official client on asyncio uses them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.aio import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.partition_key import NonePartitionKeyValue

from asterism import keys
from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY
from tests.clients.test_change_feed import Partitions
from tests.support.server import RunningServer

CHARGE = "x-ms-request-charge"
CONCATENATED = keys.concatenate("/deviceId", "/date")
HASHED = keys.hash_suffix("/date", of="/vin", count=50)
RANDOM = keys.random_suffix("/date", count=40)

Item = dict[str, Any]


@pytest.fixture
async def database(server: RunningServer) -> AsyncIterator[DatabaseProxy]:
    async with CosmosClient(server.endpoint, WELL_KNOWN_EMULATOR_KEY) as client:
        made = await client.create_database(f"synthetic-{uuid.uuid4()}")
        yield made
        await client.delete_database(made)


async def make(database: DatabaseProxy, rule: keys.KeyRule | Mapping[str, Any]) -> ContainerProxy:
    """Create a container with four physical partitions."""
    key = PartitionKey("/pk")
    key["synthetic"] = {"/pk": rule.to_json() if isinstance(rule, keys.KeyRule) else rule}
    return await database.create_container("things", key, offer_throughput=24_000)


def new_car(number: int, date: str = "d") -> Item:
    return {"id": str(number), "date": date, "vin": f"vin-{number}"}


async def create_cars(container: ContainerProxy, count: int, *, first: int = 0) -> list[Item]:
    numbers = range(first, first + count)
    return list(await asyncio.gather(*(container.create_item(new_car(number)) for number in numbers)))


def charge_of(container: ContainerProxy) -> float:
    return float(container.client_connection.last_response_headers[CHARGE])


def values(found: AsyncIterator[Item]) -> AsyncIterator[Any]:
    """Return the results of a query with SELECT VALUE, which the client's types do not know."""
    return found


async def ids_of(found: AsyncIterator[Item]) -> list[str]:
    return sorted([item["id"] async for item in found], key=int)


async def test_a_plain_item_is_written_read_and_changed_by_its_key_or_its_sources(database: DatabaseProxy) -> None:
    devices = await make(database, CONCATENATED)
    made = await devices.create_item({"id": "1", "deviceId": "abc", "date": 2018, "n": 1})
    assert made["pk"] == "abc-2018"
    assert (await devices.read_item("1", "abc-2018"))["n"] == 1
    assert (await devices.read_item("1", ["abc", 2018]))["n"] == 1
    assert charge_of(devices) == 1.0
    assert (await devices.upsert_item({"id": "1", "deviceId": "abc", "date": 2018, "n": 2}))["n"] == 2
    replaced = await devices.replace_item("1", {"id": "1", "deviceId": "abc", "date": 2018, "n": 3})
    assert (replaced["pk"], replaced["n"]) == ("abc-2018", 3)
    patched = await devices.patch_item("1", ["abc", 2018], [{"op": "incr", "path": "/n", "value": 1}])
    assert patched["n"] == 4
    with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
        await devices.replace_item(made, {**made, "date": 2019})
    assert refusal.value.status_code == 400
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await devices.create_item({"id": "1", "deviceId": "abc", "date": 2018})
    await devices.delete_item("1", ["abc", 2018])
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        await devices.read_item("1", "abc-2018")


async def test_the_server_gives_the_key_that_the_library_computes(database: DatabaseProxy) -> None:
    cars = await make(database, HASHED)
    for made in await create_cars(cars, 60):
        assert HASHED.keys_of(made) == (made["pk"],)


async def test_an_item_without_a_source_is_refused_or_has_no_key(database: DatabaseProxy) -> None:
    lenient = await make(database, {**CONCATENATED.to_json(), "missing": "absent"})
    assert "pk" not in await lenient.create_item({"id": "1", "date": "2026"})
    assert (await lenient.read_item("1", NonePartitionKeyValue))["date"] == "2026"
    with pytest.raises(exceptions.CosmosHttpResponseError) as refusal:
        await lenient.create_item({"id": "1", "deviceId": {"a": 1}, "date": "2026"})
    assert refusal.value.status_code == 400


async def test_writers_of_one_day_spread_and_are_found_by_the_day(database: DatabaseProxy) -> None:
    days = await make(database, RANDOM)
    made = await create_cars(days, 80)
    assert len({item["pk"] for item in made}) > 20
    assert all(RANDOM.accepts(item, item["pk"]) for item in made)
    assert (await days.read_item("7", "d"))["vin"] == "vin-7"
    assert charge_of(days) == 40.0
    again = await asyncio.gather(*(days.upsert_item({**new_car(number), "n": 1}) for number in range(80)))
    assert [item["pk"] for item in again] == [item["pk"] for item in made]
    assert len([item async for item in days.read_all_items()]) == 80


async def test_a_query_fixes_the_key_by_parameters(database: DatabaseProxy) -> None:
    cars = await make(database, HASHED)
    for number in range(60):
        await cars.create_item(new_car(number, f"day-{number % 2}"))
    parameters: list[dict[str, object]] = [{"name": "@date", "value": "day-1"}, {"name": "@vin", "value": "vin-7"}]
    fixed = "SELECT * FROM c WHERE c.date = @date AND c.vin = @vin"
    assert await ids_of(cars.query_items(fixed, parameters=parameters)) == ["7"]
    of_day = cars.query_items("SELECT * FROM c WHERE c.date = @date", parameters=parameters[:1], max_item_count=7)
    assert await ids_of(of_day) == [str(number) for number in range(1, 60, 2)]
    ordered = "SELECT VALUE c.vin FROM c WHERE c.date IN ('day-0', 'day-1') ORDER BY c.vin DESC"
    found = [vin async for vin in values(cars.query_items(ordered))]
    assert found == sorted((f"vin-{number}" for number in range(60)), reverse=True)
    counted = "SELECT VALUE COUNT(1) FROM c"
    assert [count async for count in values(cars.query_items(counted, partition_key="day-0"))] == [30]
    assert [count async for count in values(cars.query_items(counted, partition_key=["day-0", "vin-8"]))] == [1]


async def test_many_items_are_read_at_once_by_their_keys(database: DatabaseProxy) -> None:
    cars = await make(database, HASHED)
    made = await create_cars(cars, 60)
    # The client sorts these by physical partition, by a hash of the keys.
    found = await cars.read_items([(item["id"], item["pk"]) for item in made])
    assert sorted(int(item["id"]) for item in found) == list(range(60))
    assert len(await cars.read_items([("7", made[7]["pk"]), ("nowhere", made[8]["pk"])])) == 1


async def test_a_batch_fills_the_keys_of_its_items(database: DatabaseProxy) -> None:
    cars = await make(database, HASHED)
    items = [{"id": str(number), "date": "d", "vin": "v"} for number in range(3)]
    done = await cars.execute_item_batch([("create", (item,)) for item in items], partition_key=["d", "v"])
    (own,) = {result["resourceBody"]["pk"] for result in done}
    assert HASHED.keys_of(items[0]) == (own,)
    read = await cars.execute_item_batch([("read", ("1",)), ("delete", ("2",))], partition_key=own)
    assert read[0]["resourceBody"]["pk"] == own


async def test_the_change_feed_of_every_feed_range_has_its_items(database: DatabaseProxy) -> None:
    cars = await make(database, HASHED)
    made = await create_cars(cars, 60)
    seen: dict[str, Item] = {}
    feed_ranges = [feed_range async for feed_range in cars.read_feed_ranges()]
    assert len(feed_ranges) == 4
    for feed_range in feed_ranges:
        changes = cars.query_items_change_feed(feed_range=feed_range, start_time="Beginning")
        async for item in changes:
            assert item["id"] not in seen
            own = await cars.feed_range_from_partition_key(item["pk"])
            assert await cars.is_feed_range_subset(feed_range, own)
            seen[item["id"]] = item
    assert {item_id: item["pk"] for item_id, item in seen.items()} == {item["id"]: item["pk"] for item in made}
    of_key = cars.query_items_change_feed(partition_key=made[7]["pk"], start_time="Beginning")
    assert "7" in [item["id"] async for item in of_key]


@pytest.mark.parametrize("rule", [HASHED, RANDOM], ids=["hash", "random"])
async def test_items_stay_where_their_rule_says_while_partitions_are_split(
    server: RunningServer, database: DatabaseProxy, rule: keys.KeyRule
) -> None:
    cars = await make(database, rule)
    partitions = Partitions(server, database.id)
    # A partition with a single key could not be divided.
    before = await create_cars(cars, 80)

    async def split(*range_ids: int) -> None:
        for range_id in range_ids:
            await asyncio.to_thread(partitions.split, range_id)

    async def write() -> list[Item]:
        return [item for part in range(4, 14) for item in await create_cars(cars, 20, first=20 * part)]

    _, during = await asyncio.gather(split(0, 2), write())
    made = before + during
    assert len([feed_range async for feed_range in cars.read_feed_ranges(force_refresh=True)]) == 6
    for item in made:
        assert rule.accepts(item, item["pk"])
        assert (await cars.read_item(item["id"], item["pk"]))["vin"] == item["vin"]
        assert (await cars.upsert_item(new_car(int(item["id"]))))["pk"] == item["pk"]
    stored = {item["id"]: item["pk"] async for item in cars.query_items("SELECT c.id, c.pk FROM c WHERE c.date = 'd'")}
    assert stored == {item["id"]: item["pk"] for item in made}
