"""Shapes of queries: which queries are one to the planner, and which are one to statistics."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.mongo.query_shapes import plan_hash, plan_shape, query_hash

Filter = dict[str, Any]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"a": {"$eq": "x"}}),
        ({"a": 1, "b": 2}, {"$and": [{"b": 3}, {"a": 4}]}),
        ({"a": {"$in": [1, 2]}}, {"a": {"$in": [3, 4, 5]}}),
        ({"a": {"$in": [1]}}, {"a": 1}),
        ({"$or": [{"a": 1}, {"b": 2}]}, {"$or": [{"b": 1}, {"a": 2}]}),
        ({"a": {"$not": {"$gt": 1}}}, {"a": {"$not": {"$gt": 9}}}),
    ],
)
def test_values_and_order_of_conditions_are_no_part_of_a_plan(left: Filter, right: Filter) -> None:
    assert plan_shape(left) == plan_shape(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"b": 1}),
        ({"a": {"$gt": 1}}, {"a": {"$lt": 1}}),
        ({"$and": [{"a": 1}, {"b": 1}]}, {"$or": [{"a": 1}, {"b": 1}]}),
        ({"a": {"$exists": True}}, {"a": {"$exists": False}}),
        ({"a": {"$all": [1]}}, {"a": {"$all": [1, 2]}}),
    ],
)
def test_paths_and_operators_make_a_plan(left: Filter, right: Filter) -> None:
    assert plan_hash(plan_shape(left)) != plan_hash(plan_shape(right))


def test_sort_projection_and_collation_make_a_plan() -> None:
    plain = plan_shape({"a": 1})
    assert plan_shape({"a": 1}, {"a": 1}) != plain
    assert plan_shape({"a": 1}, {"a": 1}) != plan_shape({"a": 1}, {"a": -1})
    assert plan_shape({"a": 1}, None, {"a": 1, "b": 1}) == plan_shape({"a": 1}, None, {"b": 1, "a": 1})
    assert plan_shape({"a": 1}, None, None, {"locale": "en"}) != plain
    assert plan_shape({"a": 1}, stages=[{"$group": {"_id": "$b"}}]) != plain
    assert plan_shape({"a": 1}, stages=[{"$unwind": "$b"}]) == plain


def test_the_shape_of_a_query_keeps_its_order_and_the_types_of_values() -> None:
    def hash_of(filter: Filter) -> str:
        return query_hash({"find": "c", "filter": filter})

    assert hash_of({"a": 1}) == hash_of({"a": {"$eq": 2.5}})
    assert hash_of({"a": 1, "b": 2}) != hash_of({"b": 2, "a": 1})
    assert hash_of({"a": 1}) != hash_of({"a": "x"})
    assert hash_of({"a": {"$in": [1]}}) == hash_of({"a": {"$in": [1, 2]}})
    assert hash_of({"$expr": {"$gt": ["$a", 1]}}) == hash_of({"$expr": {"$gt": ["$a", 3]}})
    assert hash_of({"$expr": {"$gt": ["$a", "$b"]}}) != hash_of({"$expr": {"$lt": ["$a", "$b"]}})
