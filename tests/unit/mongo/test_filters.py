"""Filters of MongoDB over documents, without a server: what matches, what is refused, what the planner learns."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import ELEMENT_FEATURES, MATCH_FEATURES, compile_filter
from asterism.languages.mongo.filters.match import Condition, Match
from asterism.values.bson.types import (
    MISSING,
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

CONTEXT = new_context(DatetimeMS(0), Timestamp(1, 1))
NAN = float("nan")


def compiled(filter: dict[str, Any], **options: Any) -> Match:
    return compile_filter(filter, CONTEXT, **options)


def matches(filter: dict[str, Any], document: dict[str, Any]) -> bool:
    return compiled(filter).matches(document)


def refusal(filter: dict[str, Any], **options: Any) -> int:
    with pytest.raises(MongoFailure) as failure:
        compiled(filter, **options)
    return failure.value.code


HOLDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"a": 1}),
    ({"a": 1}, {"a": 1.0}),
    ({"a": Int64(1)}, {"a": Decimal128("1.0")}),
    ({"a": Decimal128("0.5")}, {"a": 0.5}),
    ({"a": NAN}, {"a": Decimal128("NaN")}),
    ({"a": None}, {}),
    ({"a": None}, {"a": None}),
    ({"a": None}, {"a": [1, None]}),
    ({"a.b": None}, {"a": 5}),
    ({"a.b": None}, {"a": [{"c": 1}, {"b": 1}]}),
    ({"a": 2}, {"a": [1, 2]}),
    ({"a": [1, 2]}, {"a": [1, 2]}),
    ({"a": [1, 2]}, {"a": [[1, 2], 3]}),
    ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1, "y": 2}}),
    ({"a.b.c": 1}, {"a": {"b": [{"c": 2}, {"c": 1}]}}),
    ({"a.1": 7}, {"a": [5, 7]}),
    ({"a.1": 7}, {"a": {"1": 7}}),
    ({"a.1": 7}, {"a": [{"1": 7}]}),
    ({"a.0.b": 7}, {"a": [{"b": 7}]}),
    ({"a.0.0": 7}, {"a": [[7]]}),
    ({"a": {"$gt": 1, "$lt": 3}}, {"a": [0, 5]}),
    ({"a": {"$gte": None}}, {}),
    ({"a": {"$lte": NAN}}, {"a": NAN}),
    ({"a": {"$gt": MinKey()}}, {"a": "x"}),
    ({"a": {"$lt": MaxKey()}}, {}),
    ({"a": {"$gt": DatetimeMS(1)}}, {"a": DatetimeMS(2)}),
    ({"a": {"$gt": False}}, {"a": True}),
    ({"a": {"$gt": Decimal128("0.1")}}, {"a": 0.1000001}),
    ({"a": {"$ne": 1}}, {"a": "1"}),
    ({"a": {"$in": [1, "x", None]}}, {}),
    ({"a": {"$in": [Regex("^b"), 3]}}, {"a": ["abc", "bcd"]}),
    ({"a": {"$in": [ObjectId("5" * 24), True]}}, {"a": True}),
    ({"a": {"$nin": [1, 2]}}, {"a": 3}),
    ({"a": Regex("B", 2)}, {"a": "abc"}),
    ({"a": Regex("b")}, {"a": Regex("b")}),
    ({"a": {"$regex": "B", "$options": "i"}}, {"a": ["x", "abc"]}),
    ({"a": {"$not": Regex("b")}}, {"a": "xyz"}),
    ({"a": {"$not": {"$gt": 5}}}, {}),
    ({"$and": [{"a": 1}, {"b": 2}]}, {"a": 1, "b": 2}),
    ({"$or": [{"a": 2}, {"b": 2}]}, {"a": 1, "b": 2}),
    ({"$nor": [{"a": 2}, {"b": 3}]}, {"a": 1, "b": 2}),
    ({"a": {"$exists": True}}, {"a": None}),
    ({"a.b": {"$exists": False}}, {"a": [1, {"c": 1}]}),
    ({"a": {"$type": ["string", 16]}}, {"a": 5}),
    ({"a": {"$type": "number"}}, {"a": ["x", 2.5]}),
    ({"a": {"$type": "array"}}, {"a": []}),
    ({"a": {"$size": 2.0}}, {"a": [1, 2]}),
    ({"a": {"$mod": [4, -3]}}, {"a": -7.9}),
    ({"a": {"$all": [1, Regex("^x")]}}, {"a": ["xy", 1]}),
    ({"a": {"$all": [[1, 2]]}}, {"a": [1, 2]}),
    ({"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}}, {"a": [0, 2]}),
    ({"a": {"$elemMatch": {"b": 1, "c": 2}}}, {"a": [{"b": 1}, {"b": 1, "c": 2}]}),
    ({"a": {"$elemMatch": {"$or": [{"b": 1}, {"c": 1}]}}}, {"a": [{"c": 1}]}),
    ({"a": {"$elemMatch": {"0": 5}}}, {"a": [[5]]}),
    ({"a": {"$all": [{"$elemMatch": {"b": 1}}, {"$elemMatch": {"b": 2}}]}}, {"a": [{"b": 1}, {"b": 2}]}),
    ({"a": {"$bitsAllSet": [0, 2]}}, {"a": 5}),
    ({"a": {"$bitsAnySet": [200]}}, {"a": -1}),
    ({"a": {"$bitsAllClear": 2}}, {"a": Binary(b"\x05", 128)}),
    ({"a": {"$bitsAnyClear": Binary(b"\x03")}}, {"a": Int64(1)}),
    ({"$expr": {"$gt": ["$a", "$b"]}}, {"a": 2, "b": 1}),
    ({"a": 1, "$comment": "why"}, {"a": 1}),
    ({"a": {"$ref": "c", "$id": 1}}, {"a": {"$ref": "c", "$id": 1}}),
    ({"$sampleRate": 1}, {}),
]


@pytest.mark.parametrize(("filter", "document"), HOLDS)
def test_a_filter_matches_the_document(filter: dict[str, Any], document: dict[str, Any]) -> None:
    assert matches(filter, document)
    assert not matches({"$nor": [filter]}, document)


DOES_NOT_HOLD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"a": 1}, {"a": True}),
    ({"a": "1"}, {"a": 1}),
    ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}),
    ({"a.b": 1}, {"a": [[{"b": 1}]]}),
    ({"a.b": None}, {"a": [1, 2]}),
    ({"a.01": 7}, {"a": [5, 7]}),
    ({"a": {"$gt": 5}}, {"a": "6"}),
    ({"a": {"$lt": 5}}, {}),
    ({"a": {"$gt": NAN}}, {"a": 1}),
    ({"a": {"$gte": 1}}, {"a": NAN}),
    ({"a": {"$ne": 1}}, {"a": [1, 2]}),
    ({"a": {"$nin": [None]}}, {}),
    ({"a": {"$all": []}}, {"a": []}),
    ({"a": {"$in": []}}, {"a": None}),
    ({"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}}, {"a": [0, 5]}),
    ({"a": {"$elemMatch": {"$gt": 1}}}, {"a": 2}),
    ({"a": {"$size": 1}}, {"a": 1}),
    ({"a": {"$mod": [4, 3]}}, {"a": Decimal128("Infinity")}),
    ({"a": {"$bitsAllClear": 1}}, {"a": 1.5}),
    ({"a": {"$eq": Regex("b")}}, {"a": "b"}),
    ({"$expr": "$missing"}, {}),
    ({"$alwaysFalse": 1}, {}),
    ({"$sampleRate": 0}, {}),
]


@pytest.mark.parametrize(("filter", "document"), DOES_NOT_HOLD)
def test_a_filter_does_not_match_the_document(filter: dict[str, Any], document: dict[str, Any]) -> None:
    assert not matches(filter, document)


REFUSED: list[tuple[int, dict[str, Any]]] = [
    (2, {"$unknown": 1}),
    (2, {"a": {"$unknown": 1}}),
    (2, {"a": {"$gt": 1, "b": 2}}),
    (2, {"$and": []}),
    (2, {"$or": [1]}),
    (2, {"$nor": {}}),
    (2, {"a": {"$not": {}}}),
    (2, {"a": {"$not": 5}}),
    (2, {"a": {"$in": 1}}),
    (2, {"a": {"$in": [{"$gt": 1}]}}),
    (2, {"a": {"$ne": Regex("x")}}),
    (2, {"a": {"$all": 1}}),
    (2, {"a": {"$all": [{"$elemMatch": {"b": 1}}, 2]}}),
    (2, {"a": {"$elemMatch": 1}}),
    (2, {"a": {"$elemMatch": {"$expr": True}}}),
    (2, {"a": {"$size": -1}}),
    (2, {"a": {"$size": 1.5}}),
    (2, {"a": {"$mod": [0, 1]}}),
    (2, {"a": {"$mod": [1]}}),
    (2, {"a": {"$mod": [NAN, 1]}}),
    (2, {"a": {"$type": "unknown"}}),
    (14, {"a": {"$type": None}}),
    (9, {"a": {"$type": []}}),
    (9, {"a": {"$bitsAllSet": -1}}),
    (2, {"a": {"$bitsAllSet": "x"}}),
    (2, {"a": {"$bitsAllSet": [-1]}}),
    (2, {"a": {"$regex": 1}}),
    (2, {"a": {"$options": "i"}}),
    (51108, {"a": {"$regex": "a", "$options": "g"}}),
    (51075, {"a": {"$regex": Regex("a", 2), "$options": "m"}}),
    (51074, {"a": {"$options": "m", "$regex": Regex("a", 2)}}),
    (51091, {"a": {"$regex": "a" * 16385}}),
    (168, {"$expr": {"$unknown": 1}}),
    (2, {"$where": "true"}),
    (2, {"$sampleRate": 2}),
]


@pytest.mark.parametrize(("code", "filter"), REFUSED)
def test_a_filter_is_refused_with_the_code_of_the_server(code: int, filter: dict[str, Any]) -> None:
    assert refusal(filter) == code


def test_features_that_a_place_does_not_offer_are_refused() -> None:
    assert refusal({"a": {"$near": [0, 0]}}, features=MATCH_FEATURES) == 5626500
    assert refusal({"$expr": True}, features=ELEMENT_FEATURES) == 224
    assert refusal({"$jsonSchema": {}}, features=ELEMENT_FEATURES) == 224
    assert refusal({"$text": {"$search": "x"}}, features=ELEMENT_FEATURES) == 2


def test_where_is_left_to_the_caller() -> None:
    match = compiled({"$where": "this.a"}, where=lambda source: lambda document: source == "this.a" and "a" in document)
    assert match.uses_where
    assert match.matches({"a": 1})


def test_a_long_path_costs_no_more_than_its_length() -> None:
    path = ".".join(str(number % 3) for number in range(150))
    assert not compiled({path: 1}).matches({"0": [[{"2": 1}]]})


def test_the_conditions_are_what_must_hold() -> None:
    match = compiled(
        {
            "a": 1,
            "b": {"$gte": 2, "$lt": 5},
            "$and": [{"c": {"$in": [1, 2]}}, {"d": Regex("^ab+")}],
            "$or": [{"e": 1}, {"f": {"$gt": 2}}],
            "g": {"$exists": False},
            "h": {"$elemMatch": {"x": 1, "y": {"$gt": 1}}},
            "i": {"$ne": 3},
        }
    )
    assert match.conditions == (
        Condition("a", "eq", 1),
        Condition("b", "gte", 2),
        Condition("b", "lt", 5),
        Condition("c", "in", [1, 2]),
        Condition("d", "regex_prefix", "ab"),
        Condition("g", "exists", False),
        Condition("h", "elemMatch", (Condition("x", "eq", 1), Condition("y", "gt", 1))),
    )
    assert [part.conditions for part in match.alternatives] == [
        (Condition("e", "eq", 1),),
        (Condition("f", "gt", 2),),
    ]


@pytest.mark.parametrize(
    ("pattern", "prefix"), [("^abc", "abc"), ("^abc?", "ab"), ("^a|b", None), ("abc", None), ("^.", None)]
)
def test_a_pattern_tells_the_text_that_it_begins_with(pattern: str, prefix: str | None) -> None:
    conditions = compiled({"a": {"$regex": pattern}}).conditions
    assert conditions == (() if prefix is None else (Condition("a", "regex_prefix", prefix),))


def test_the_value_of_the_id_is_known_from_an_equality() -> None:
    assert compiled({"$and": [{"_id": 5}, {"a": 1}]}).id_value == 5
    assert compiled({"_id": {"$gt": 5}}).id_value is MISSING


def test_an_upsert_takes_the_equalities_of_the_filter() -> None:
    match = compiled(
        {"a": 1, "b.c": {"$eq": 2}, "$and": [{"d": 3}], "$or": [{"e": 4}], "f": {"$gt": 1}, "g": Regex("x")}
    )
    assert match.equalities() == {"a": 1, "b.c": 2, "d": 3, "e": 4}
    assert compiled({"$or": [{"a": 1}, {"b": 2}]}).equalities() == {}
    assert compiled({"a": {"$all": [7]}}).equalities() == {"a": 7}
    with pytest.raises(MongoFailure) as failure:
        compiled({"$and": [{"a": 1}, {"a.b": 2}]}).equalities()
    assert failure.value.code == 54


POSITIONS: list[tuple[dict[str, Any], dict[str, Any], int | None]] = [
    ({"a": 5}, {"a": [1, 5]}, 1),
    ({"a.b": {"$gt": 1}}, {"a": [{"b": 1}, {"b": [0, 0, 2]}]}, 1),
    ({"a": {"$elemMatch": {"b": 1}}}, {"a": [{"b": 2}, {"b": 1}]}, 1),
    ({"a": [1, 5]}, {"a": [1, 5]}, None),
    ({"a.0": 1}, {"a": [1]}, None),
    ({"a": {"$size": 1}}, {"a": [1]}, None),
    ({"$and": [{"a": {"$gt": 1}}, {"a": {"$lt": 5}}]}, {"a": [1, 2, 3]}, 1),
    ({"$or": [{"a": 2}, {"a": 4}]}, {"a": [4, 2]}, 0),
    ({"$or": [{"a": 2}, {"b": 4}]}, {"a": [4, 2]}, None),
    ({"a": {"$not": {"$gt": 5}}}, {"a": [1]}, None),
    ({"a": {"$all": [3, 5]}}, {"a": [1, 5, 3]}, 1),
]


@pytest.mark.parametrize(("filter", "document", "position"), POSITIONS)
def test_the_matching_array_element_is_known(
    filter: dict[str, Any], document: dict[str, Any], position: int | None
) -> None:
    match = compiled(filter)
    assert match.matches(document)
    assert match.array_index(document) == position


def test_variables_are_bound_for_each_use() -> None:
    match = compile_filter({"$expr": {"$eq": ["$a", "$$x"]}}, CONTEXT.with_variables("x"))
    assert match.with_variables({"x": 1})({"a": 1})
    assert not match.with_variables({"x": 2})({"a": 1})


def test_text_compares_by_the_collation() -> None:
    context = new_context(DatetimeMS(0), Timestamp(1, 1), collate=lambda text: text.lower().encode())
    match = compile_filter({"a": "B", "c": {"$in": ["X", "Y"]}, "d": {"$gt": "a"}}, context)
    assert match.matches({"a": "b", "c": "y", "d": "B"})
