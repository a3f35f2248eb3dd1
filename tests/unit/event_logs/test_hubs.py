"""Hubs as entities: their descriptions, consumer groups and limits, and news of changes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from asterism.errors import MalformedRequest, QuotaExceeded, ResourceExists, ResourceNotFound
from asterism.models.event_logs.description import DEFAULT_GROUP, ConsumerGroup, HubDescription
from asterism.models.event_logs.store import KIND
from tests.support.event_logs import NAMESPACE, append, contents, open_hubs, open_two_processes, read_all
from tests.support.virtual_time import in_virtual_time


def test_a_description_is_the_same_after_it_was_stored() -> None:
    group = ConsumerGroup("Readers", 5, "metadata", 6)
    description = HubDescription(
        3, 1, 2, 10, 20, "SendDisabled", {"readers": group}, ({"rights": ["Listen"]},), 2, "free text"
    )
    assert HubDescription.from_json(description.to_json()) == description


@in_virtual_time
async def test_a_hub_is_found_by_its_name_without_regard_to_case() -> None:
    async with open_hubs() as world:
        hub = await world.hub("Telemetry", partitions=3)
        assert world.store.find(NAMESPACE, "tELEMETRY") is hub
        assert world.store.find("other", "telemetry") is None
        assert (hub.name, hub.partition_count) == ("Telemetry", 3)
        assert hub.description.group("$default") == ConsumerGroup(
            DEFAULT_GROUP, hub.description.created_ms, None, hub.description.created_ms
        )
        with pytest.raises(ResourceExists):
            await world.hub("TELEMETRY")


@in_virtual_time
async def test_an_entity_of_another_kind_is_not_a_hub() -> None:
    async with open_hubs() as world:
        await world.store.namespaces.create(NAMESPACE, "q", "queue", points=1, description={})
        await world.hub("h")
        assert KIND == "hub"
        assert world.store.find(NAMESPACE, "q") is None
        assert [hub.name for hub in world.store.hubs(NAMESPACE)] == ["h"]


@pytest.mark.parametrize("name", ["", "-a", "a-", "a/b", "a b", "a" * 257])
def test_a_bad_name_is_refused(name: str) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hubs() as world:
            with pytest.raises(MalformedRequest):
                await world.hub(name)

    check()


@pytest.mark.parametrize(
    "settings",
    [
        {"partition_count": 0},
        {"partition_count": 33},
        {"retention_ms": 0},
        {"retention_ms": 2**60},
        {"retention_bytes": 0},
        {"throughput_units": 0},
        {"status": "Sleeping"},
    ],
)
def test_a_setting_outside_of_its_limits_is_refused(settings: dict[str, object]) -> None:
    @in_virtual_time
    async def check() -> None:
        async with open_hubs() as world:
            with pytest.raises(MalformedRequest):
                await world.hub(**settings)  # type: ignore[arg-type]  # settings by name

    check()


@in_virtual_time
async def test_the_number_of_partitions_is_fixed() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        with pytest.raises(MalformedRequest):
            await world.store.update(hub, lambda description: replace(description, partition_count=5))
        assert hub.description.partition_count == 2


@in_virtual_time
async def test_consumer_groups_come_and_go() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        await world.store.create_group(hub, "Readers", "about them")
        with pytest.raises(ResourceExists):
            await world.store.create_group(hub, "readers")
        group = await world.store.replace_group(hub, "READERS", "others")
        assert (group.name, group.metadata) == ("Readers", "others")
        assert sorted(hub.description.consumer_groups) == ["$default", "readers"]
        await world.store.delete_group(hub, "readers")
        with pytest.raises(ResourceNotFound) as missing:
            await world.store.delete_group(hub, "readers")
        assert missing.value.kind == "consumer group"
        with pytest.raises(MalformedRequest):
            await world.store.delete_group(hub, "$default")
        with pytest.raises(MalformedRequest):
            await world.store.create_group(hub, "not a name")


@in_virtual_time
async def test_a_hub_has_at_most_20_groups() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        for number in range(19):
            await world.store.create_group(hub, f"g{number}")
        with pytest.raises(QuotaExceeded):
            await world.store.create_group(hub, "last")


@in_virtual_time
async def test_a_hub_that_is_created_again_is_empty() -> None:
    async with open_hubs() as world:
        hub = await world.hub()
        await append(hub.log(0), b"a")
        await world.store.delete(hub)
        assert world.store.find(NAMESPACE, "h") is None
        with pytest.raises(ResourceNotFound):
            await world.store.delete(hub)
        again = await world.hub()
        assert await read_all(again.log(0)) == []
        assert contents([*await read_all(again.log(0))]) == []


@in_virtual_time
async def test_links_hear_of_changes_and_of_the_deletion_in_every_process() -> None:
    async with open_two_processes() as (first, second):
        hub = await first.hub()
        other = await second.store.find_newest(NAMESPACE, "h")
        assert other is not None
        heard = {name: asyncio.Event() for name in ("here", "there")}
        hub.watch(heard["here"].set)
        other.watch(heard["there"].set)
        await first.store.create_group(hub, "g")
        async with asyncio.timeout(60):
            await asyncio.gather(*(event.wait() for event in heard.values()))
        assert other.description.group("g") is not None
        for event in heard.values():
            event.clear()
        await first.store.delete(hub)
        async with asyncio.timeout(60):
            await asyncio.gather(*(event.wait() for event in heard.values()))
        assert other.is_deleted
