"""Collections that get another shard key while clients go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asterism.models.collections.changes import ChangeLog, ChangePosition, ChangeSource
from asterism.models.collections.collection import Collection
from asterism.models.collections.layout import document_key
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.rekey.job import CollectionRekeyStep
from asterism.models.collections.rekey.rekeyer import CollectionRekeyer
from asterism.models.collections.results import Change, NoSuchCollection, RekeyFailed, RekeyProblem, RekeyUnderWay
from asterism.models.collections.scans import ScanQuery
from asterism.values.bson.codec import decode, encode
from tests.support.collections import ACCOUNT, DATABASE, CollectionWorld, Fact, bodies, found, open_collections

pytestmark = pytest.mark.store


@asynccontextmanager
async def open_rekeying(
    directory: Path, *, retained_seconds: float = 60.0
) -> AsyncIterator[tuple[CollectionWorld, CollectionRekeyer]]:
    async with open_collections(directory) as world:
        rekeyer = CollectionRekeyer(world.store, retained_seconds=retained_seconds)
        await rekeyer.start()
        try:
            yield world, rekeyer
        finally:
            await rekeyer.stop()


def with_key(record: CollectionRecord, pattern: Mapping[str, Any]) -> CollectionRecord:
    return replace(record, shard_key=tuple(pattern), shard_pattern=dict(pattern))


def the(world: CollectionWorld, name: str) -> Collection:
    collection = world.store.find(ACCOUNT, DATABASE, name)
    assert collection is not None
    return collection


async def test_documents_indexes_and_name_go_to_the_new_place_and_back(tmp_path: Path) -> None:
    async with open_rekeying(tmp_path, retained_seconds=0.0) as (world, rekeyer):
        users = await world.collection("users")
        await users.insert(bodies(*({"_id": number, "city": f"c{number % 7}", "n": number} for number in range(500))))
        await world.store.create_indexes(ACCOUNT, users.record, [IndexRecord(0, "n_1", {"n": 1})])
        uuid = the(world, "users").record.uuid
        for pattern in ({"city": 1}, {"n": "hashed"}, {}):
            await rekeyer.rekey(ACCOUNT, with_key(the(world, "users").record, pattern))
            moved = the(world, "users")
            assert (moved.record.shard_pattern, moved.record.uuid) == (pattern, uuid)
            assert (await moved.size()).items == 500
            documents = await found(moved)
            assert sorted(document["_id"] for document in documents) == list(range(500))
            scan = await moved.open_scan(ScanQuery([Fact("n", "eq", 42)]))
            assert [decode(hit.body)["_id"] async for batch in scan.batches() for hit in batch] == [42]
        while rekeyer.progress():
            await asyncio.sleep(0.01)


async def test_writers_at_work_lose_nothing_and_meet_no_error(tmp_path: Path) -> None:
    async with open_rekeying(tmp_path) as (world, rekeyer):
        users = await world.collection("users")
        await users.insert(bodies(*({"_id": number, "city": f"c{number % 7}", "n": 0} for number in range(300))))
        expected = dict.fromkeys(range(300), 0)
        stopping = asyncio.Event()

        async def write(start: int) -> None:
            number = start
            while not stopping.is_set():
                number += 10
                target = number % 300
                await increment(world, target)
                expected[target] += 1
                new = 1000 + number
                inserted = 0
                while not inserted:
                    body = bodies({"_id": new, "city": "new", "n": 0})
                    inserted = (await the(world, "users").insert(body, allow_missing_shard_key=True)).inserted
                expected[new] = 0
                if number % 3 == 0:
                    await remove(world, new)
                    del expected[new]
                await asyncio.sleep(0)

        writers = [asyncio.create_task(write(start)) for start in range(4)]
        for pattern in ({"city": 1}, {"n2": 1, "city": 1}, {}):
            await rekeyer.rekey(ACCOUNT, with_key(the(world, "users").record, pattern))
        stopping.set()
        await asyncio.gather(*writers)
        kept = {document["_id"]: document["n"] for document in await found(the(world, "users"))}
        assert kept == expected


async def _at(world: CollectionWorld, wanted: int) -> tuple[Collection, Any]:
    collection = the(world, "users")
    scan = await collection.open_scan(ScanQuery([Fact("_id", "eq", wanted)]))
    async for batch in scan.batches():
        for hit in batch:
            return collection, hit.key
    raise AssertionError(f"{wanted} is lost")


async def increment(world: CollectionWorld, wanted: int) -> None:
    def decide(_: object, body: bytes | None) -> Change:
        assert body is not None
        document = decode(body)
        return Change.put(encode({**document, "n": document["n"] + 1}), operation="update")

    await _until_written(world, wanted, decide)


async def remove(world: CollectionWorld, wanted: int) -> None:
    await _until_written(world, wanted, lambda _, __: Change.delete())


async def _until_written(world: CollectionWorld, wanted: int, decide: Any) -> None:
    while True:
        try:
            collection, key = await _at(world, wanted)
            await collection.change((key,), decide)
            return
        except NoSuchCollection:
            continue


async def test_a_reader_that_has_begun_goes_on_with_the_old_place(tmp_path: Path) -> None:
    async with open_rekeying(tmp_path) as (world, rekeyer):
        users = await world.collection("users")
        await users.insert(bodies(*({"_id": number, "city": f"c{number % 7}"} for number in range(2000))))
        scan = await users.open_scan(ScanQuery())
        batches = scan.batches()
        seen = [decode(hit.body)["_id"] for hit in await anext(batches)]
        await rekeyer.rekey(ACCOUNT, with_key(users.record, {"city": 1}))
        seen += [decode(hit.body)["_id"] async for batch in batches for hit in batch]
        assert seen == list(range(2000))
        with pytest.raises(NoSuchCollection):
            await found(users)


async def test_documents_that_cannot_be_together_leave_everything_as_it_was(tmp_path: Path) -> None:
    async with open_rekeying(tmp_path) as (world, rekeyer):
        places = await world.collection("places", shard_pattern={"city": 1})
        await places.insert(bodies({"_id": 1, "city": "a"}, {"_id": 1, "city": "b"}, {"_id": 2, "city": "a", "x": [1]}))
        for pattern, problem in (({}, RekeyProblem.DUPLICATE), ({"x": 1}, RekeyProblem.SHARD_KEY)):
            with pytest.raises(RekeyFailed) as failed:
                await rekeyer.rekey(ACCOUNT, with_key(places.record, pattern))
            assert failed.value.problem is problem
            assert len(await found(places)) == 3
            await places.insert(bodies({"_id": 3, "city": "c"}))
            await places.change((document_key(places.rules.point_at(["c"]), 3),), deletion)
        assert rekeyer.progress() == []


def deletion(*_: object) -> Change:
    return Change.delete()


async def test_a_drop_ends_the_job_and_the_name_is_free(tmp_path: Path) -> None:
    async with open_rekeying(tmp_path) as (world, rekeyer):
        users = await world.collection("users")
        await users.insert(bodies(*({"_id": number, "city": number} for number in range(50))))
        dropped = asyncio.Event()

        def on_step(step: CollectionRekeyStep) -> None:
            if step is CollectionRekeyStep.PREPARED:
                dropped.set()

        rekeyer.on_step = on_step
        job = asyncio.create_task(rekeyer.rekey(ACCOUNT, with_key(users.record, {"city": 1})))
        await dropped.wait()
        with pytest.raises(RekeyUnderWay):
            await world.store.change_options(ACCOUNT, users.record, {})
        await world.store.drop(ACCOUNT, DATABASE, "users")
        with pytest.raises(RekeyFailed):
            await job
        again = await world.collection("users")
        assert await found(again) == []
        while rekeyer.progress():
            await asyncio.sleep(0.01)
        assert [keyspace.record.name for keyspace in world.store.catalog.keyspaces.values()] == ["home"]


async def test_copies_are_no_changes_of_the_collection(tmp_path: Path) -> None:
    async with open_rekeying(tmp_path) as (world, rekeyer):
        users = await world.collection("users")
        await users.insert(bodies(*({"_id": number, "city": number} for number in range(20))))
        await rekeyer.rekey(ACCOUNT, with_key(users.record, {"city": 1}))
        log = ChangeLog(world.store.services.router)
        page = await log.read([ChangeSource(the(world, "users").keyspace, DATABASE)], ChangePosition())
        assert page.changes == []


@pytest.mark.parametrize("step", list(CollectionRekeyStep)[1:-1])
async def test_a_job_that_was_interrupted_is_resumed(tmp_path: Path, step: CollectionRekeyStep) -> None:
    async with open_collections(tmp_path) as world:
        places = await world.collection("places", shard_pattern={"city": 1})
        await places.insert(bodies(*({"_id": number, "city": number % 9, "n": number} for number in range(300))))
        first = CollectionRekeyer(world.store)

        def interrupt(reached: CollectionRekeyStep) -> None:
            if reached is step:
                raise asyncio.CancelledError

        first.on_step = interrupt
        await first.start()
        asked = asyncio.create_task(first.rekey(ACCOUNT, with_key(places.record, {"n": 1})))
        while not first.progress():
            await asyncio.sleep(0)
        for task in list(first._running.values()):
            await asyncio.wait({task})
        await first.stop()
        second = CollectionRekeyer(world.store, retained_seconds=0.0)
        await second.start()
        await asked
        while second.progress():
            await asyncio.sleep(0.01)
        await second.stop()
        moved = the(world, "places")
        assert moved.record.shard_pattern == {"n": 1}
        assert sorted(document["_id"] for document in await found(moved)) == list(range(300))
        assert (await moved.insert(bodies({"_id": 1, "n": -1}))).inserted == 1
