"""Moving a logical partition into a container of its own, in one process: the switch, refusals, lost targets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path

import pytest

from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.errors import (
    AsterismError,
    Forbidden,
    ItemNotFound,
    ReshapeRefused,
    ResourceExists,
    StorageUnavailable,
    UniqueKeyViolation,
)
from asterism.keyspaces.catalog.forwarding import ForwardingState
from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import PartitionFenced, PartitionForwarded
from asterism.models.documents.pages import range_scope, scan_items
from asterism.models.documents.promotion.job import PromotionJob, PromotionPhase
from asterism.models.documents.promotion.promoter import rule_of
from asterism.models.documents.promotion.requests import Promotion, begin_promotion, find_promotion
from asterism.models.documents.rekey.job import RekeyStep
from asterism.partitioning.key_range import FULL
from asterism.throughput.budgets import Manual
from asterism.values.json.text import loads
from tests.support.world import ACCOUNT, World, open_world

ITEMS = 120
BIG = "big"
WAIT_SECONDS_MAX = 60


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not condition():
            await asyncio.sleep(0.01)


def stay_at_the_copy(step: StrEnum) -> None:
    """Let a job try again and again, before it has copied all items."""
    if step is RekeyStep.PIECE_COPIED:
        raise StorageUnavailable(reason="The job stays here.")


async def contents(world: World, container: Container) -> dict[tuple[str, str], tuple[object, object, object]]:
    """Return number, etag and time of change of every item, by key and id."""
    found = {}
    async for piece in scan_items(world.router, container, range_scope(FULL), position=None):
        for _, body in piece.items:
            item = loads(body)
            assert isinstance(item, dict)
            found[str(item["pk"]), str(item["id"])] = (item.get("n"), item["_etag"], item["_ts"])
    return found


async def filled(world: World, **settings: object) -> Container:
    container = await world.container(**settings)  # type: ignore[arg-type]  # settings of the protocol
    for number in range(ITEMS):
        key = BIG if number % 2 else f"k{number % 20}"
        await container.create_item({"id": f"i{number}", "pk": key, "n": number}, None)
    return container


def named(world: World, name: str) -> Container:
    return world.store.container(world.store.database(ACCOUNT, "d"), name)


async def promoted(world: World, source: Container) -> PromotionJob:
    job = await begin_promotion(world.store, Promotion(source, (BIG,), "new"))
    await until(lambda: job.phase is PromotionPhase.FORWARDING)
    return job


async def test_a_promoted_key_is_in_the_new_container_as_it_was(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        before = await contents(world, source)
        await promoted(world, source)
        source, target = named(world, "c"), named(world, "new")
        assert await contents(world, target) == {key: value for key, value in before.items() if key[0] == BIG}
        assert await contents(world, source) == {key: value for key, value in before.items() if key[0] != BIG}
        assert not source.keeps_versions
        await world.check_statistics(source)
        await world.check_statistics(target)


async def test_requests_to_the_old_container_name_the_rule(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        job = await promoted(world, source)
        requests: list[Callable[[], Awaitable[object]]] = [
            lambda: source.read_item(b"i1", (BIG,)),
            lambda: source.create_item({"id": "new", "pk": BIG}, None),
            lambda: source.upsert_item({"id": "i1", "pk": BIG}, None),
            lambda: source.delete_item(b"i1", (BIG,)),
            lambda: world.store.housekeeper.delete_partition_key(source, (BIG,)),
        ]
        for request in requests:
            with pytest.raises(PartitionForwarded) as refused:
                await request()
            assert refused.value.sentence.endswith("are in the container 'new' now.")
            assert refused.value.rule == rule_of(job, source)
        await source.create_item({"id": "new", "pk": "k0"}, None)


async def test_writes_during_the_whole_move_are_kept_in_order(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        acknowledged: dict[str, int | None] = {}
        stopping = asyncio.Event()

        async def write(writer: int) -> None:
            container, number = source, 0
            while not stopping.is_set():
                number += 1
                item_id = f"w{writer}-{number % 9}"
                try:
                    if number % 5:
                        await container.upsert_item({"id": item_id, "pk": BIG, "n": number}, None)
                        acknowledged[item_id] = number
                    else:
                        await container.delete_item(item_id.encode(), (BIG,))
                        acknowledged[item_id] = None
                except ItemNotFound:
                    acknowledged[item_id] = None
                except PartitionFenced:
                    number -= 1
                except PartitionForwarded:
                    container, number = named(world, "new"), number - 1
                await asyncio.sleep(0.001)

        writers = [asyncio.create_task(write(writer)) for writer in range(3)]
        await promoted(world, source)
        await asyncio.sleep(0.2)
        stopping.set()
        await asyncio.gather(*writers)
        target = named(world, "new")
        found = {item_id: value[0] for (_, item_id), value in (await contents(world, target)).items()}
        assert {item_id: found.get(item_id) for item_id in acknowledged} == acknowledged
        assert sum(item_id.startswith("i") for item_id in found) == ITEMS // 2
        await world.check_statistics(target)


async def test_splits_of_the_old_container_do_not_disturb_a_move(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        before = {key: value for key, value in (await contents(world, source)).items() if key[0] == BIG}
        job = await begin_promotion(world.store, Promotion(source, (BIG,), "new"))
        await world.reshaper.split(source.keyspace, 0)
        await until(lambda: job.phase is PromotionPhase.FORWARDING)
        await world.reshaper.split(source.keyspace, source.keyspace.record.map.ranges[0].id)
        await until(lambda: len(source.keyspace.record.map.ranges) == 3)
        with pytest.raises(PartitionForwarded):
            await source.read_item(b"i1", (BIG,))
        assert await contents(world, named(world, "new")) == before
        await world.check_statistics(source)


async def upsert(world: World, item: dict[str, object]) -> None:
    """Write to the old container as the door does: after a hand-over, and where the items are."""
    container = named(world, "c")
    while True:
        try:
            await container.upsert_item(item, None)
        except PartitionFenced:
            await asyncio.sleep(0.001)
        except PartitionForwarded:
            container = named(world, "new")
        else:
            return


async def test_unique_keys_that_items_exchange_meanwhile_are_those_of_the_source(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world, uniqueKeyPolicy={"uniqueKeys": [{"paths": ["/n"]}]})
        job = await begin_promotion(world.store, Promotion(source, (BIG,), "new"))
        await until(lambda: job.items_copied > 0)
        expected = {f"i{number}": number for number in range(1, ITEMS, 2)}
        for number in range(1, 80, 4):
            await upsert(world, {"id": f"i{number}", "pk": BIG, "n": -1})
            await upsert(world, {"id": f"i{number + 2}", "pk": BIG, "n": number})
            await upsert(world, {"id": f"i{number}", "pk": BIG, "n": number + 2})
            expected |= {f"i{number}": number + 2, f"i{number + 2}": number}
        await until(lambda: job.phase is PromotionPhase.FORWARDING)
        found = await contents(world, named(world, "new"))
        assert {item_id: value[0] for (_, item_id), value in found.items()} == expected
        with pytest.raises(UniqueKeyViolation):
            await named(world, "new").upsert_item({"id": "other", "pk": BIG, "n": 1}, None)


async def test_a_throttled_target_makes_the_move_slower_and_loses_nothing(tmp_path: Path) -> None:
    stands_at: list[float] = []
    now = SYSTEM_CLOCK.monotonic_seconds
    clock = Clock(SYSTEM_CLOCK.wall_seconds, lambda: stands_at[0] if stands_at else now())
    async with open_world(tmp_path, enforce=True, clock=clock) as world:

        def throttled() -> int:
            return sum(usage.throttled for usage in named(world, "new").keyspace.usage.values())

        source = await world.container(throughput=Manual(10_000))
        for number in range(ITEMS):
            await source.create_item({"id": f"i{number}", "pk": BIG, "text": "x" * 8_000}, None)
        job = await begin_promotion(world.store, Promotion(source, (BIG,), "new", throughput=Manual(4_000)))
        target = named(world, "new")
        # As if its clients had spent the budget of some seconds already, which do not pass before the job asks for it.
        stands_at.append(now())
        target.keyspace.owe(target.keyspace.record.map.ranges[0], 16_000.0, b"")
        await until(lambda: throttled() > 0)
        stands_at.clear()
        await until(lambda: job.phase is PromotionPhase.FORWARDING)
        assert len(await contents(world, named(world, "new"))) == ITEMS


async def test_after_the_end_writes_are_refused_until_the_key_is_forgotten(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        job = await promoted(world, source)
        with pytest.raises(ReshapeRefused, match="end that first"):
            await world.store.promoter.forget(job, source)
        await world.store.promoter.end(job, source)
        with pytest.raises(ItemNotFound):
            await source.read_item(b"i1", (BIG,))
        with pytest.raises(Forbidden, match="Write there"):
            await source.create_item({"id": "later", "pk": BIG}, None)
        await world.store.promoter.forget(job, source)
        await source.create_item({"id": "later", "pk": BIG}, None)
        assert world.store.promoter.jobs == {}
        assert source.keyspace.record.forwarding is None


async def test_without_its_target_a_promotion_is_abandoned(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        world.store.promoter.on_step = stay_at_the_copy
        job = await begin_promotion(world.store, Promotion(source, (BIG,), "new"))
        await until(lambda: "stays" in job.trouble)
        await world.store.delete_container(named(world, "new"))
        await until(lambda: not world.store.promoter.jobs)
        assert not named(world, "c").keeps_versions
        assert (await source.read_item(b"i1", (BIG,))).body
        await source.upsert_item({"id": "i1", "pk": BIG}, None)


async def test_old_copies_do_not_come_back_when_the_target_is_deleted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        job = await begin_promotion(world.store, Promotion(source, (BIG,), "new"))
        await until(lambda: job.phase in (PromotionPhase.CLEANING, PromotionPhase.FORWARDING))
        await world.store.delete_container(named(world, "new"))
        await until(lambda: not world.store.promoter.jobs)
        assert not [key for key, _ in await contents(world, source) if key == BIG]
        await source.create_item({"id": "i1", "pk": BIG}, None)


async def test_without_its_source_a_promotion_is_forgotten(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        await begin_promotion(world.store, Promotion(source, (BIG,), "new"))
        await world.store.delete_container(source)
        await until(lambda: not world.store.promoter.jobs)
        assert named(world, "new")


async def test_the_id_may_become_a_level_of_the_key(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        before = {key: value for key, value in (await contents(world, source)).items() if key[0] == BIG}
        await begin_promotion(world.store, Promotion(source, (BIG,), "new", paths=["/pk", "/id"]))
        (job,) = world.store.promoter.jobs.values()
        await until(lambda: job.phase is PromotionPhase.FORWARDING)
        target = named(world, "new")
        assert await contents(world, target) == before
        assert (await target.read_item(b"i1", (BIG, "i1"))).body


async def test_all_items_below_a_prefix_are_moved_together(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        database = await world.store.create_database(ACCOUNT, "d", None)
        key = {"paths": ["/pk", "/user"], "kind": "MultiHash", "version": 2}
        source = await world.store.create_container(database, {"id": "c", "partitionKey": key}, None)
        for number in range(60):
            await source.create_item({"id": f"i{number}", "pk": f"t{number % 3}", "user": f"u{number % 7}"}, None)
        job = await begin_promotion(world.store, Promotion(source, ("t1",), "new"))
        await until(lambda: job.phase is PromotionPhase.FORWARDING)
        assert {key for key, _ in await contents(world, named(world, "new"))} == {"t1"}
        assert {key for key, _ in await contents(world, source)} == {"t0", "t2"}
        with pytest.raises(PartitionForwarded):
            await source.read_item(b"i1", ("t1", "u1"))
        with pytest.raises(ReshapeRefused, match="promoted to 'new' already"):
            await begin_promotion(world.store, Promotion(source, ("t1", "u1"), "newer"))


async def test_promotions_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        refused: list[tuple[Promotion, type[AsterismError], str]] = [
            (Promotion(source, ("nobody",), "new"), ReshapeRefused, "has no items with this partition key"),
            (Promotion(source, (BIG,), "c"), ResourceExists, "exists already"),
            (Promotion(source, (BIG,), "new", paths=["/user"]), ReshapeRefused, "and /id behind it"),
        ]
        for asked, error, words in refused:
            with pytest.raises(error, match=words):
                await begin_promotion(world.store, asked)
        await begin_promotion(world.store, Promotion(source, (BIG,), "new"))
        with pytest.raises(ReshapeRefused, match="being promoted"):
            await begin_promotion(world.store, Promotion(source, ("k0",), "newer"))
        with pytest.raises(ReshapeRefused, match="containers of their own"):
            await world.store.begin_rekey(source, "newer", ["/n"])
        assert find_promotion(world.store, source, (BIG,)).key == [BIG]


async def test_a_container_that_is_copied_to_another_key_is_not_promoted_from(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        await world.store.begin_rekey(source, "other", ["/n"])
        with pytest.raises(ReshapeRefused, match="copied to another partition key"):
            await begin_promotion(world.store, Promotion(source, (BIG,), "new"))


async def test_requests_that_are_forwarded_are_counted_for_all_processes(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        job = await promoted(world, source)
        use = world.store.forwarding_use
        assert use.of(job.number).requests == 0
        for _ in range(3):
            use.note(job.number)
        # The number never falls while the counts are on their way to the catalog.
        seen = {3}
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while job.number not in world.catalog.work.forwarded:
                seen.add(use.of(job.number).requests)
                await asyncio.sleep(0)
        assert seen == {3}
        use.note(job.number)
        assert use.of(job.number).requests == 4
        assert use.of(job.number).last_at_wall_seconds > 0
        rule = rule_of(job, source)
        assert rule is not None
        assert rule.state is ForwardingState.FORWARDING
