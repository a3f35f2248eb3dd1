"""Documents of collections on a real engine: changes, indexes, unique keys, retries, transactions, and their log."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism.models.collections.changes import ChangeLog, ChangePosition, ChangeSource
from asterism.models.collections.layout import document_key
from asterism.models.collections.records import IndexRecord
from asterism.models.collections.results import (
    Change,
    DuplicateKey,
    RetriedStatement,
    RetryToken,
    TransactionOvertaken,
)
from asterism.models.collections.scans import ScanQuery
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import Document, Int64
from tests.support.collections import ACCOUNT, DATABASE, CollectionWorld, Fact, bodies, found, open_collections

pytestmark = pytest.mark.store

BY_N = IndexRecord(0, "n_1", {"n": 1})
UNIQUE_N = IndexRecord(0, "n_1", {"n": 1}, {"unique": True})


def incremented(_: object, body: bytes | None) -> Change:
    assert body is not None
    document = decode(body)
    return Change.put(encode({**document, "n": document["n"] + 1}), operation="update")


async def test_inserted_documents_are_found_by_id_and_by_scan(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        result = await users.insert(bodies({"_id": 2}, {"_id": 1}, {"_id": Int64(3)}))
        assert (result.inserted, result.problems) == (3, [])
        assert await found(users) == [{"_id": 1}, {"_id": 2}, {"_id": 3}]
        read = await users.read(1.0)
        assert read is not None
        assert decode(read.body) == {"_id": 1}
        assert (await users.size()).items == 3


async def test_an_ordered_insert_ends_at_a_duplicate_and_an_unordered_one_goes_on(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 2}))
        ordered = await users.insert(bodies({"_id": 1}, {"_id": 2}, {"_id": 3}))
        assert (ordered.inserted, [problem.index for problem in ordered.problems]) == (1, [1])
        unordered = await users.insert(bodies({"_id": 1}, {"_id": 3}, {"_id": 3}, {"_id": 4}), ordered=False)
        assert (unordered.inserted, [problem.index for problem in unordered.problems]) == (2, [0, 2])
        assert [document["_id"] for document in await found(users)] == [1, 2, 3, 4]


async def test_an_index_on_existing_documents_finds_them_and_later_ones(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies(*({"_id": number, "n": number % 5} for number in range(100))))
        await world.store.create_indexes(ACCOUNT, users.record, [BY_N])
        await users.insert(bodies({"_id": 100, "n": 3}, {"_id": 101, "n": [3, 3.5, 9]}))
        scan = await users.open_scan(ScanQuery([Fact("n", "eq", 3)]))
        assert scan.plan.index == "n_1"
        ids = [decode(document.body)["_id"] async for batch in scan.batches() for document in batch]
        assert ids == [*range(3, 100, 5), 100, 101]
        between = await found(users, ScanQuery([Fact("n", "gte", 3), Fact("n", "lt", 4)]))
        assert len(between) == 22
        last = await users.open_scan(ScanQuery([Fact("n", "eq", 3)], sort=[("n", -1)]))
        assert not last.plan.is_sorted


async def test_an_index_gives_the_order_of_a_sort(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies(*({"_id": number, "n": number * 7 % 50} for number in range(50))))
        await world.store.create_indexes(ACCOUNT, users.record, [BY_N])
        query = ScanQuery(sort=[("n", -1)])
        scan = await users.open_scan(query)
        assert scan.plan.is_sorted
        assert [document["n"] for document in await found(users, query)] == list(range(49, -1, -1))


async def test_a_unique_index_refuses_duplicates_and_lets_values_go(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 1}, {"_id": 2, "n": 2}))
        await world.store.create_indexes(ACCOUNT, users.record, [UNIQUE_N])
        refused = await users.insert(bodies({"_id": 3, "n": 2.0}))
        error = refused.problems[0].error
        assert isinstance(error, DuplicateKey)
        assert (error.index, error.key_pattern, error.key_value) == ("n_1", {"n": 1}, {"n": 2.0})
        point = users.rules.fixed_point
        with pytest.raises(DuplicateKey):
            await users.change([document_key(point, 1)], incremented)
        await users.change([document_key(point, 2)], incremented)
        assert (await users.insert(bodies({"_id": 3, "n": 2}))).inserted == 1


async def test_a_unique_index_is_not_built_on_duplicates(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 1}, {"_id": 2, "n": 1}))
        with pytest.raises(DuplicateKey):
            await world.store.create_indexes(ACCOUNT, users.record, [UNIQUE_N])
        assert [index.name for index in users.record.indexes] == ["_id_"]


async def test_a_repeated_write_is_answered_and_not_repeated(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        token = RetryToken(b"session", 1, 0, lambda changes: {"n": len(changes)})
        await users.insert(bodies({"_id": 1, "n": 0}), retry=token)
        again = await users.insert(bodies({"_id": 1, "n": 0}), retry=token)
        assert (again.inserted, again.problems, again.retried) == (1, [], [0])
        key = document_key(users.rules.fixed_point, 1)
        token = RetryToken(b"session", 2, 0, lambda changes: {"n": len(changes)})
        await users.change([key], incremented, retry=token)
        assert await users.change([key], incremented, retry=token) == RetriedStatement({"n": 1})
        assert await found(users) == [{"_id": 1, "n": 1}]


async def test_a_transaction_sees_its_own_changes_and_others_see_them_together(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users, orders = await world.collection("users"), await world.collection("orders")
        await users.insert(bodies({"_id": 1, "n": 0}))
        unit = world.store.units.new()
        await orders.insert(bodies({"_id": "a"}), unit=unit)
        await users.change([document_key(users.rules.fixed_point, 1)], incremented, unit=unit)
        assert await found(users, unit=unit) == [{"_id": 1, "n": 1}]
        assert await found(orders, unit=unit) == [{"_id": "a"}]
        assert await found(users) == [{"_id": 1, "n": 0}]
        assert await found(orders) == []
        await world.store.units.commit(unit, RetryToken(b"session", 1))
        await unit.close()
        assert await found(users) == [{"_id": 1, "n": 1}]
        assert await found(orders) == [{"_id": "a"}]
        assert (await orders.size()).items == 1


async def test_a_transaction_that_was_overtaken_writes_nothing(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 0}))
        key = document_key(users.rules.fixed_point, 1)
        unit = world.store.units.new()
        await users.change([key], incremented, unit=unit)
        await users.insert(bodies({"_id": 2, "n": 0}), unit=unit)
        await users.change([key], incremented)
        with pytest.raises(TransactionOvertaken):
            await world.store.units.commit(unit)
        await unit.close()
        assert await found(users) == [{"_id": 1, "n": 1}]


async def changes_since(world: CollectionWorld, position: ChangePosition) -> list[tuple[str, Document | None]]:
    keyspace = world.store.home_keyspace(ACCOUNT, DATABASE)
    assert keyspace is not None
    log = ChangeLog(world.world.router)
    seen = []
    page = await log.read([ChangeSource(keyspace, DATABASE)], position, lambda change: change.is_of_document)
    for change in page.changes:
        body = await log.body(change)
        seen.append((change.operation, None if body is None else decode(body)))
    return seen


async def test_readers_of_changes_see_every_version_and_resume_within_a_batch(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 0}, {"_id": 2, "n": 5}))
        key = document_key(users.rules.fixed_point, 1)
        await users.change([key], incremented)
        await users.change([key], lambda *_: Change.delete())
        events = await changes_since(world, ChangePosition())
        assert events == [
            ("insert", {"_id": 1, "n": 0}),
            ("insert", {"_id": 2, "n": 5}),
            ("update", {"_id": 1, "n": 1}),
            ("delete", None),
        ]
        keyspace = world.store.home_keyspace(ACCOUNT, DATABASE)
        assert keyspace is not None
        log = ChangeLog(world.world.router)
        page = await log.read(
            [ChangeSource(keyspace, DATABASE)], ChangePosition(), lambda change: change.is_of_document
        )
        token = page.changes[0].position.to_bytes()
        assert await changes_since(world, ChangePosition.from_bytes(token)) == events[1:]


async def test_a_sharded_collection_splits_and_every_document_stays_found(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        orders = await world.collection("orders", shard_pattern={"city": "hashed"})
        await world.store.create_indexes(ACCOUNT, orders.record, [BY_N])
        documents = [{"_id": number, "city": f"c{number % 40}", "n": number % 7} for number in range(200)]
        assert (await orders.insert(bodies(*documents), ordered=False)).inserted == 200
        scan = await orders.open_scan(ScanQuery([Fact("n", "eq", 3)]))
        batches = scan.batches()
        before = [decode(document.body)["_id"] for document in await anext(batches)]
        reshaper = world.world.reshaper
        await reshaper.finished(await reshaper.split(orders.keyspace, 0))
        before += [decode(document.body)["_id"] async for batch in batches for document in batch]
        assert sorted(before) == list(range(3, 200, 7))
        assert len(orders.keyspace.record.map.ranges) == 2
        assert len(await found(orders)) == 200
        assert len(await found(orders, ScanQuery([Fact("n", "eq", 3)]))) == len(before)
        pinned = await found(orders, ScanQuery(equalities={"city": "c5"}))
        assert {document["city"] for document in pinned} == {"c5"}


async def test_a_dropped_collection_leaves_nothing_behind(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await world.store.create_indexes(ACCOUNT, users.record, [UNIQUE_N])
        await users.insert(bodies({"_id": 1, "n": 1}))
        await world.store.drop(ACCOUNT, DATABASE, "users")
        assert world.store.find(ACCOUNT, DATABASE, "users") is None
        again = await world.collection("users")
        assert await found(again) == []
        assert (await again.size()).items == 0
        assert world.store.databases(ACCOUNT) == [DATABASE]
        assert await world.store.drop_database(ACCOUNT, DATABASE)
        assert world.store.databases(ACCOUNT) == []
