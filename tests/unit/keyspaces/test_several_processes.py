"""Several gateways over one store: all of them follow the changes of each; one at a time does background work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from asterism.errors import Forbidden, ItemNotFound, OwnerNotFound, ResourceNotFound, UniqueKeyViolation
from asterism.keyspaces.catalog.store import TASK
from asterism.keyspaces.processes import coordination
from asterism.keyspaces.routing.families import ITEMS
from asterism.models.documents.container import Container
from asterism.storage.checked import CheckedEngine
from asterism.throughput.budgets import Manual
from tests.support.index_check import check_index
from tests.support.stores import open_store
from tests.support.world import ACCOUNT, World, open_gateway

KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes share an event loop: when it stands still, the one that leads is not to be taken for dead."""
    monkeypatch.setattr(coordination, "TAKEOVER_SECONDS", 60.0)


@asynccontextmanager
async def two_gateways(directory: Path) -> AsyncIterator[tuple[World, World]]:
    engine = CheckedEngine(await open_store(directory, shared=True))
    try:
        async with open_gateway(engine, is_first=True) as first, open_gateway(engine) as second:
            yield first, second
    finally:
        await engine.close()


def run(directory: Path, test: Callable[[World, World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(180), two_gateways(directory) as (first, second):
            await test(first, second)

    asyncio.run(main())


async def seen_by(world: World, name: str = "c") -> Container:
    await world.catalog.follow()
    return world.store.container_for_items(ACCOUNT, "d", name)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_what_one_process_creates_another_can_use_at_once(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container()
        await container.create_item({"id": "1", "pk": "a"}, None)
        answer = await (await seen_by(second)).read_item(b"1", ("a",))
        assert b'"id":"1"' in answer.body

    run(tmp_path, test)


def test_memory_follows_without_being_asked(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        await first.container()
        await until(lambda: second.catalog.find_database(ACCOUNT, "d") is not None)
        await until(lambda: len(second.catalog.keyspaces) == 1)
        await first.store.delete_database(ACCOUNT, "d")
        await until(lambda: not second.catalog.keyspaces and not second.catalog.databases)

    run(tmp_path, test)


# K12 of asterism/keyspaces/DESIGN.md.
def test_of_two_processes_that_create_one_name_exactly_one_wins(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        database = await first.store.create_database(ACCOUNT, "d", None)
        await second.catalog.follow()
        for number in range(10):
            body = {"id": f"c{number}", "partitionKey": KEY}
            outcomes = await asyncio.gather(
                first.store.create_container(database, body, None),
                second.store.create_container(database, body, None),
                return_exceptions=True,
            )
            assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Container", "ResourceExists"]
        await first.catalog.follow()
        await second.catalog.follow()
        assert first.catalog.keyspaces.keys() == second.catalog.keyspaces.keys()
        # The partitions of those that lost are taken away again.
        await until(lambda: not first.catalog.garbage)
        used = {
            partition.partition for space in first.catalog.keyspaces.values() for partition in space.record.map.ranges
        }
        coordination = await first.catalog.store.coordination_partition()
        assert set(await first.engine.partitions()) == {0, coordination} | used

    run(tmp_path, test)


def test_databases_users_and_names_are_created_once(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        databases = await asyncio.gather(
            *(world.store.create_database(ACCOUNT, "d", None) for world in (first, second)), return_exceptions=True
        )
        assert sorted(type(outcome).__name__ for outcome in databases) == ["DatabaseRecord", "ResourceExists"]
        await first.catalog.follow()
        await second.catalog.follow()
        rid = next(iter(first.catalog.databases))
        users = await asyncio.gather(
            *(world.catalog.users.create(rid, "u", {}, now=1) for world in (first, second)), return_exceptions=True
        )
        assert sorted(type(outcome).__name__ for outcome in users) == ["OwnedRecord", "ResourceExists"]

    run(tmp_path, test)


# K2 of asterism/keyspaces/DESIGN.md.
def test_a_deleted_container_is_gone_for_a_process_that_has_not_heard_of_it(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container()
        await container.create_item({"id": "1", "pk": "a"}, None)
        stale = await seen_by(second)
        await first.store.delete_container(container)
        with pytest.raises(OwnerNotFound):
            await stale.read_item(b"1", ("a",))
        with pytest.raises(OwnerNotFound):
            await stale.create_item({"id": "2", "pk": "a"}, None)
        again = await first.container()
        assert (await seen_by(second)).record.rid == again.record.rid
        with pytest.raises(ItemNotFound):
            await (await seen_by(second)).read_item(b"1", ("a",))

    run(tmp_path, test)


def test_a_container_is_not_created_in_a_database_that_another_process_deletes(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        for number in range(10):
            database = await first.store.create_database(ACCOUNT, f"d{number}", None)
            await second.catalog.follow()
            created, _ = await asyncio.gather(
                second.store.create_container(database, {"id": "c", "partitionKey": KEY}, None),
                first.store.delete_database(ACCOUNT, f"d{number}"),
                return_exceptions=True,
            )
            assert isinstance(created, Container | ResourceNotFound)
            await first.catalog.follow()
            await second.catalog.follow()
            assert not first.catalog.keyspaces
            assert not second.catalog.keyspaces
            assert await first.catalog.store.scan(b"k") == []

    run(tmp_path, test)


def test_changes_of_one_offer_by_two_processes_are_both_decided_on_what_is_there(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container(throughput=Manual(400))
        await second.catalog.follow()
        offers = [world.catalog.offer_for(container.record.rid) for world in (first, second)]
        assert offers[0] is not None
        assert offers[1] is not None
        await asyncio.gather(
            first.catalog.replace_offer(offers[0], Manual(900), now=1),
            second.catalog.replace_offer(offers[1], Manual(500), now=1),
        )
        await first.catalog.follow()
        await second.catalog.follow()
        last = first.catalog.offer_for(container.record.rid)
        assert last is not None
        assert last.highest_ever_ru == 900
        assert last == second.catalog.offer_for(container.record.rid)

    run(tmp_path, test)


# K4 of asterism/keyspaces/DESIGN.md.
# K8 of asterism/keyspaces/DESIGN.md.
def test_a_writer_with_stale_settings_leaves_no_item_without_the_new_index_entries(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        policy: dict[str, Any] = {"indexingMode": "consistent", "excludedPaths": [{"path": "/*"}]}
        container = await first.container(indexingPolicy=policy)
        stale = await seen_by(second)
        # The second process does not hear of anything by itself, as if its messages were late.
        second.catalog.store.is_behind = _never  # type: ignore[method-assign]  # a message that is late
        await stale.create_item({"id": "before", "pk": "a", "n": 1}, None)
        everything = {**container.keyspace.record.settings, "indexingPolicy": {"includedPaths": [{"path": "/*"}]}}
        await first.store.replace_container(container, everything)
        del second.catalog.store.is_behind  # type: ignore[method-assign]
        assert second.catalog.keyspaces[container.record.rid].record.settings == stale.record.settings
        await stale.create_item({"id": "created", "pk": "a", "n": 2}, None)
        await stale.upsert_item({"id": "before", "pk": "a", "n": 3}, None)
        async with asyncio.timeout(180):
            await until(lambda: not first.catalog.keyspaces[container.record.rid].record.catching_up)
        await check_index(first, container)

    run(tmp_path, test)


async def _never() -> bool:
    return False


def test_a_unit_that_was_planned_by_old_settings_is_planned_again(tmp_path: Path) -> None:
    """Between the reading and the writing of an upsert, another process changes the policy."""

    async def test(first: World, second: World) -> None:
        policy: dict[str, Any] = {"indexingMode": "consistent", "excludedPaths": [{"path": "/*"}]}
        container = await first.container(indexingPolicy=policy)
        slow = await seen_by(second)
        await slow.create_item({"id": "1", "pk": "a", "n": 1}, None)
        everything = {**container.keyspace.record.settings, "indexingPolicy": {"includedPaths": [{"path": "/*"}]}}
        stopped = asyncio.Event()

        async def write() -> None:
            number = 0
            while not stopped.is_set():
                number += 1
                await slow.upsert_item({"id": str(number % 9), "pk": "a", "n": number}, None)

        writers = [asyncio.create_task(write()) for _ in range(4)]
        await asyncio.sleep(0.05)
        await first.store.replace_container(container, everything)
        await until(lambda: not first.catalog.keyspaces[container.record.rid].record.catching_up)
        await asyncio.sleep(0.05)
        stopped.set()
        await asyncio.gather(*writers)
        await check_index(first, container)

    run(tmp_path, test)


def test_unique_keys_hold_over_processes(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container(uniqueKeyPolicy={"uniqueKeys": [{"paths": ["/email"]}]})
        other = await seen_by(second)
        for number in range(10):
            outcomes = await asyncio.gather(
                container.create_item({"id": f"a{number}", "pk": "k", "email": f"m{number}"}, None),
                other.create_item({"id": f"b{number}", "pk": "k", "email": f"m{number}"}, None),
                return_exceptions=True,
            )
            assert sum(isinstance(outcome, UniqueKeyViolation) for outcome in outcomes) == 1
            assert sum(isinstance(outcome, BaseException) for outcome in outcomes) == 1

    run(tmp_path, test)


def test_a_split_asked_for_by_any_process_is_done_by_the_one_that_leads(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container()
        for number in range(50):
            await container.create_item({"id": str(number), "pk": f"k{number}"}, None)
        other = await seen_by(second)
        assert first.catalog.leads
        assert not second.catalog.leads
        job = await second.reshaper.split(other.keyspace, 0)
        assert list(second.reshaper.progress) == [job.id]
        await second.reshaper.finished(job)
        assert len(other.keyspace.record.map.ranges) == 2
        for number in range(50):
            await other.read_item(str(number).encode(), (f"k{number}",))
        await second.check_statistics(other)

    run(tmp_path, test)


def test_throughput_raised_through_any_process_splits(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container(throughput=Manual(400))
        other = await seen_by(second)
        offer = second.catalog.offer_for(container.record.rid)
        assert offer is not None
        await second.store.replace_offer(offer, Manual(20_000))
        await until(lambda: len(other.keyspace.record.map.ranges) == 2)

    run(tmp_path, test)


def test_a_partition_key_is_deleted_for_any_process(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container()
        for number in range(30):
            await container.create_item({"id": str(number), "pk": "a"}, None)
        other = await seen_by(second)
        await second.store.housekeeper.delete_partition_key(other, ("a",))
        with pytest.raises(ItemNotFound):
            await other.read_item(b"0", ("a",))
        assert await first.catalog.store.scan(TASK) == []

    run(tmp_path, test)


def test_when_the_leader_ends_another_leads_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        engine = CheckedEngine(await open_store(tmp_path, shared=True))
        async with asyncio.timeout(180), open_gateway(engine) as second:
            async with open_gateway(engine, is_first=True) as first:
                # The one that came later took the leadership from the one that had it.
                await until(lambda: first.catalog.leads and not second.catalog.leads)
            await until(lambda: second.catalog.leads)
            container = await second.container()
            await container.create_item({"id": "1", "pk": "a"}, None)
        await engine.close()

    asyncio.run(main())


def test_a_process_that_fell_behind_the_log_reads_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asterism.keyspaces.catalog.store.LOG_ENTRIES_KEPT", 5)

    async def test(first: World, second: World) -> None:
        container = await first.container()
        await second.catalog.follow()
        second.catalog.store.is_behind = _never  # type: ignore[method-assign]  # a message that is late
        for number in range(20):
            await first.store.create_database(ACCOUNT, f"more{number}", None)
        await first.store.delete_container(container)
        await first.catalog.store.trim_log()
        del second.catalog.store.is_behind  # type: ignore[method-assign]
        await second.catalog.follow()
        assert second.catalog.databases == first.catalog.databases
        assert not second.catalog.keyspaces

    run(tmp_path, test)


def test_only_one_of_two_splits_of_a_partition_begins(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container()
        for number in range(20):
            await container.create_item({"id": str(number), "pk": f"k{number}"}, None)
        other = await seen_by(second)
        outcomes = await asyncio.gather(
            first.reshaper.split(container.keyspace, 0),
            second.reshaper.split(other.keyspace, 0),
            return_exceptions=True,
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ReshapeJob", "ReshapeRefused"]
        await until(lambda: len(container.keyspace.record.map.ranges) == 2)

    run(tmp_path, test)


def test_items_that_expire_are_removed_for_every_writer(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container(defaultTtl=-1)
        other = await seen_by(second)
        await other.create_item({"id": "stays", "pk": "a"}, None)
        partition = container.keyspace.record.map.ranges[0].partition
        staying = await first.everything(partition, ITEMS)
        assert len(staying) == 1
        await other.create_item({"id": "1", "pk": "a", "ttl": 1}, None)
        while await first.everything(partition, ITEMS) != staying:
            await asyncio.sleep(0.05)

    run(tmp_path, test)


def test_a_rekeying_asked_for_by_any_process_is_done_and_switched(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container()
        for number in range(20):
            await container.create_item({"id": str(number), "pk": "a", "day": f"d{number % 3}"}, None)
        other = await seen_by(second)
        job = await second.store.begin_rekey(other, "by-day", ["/day"])
        target = await seen_by(second, "by-day")
        while not second.store.rekeyer.jobs[job.number].is_caught_up:
            await asyncio.sleep(0.02)
            await second.catalog.follow()
        await second.store.rekeyer.switch(target)
        while not second.store.rekeyer.jobs[job.number].phase.is_over:
            await asyncio.sleep(0.02)
            await second.catalog.follow()
        assert second.store.rekeyer.jobs[job.number].target_items == 20
        assert b'"day":"d1"' in (await target.read_item(b"1", ("d1",))).body

    run(tmp_path, test)


def test_what_any_process_acknowledged_before_a_switch_is_in_the_target(tmp_path: Path) -> None:
    async def test(first: World, second: World) -> None:
        container = await first.container()
        other = await seen_by(second)
        acknowledged: set[str] = set()

        async def write(through: Container, name: str) -> None:
            for number in range(10_000):
                item_id = f"{name}{number}"
                try:
                    await through.create_item({"id": item_id, "pk": "a", "day": "d"}, None)
                except Forbidden:
                    return
                acknowledged.add(item_id)

        writers = [asyncio.create_task(write(through, name)) for name, through in (("a", container), ("b", other))]
        job = await second.store.begin_rekey(other, "by-day", ["/day"])
        await first.catalog.follow()
        while not first.store.rekeyer.jobs[job.number].is_caught_up:
            await asyncio.sleep(0.02)
        target = await seen_by(second, "by-day")
        await second.store.rekeyer.switch(target)
        await asyncio.gather(*writers)
        while not first.store.rekeyer.jobs[job.number].phase.is_over:
            await asyncio.sleep(0.02)
        for item_id in acknowledged:
            await target.read_item(item_id.encode(), ("d",))
        assert first.store.rekeyer.jobs[job.number].target_items == len(acknowledged)

    run(tmp_path, test)
