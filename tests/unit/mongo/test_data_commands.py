"""Parts of the commands that read and write documents: arguments, and decisions about documents that others change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from asterism.apis.mongo.commands import Access, Command
from asterism.apis.mongo.data.aggregate import _counted_field
from asterism.apis.mongo.data.changes import Changer, Outcome, Statement
from asterism.apis.mongo.data.concerns import check_read_concern, check_write_concern, is_unacknowledged, unmet_concern
from asterism.apis.mongo.data.count_distinct import _read_limit, _read_skip, _Values
from asterism.apis.mongo.data.documents import prepare_document
from asterism.apis.mongo.data.hints import Hint, resolve_hint
from asterism.apis.mongo.data.ordering import read_sort
from asterism.apis.mongo.data.partial_indexes import implied_indexes
from asterism.apis.mongo.data.selection import plain_id
from asterism.apis.mongo.data.validation import ValidatorCache
from asterism.apis.mongo.data.variables import CommandScope
from asterism.apis.mongo.index_filters import IndexFilters
from asterism.apis.mongo.usage import UsageRegistry
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.stages.pipeline import compile_pipeline
from asterism.languages.mongo.stages.stage import PipelinePlace
from asterism.models.collections.layout import DocumentKey, document_key
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.results import Action, Change, DuplicateKey, FoundDocument, ScanPlan
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import (
    MISSING,
    Code,
    DatetimeMS,
    Decimal128,
    Document,
    Int64,
    ObjectId,
    Regex,
    Timestamp,
)

pytestmark = pytest.mark.pure

SCOPE = CommandScope(DatetimeMS(0), Timestamp(1, 1))
INDEXES = (
    IndexRecord(0, "_id_", {"_id": 1}),
    IndexRecord(1, "a_1_b_-1", {"a": 1, "b": -1}),
    IndexRecord(2, "hidden", {"h": 1}, {"hidden": True}),
    IndexRecord(3, "adults", {"n": 1}, {"partialFilterExpression": {"age": {"$gte": 18}, "name": {"$exists": True}}}),
)
RECORD = CollectionRecord("shop", "users", 1, b"u" * 16, {}, INDEXES)


def code_of(call: Callable[[], Any]) -> int:
    with pytest.raises(MongoFailure) as found:
        call()
    return found.value.code


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        ({}, None),
        ("a_1_b_-1", Hint("a_1_b_-1")),
        ({"a": 1.0, "b": Decimal128("-1")}, Hint("a_1_b_-1")),
        ({"$natural": Int64(-1)}, Hint("$natural", True)),
    ],
)
def test_hints_name_indexes_by_name_and_by_key(hint: Any, found: Hint | None) -> None:
    assert resolve_hint(hint, RECORD) == found


@pytest.mark.parametrize(
    ("hint", "code"),
    [
        (None, 9),
        (1, 9),
        (Code("a_1_b_-1"), 9),
        ("nothing", 2),
        ("$natural", 2),
        ("hidden", 2),
        ({"b": -1, "a": 1}, 2),
        ({"a": True, "b": -1}, 2),
        ({"$natural": 2}, 2),
        ({"$natural": 1, "a": 1}, 2),
    ],
)
def test_hints_that_name_no_index_are_refused(hint: Any, code: int) -> None:
    assert code_of(lambda: resolve_hint(hint, RECORD)) == code


def test_a_hint_of_a_collection_that_does_not_exist_says_nothing() -> None:
    assert resolve_hint("nothing", None) is None


@pytest.mark.parametrize(
    ("let", "code"),
    [
        ({"": 1}, 9),
        ({"Big": 1}, 9),
        ({"NOW": 1}, 4738901),
        ({"a": "$x"}, 4890500),
        ({"a": "$$ROOT"}, 4890500),
        ({"a": {"$add": [1, "$$NOW"]}}, 51144),
        ({"a": "$$b", "b": 1}, 17276),
        ({"a": {"$divide": [1, 0]}}, 2),
    ],
)
def test_variables_that_need_a_document_are_refused(let: Document, code: int) -> None:
    assert code_of(lambda: CommandScope(DatetimeMS(0), Timestamp(1, 1), let=let)) == code


def test_variables_may_use_those_before_them() -> None:
    scope = CommandScope(DatetimeMS(0), Timestamp(1, 1), let={"a": 2, "b": {"$add": ["$$a", 1]}, "c": "$$REMOVE"})
    assert scope.variables == {"a": 2, "b": 3, "c": MISSING}


@pytest.mark.parametrize(
    ("limit", "count"), [(MISSING, 0), (3.0, 3), (-3, 3), (Decimal128("-0"), 0), (Int64(2**63 - 1), 2**63 - 1)]
)
def test_the_limit_of_a_count_is_a_whole_number(limit: Any, count: int) -> None:
    assert _read_limit(limit) == count


@pytest.mark.parametrize(
    ("limit", "code"), [("3", 2), (None, 2), (1.5, 9), (float("nan"), 9), (float("inf"), 9), (Int64(-(2**63)), 2)]
)
def test_other_limits_of_a_count_are_refused(limit: Any, code: int) -> None:
    assert code_of(lambda: _read_limit(limit)) == code


@pytest.mark.parametrize(
    ("skip", "count"),
    [(2.5, 2), (Decimal128("2.5"), 2), (Decimal128("3.5"), 4), (-0.5, 0), (float("inf"), 2**63 - 1)],
)
def test_doubles_are_cut_and_decimals_rounded_to_even(skip: Any, count: int) -> None:
    assert _read_skip(skip) == count


def test_a_skip_that_rounds_below_zero_is_refused() -> None:
    assert code_of(lambda: _read_skip(Decimal128("-0.6"))) == 2


@pytest.mark.parametrize(
    ("sort", "code"), [({"a": 2}, 15975), ({"a": "up"}, 15974), ({"$natural": 0}, 2), ({"$natural": 1, "a": 1}, 2)]
)
def test_sorts_with_other_directions_are_refused(sort: Document, code: int) -> None:
    assert code_of(lambda: read_sort(sort, SCOPE.context)) == code


@pytest.mark.parametrize(
    ("filter", "wanted"),
    [
        ({"_id": 1}, 1),
        ({"_id": "a"}, "a"),
        ({"_id": None}, MISSING),
        ({"_id": {"$gt": 1}}, MISSING),
        ({"_id": Regex("a")}, MISSING),
        ({"_id": 1, "a": 2}, MISSING),
        ({}, MISSING),
    ],
)
def test_only_a_plain_id_takes_the_short_way(filter: Document, wanted: Any) -> None:
    assert plain_id(filter) == wanted


# --- concerns ---------------------------------------------------------------------------------------------------------


def a_call(**options: Any) -> Any:
    async def handler(_: Any) -> Document:
        return {}

    return SimpleNamespace(command=Command("any", handler, "", **options), body={})


@pytest.mark.parametrize(
    ("concern", "code"),
    [
        ("local", 14),
        ({"level": 1}, 14),
        ({"level": "LOCAL"}, 2),
        ({"other": 1}, 40415),
        ({"afterClusterTime": None}, 14),
        ({"atClusterTime": Timestamp(1, 1)}, 72),
        ({"provenance": "me"}, 2),
    ],
)
def test_read_concerns_are_checked(concern: Any, code: int) -> None:
    assert code_of(lambda: check_read_concern(a_call(reads=True), concern)) == code


def test_a_command_that_reads_nothing_knows_one_level() -> None:
    check_read_concern(a_call(), {"level": "local"})
    assert code_of(lambda: check_read_concern(a_call(), {"level": "majority"})) == 72


@pytest.mark.parametrize(
    ("concern", "code"),
    [
        (1, 14),
        ({"W": 1}, 40415),
        ({"w": -1}, 9),
        ({"w": 51}, 9),
        ({"w": Decimal128("NaN")}, 9),
        ({"w": {}}, 9),
        ({"w": {"dc": "x"}}, 9),
        ({"w": Code("majority")}, 9),
        ({"j": "true"}, 14),
        ({"wtimeout": 2.0**31}, 9),
    ],
)
def test_write_concerns_are_checked(concern: Any, code: int) -> None:
    assert code_of(lambda: check_write_concern(a_call(writes=True, is_write=True), concern)) == code


def test_a_command_that_only_reads_has_no_write_concern() -> None:
    assert code_of(lambda: check_write_concern(a_call(reads=True, access=Access.READ), {"w": 1})) == 72


def test_a_set_of_one_member_meets_what_one_member_can() -> None:
    for concern in (None, {}, {"w": 1}, {"w": "majority"}, {"w": {"dc": 1}}):
        assert unmet_concern(concern) is None
    assert (unmet_concern({"w": 2}) or {})["code"] == 100
    assert (unmet_concern({"w": "everywhere"}) or {})["code"] == 79
    assert is_unacknowledged({"w": 0})
    assert not is_unacknowledged({"w": 0, "j": True})


# --- documents --------------------------------------------------------------------------------------------------------


def prepared(document: Document) -> Document:
    return decode(prepare_document(encode(document), lambda: (7 << 32) | 3))


def test_an_id_is_moved_to_the_front_or_added() -> None:
    assert list(prepared({"a": 1, "_id": 2, "b": 3}).items()) == [("_id", 2), ("a", 1), ("b", 3)]
    added = prepared({"a": 1})
    assert list(added) == ["_id", "a"]
    assert isinstance(added["_id"], ObjectId)


def test_empty_timestamps_at_the_top_are_filled_in() -> None:
    empty = Timestamp(0, 0)
    found = prepared({"_id": empty, "t": empty, "in": {"t": empty}})
    assert found == {"_id": empty, "t": Timestamp(7, 3), "in": {"t": empty}}


@pytest.mark.parametrize(("value", "code"), [([1], 53), (Regex("a"), 53), ({"$a": 1}, 52)])
def test_ids_of_some_types_are_refused(value: Any, code: int) -> None:
    assert code_of(lambda: prepared({"_id": value})) == code


def test_a_validator_refuses_and_the_moderate_level_forgives_what_was_wrong_before() -> None:
    options = {"validator": {"n": {"$gt": 0}}, "validationLevel": "moderate"}
    record = CollectionRecord("shop", "checked", 1, b"v" * 16, options)
    validator = ValidatorCache().find(record, SCOPE)
    assert validator is not None
    validator.check({"_id": 1, "n": 1}, None)
    validator.check({"_id": 1, "n": 0}, {"_id": 1, "n": -1})
    with pytest.raises(MongoFailure) as refused:
        validator.check({"_id": 1, "n": 0}, {"_id": 1, "n": 5})
    assert (refused.value.code, refused.value.details["errInfo"]["failingDocumentId"]) == (121, 1)
    assert (
        ValidatorCache().find(CollectionRecord("s", "c", 1, b"w" * 16, {**options, "validationAction": "warn"}), SCOPE)
        is None
    )


@pytest.mark.parametrize(
    ("filter", "is_implied"),
    [
        ({"age": 20, "name": "x"}, True),
        ({"age": {"$gt": 18}, "name": {"$exists": True}}, True),
        ({"age": {"$in": [18, 30]}, "name": "x"}, True),
        ({"age": {"$in": [17, 30]}, "name": "x"}, False),
        ({"age": {"$gte": 17}, "name": "x"}, False),
        ({"age": "20", "name": "x"}, False),
        ({"age": 20, "name": None}, False),
        ({"age": 20}, False),
    ],
)
def test_a_partial_index_is_used_only_for_what_it_holds(filter: Document, is_implied: bool) -> None:
    found = implied_indexes(RECORD, compile_filter(filter, SCOPE.context), SCOPE.context)
    assert found == (frozenset({"adults"}) if is_implied else frozenset())


def test_distinct_values_are_unrolled_once_and_come_in_order() -> None:
    values = _Values("a.b", None)
    for document in ({"a": {"b": [3, [1]]}}, {"a": [{"b": 1.0}, {"b": 1}, {"c": 9}]}, {"a": 5}, {"a": {"b": None}}):
        values.add(document)
    assert values.in_order() == [None, 1.0, 3, [1]]


@pytest.mark.parametrize(
    ("stages", "counted"),
    [
        ([{"$group": {"_id": 1, "n": {"$sum": 1}}}], ("n", 1)),
        ([{"$group": {"_id": None, "count": {"$sum": 1}}}], ("count", None)),
        ([{"$count": "total"}], ("total", MISSING)),
        ([{"$group": {"_id": "$a", "n": {"$sum": 1}}}], None),
        ([{"$group": {"_id": 1, "n": {"$sum": 2}}}], None),
        ([{"$group": {"_id": 1, "n": {"$sum": 1.0}}}], None),
    ],
)
def test_pipelines_that_only_count_are_recognized(stages: list[Document], counted: Any) -> None:
    pipeline = compile_pipeline(stages, SCOPE.context, place=PipelinePlace())
    assert _counted_field(pipeline) == counted


# --- changes ----------------------------------------------------------------------------------------------------------


class FakeCollection:
    """Documents in a dictionary. `before_change` runs between the search and the change, as another writer would."""

    def __init__(self, *documents: Document) -> None:
        self.point = b"p"
        self.bodies = {document_key(self.point, document["_id"]): encode(document) for document in documents}
        self.before_change: Callable[[], None] | None = None
        self.record = RECORD
        self.rules = SimpleNamespace(
            is_sharded=False,
            record=RECORD,
            pinned_point=lambda _: self.point,
            point_of=lambda *_, **__: self.point,
        )

    async def open_scan(self, _: Any, **__: Any) -> Any:
        async def batches() -> AsyncGenerator[list[FoundDocument], None]:
            yield [FoundDocument(key, body) for key, body in sorted(self.bodies.items())]

        return SimpleNamespace(plan=ScanPlan(is_sorted=True), batches=batches)

    async def change(self, keys: Sequence[DocumentKey], decide: Callable[..., Change], **_: Any) -> list[Change]:
        if self.before_change is not None:
            run, self.before_change = self.before_change, None
            run()
        decisions = [decide(key, self.bodies.get(key)) for key in keys]
        for key, decision in zip(keys, decisions, strict=True):
            if decision.action is Action.PUT:
                self.bodies[key] = decision.body
            elif decision.action is Action.DELETE:
                self.bodies.pop(key, None)
        return decisions

    def put(self, document: Document) -> None:
        self.bodies[document_key(self.point, document["_id"])] = encode(document)

    def documents(self) -> list[Document]:
        return sorted((decode(body) for body in self.bodies.values()), key=lambda document: str(document["_id"]))


def changed(collection: FakeCollection, statement: Statement) -> Outcome:
    call: Any = SimpleNamespace(
        unit=None,
        spent=None,
        session=None,
        transaction_number=None,
        check_time=lambda: None,
        field=lambda *_: None,
        account="account",
        context=SimpleNamespace(index_filters=IndexFilters(), usage=UsageRegistry()),
    )
    changer = Changer(call, collection, SCOPE)  # type: ignore[arg-type]  # a collection in all that it uses
    return asyncio.run(changer.run(statement))


def test_a_document_that_was_changed_away_is_not_updated_and_the_next_one_is() -> None:
    collection = FakeCollection({"_id": 1, "state": "new"}, {"_id": 2, "state": "new"})
    collection.before_change = lambda: collection.put({"_id": 1, "state": "taken"})
    outcome = changed(collection, Statement({"state": "new"}, {"$set": {"state": "mine"}}))
    assert (outcome.matched, outcome.modified) == (1, 1)
    assert [document["state"] for document in collection.documents()] == ["taken", "mine"]


def test_an_upsert_that_another_writer_overtakes_becomes_an_update() -> None:
    collection = FakeCollection()

    def overtake() -> None:
        collection.put({"_id": 1, "n": 10})

    collection.before_change = overtake
    outcome = changed(collection, Statement({"_id": 1, "n": {"$gt": 0}}, {"$inc": {"n": 1}}, is_upsert=True))
    assert (outcome.matched, outcome.upserted) == (1, MISSING)
    assert collection.documents() == [{"_id": 1, "n": 11}]


def test_an_upsert_of_an_id_that_exists_but_does_not_match_is_a_duplicate() -> None:
    collection = FakeCollection({"_id": 1, "n": 0})
    with pytest.raises(DuplicateKey):
        changed(collection, Statement({"_id": {"$gt": 5}}, {"$setOnInsert": {"_id": 1}}, is_upsert=True))


def test_an_upsert_by_id_takes_one_step() -> None:
    collection = FakeCollection()
    outcome = changed(collection, Statement({"_id": 7}, {"$inc": {"n": 1}}, is_upsert=True))
    assert (outcome.matched, outcome.upserted) == (0, 7)
    assert collection.documents() == [{"_id": 7, "n": 1}]


def test_an_update_of_many_counts_matches_and_changes_apart() -> None:
    collection = FakeCollection({"_id": 1, "n": 1}, {"_id": 2, "n": 2}, {"_id": 3, "n": 0})
    outcome = changed(collection, Statement({"n": {"$gt": 0}}, {"$set": {"n": 2}}, is_multi=True))
    assert (outcome.matched, outcome.modified) == (2, 1)


def test_a_delete_of_many_leaves_what_no_longer_matches() -> None:
    collection = FakeCollection({"_id": 1, "n": 1}, {"_id": 2, "n": 1})
    collection.before_change = lambda: collection.put({"_id": 2, "n": 5})
    assert changed(collection, Statement({"n": 1}, is_multi=True)).matched == 1
    assert collection.documents() == [{"_id": 2, "n": 5}]


def test_constants_are_for_pipelines_only() -> None:
    collection = FakeCollection({"_id": 1})
    changed(collection, Statement({"_id": 1}, [{"$set": {"c": "$$v"}}], constants={"v": "$literal"}))
    assert collection.documents() == [{"_id": 1, "c": "$literal"}]
    statement = Statement({"_id": 1}, {"$set": {"c": 1}}, constants={"v": 1})
    assert code_of(lambda: changed(collection, statement)) == 51198
