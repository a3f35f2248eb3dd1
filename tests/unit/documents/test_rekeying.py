"""Copying a container to another partition key, in one process: splits meanwhile, and versions that were lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asterism.errors import Forbidden
from asterism.keyspaces.catalog.store import REKEY
from asterism.models.documents.changes.feed import FeedPage
from asterism.models.documents.container import Container
from asterism.models.documents.pages import range_scope, scan_items
from asterism.models.documents.rekey import copy_jobs
from asterism.models.documents.rekey.job import RekeyJob, RekeyPhase, Uncopied
from asterism.partitioning.key_range import FULL
from asterism.values.json.text import loads
from tests.support.world import ACCOUNT, World, open_world

ITEMS = 150
WAIT_SECONDS_MAX = 60


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not condition():
            await asyncio.sleep(0.01)


async def contents(world: World, container: Container) -> set[str]:
    """Id, old key, new key and number of every item, as one text each."""
    found = set()
    async for piece in scan_items(world.router, container, range_scope(FULL), position=None):
        for _, body in piece.items:
            item = loads(body)
            assert isinstance(item, dict)
            found.add(f"{item['id']} {item['pk']} {item['day']} {item['n']}")
    return found


async def filled(world: World) -> Container:
    container = await world.container()
    for number in range(ITEMS):
        await container.create_item({"id": f"i{number}", "pk": f"k{number % 20}", "day": number % 7, "n": number}, None)
    return container


async def switched(world: World, job: RekeyJob) -> tuple[Container, Container]:
    """The source and the target, as they are by now, after a switch."""
    database = world.store.database(ACCOUNT, "d")
    target = world.store.container(database, "new")
    await world.store.rekeyer.switch(target)
    await until(lambda: job.phase is RekeyPhase.SWITCHED)
    return world.store.container(database, "c"), target


async def test_changes_are_followed_through_splits_of_both_containers(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        job = await world.store.begin_rekey(source, "new", ["/day"])
        await until(lambda: job.is_caught_up)
        database = world.store.database(ACCOUNT, "d")
        for name in ("c", "new"):
            keyspace = world.store.container(database, name).keyspace
            await world.reshaper.split(keyspace, 0)
            for number in range(0, ITEMS, 3):
                item = {"id": f"i{number}", "pk": f"k{number % 20}", "day": (number + 1) % 7, "n": f"{name}{number}"}
                await source.upsert_item(item, None)
            await source.create_item({"id": f"new-{name}", "pk": "k", "day": 1, "n": 0}, None)
            await source.delete_item(f"i{len(name)}".encode(), (f"k{len(name)}",))
        source, target = await switched(world, job)
        assert await contents(world, target) == await contents(world, source)
        assert (job.source_items, job.target_items) == (ITEMS, ITEMS)
        await world.check_statistics(target)


async def test_when_versions_were_lost_both_sides_are_compared_anew(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        job = await world.store.begin_rekey(source, "new", ["/day"])
        await until(lambda: job.is_caught_up)
        target = world.store.container(world.store.database(ACCOUNT, "d"), "new")
        await target.create_item({"id": "orphan", "pk": "k0", "day": 3, "n": 0}, None)
        await target.delete_item(b"i4", (4,))
        job.followed_at_wall_seconds = 0
        await until(lambda: job.phase is RekeyPhase.PREPARING)
        source, target = await switched(world, job)
        assert await contents(world, target) == await contents(world, source)


async def test_a_switch_asked_for_in_the_middle_of_a_look_waits_until_writes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(tmp_path) as world:
        job = await world.store.begin_rekey(await filled(world), "new", ["/day"])
        await until(lambda: job.is_caught_up)
        database = world.store.database(ACCOUNT, "d")
        read_page = copy_jobs.read_feed_page

        async def asked_meanwhile(*arguments: Any, **named: Any) -> FeedPage:
            page = await read_page(*arguments, **named)
            if not job.is_switching:
                await world.store.rekeyer.switch(world.store.container(database, "new"))
            return page

        monkeypatch.setattr(copy_jobs, "read_feed_page", asked_meanwhile)
        await until(lambda: job.phase is RekeyPhase.SWITCHED)
        with pytest.raises(Forbidden):
            await world.store.container(database, "c").create_item({"id": "late", "pk": "k", "day": 1, "n": 0}, None)


async def test_a_difference_that_a_switch_finds_is_mended_first(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        job = await world.store.begin_rekey(await filled(world), "new", ["/day"])
        await until(lambda: job.is_caught_up)
        target = world.store.container(world.store.database(ACCOUNT, "d"), "new")
        await target.delete_item(b"i4", (4,))
        source, target = await switched(world, job)
        assert await contents(world, target) == await contents(world, source)


async def test_a_job_whose_target_is_deleted_is_given_up_and_the_source_keeps_no_versions(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        job = await world.store.begin_rekey(await filled(world), "new", ["/day"])
        await until(lambda: job.is_caught_up)
        database = world.store.database(ACCOUNT, "d")
        assert world.store.container(database, "c").keeps_versions
        await world.store.delete_container(world.store.container(database, "new"))
        await until(lambda: not world.store.rekeyer.jobs)
        assert not world.store.container(database, "c").keeps_versions
        assert await world.catalog.store.scan(REKEY) == []


async def test_scripts_go_with_the_container_and_hierarchical_keys_are_keys_too(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        source = await filled(world)
        scripts = world.catalog.scripts.functions
        await scripts.create(source.record.rid, "f", {"body": "function f() {}"}, now=1)
        job = await world.store.begin_rekey(source, "new", ["/day", "/pk"])
        _, target = await switched(world, job)
        assert [script.name for script in scripts.owned_by(target.record.rid)] == ["f"]
        assert (await target.read_item(b"i8", (1, "k8"))).body


def test_a_job_is_read_back_as_it_was_recorded() -> None:
    job = RekeyJob(3, "aa", "bb", RekeyPhase.COPYING, "0f", "12", uncopied={"cc": Uncopied("i", [1, {}], "why")})
    assert RekeyJob.from_bytes(job.to_bytes()) == job
