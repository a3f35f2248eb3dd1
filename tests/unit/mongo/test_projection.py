"""Projections of `find` and of the stages $project, $set and $unset, over documents, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.projection import (
    compile_add_fields,
    compile_project,
    compile_projection,
    compile_unset,
)
from asterism.values.bson.types import DatetimeMS, Decimal128, Int64, Timestamp

pytestmark = pytest.mark.pure

CONTEXT = new_context(DatetimeMS(0), Timestamp(1, 1))
Specification = dict[str, Any]
Document = dict[str, Any]

DOCUMENT: Document = {"_id": 1, "a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}, 7, [{"e": 3}]], "g": 5}

PROJECTED: list[tuple[Specification, Document]] = [
    ({"a": 1}, {"_id": 1, "a": {"b": 1, "c": 2}}),
    ({"g": True, "_id": 0}, {"g": 5}),
    ({"_id": 0}, {"a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}, 7, [{"e": 3}]], "g": 5}),
    ({"_id": 1}, {"_id": 1}),
    ({"a.b": Int64(1)}, {"_id": 1, "a": {"b": 1}}),
    ({"a": {"b": 1}}, {"_id": 1, "a": {"b": 1}}),
    ({"d.e": 1}, {"_id": 1, "d": [{"e": 1}, [{"e": 3}]]}),
    ({"d.e": 0, "a": 0}, {"_id": 1, "d": [{"f": 2}, 7, [{}]], "g": 5}),
    ({"a.c": Decimal128("0"), "d": 0}, {"_id": 1, "a": {"b": 1}, "g": 5}),
    ({"g.x": 1}, {"_id": 1}),
    ({"x": "$g"}, {"_id": 1, "x": 5}),
    ({"x": {"$add": ["$g", 1]}, "a.b": 1}, {"_id": 1, "a": {"b": 1}, "x": 6}),
    ({"x": "$$REMOVE", "g": 1}, {"_id": 1, "g": 5}),
    ({"g.x": {"$literal": 1}}, {"_id": 1, "g": {"x": 1}}),
    ({"d.e": {"$literal": 9}}, {"_id": 1, "d": [{"e": 9}, {"e": 9}, [{"e": 9}]]}),
]


@pytest.mark.parametrize(("specification", "expected"), PROJECTED)
def test_find_and_project_share_their_language(specification: Specification, expected: Document) -> None:
    assert compile_projection(specification, CONTEXT)(DOCUMENT) == expected
    assert compile_project(specification, CONTEXT)(DOCUMENT, {}) == expected


REFUSED: list[tuple[int, Specification]] = [
    (31253, {"a": 0, "b": 1}),
    (31254, {"a": 1, "b": 0}),
    (31254, {"_id": {"$add": [1, 2]}, "a": 0}),
    (31252, {"a": 0, "b": {"$add": [1, 2]}}),
    (31310, {"a": 0, "b": "$c"}),
    (31249, {"a": 1, "a.b": 1}),
    (31250, {"a.b": 1, "a": 1}),
    (40352, {"": 1}),
    (40353, {"a.": 1}),
    (15998, {".a": 1}),
    (16410, {"$a": 1}),
    (16410, {"a": {"$add": [1], "$subtract": [1]}}),
    (15, {".".join("a" * 201): 1}),
    (31325, {"a": {"$bogus": 1}}),
    (51270, {"a": {}}),
    (31394, {"a.$.b": 1}),
]


@pytest.mark.parametrize(("code", "specification"), REFUSED)
def test_a_projection_is_refused_with_the_code_of_the_server(code: int, specification: Specification) -> None:
    for compile_it in (compile_projection, compile_project):
        with pytest.raises(MongoFailure) as failure:
            compile_it(specification, CONTEXT)
        assert failure.value.code == code


FOUND: list[tuple[Specification, Specification, Document, Document]] = [
    ({}, {}, {"a": 1}, {"a": 1}),
    ({}, {"a": {"$slice": 2}}, {"a": [1, 2, 3], "b": 1}, {"a": [1, 2], "b": 1}),
    ({}, {"a": {"$slice": -2}}, {"a": [1, 2, 3]}, {"a": [2, 3]}),
    ({}, {"a": {"$slice": [-2, 1]}}, {"a": [1, 2, 3]}, {"a": [2]}),
    ({}, {"a": {"$slice": [1.5, 1]}}, {"a": [1, 2, 3]}, {"a": [2]}),
    ({}, {"a.b": {"$slice": 1}}, {"a": [{"b": [1, 2]}, 5]}, {"a": [{"b": [1]}, 5]}),
    ({}, {"a": {"$slice": 1}, "b": 1}, {"a": [1, 2], "b": 1, "c": 1}, {"a": [1], "b": 1}),
    ({}, {"a": {"$slice": float("inf")}}, {"a": [1]}, {"a": [1]}),
    ({}, {"a": {"$slice": float("nan")}}, {"a": [1]}, {"a": []}),
    ({}, {"a": {"$elemMatch": {"x": 2}}}, {"a": [{"x": 1}, {"x": 2}], "b": 1}, {"a": [{"x": 2}]}),
    ({}, {"a": {"$elemMatch": {"x": 3}}}, {"a": [{"x": 1}]}, {}),
    ({}, {"a": {"$elemMatch": {"$gt": 1}}, "b": 0}, {"a": [1, 2], "b": 1, "c": 1}, {"a": [2], "c": 1}),
    ({"a": {"$gt": 1}}, {"a.$": 1}, {"a": [1, 2, 3], "b": 1}, {"a": [2]}),
    ({"b": {"$gt": 1}}, {"a.$": 1}, {"a": [7, 8, 9], "b": [1, 2]}, {"a": [8]}),
    ({"x.y": 1}, {"x.y.$": 1}, {"x": {"y": 1}}, {"x": {"y": 1}}),
]


@pytest.mark.parametrize(("filter", "specification", "document", "expected"), FOUND)
def test_find_cuts_arrays(
    filter: Specification, specification: Specification, document: Document, expected: Document
) -> None:
    match = compile_filter(filter, CONTEXT)
    assert compile_projection(specification, CONTEXT, filter_match=match)(document) == expected


def test_elements_are_appended_to_kept_fields_but_stay_in_place_otherwise() -> None:
    document = {"a": 1, "b": [1, 2], "c": 3}
    assert list(compile_projection({"b": {"$elemMatch": {"$gt": 1}}, "c": 1}, CONTEXT)(document)) == ["c", "b"]
    assert list(compile_projection({"b": {"$elemMatch": {"$gt": 1}}, "a": 0}, CONTEXT)(document)) == ["b", "c"]


FIND_REFUSED: list[tuple[int, Specification]] = [
    (31274, {"a": {"$elemMatch": 1}}),
    (31275, {"a.b": {"$elemMatch": {"x": 1}}}),
    (31276, {"a.$": 1, "b.$": 1}),
    (31255, {"a.$": 1, "b": {"$elemMatch": {"x": 1}}}),
    (31256, {"b": {"$elemMatch": {"x": 1}}, "a.$": 1}),
    (31271, {"a.$": {"x": 1}}),
    (31308, {"a.$": "x"}),
    (31395, {"a.$": 0}),
    (28724, {"a": {"$slice": [0, 0]}}),
]


@pytest.mark.parametrize(("code", "specification"), FIND_REFUSED)
def test_the_operators_of_find_are_checked(code: int, specification: Specification) -> None:
    with pytest.raises(MongoFailure) as failure:
        compile_projection(specification, CONTEXT)
    assert failure.value.code == code


@pytest.mark.parametrize(
    ("code", "filter", "document"),
    [(51246, {"_id": 1}, {"_id": 1, "a": [1]}), (51247, {"b": 2}, {"a": [1], "b": [1, 2]})],
)
def test_a_positional_projection_fails_without_a_matching_element(
    code: int, filter: Specification, document: Document
) -> None:
    project = compile_projection({"a.$": 1}, CONTEXT, filter_match=compile_filter(filter, CONTEXT))
    with pytest.raises(MongoFailure) as failure:
        project(document)
    assert failure.value.code == code


def test_a_positional_projection_belongs_to_find_alone() -> None:
    with pytest.raises(MongoFailure) as failure:
        compile_project({"a.$": 1}, CONTEXT)
    assert failure.value.code == 31324
    with pytest.raises(MongoFailure) as failure:
        compile_projection({"a.$": 1}, CONTEXT, filter_match=compile_filter({"$expr": True}, CONTEXT))
    assert failure.value.code == 224


ADDED: list[tuple[Specification, Document, Document]] = [
    ({}, {"a": 1}, {"a": 1}),
    ({"a": "$b", "b": "$a"}, {"a": 1, "b": 2}, {"a": 2, "b": 1}),
    ({"a.b.c": 1}, {}, {"a": {"b": {"c": 1}}}),
    ({"a.y": 9}, {"a": [{"x": 1}, 2, [{"x": 3}]]}, {"a": [{"x": 1, "y": 9}, {"y": 9}, [{"x": 3, "y": 9}]]}),
    ({"a": {"z": 3}}, {"a": {"x": 1}}, {"a": {"x": 1, "z": 3}}),
    ({"a": {}}, {"a": {"x": 1}}, {"a": {}}),
    ({"a": "$missing"}, {"a": 1, "b": 2}, {"b": 2}),
    ({"a.x": "$$REMOVE"}, {"a": [{"x": 1, "y": 2}]}, {"a": [{"y": 2}]}),
]


@pytest.mark.parametrize(("specification", "document", "expected"), ADDED)
def test_fields_are_set(specification: Specification, document: Document, expected: Document) -> None:
    assert compile_add_fields(specification, CONTEXT)(document, {}) == expected


@pytest.mark.parametrize(
    ("code", "specification"),
    [
        (40272, 5),
        (40176, {"a": 1, "a.b": 1}),
        (40176, {"a": {"b": 1}, "a.b": 1}),
        (40183, {"a": {"x.y": 1}}),
        (40181, {"a": {"$add": [1], "$multiply": [1]}}),
        (168, {"a": {"$bogus": 1}}),
        (40353, {"$.": 1}),
        (16410, {"a.$": 1}),
    ],
)
def test_added_fields_are_checked(code: int, specification: Any) -> None:
    with pytest.raises(MongoFailure) as failure:
        compile_add_fields(specification, CONTEXT)
    assert failure.value.code == code


def test_fields_are_removed() -> None:
    assert compile_unset(["a.x", "b"])({"a": [{"x": 1, "y": 2}, 3], "b": 1, "c": 1}, {}) == {"a": [{"y": 2}, 3], "c": 1}
    assert compile_unset("a")({"a": 1}, {}) == {}


@pytest.mark.parametrize(
    ("code", "specification"),
    [
        (31002, 1),
        (31119, []),
        (31120, [1]),
        (31250, ["a", "a"]),
        (31249, ["a", "a.b"]),
        (9527900, "a\x00"),
        (16410, "$a"),
    ],
)
def test_removed_fields_are_checked(code: int, specification: Any) -> None:
    with pytest.raises(MongoFailure) as failure:
        compile_unset(specification)
    assert failure.value.code == code
