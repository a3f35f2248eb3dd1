"""Transactions over collections: conflicts, collections that they create, and commits that are asked for again."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism.models.collections.layout import document_key
from asterism.models.collections.records import IndexRecord
from asterism.models.collections.results import (
    Change,
    DuplicateKey,
    RetryToken,
    TransactionOvertaken,
    TransactionTooWide,
)
from asterism.models.collections.scans import ScanQuery
from asterism.values.bson.codec import decode, encode
from tests.support.collections import ACCOUNT, DATABASE, CollectionWorld, Fact, bodies, found, open_collections

pytestmark = pytest.mark.store


def incremented(_: object, body: bytes | None) -> Change:
    assert body is not None
    document = decode(body)
    return Change.put(encode({**document, "n": document["n"] + 1}), operation="update")


async def test_the_second_transaction_on_a_document_learns_of_the_first_at_once(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 0}))
        key = document_key(users.rules.fixed_point, 1)
        first, second = world.store.units.new(), world.store.units.new()
        await users.change([key], incremented, unit=first)
        with pytest.raises(TransactionOvertaken):
            await users.change([key], incremented, unit=second)
        await second.close()
        await world.store.units.commit(first)
        await first.close()
        third = world.store.units.new()
        await users.change([key], incremented, unit=third)
        await world.store.units.commit(third)
        await third.close()
        assert await found(users) == [{"_id": 1, "n": 2}]


async def test_a_document_that_has_changed_since_the_snapshot_is_a_conflict_at_once(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 0}, {"_id": 2, "n": 0}))
        point = users.rules.fixed_point
        unit = world.store.units.new()
        assert len(await found(users, unit=unit)) == 2
        await users.change([document_key(point, 1)], incremented)
        assert await found(users, unit=unit) == [{"_id": 1, "n": 0}, {"_id": 2, "n": 0}]
        with pytest.raises(TransactionOvertaken):
            await users.change([document_key(point, 1)], incremented, unit=unit)
        await unit.close()


async def test_a_collection_of_a_transaction_is_seen_by_others_when_it_commits(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        store = world.store
        unit = store.units.new()
        record = await store.units.create_collection(unit, ACCOUNT, DATABASE, "orders")
        by_n = IndexRecord(0, "n_1", {"n": 1}, {"unique": True})
        record = store.units.add_indexes(unit, ACCOUNT, record, [by_n])
        orders = store.find(ACCOUNT, DATABASE, "orders", unit)
        assert orders is not None
        await orders.insert(bodies({"_id": 1, "n": 7}), unit=unit)
        refused = await orders.insert(bodies({"_id": 2, "n": 7}), unit=unit)
        assert isinstance(refused.problems[0].error, DuplicateKey)
        other = await world.collection("others")
        assert store.record(ACCOUNT, DATABASE, "orders") is None
        await store.units.commit(unit)
        await unit.close()
        seen = store.find(ACCOUNT, DATABASE, "orders")
        assert seen is not None
        assert await found(seen, ScanQuery([Fact("n", "eq", 7)])) == [{"_id": 1, "n": 7}]
        assert await found(other) == []


async def test_a_collection_of_a_transaction_that_was_left_never_was(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        unit = world.store.units.new()
        await world.store.units.create_collection(unit, ACCOUNT, DATABASE, "orders")
        await unit.close()
        assert world.store.records(ACCOUNT, DATABASE) == []
        assert world.store.databases(ACCOUNT) == []


async def test_a_name_that_was_taken_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        unit = world.store.units.new()
        await world.store.units.create_collection(unit, ACCOUNT, DATABASE, "orders")
        await world.collection("orders")
        with pytest.raises(TransactionOvertaken):
            await world.store.units.commit(unit)
        await unit.close()


async def committed(world: CollectionWorld, session: bytes, number: int) -> bool:
    return await world.store.units.has_committed(ACCOUNT, RetryToken(session, number))


@pytest.mark.parametrize("shard_pattern", [None, {"city": "hashed"}], ids=["database", "shard key"])
async def test_a_commit_is_remembered_with_its_documents(tmp_path: Path, shard_pattern: dict[str, str] | None) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users", shard_pattern=shard_pattern)
        unit = world.store.units.new()
        await users.insert(bodies({"_id": 1, "city": "x"}), unit=unit)
        assert not await committed(world, b"session", 5)
        await world.store.units.commit(unit, RetryToken(b"session", 5))
        await unit.close()
        assert await committed(world, b"session", 5)
        assert not await committed(world, b"session", 4)
        assert not await committed(world, b"other", 5)


async def test_a_transaction_stays_within_a_database_or_a_shard_key_value(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        orders = await world.collection("orders", shard_pattern={"city": "hashed"})
        unit = world.store.units.new()
        await users.insert(bodies({"_id": 1}), unit=unit)
        with pytest.raises(TransactionTooWide) as wide:
            await orders.insert(bodies({"_id": 1, "city": "x"}), unit=unit)
        assert (wide.value.first, wide.value.second) == ("shop.users", "shop.orders")
        await unit.close()
