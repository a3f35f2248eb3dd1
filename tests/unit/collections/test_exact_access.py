"""Filters that an index answers alone: a batch that claims so holds exactly the documents of the filter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.models.collections.layout import document_key
from asterism.models.collections.records import IndexRecord
from asterism.models.collections.results import Change
from asterism.models.collections.scans import ScanQuery
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import DatetimeMS, Decimal128, Document, Int64, ObjectId, Timestamp
from tests.support.collections import ACCOUNT, Fact, bodies, open_collections

pytestmark = pytest.mark.store

CONTEXT = new_context(DatetimeMS(0), Timestamp(1, 1))
BY_A_AND_B = IndexRecord(0, "a_1_b_1", {"a": 1, "b": 1})
BY_A_DOWN = IndexRecord(0, "a_-1", {"a": -1})

VALUES = (
    1, Int64(2), 2.5, -0.0, float("nan"), float("-inf"), Int64(2**53 + 1), float(2**53), Decimal128("2.5"), "", "ab",
    True, None, DatetimeMS(0), ObjectId(bytes(12)), {"c": 1},
)  # fmt: skip


def filters() -> Iterator[Document]:
    """Yield conditions on one field with one and two bounds, and on two fields."""
    for operator, value in product(("$eq", "$gt", "$gte", "$lt", "$lte"), VALUES):
        yield {"a": {operator: value}}
    for lower, upper, low, high in product(("$gt", "$gte"), ("$lt", "$lte"), VALUES, VALUES):
        yield {"a": {lower: low, upper: high}}
    for value, operator, bound in product(VALUES, ("$gte", "$lt"), (1, "ab", None, float("nan"))):
        yield {"a": value, "b": {operator: bound}}
        yield {"a": value, "c": {operator: bound}}


@pytest.mark.parametrize("index", [BY_A_AND_B, BY_A_DOWN], ids=["up", "down"])
async def test_documents_of_an_exact_batch_match_and_none_is_left_out(index: IndexRecord) -> None:
    fields: list[Document] = [{"a": value, "b": 1, "c": 1} for value in VALUES]
    fields += [{"a": [value, 1]} for value in VALUES]
    fields += [{"a": 1, "b": value, "c": value} for value in VALUES]
    fields += [{}]
    stored = [{"_id": number, **each} for number, each in enumerate(fields)]
    exact = 0
    async with open_collections(None) as world:
        things = await world.collection("things")
        await things.insert(bodies(*stored))
        await world.store.create_indexes(ACCOUNT, things.record, [index])
        for wanted in filters():
            match = compile_filter(wanted, CONTEXT)
            scan = await things.open_scan(ScanQuery(match.conditions, is_complete=match.is_planned))
            found: list[Any] = []
            async for batch in scan.batches():
                decoded = [decode(document.body) for document in batch]
                if scan.plan.is_exact:
                    exact += len(batch)
                    assert all(match.matches(document) for document in decoded), wanted
                found += [document["_id"] for document in decoded if match.matches(document)]
            assert sorted(found) == [document["_id"] for document in stored if match.matches(document)], wanted
    assert exact > 20


async def test_a_range_of_numbers_needs_no_look_at_the_documents(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        things = await world.collection("things")
        await things.insert(bodies(*({"_id": number, "a": number} for number in range(20))))
        await world.store.create_indexes(ACCOUNT, things.record, [BY_A_AND_B])
        scan = await things.open_scan(ScanQuery([Fact("a", "gte", 3), Fact("a", "lt", 9)], is_complete=True))
        exact = [scan.plan.is_exact async for batch in scan.batches() if batch]
        assert exact == [True]


async def test_a_document_that_changed_behind_its_entry_is_looked_at_again(tmp_path: Path) -> None:
    async with open_collections(tmp_path) as world:
        things = await world.collection("things")
        await things.insert(bodies({"_id": 1, "a": 1}))
        await world.store.create_indexes(ACCOUNT, things.record, [BY_A_AND_B])
        router = world.world.router
        scan_partition = router.scan

        async def scan_then_change(*arguments: Any, **options: Any) -> Any:
            page = await scan_partition(*arguments, **options)
            key = document_key(things.rules.fixed_point, 1)
            await things.change((key,), lambda *_: Change.put(encode({"_id": 1, "a": 2}), operation="update"))
            return page

        scan = await things.open_scan(ScanQuery([Fact("a", "eq", 1)], is_complete=True))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(router, "scan", scan_then_change)
            exact = [scan.plan.is_exact async for batch in scan.batches() if batch]
        assert exact == [False]
