"""Updates of MongoDB over documents, without a server: what changes, what stays, what is refused."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.updates.compile import check_result_size, compile_update
from asterism.languages.mongo.updates.description import describe_change
from asterism.languages.mongo.updates.identity import identical
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import (
    Binary,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)

pytestmark = pytest.mark.pure

NOW, CLUSTER_TIME = DatetimeMS(1_700_000_000_000), Timestamp(1_700_000_000, 7)
CONTEXT = new_context(NOW, CLUSTER_TIME)
INT64_MAX = Int64(2**63 - 1)
UNCHANGED = None


def apply(update: Any, document: Any, filter: Any = None, **options: Any) -> Any:
    match = compile_filter(filter, CONTEXT) if filter is not None else None
    return compile_update(update, CONTEXT, **options).apply(document, match=match)


CHANGES: list[tuple[Any, Any, Any]] = [
    # update, before, after
    ({"$set": {"z": 1, "a": 2, "m": 3}}, {"_id": 1}, {"_id": 1, "a": 2, "m": 3, "z": 1}),
    ({"$set": {"10": 1, "9": 2}}, {"_id": 1}, {"_id": 1, "9": 2, "10": 1}),
    ({"$set": {"a.b.c": 1}}, {"_id": 1}, {"_id": 1, "a": {"b": {"c": 1}}}),
    ({"$set": {"a.$b": 1}}, {"_id": 1, "a": {}}, {"_id": 1, "a": {"$b": 1}}),
    ({"$set": {"a.4": 9}}, {"a": [1, 2]}, {"a": [1, 2, None, None, 9]}),
    ({"$set": {"a": 1}}, {"a": 1}, UNCHANGED),
    ({"$set": {"a": 1.0}}, {"a": 1}, {"a": 1.0}),
    ({"$set": {"a": -0.0}}, {"a": 0.0}, {"a": -0.0}),
    ({"$set": {"a": {"x": 1, "y": 2}}}, {"a": {"y": 2, "x": 1}}, {"a": {"x": 1, "y": 2}}),
    ({"$set": {"_id": 1}}, {"_id": 1}, UNCHANGED),
    ({"$set": {}}, {"a": 1}, UNCHANGED),
    ({"$setOnInsert": {"a": 2}}, {"a": 1}, UNCHANGED),
    ({"$unset": {"a": "", "b.c": ""}}, {"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"d": 2}}),
    ({"$unset": {"a.1": ""}}, {"a": [1, 2, 3]}, {"a": [1, None, 3]}),
    ({"$unset": {"a.9": "", "b.x.y": ""}}, {"a": [1], "b": 1}, UNCHANGED),
    ({"$inc": {"a": 1}}, {"a": 2**31 - 1}, {"a": Int64(2**31)}),
    ({"$inc": {"a": Int64(1)}}, {"a": 1}, {"a": Int64(2)}),
    ({"$inc": {"a": 0.5}}, {"a": 1}, {"a": 1.5}),
    ({"$inc": {"a": Decimal128("2.5")}}, {"a": 10.5}, {"a": Decimal128("13.0000000000000")}),
    ({"$inc": {"a": 0.0}}, {"a": -0.0}, UNCHANGED),
    ({"$inc": {"a": 5}}, {}, {"a": 5}),
    ({"$mul": {"a": 2.5, "b": Int64(5), "c": Decimal128("3")}}, {}, {"a": 0.0, "b": Int64(0), "c": Decimal128("0")}),
    ({"$mul": {"a": 2**20}}, {"a": 2**20}, {"a": Int64(2**40)}),
    ({"$min": {"a": 5}, "$max": {"b": 5}}, {"a": 9, "b": 1}, {"a": 5, "b": 5}),
    ({"$min": {"a": 5.0}}, {"a": 5}, UNCHANGED),
    ({"$max": {"a": "x"}}, {"a": 5}, {"a": "x"}),
    ({"$rename": {"a": "b.c"}}, {"a": 1, "d": 2}, {"d": 2, "b": {"c": 1}}),
    ({"$rename": {"a": "d"}}, {"a": 1, "d": 2}, {"d": 1}),
    ({"$rename": {"x": "b"}}, {"a": 1}, UNCHANGED),
    ({"$currentDate": {"a": True, "b": {"$type": "timestamp"}}}, {}, {"a": NOW, "b": CLUSTER_TIME}),
    ({"$bit": {"a": {"and": 12, "or": 1}}}, {"a": 10}, {"a": 9}),
    ({"$bit": {"a": {"xor": Int64(5)}}}, {"a": 1}, {"a": Int64(4)}),
    ({"$bit": {"a": {"and": 10}}}, {}, {"a": 0}),
    ({"$push": {"a": 1}}, {}, {"a": [1]}),
    ({"$push": {"a": {"$position": 0}}}, {"a": []}, {"a": [{"$position": 0}]}),
    ({"$push": {"a": {"$each": [3, 1], "$sort": 1, "$slice": 3}}}, {"a": [4, 2]}, {"a": [1, 2, 3]}),
    ({"$push": {"a": {"$each": [0], "$position": -1}}}, {"a": [1, 2]}, {"a": [1, 0, 2]}),
    ({"$push": {"a": {"$each": [], "$slice": -1}}}, {"a": [1, 2]}, {"a": [2]}),
    (
        {"$push": {"a": {"$each": [], "$sort": {"x": -1}}}},
        {"a": [{"x": 1}, 7, {"x": 2}]},
        {"a": [{"x": 2}, {"x": 1}, 7]},
    ),
    ({"$push": {"a": {"$each": []}}}, {"a": [1]}, UNCHANGED),
    ({"$addToSet": {"a": {"$each": [1.0, 2, 2]}}}, {"a": [1]}, {"a": [1, 2]}),
    ({"$addToSet": {"a": {"x": 1, "y": 2}}}, {"a": [{"y": 2, "x": 1}]}, {"a": [{"y": 2, "x": 1}, {"x": 1, "y": 2}]}),
    ({"$pop": {"a": 1, "b": -1}}, {"a": [1, 2], "b": [1, 2]}, {"a": [1], "b": [2]}),
    ({"$pop": {"a": 1}}, {"a": []}, UNCHANGED),
    ({"$pull": {"a": 1}}, {"a": [1, [1], 1.0, True]}, {"a": [[1], True]}),
    ({"$pull": {"a": {"$gte": 2}}}, {"a": [1, 2, "x"]}, {"a": [1, "x"]}),
    ({"$pull": {"a": {"x": 1}}}, {"a": [{"x": 1, "y": 2}, {"x": 2}, 1]}, {"a": [{"x": 2}, 1]}),
    ({"$pull": {"a": {"$or": [{"x": 1}, {"y": 1}]}}}, {"a": [{"x": 1}, {"y": 1}, {"z": 1}]}, {"a": [{"z": 1}]}),
    ({"$pull": {"a.b": 1}}, {"a": 5}, UNCHANGED),
    ({"$pullAll": {"a": [1, {"x": 1}]}}, {"a": [1, {"x": 1}, {"x": 2}]}, {"a": [{"x": 2}]}),
    ({"$set": {"a.$[].b": 0}}, {"a": [{"b": 1}, {"c": 1}]}, {"a": [{"b": 0}, {"c": 1, "b": 0}]}),
    ([{"$set": {"b": "$a"}}, {"$unset": "a"}], {"_id": 1, "a": 5}, {"_id": 1, "b": 5}),
    ([{"$replaceWith": "$n"}], {"_id": 1, "n": {"a": 1}}, {"_id": 1, "a": 1}),
    ([{"$set": {"a": 1}}], {"_id": 1, "a": 1}, UNCHANGED),
    ([], {"_id": 1}, UNCHANGED),
    ({"x": 1}, {"_id": 1, "a": 1}, {"_id": 1, "x": 1}),
    ({"x": 1, "_id": 1}, {"_id": 1}, {"_id": 1, "x": 1}),
    ({}, {"_id": 1, "a": 1}, {"_id": 1}),
    ({"t": Timestamp(0, 0)}, {"_id": 1}, {"_id": 1, "t": CLUSTER_TIME}),
]


@pytest.mark.parametrize(("update", "before", "after"), CHANGES)
def test_an_update_makes_exactly_this_document_and_leaves_its_argument_alone(
    update: Any, before: Any, after: Any
) -> None:
    untouched = copy.deepcopy(before)
    assert identical(apply(update, before), after)
    assert identical(before, untouched)


def test_a_replacement_counts_as_a_change_even_if_it_is_the_same() -> None:
    assert apply({"a": 1}, {"_id": 1, "a": 1}) == {"_id": 1, "a": 1}


REFUSALS: list[tuple[int, Any, Any]] = [
    (9, {"$unknown": {"a": 1}}, {}),
    (9, {"$set": 1}, {}),
    (9, {"$set": {"a": 1}, "b": 2}, {}),
    (9, 5, {}),
    (52, {"a": 1, "$set": {"b": 1}}, {}),
    (52, {"$set": {"$a": 1}}, {"_id": 1}),
    (40, {"$set": {"a": 1}, "$inc": {"a": 1}}, {}),
    (40, {"$set": {"a": 1, "a.b": 2}}, {}),
    (40, {"$rename": {"a": "b"}, "$set": {"a": 1}}, {}),
    (40, {"$set": {"a.$[]": 1, "a.0": 1}}, {}),
    (56, {"$set": {"": 1}}, {}),
    (56, {"$set": {"a..b": 1}}, {}),
    (66, {"$set": {"_id": 2}}, {"_id": 1}),
    (66, {"$unset": {"_id": 1}}, {"_id": 1}),
    (66, {"$rename": {"a": "_id"}}, {"_id": 1, "a": 1}),
    (66, {"_id": 2}, {"_id": 1}),
    (66, [{"$set": {"_id": 2}}], {"_id": 1}),
    (28, {"$set": {"a.b": 1}}, {"a": 1}),
    (28, {"$set": {"a.b": 1}}, {"a": [1]}),
    (28, {"$pop": {"a.b": 1}}, {"a": "x"}),
    (28, {"$rename": {"a.b": "c"}}, {"a": 1}),
    (34, {"$set": {"a.2000000": 1}}, {"a": []}),
    (14, {"$inc": {"a": "x"}}, {}),
    (14, {"$inc": {"a": 1}}, {"a": None}),
    (14, {"$pop": {"a": 1}}, {"a": 1}),
    (14, {"$addToSet": {"a": {"$each": 1}}}, {}),
    (2, {"$inc": {"a": 1}}, {"a": INT64_MAX}),
    (2, {"$mul": {"a": -1}}, {"a": Int64(-(2**63))}),
    (2, {"$push": {"a": 1}}, {"a": 1}),
    (2, {"$push": {"a": {"$each": [], "$slice": 1.5}}}, {}),
    (2, {"$push": {"a": {"$each": [], "$sort": {}}}}, {}),
    (2, {"$addToSet": {"a": {"$each": [], "$slice": 1}}}, {}),
    (2, {"$pullAll": {"a": 1}}, {}),
    (2, {"$pull": {"a": {"$each": [1]}}}, {}),
    (2, {"$bit": {"a": {"and": 1.0}}}, {}),
    (2, {"$bit": {"a": {}}}, {}),
    (2, {"$currentDate": {"a": {"$type": "Date"}}}, {}),
    (2, {"$rename": {"a": "a"}}, {}),
    (2, {"$rename": {"a.0": "b"}}, {"a": [1]}),
    (2, {"$rename": {"a": "b.0"}}, {"a": 1, "b": [1]}),
    (9867600, {"$rename": {"a": "b\x00"}}, {}),
    (2, {"$set": {"$": 1}}, {}),
    (2, {"$set": {"a.$.b.$": 1}}, {}),
    (2, {"$set": {"a.$": 1}}, {"a": [1]}),
    (2, {"$set": {"a.$[]": 1}}, {"a": 1}),
    (2, {"$set": {"a.$[]": 1}}, {}),
    (2, {"$set": {"a.$[x]": 1}}, {"a": [1]}),
    (9, {"$pop": {"a": 2}}, {}),
    (72, [{"$match": {}}], {}),
    (40324, [{"$nothing": {}}], {}),
    (40323, [{"$set": {}, "$unset": "a"}], {}),
    (40228, [{"$replaceWith": 1}], {"_id": 1}),
    (15, {"$set": {".".join(["a"] * 5000): 1}}, {}),
]


@pytest.mark.parametrize(("code", "update", "document"), REFUSALS)
def test_an_update_that_cannot_be_right_is_refused_with_its_code(code: int, update: Any, document: Any) -> None:
    with pytest.raises(MongoFailure) as refusal:
        apply(update, document)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("update", "filters", "before", "after"),
    [
        ({"$set": {"a.$[e]": 0}}, [{"e": {"$gt": 1}}], {"a": [1, 2, 3]}, {"a": [1, 0, 0]}),
        ({"$set": {"a.$[e].b": 0}}, [{"e.b": 2}], {"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 0}]}),
        (
            {"$set": {"a.$[x].b.$[y]": 0}},
            [{"x.c": 1}, {"y": 2}],
            {"a": [{"c": 1, "b": [1, 2]}, {"c": 2, "b": [2]}]},
            {"a": [{"c": 1, "b": [1, 0]}, {"c": 2, "b": [2]}]},
        ),
        (
            {"$set": {"a.$[x].b": 0, "a.$[y].c": 0}},
            [{"x.n": {"$gt": 0}}, {"y.n": {"$gt": 1}}],
            {"a": [{"n": 1}, {"n": 2}]},
            {"a": [{"n": 1, "b": 0}, {"n": 2, "b": 0, "c": 0}]},
        ),
    ],
)
def test_array_filters_select_the_elements_that_change(update: Any, filters: Any, before: Any, after: Any) -> None:
    assert apply(update, before, array_filters=filters) == after


@pytest.mark.parametrize(
    ("code", "filters"),
    [
        (9, [{"e": 1}, {"f": 1}]),
        (9, [{"e": 1}, {"e": 2}]),
        (9, [{"e": 1, "f": 1}]),
        (9, [{}]),
        (2, [{"1e": 1}]),
        (14, [5]),
    ],
)
def test_array_filters_that_cannot_be_right_are_refused(code: int, filters: Any) -> None:
    with pytest.raises(MongoFailure) as refusal:
        compile_update({"$set": {"a.$[e]": 0}}, CONTEXT, array_filters=filters)
    assert refusal.value.code == code


def test_two_identifiers_that_select_one_element_for_the_same_field_are_in_conflict() -> None:
    update = compile_update({"$set": {"a.$[x]": 0, "a.$[y]": 1}}, CONTEXT, array_filters=[{"x": 1}, {"y": 1}])
    with pytest.raises(MongoFailure) as refusal:
        update.apply({"a": [1]})
    assert refusal.value.code == 40
    assert update.apply({"a": [2]}) is None


def test_the_positional_operator_takes_the_element_that_the_filter_matched() -> None:
    assert apply({"$set": {"a.$": 0}}, {"a": [1, 2, 3]}, {"a": 2}) == {"a": [1, 0, 3]}
    assert apply({"$inc": {"a.$.n": 1}}, {"a": [{"k": 1}, {"k": 2, "n": 5}]}, {"a.k": 2}) == {
        "a": [{"k": 1}, {"k": 2, "n": 6}]
    }


def test_an_upsert_takes_the_equalities_of_the_filter_and_what_is_set_on_insert() -> None:
    update = compile_update({"$set": {"b": 2}, "$setOnInsert": {"c": 3, "$d": 4}}, CONTEXT, is_upsert=True)
    assert list(update.new_document({"x.y": 1, "_id": 7}).items()) == [
        ("_id", 7), ("x", {"y": 1}), ("$d", 4), ("b", 2), ("c", 3)
    ]  # fmt: skip
    assert compile_update({"a": 1}, CONTEXT).new_document({"x": 1, "_id": 7}) == {"_id": 7, "a": 1}
    assert compile_update([{"$set": {"b": "$x"}}], CONTEXT).new_document({"x": 1}) == {"x": 1, "b": 1}
    assert "_id" not in compile_update({"$set": {"b": 2}}, CONTEXT).new_document({})


@pytest.mark.parametrize(
    ("code", "update", "equalities"),
    [
        (66, {"$set": {"_id": 2}}, {"_id": 1}),
        (66, {"$setOnInsert": {"_id.b": 2}}, {"_id.a": 1}),
        (66, {"_id": 2}, {"_id": 1}),
        (53, {"$set": {"_id": [1]}}, {}),
        (52, {"$set": {"_id": {"$a": 1}}}, {}),
        (2, {"$set": {"a.$": 1}}, {"a": [1]}),
    ],
)
def test_an_upsert_that_cannot_be_right_is_refused(code: int, update: Any, equalities: Any) -> None:
    with pytest.raises(MongoFailure) as refusal:
        compile_update(update, CONTEXT, is_upsert=True).new_document(equalities)
    assert refusal.value.code == code


@pytest.mark.parametrize(("update", "options"), [({"a": 1}, {"is_multi": True}), ([], {"array_filters": [{"e": 1}]})])
def test_options_that_a_kind_of_update_does_not_have_are_refused(update: Any, options: Any) -> None:
    with pytest.raises(MongoFailure) as refusal:
        compile_update(update, CONTEXT, **options)
    assert refusal.value.code == 9


def test_a_document_of_more_than_sixteen_megabytes_is_refused() -> None:
    check_result_size(16 * 1024 * 1024)
    with pytest.raises(MongoFailure):
        check_result_size(16 * 1024 * 1024 + 1)


@pytest.mark.parametrize(
    ("before", "after", "updated", "removed", "truncated"),
    [
        ({"a": 1, "b": 1}, {"a": 2, "c": 3}, {"a": 2, "c": 3}, ["b"], []),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 5}}, {"a.b": 5}, ["a.c"], []),
        ({"a": [1, 2, 3]}, {"a": [1, 9]}, {"a.1": 9}, [], [{"field": "a", "newSize": 2}]),
        ({"a": [1]}, {"a": [1, 2]}, {"a.1": 2}, [], []),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, {"a.0.b": 2}, [], []),
        ({"a": {"b": 1, "c": 1}}, {"a": {"c": 1, "b": 1}}, {"a": {"c": 1, "b": 1}}, [], []),
        ({"a": 1}, {"a": 1.0}, {"a": 1.0}, [], []),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}, [], []),
    ],
)
def test_a_change_is_described_by_the_paths_that_differ(
    before: Any, after: Any, updated: Any, removed: Any, truncated: Any
) -> None:
    assert describe_change(before, after) == {
        "updatedFields": updated,
        "removedFields": removed,
        "truncatedArrays": truncated,
    }


def test_paths_that_can_be_read_in_several_ways_are_given_in_parts() -> None:
    described = describe_change({"a": [{"1": 1}], "b": [1]}, {"a": [{"1": 2}], "b": [2]})
    assert described["updatedFields"] == {"a.0.1": 2, "b.0": 2}
    assert described["disambiguatedPaths"] == {"a.0.1": ["a", 0, "1"]}


def test_a_deeply_nested_result_can_be_read_again_or_is_refused() -> None:
    value: Any = 1
    for _ in range(199):
        value = {"a": value}
    for name in ("$set", "$push", "$addToSet"):
        after = apply({name: {"x": value}}, {"_id": 1})
        assert decode(encode(after)) == after
    with pytest.raises(MongoFailure) as refusal:
        apply({"$rename": {"x": "b.c"}}, {"_id": 1, "x": value})
    assert refusal.value.code == 15


def test_any_argument_of_any_operator_gives_a_document_or_a_refusal() -> None:
    operators = (
        "$set $unset $setOnInsert $inc $mul $min $max $rename $currentDate $push $addToSet $pop $pull $pullAll $bit"
    )
    values = [
        None, True, 1, Int64(5), 1.5, float("nan"), float("inf"), Decimal128("NaN"), "", "a.b", "$x", [], [1, {"a": 1}],
        {}, {"$each": [1], "$sort": {"a": 1}}, {"$each": 1}, {"$type": "date"}, {"and": 1}, {"$gt": 1}, {"$and": 1},
        Regex("^a"), b"x", Binary(b"x", 4), ObjectId(), NOW, CLUSTER_TIME, MinKey(), MaxKey(),
    ]  # fmt: skip
    paths = ["a", "a.0", "a.b", "a.$", "a.$[]", "a.$[].b", "_id", "$q", "", "a..b", "b.999"]
    documents = [{"_id": 1}, {"_id": 1, "a": 5}, {"_id": 1, "a": [1, {"b": 2}]}, {"_id": 1, "a": {"b": [1]}}]
    outcomes = set()
    for operator, value, path in itertools.product(operators.split(), values, paths):
        try:
            update = compile_update({operator: {path: value}}, CONTEXT)
        except MongoFailure as failure:
            outcomes.add(failure.code)
            continue
        for document in documents:
            before = copy.deepcopy(document)
            try:
                update.apply(document)
            except MongoFailure as failure:
                outcomes.add(failure.code)
            assert identical(document, before)
    assert outcomes >= {2, 9, 14, 28, 52, 56, 66}
