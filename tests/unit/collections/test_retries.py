"""Retryable writes: their outcomes are as durable as the writes, and go where the documents go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asterism.clock import SYSTEM_CLOCK, Clock
from asterism.models.collections.layout import document_key
from asterism.models.collections.results import Change, RetriedStatement, RetryToken, TransactionNumberTooOld
from asterism.models.collections.retries import SessionOutcomes
from asterism.models.collections.upkeep import CollectionUpkeep
from asterism.storage.contract import Batch
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import Document
from tests.support.collections import ACCOUNT, DATABASE, CollectionWorld, bodies, found, open_collections

pytestmark = pytest.mark.store


def incremented(_: object, body: bytes | None) -> Change:
    assert body is not None
    document = decode(body)
    return Change.put(encode({**document, "n": document["n"] + 1}), operation="update")


def token(number: int, statement: int = 0) -> RetryToken:
    return RetryToken(b"session", number, statement, lambda changes: {"n": len(changes)})


async def test_outcomes_outlive_the_process(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 0}, {"_id": 2, "n": 0}), retry=token(1))
        await users.change([document_key(users.rules.fixed_point, 1)], incremented, retry=token(2))
        engine_keeps_its_data = world.world.engine.__class__.__name__ != "MemoryEngine"
    if not engine_keeps_its_data:
        pytest.skip("an engine in memory has nothing after a restart")
    async with open_collections(tmp_path) as world:
        again = world.store.find(ACCOUNT, DATABASE, "users")
        assert again is not None
        key = document_key(again.rules.fixed_point, 1)
        assert await again.change([key], incremented, retry=token(2)) == RetriedStatement({"n": 1})
        assert await found(again) == [{"_id": 1, "n": 1}, {"_id": 2, "n": 0}]


async def test_a_lower_number_than_the_last_is_refused(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 0}), retry=token(2))
        with pytest.raises(TransactionNumberTooOld):
            await users.insert(bodies({"_id": 2, "n": 0}), retry=token(1))
        assert len(await found(users)) == 1


async def test_the_part_of_a_batch_that_was_written_is_not_written_again(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1}, {"_id": 2}), retry=token(1))
        again = await users.insert(bodies({"_id": 1}, {"_id": 2}, {"_id": 3}), retry=token(1))
        assert (again.inserted, again.problems, again.retried) == (3, [], [0, 1])
        assert len(await found(users)) == 3


async def test_the_same_insert_twice_at_once_succeeds_twice_and_is_written_once(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        results = await asyncio.gather(*(users.insert(bodies({"_id": 1}), retry=token(1)) for _ in range(4)))
        assert [(result.inserted, result.problems) for result in results] == [(1, [])] * 4
        assert len(await found(users)) == 1


async def test_the_same_update_twice_at_once_is_carried_out_once(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 0}))
        key = document_key(users.rules.fixed_point, 1)
        await asyncio.gather(*(users.change([key], incremented, retry=token(1)) for _ in range(4)))
        assert await found(users) == [{"_id": 1, "n": 1}]


async def test_outcomes_move_with_their_documents_in_a_split(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        orders = await world.collection("orders", shard_pattern={"city": "hashed"})
        documents: list[Document] = [{"_id": number, "city": f"c{number}"} for number in range(30)]
        for number, document in enumerate(documents):
            await orders.insert(bodies(document), retry=token(1, number))
        reshaper = world.world.reshaper
        await reshaper.finished(await reshaper.split(orders.keyspace, 0))
        for number, document in enumerate(documents):
            again = await orders.insert(bodies(document), retry=token(1, number))
            assert (again.inserted, again.retried) == (1, [0])
        assert len(await found(orders)) == 30


async def stored_outcomes(world: CollectionWorld) -> int:
    users = world.store.find(ACCOUNT, DATABASE, "users")
    assert users is not None
    point = users.rules.fixed_point
    _, _, values = await world.world.router.read(users.keyspace, point, [SessionOutcomes.key_of(token(1), point)])
    return len([value for value in values if value is not None])


async def test_outcomes_are_removed_half_an_hour_after_their_last_use(tmp_path: Path) -> None:
    ahead_seconds = 0.0
    clock = Clock(lambda: SYSTEM_CLOCK.wall_seconds() + ahead_seconds, SYSTEM_CLOCK.monotonic_seconds)
    async with open_collections(tmp_path, clock=clock) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 0}), retry=token(1))
        upkeep = CollectionUpkeep(world.store)
        ahead_seconds = 29 * 60
        await upkeep.sweep_logs()
        assert await stored_outcomes(world) == 1
        await users.change([document_key(users.rules.fixed_point, 1)], incremented, retry=token(2))
        ahead_seconds = 58 * 60
        await upkeep.sweep_logs()
        assert await stored_outcomes(world) == 1
        ahead_seconds = 60 * 60
        await upkeep.sweep_logs()
        assert await stored_outcomes(world) == 0


def test_many_inserts_need_little_room() -> None:
    outcomes = SessionOutcomes(token(1), bytes(16), None)
    batch = Batch()
    outcomes.plan_inserts(batch, [*range(50_000), *range(60_000, 100_000)], now=1)
    ((_, stored),) = batch.puts
    assert len(stored) < 200
    again = SessionOutcomes(token(1), bytes(16), stored)
    asked = (0, 49_999, 50_000, 59_999, 60_000, 99_999, 100_000)
    assert [again.find(statement) is not None for statement in asked] == [True, True, False, False, True, True, False]
