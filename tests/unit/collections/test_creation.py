"""Changes of the catalog that come together."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.results import CollectionExists
from tests.support.collections import ACCOUNT, DATABASE, bodies, found, open_collections

pytestmark = pytest.mark.store


async def test_collections_that_are_created_together_hold_their_own_documents(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        names = [f"c{number}" for number in range(8)]
        created = await asyncio.gather(*(world.collection(name) for name in names))
        assert len({collection.record.number for collection in created}) == len(names)
        for number, collection in enumerate(created):
            await collection.insert(bodies({"_id": number}))
        for number, collection in enumerate(created):
            assert await found(collection) == [{"_id": number}]


async def test_one_of_two_that_create_a_collection_together_is_told_that_it_exists(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        outcomes = await asyncio.gather(
            *(world.store.create(ACCOUNT, DATABASE, "users") for _ in range(2)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes if isinstance(outcome, Exception)] == [CollectionExists]


async def test_indexes_that_are_added_together_are_all_there(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        record = (await world.collection("users")).record

        async def add(name: str) -> None:
            def change(before: CollectionRecord) -> CollectionRecord:
                return replace(before, indexes=(*before.indexes, IndexRecord(1, name, {name: 1})))

            await world.store.change_record(ACCOUNT, record, change)

        await asyncio.gather(add("a"), add("b"), add("c"))
        changed = world.store.record(ACCOUNT, DATABASE, "users")
        assert changed is not None
        assert {index.name for index in changed.indexes} == {"_id_", "a", "b", "c"}
