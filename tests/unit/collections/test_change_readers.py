"""Readers of changes: through splits, merges, drops and renames they miss nothing and repeat nothing."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from asterism.clock import SYSTEM_CLOCK, ClockSkew
from asterism.models.collections.change_position import ChangePosition
from asterism.models.collections.change_reader import ChangeReader, HistoryLost
from asterism.models.collections.change_scope import ChangeScope
from asterism.models.collections.changes import ChangeLog, LoggedChange
from asterism.models.collections.collection import Collection
from asterism.models.collections.layout import document_key
from asterism.models.collections.log_entries import LOG_KEPT_SECONDS
from asterism.models.collections.open_readers import scope_sources
from asterism.models.collections.records import IndexRecord
from asterism.models.collections.results import Change, RetryToken
from asterism.models.collections.upkeep import CollectionUpkeep
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import Document
from tests.support.collections import ACCOUNT, DATABASE, CollectionWorld, bodies, found, open_collections

pytestmark = pytest.mark.store

WHOLE = ChangeScope(ACCOUNT, DATABASE)
Seen = tuple[str, Any, Document | None, ChangePosition]


class Watcher:
    """A reader whose events are the operation, the id or the name, the document after, and the position."""

    def __init__(self, world: CollectionWorld, scope: ChangeScope, position: ChangePosition) -> None:
        self._log = ChangeLog(world.store.services.router)
        self.reader: ChangeReader[Seen] = ChangeReader(world.store, scope, position, self._make)
        world.store.readers.add(self.reader)

    async def _make(self, change: LoggedChange) -> Seen:
        if not change.is_of_document:
            return change.operation, change.name, None, change.position
        body = None if change.operation == "delete" else await self._log.body(change)
        return change.operation, change.key["_id"], None if body is None else decode(body), change.position

    async def rest(self) -> list[Seen]:
        events: list[Seen] = []
        while more := await self.reader.next():
            events += more
        return events

    async def summary(self) -> list[tuple[str, Any]]:
        return [(operation, about) for operation, about, _, _ in await self.rest()]


async def watch(world: CollectionWorld, scope: ChangeScope = WHOLE, *, from_start: bool = False) -> Watcher:
    log = ChangeLog(world.store.services.router)
    position = ChangePosition() if from_start else await log.position_now(scope_sources(world.store, scope))
    return Watcher(world, scope, position)


def replayed(state: dict[Any, Document], events: list[Seen]) -> dict[Any, Document]:
    state = dict(state)
    for operation, document_id, document, _ in events:
        if operation == "delete":
            del state[document_id]
        elif operation in ("insert", "replace"):
            assert (operation == "insert") == (document_id not in state)
            assert document is not None
            state[document_id] = document
    return state


async def change_at_random(chance: random.Random, orders: Collection, count: int) -> None:
    for _ in range(count):
        number = chance.randrange(60)
        document: Document = {"_id": number, "city": f"c{number % 15}", "n": chance.randrange(1000)}
        key = document_key(orders.rules.point_of(document, allow_missing=False), number)
        deletes = chance.random() < 0.3

        def decide(_: object, body: bytes | None, *, deletes: bool = deletes, after: Document = document) -> Change:
            if deletes:
                return Change.keep() if body is None else Change.delete()
            return Change.put(encode(after), operation="replace")

        await orders.change([key], decide)


async def reshape(chance: random.Random, world: CollectionWorld, orders: Collection) -> None:
    ranges = orders.keyspace.record.map.ranges
    reshaper = world.world.reshaper
    if len(ranges) > 1 and chance.random() < 0.5:
        left = chance.randrange(len(ranges) - 1)
        job = await reshaper.merge(orders.keyspace, ranges[left].id, ranges[left + 1].id)
    else:
        job = await reshaper.split(orders.keyspace, chance.choice(ranges).id)
    await reshaper.finished(job)


@pytest.mark.parametrize("seed", range(4))
async def test_events_behind_any_position_lead_to_the_final_state_through_splits_and_merges(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    async with open_collections(tmp_path) as world:
        orders = await world.collection("orders", shard_pattern={"city": "hashed"})
        watcher = await watch(world, from_start=True)
        filler = [{"_id": 1000 + number, "city": f"f{number}", "n": 0} for number in range(40)]
        await orders.insert(bodies(*filler), ordered=False)
        events: list[Seen] = []
        for _ in range(5):
            await change_at_random(chance, orders, 30)
            if chance.random() < 0.5:
                events += [event for event in await watcher.rest() if event[0] not in ("create", "shardCollection")]
            await reshape(chance, world, orders)
        events += [event for event in await watcher.rest() if event[0] not in ("create", "shardCollection")]
        final = {document["_id"]: document for document in await found(orders)}
        assert replayed({}, events) == final
        for at in chance.sample(range(len(events)), 12):
            token = ChangePosition.from_bytes(events[at][3].to_bytes())
            behind = await Watcher(world, WHOLE, token).rest()
            # Order is kept for each document; neighbors of different partitions may have changed places.
            assert sorted(map(repr, behind)) != [] or at == len(events) - 1
            assert replayed(replayed({}, events[: at + 1]), behind) == final


async def test_a_transaction_is_resumed_behind_each_of_its_events(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users, orders = await world.collection("users"), await world.collection("orders")
        watcher = await watch(world)
        unit = world.store.units.new()
        await users.insert(bodies({"_id": 1}, {"_id": 2}), unit=unit)
        await orders.insert(bodies({"_id": "a"}), unit=unit)
        await world.store.units.commit(unit, RetryToken(b"session", 1))
        await unit.close()
        await users.insert(bodies({"_id": 3}))
        events = await watcher.rest()
        ids = [document_id for _, document_id, _, _ in events]
        assert ids == [1, 2, "a", 3]
        for at, event in enumerate(events):
            again = await Watcher(world, WHOLE, event[3]).rest()
            assert [document_id for _, document_id, _, _ in again] == ids[at + 1 :]


async def test_a_document_that_a_transaction_changes_twice_is_seen_once_with_both_changes(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "a": 1, "c": 1}, {"_id": 2}))
        watcher = await watch(world)
        unit = world.store.units.new()
        keys = [document_key(users.rules.fixed_point, number) for number in (1, 2)]

        def setting(**fields: Any) -> Change:
            return Change.put(encode({"_id": 1, **fields}), {"updatedFields": fields}, operation="update")

        await users.change(keys[:1], lambda *_: setting(a=2, c=1), unit=unit)
        await users.change(keys[:1], lambda *_: setting(a=2, b=3), unit=unit)
        await users.change(keys[1:], lambda *_: Change.delete(), unit=unit)
        await users.insert(bodies({"_id": 2, "again": True}), unit=unit)
        await world.store.units.commit(unit, RetryToken(b"session", 1))
        await unit.close()
        assert await watcher.summary() == [("update", 1), ("replace", 2)]
        log = ChangeLog(world.store.services.router)
        page = await log.read(scope_sources(world.store, WHOLE), ChangePosition())
        (described,) = [change.description for change in page.changes if change.operation == "update"]
        assert described == {"updatedFields": {"a": 2, "b": 3}, "removedFields": ["c"], "truncatedArrays": []}


async def test_collections_of_a_scope_are_told_and_others_are_not(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users, orders = await world.collection("users"), await world.collection("orders")
        users_only = await watch(world, ChangeScope(ACCOUNT, DATABASE, "users"))
        every = await watch(world, ChangeScope(ACCOUNT))
        other = await watch(world, ChangeScope(ACCOUNT, "elsewhere"))
        await users.insert(bodies({"_id": 1}))
        await orders.insert(bodies({"_id": 2}))
        assert await users_only.summary() == [("insert", 1)]
        assert await every.summary() == [("insert", 1), ("insert", 2)]
        assert await other.summary() == []


async def test_changes_of_the_catalog_are_in_order_with_those_of_documents(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        expanded = await watch(world, ChangeScope(ACCOUNT, DATABASE, is_expanded=True))
        plain = await watch(world)
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1}))
        await world.store.create_indexes(ACCOUNT, users.record, [IndexRecord(0, "n_1", {"n": 1})])
        await world.store.drop_indexes(ACCOUNT, users.record, ["n_1"])
        await world.store.change_options(ACCOUNT, users.record, {"validationLevel": "off"})
        await world.store.rename(ACCOUNT, DATABASE, "users", "people")
        people = world.store.find(ACCOUNT, DATABASE, "people")
        assert people is not None
        await people.insert(bodies({"_id": 2}))
        await world.store.drop(ACCOUNT, DATABASE, "people")
        assert await expanded.summary() == [
            ("create", "users"), ("insert", 1), ("createIndexes", "users"), ("dropIndexes", "users"),
            ("modify", "users"), ("rename", "users"), ("insert", 2), ("drop", "people"),
        ]  # fmt: skip
        shown = [("insert", 1), ("rename", "users"), ("insert", 2), ("drop", "people")]
        assert await plain.summary() == shown
        again = Watcher(world, WHOLE, ChangePosition())
        assert await again.summary() == shown


async def test_a_reader_of_a_collection_ends_when_it_is_dropped_and_can_begin_behind_it(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        scope = ChangeScope(ACCOUNT, DATABASE, "users")
        watcher = await watch(world, scope)
        await users.insert(bodies({"_id": 1}))
        await world.store.drop(ACCOUNT, DATABASE, "users")
        again = await world.collection("users")
        await again.insert(bodies({"_id": 2}))
        events = await watcher.rest()
        assert [(event[0], event[1], event[2]) for event in events] == [
            ("insert", 1, {"_id": 1}),
            ("drop", "users", None),
        ]
        assert await Watcher(world, scope, events[-1][3]).summary() == [("insert", 2)]


async def test_documents_of_a_dropped_collection_are_there_for_a_reader_that_comes_later(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users")
        await users.insert(bodies({"_id": 1, "n": 1}, {"_id": 2, "n": 2}))
        await users.change([document_key(users.rules.fixed_point, 1)], lambda *_: Change.delete())
        await world.store.drop(ACCOUNT, DATABASE, "users")
        events = await Watcher(world, WHOLE, ChangePosition()).rest()
        assert [(event[0], event[2]) for event in events] == [
            ("insert", {"_id": 1, "n": 1}),
            ("insert", {"_id": 2, "n": 2}),
            ("delete", None),
            ("drop", None),
        ]


@pytest.mark.parametrize("shard_pattern", [None, {"_id": "hashed"}])
async def test_an_open_reader_sees_all_of_a_database_that_is_dropped(
    tmp_path: Path, shard_pattern: Document | None
) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users", shard_pattern=shard_pattern)
        before = (await watch(world)).reader.position
        watcher, every = await watch(world), await watch(world, ChangeScope(ACCOUNT))
        await users.insert(bodies({"_id": 1}))
        assert await world.store.drop_database(ACCOUNT, DATABASE)
        seen = [("insert", 1), ("drop", "users"), ("dropDatabase", "")]
        assert await watcher.summary() == seen
        assert await every.summary() == seen
        renewed = await world.collection("users")
        await renewed.insert(bodies({"_id": 2}))
        assert await every.summary() == [("insert", 2)]
        with pytest.raises(HistoryLost):
            await Watcher(world, WHOLE, before).rest()


async def test_an_open_reader_sees_all_of_a_sharded_collection_that_is_dropped(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        users = await world.collection("users", shard_pattern={"_id": "hashed"})
        scope = ChangeScope(ACCOUNT, DATABASE, "users")
        before = (await watch(world, scope)).reader.position
        watcher = await watch(world, scope)
        await users.insert(bodies({"_id": 1}))
        await world.store.drop(ACCOUNT, DATABASE, "users")
        assert await watcher.summary() == [("insert", 1), ("drop", "users")]
        with pytest.raises(HistoryLost):
            await Watcher(world, scope, before).rest()


async def test_names_of_the_log_are_not_listed(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        await world.collection("users")
        await world.store.drop_database(ACCOUNT, DATABASE)
        assert world.store.databases(ACCOUNT) == []


async def test_entries_are_kept_for_a_day_and_an_older_position_has_lost_them(tmp_path: Path) -> None:
    skew = ClockSkew()
    async with open_collections(tmp_path, clock=skew.shift(SYSTEM_CLOCK)) as world:
        users = await world.collection("users")
        log, sources = ChangeLog(world.store.services.router), scope_sources(world.store, WHOLE)
        before = await log.position_now(sources)
        await users.insert(bodies({"_id": 1}))
        upkeep = CollectionUpkeep(world.store)
        skew.seconds = LOG_KEPT_SECONDS - 60
        await upkeep.sweep_logs()
        assert [change.key for change in (await log.read(sources, before)).changes] == [{"_id": 1}]
        assert not await log.has_lost(sources, before)
        skew.seconds = LOG_KEPT_SECONDS + 60
        now = await log.position_now(sources)
        await users.insert(bodies({"_id": 2}))
        assert await upkeep.sweep_logs() > 0
        assert await log.has_lost(sources, before)
        assert not await log.has_lost(sources, now)


async def test_a_reader_begins_at_a_time_without_reading_all_that_is_older(tmp_path: Path) -> None:
    skew = ClockSkew()
    async with open_collections(tmp_path, clock=skew.shift(SYSTEM_CLOCK)) as world:
        users = await world.collection("users")
        for number in range(40):
            skew.seconds = number * 60.0
            await users.insert(bodies({"_id": number}))
        log, sources = ChangeLog(world.store.services.router), scope_sources(world.store, WHOLE)
        (wanted,) = [
            change for change in (await log.read(sources, ChangePosition())).changes if change.key.get("_id") == 30
        ]
        position = await log.position_at(sources, wanted.time)
        rid = sources[0].keyspace.record.rid
        assert wanted.lsn - 4 < position.keyspaces[rid].lsn_at(wanted.point) < wanted.lsn
        assert await Watcher(world, WHOLE, position).summary() == [("insert", number) for number in range(30, 40)]
        beginning = await log.position_at(sources, 0)
        assert len(await Watcher(world, WHOLE, beginning).summary()) == 40
