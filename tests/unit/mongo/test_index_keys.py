"""Indexes of MongoDB as pure rules: specifications, conflicts, and the keys of documents."""

from __future__ import annotations

from typing import Any

import pytest

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.index_keys import (
    ID_INDEX,
    SAME,
    conflicts,
    default_name,
    indexes_to_create,
    keys_of,
    parse_index,
)
from asterism.values.bson.types import MISSING, Decimal128, Int64, MinKey

pytestmark = pytest.mark.pure

NAN = float("nan")


def index(key: Any, name: str = "i", **options: Any) -> Any:
    return parse_index({"key": key, "name": name, **options})


@pytest.mark.parametrize(
    ("code", "specification"),
    [
        (14, 5),
        (9, {"key": {"a": 1}}),
        (9, {"name": "i"}),
        (14, {"key": 1, "name": "i"}),
        (14, {"key": {"a": 1}, "name": 1}),
        (67, {"key": {"a": 1}, "name": ""}),
        (2, {"key": {"a": 1}, "name": "*"}),
        (2, {"key": {"a": 1}, "name": "_id_"}),
        (2, {"key": {"_id": -1}, "name": "i"}),
        *(
            (code, {"key": key, "name": "i"})
            for code, key in [
                (67, {}),
                (67, {"a": 0}),
                (67, {"a": NAN}),
                (67, {"a": None}),
                (67, {"a": "unknown"}),
                (67, {"": 1}),
                (67, {"a..b": 1}),
                (67, {"$a": 1}),
                (67, {"$**.a": 1}),
                (67, {"$**": "hashed"}),
                (67, {"$**": 1, "a": 1}),
                (67, {"a": "text", "b": 1, "c": "text"}),
                (67, {"a": "text", "b": "2dsphere"}),
                (13103, {f"f{number}": 1 for number in range(33)}),
                (31303, {"a": "hashed", "b": "hashed"}),
                (7246201, {"$**": 1, "a.$**": 1}),
                (7246202, {"a": "wildcard"}),
            ]
        ),
        *(
            (code, {"key": {"a": 1}, "name": "i", **options})
            for code, options in [
                (197, {"unknown": 1}),
                (14, {"unique": "yes"}),
                (14, {"hidden": 1}),
                (14, {"partialFilterExpression": 1}),
                (67, {"partialFilterExpression": {"a": {"$ne": 1}}}),
                (67, {"partialFilterExpression": {"a": {"$exists": False}}}),
                (67, {"partialFilterExpression": {"$nor": [{"a": 1}]}}),
                (2, {"partialFilterExpression": {"$where": "1"}}),
                (224, {"partialFilterExpression": {"$expr": True}}),
                (67, {"partialFilterExpression": {"a": 1}, "sparse": True}),
                (67, {"expireAfterSeconds": "1"}),
                (67, {"expireAfterSeconds": -1}),
                (67, {"expireAfterSeconds": NAN}),
                (67, {"expireAfterSeconds": 2**31}),
                (2, {"collation": {}}),
                (14, {"collation": "en"}),
                (67, {"weights": {"a": 1}}),
                (2, {"wildcardProjection": {"b": 1}}),
                (67, {"v": 0}),
            ]
        ),
        (67, {"key": {"a": 1, "b": 1}, "name": "i", "expireAfterSeconds": 1}),
        (197, {"key": {"_id": 1}, "name": "i", "hidden": True}),
        (16764, {"key": {"a": "hashed"}, "name": "i", "unique": True}),
        (72, {"key": {"a": "2d"}, "name": "i", "bits": 33}),
        (72, {"key": {"a": "2d"}, "name": "i", "min": 10, "max": 10}),
        (67, {"key": {"a": "2dsphere"}, "name": "i", "2dsphereIndexVersion": 4}),
        (67, {"key": {"a": "text"}, "name": "i", "weights": {"a": 0}}),
        (67, {"key": {"a": "text"}, "name": "i", "default_language": "klingon"}),
        (67, {"key": {"$**": 1}, "name": "i", "unique": True}),
        (67, {"key": {"$**": 1}, "name": "i", "v": 1}),
        (9, {"key": {"$**": 1}, "name": "i", "wildcardProjection": {}}),
        (9, {"key": {"a.$**": 1}, "name": "i", "wildcardProjection": {"b": 1}}),
        (31254, {"key": {"$**": 1}, "name": "i", "wildcardProjection": {"a": 1, "b": 0}}),
        (31249, {"key": {"$**": 1}, "name": "i", "wildcardProjection": {"a": 1, "a.b": 1}}),
        (51271, {"key": {"$**": 1}, "name": "i", "wildcardProjection": {"a": "x"}}),
        (7246209, {"key": {"a": 1, "$**": 1}, "name": "i", "wildcardProjection": {"b": 0}}),
    ],
)
def test_a_specification_that_cannot_be_right_is_refused_with_its_code(code: int, specification: Any) -> None:
    with pytest.raises(MongoFailure) as refusal:
        parse_index(specification)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("specification", "stored"),
    [
        ({"key": {"_id": 1}, "name": "x"}, {"v": 2, "key": {"_id": 1}, "name": "_id_"}),
        (
            {"key": {"a": 1}, "name": "i", "hidden": False, "unique": 1, "sparse": False},
            {"v": 2, "key": {"a": 1}, "name": "i", "unique": True},
        ),
        (
            {"key": {"a": 1}, "name": "i", "expireAfterSeconds": Decimal128("3600.5")},
            {"v": 2, "key": {"a": 1}, "name": "i", "expireAfterSeconds": 3600},
        ),
        (
            {"key": {"x": 1, "b": "text", "a": "text", "y": -1}, "name": "i", "weights": {"b": 5}},
            {
                "v": 2,
                "key": {"x": 1, "_fts": "text", "_ftsx": 1, "y": -1},
                "name": "i",
                "weights": {"a": 1, "b": 5},
                "default_language": "english",
                "language_override": "language",
                "textIndexVersion": 3,
            },
        ),
        (
            {"key": {"a": "2dsphere"}, "name": "i"},
            {"v": 2, "key": {"a": "2dsphere"}, "name": "i", "2dsphereIndexVersion": 3},
        ),
        ({"key": {"a": 1}, "name": "i", "collation": {"locale": "simple"}}, {"v": 2, "key": {"a": 1}, "name": "i"}),
    ],
)
def test_an_index_is_listed_in_its_stored_form(specification: Any, stored: Any) -> None:
    assert parse_index(specification).as_document() == stored


def test_an_index_has_the_collation_of_its_collection_unless_it_has_its_own() -> None:
    inherited = parse_index({"key": {"a": 1}, "name": "i"}, default_collation={"locale": "en", "strength": 2})
    assert (inherited.collation["locale"], inherited.collation["strength"]) == ("en", 2)
    own = {"key": {"a": 1}, "name": "i", "collation": {"locale": "simple"}}
    assert parse_index(own, default_collation={"locale": "en"}).collation is None


def test_clients_name_an_index_by_its_fields() -> None:
    assert default_name({"a": 1, "b.c": -1.0, "d": "text"}) == "a_1_b.c_-1_d_text"


@pytest.mark.parametrize(
    ("existing", "new", "outcome"),
    [
        (index({"a": 1}), index({"a": 1.0}), SAME),
        (index({"a": 1}), index({"a": 1}, background=True), SAME),
        (index({"a": 1}), index({"b": 1}, "j"), None),
        (index({"a": 1}), index({"a": -1}, "j"), None),
        (index({"a": 1}), index({"a": 1}, "j", unique=True), None),
        (index({"a": 1}), index({"a": 1}, "j", sparse=True), None),
        (index({"a": 1}), index({"a": 1}, "j", partialFilterExpression={"a": 1}), None),
        (index({"a": 1}), index({"b": 1}), 86),
        (index({"a": 1}), index({"a": 1}, unique=True), 86),
        (index({"a": 1}), index({"a": 1}, "j"), 85),
        (index({"a": 1}), index({"a": 1}, hidden=True), 85),
        (index({"a": 1}), index({"a": 1}, "j", expireAfterSeconds=1), 85),
        (index({"a": "text"}), index({"b": "text"}, "j"), 85),
        (index({"a": "text"}), index({"x": 1, "b": "text"}, "j"), 67),
        (
            index({"a": 1}, partialFilterExpression={"$and": [{"a": 1}, {"b": 2}]}),
            index({"a": 1}, partialFilterExpression={"b": 2, "a": {"$eq": 1}}),
            SAME,
        ),
        (
            index({"$**": 1}, wildcardProjection={"a": 1}),
            index({"$**": 1}, wildcardProjection={"b": 1}),
            86,
        ),
    ],
)
def test_a_new_index_is_the_same_or_beside_or_in_conflict_with_another(existing: Any, new: Any, outcome: Any) -> None:
    found = conflicts(existing, new)
    assert getattr(found, "code", found) == outcome


def test_indexes_that_exist_are_not_created_again_and_conflicts_within_a_batch_are_found() -> None:
    first, second = index({"a": 1}, "a_1"), index({"b": 1}, "b_1")
    assert indexes_to_create([ID_INDEX, first], [first, second, second]) == [second]
    with pytest.raises(MongoFailure) as refusal:
        indexes_to_create([ID_INDEX], [first, index({"a": 1}, "other")])
    assert refusal.value.code == 85


def test_a_collection_has_at_most_sixty_four_indexes() -> None:
    indexes = [index({f"f{number}": 1}, f"f{number}_1") for number in range(64)]
    assert len(indexes_to_create([ID_INDEX], indexes[:63])) == 63
    with pytest.raises(MongoFailure) as refusal:
        indexes_to_create([ID_INDEX], indexes)
    assert refusal.value.code == 67


@pytest.mark.parametrize(
    ("key", "options", "document", "keys", "is_multikey"),
    [
        ({"a": 1}, {}, {"a": 1}, [(1,)], False),
        ({"a": 1}, {}, {}, [(None,)], False),
        ({"a": 1}, {}, {"a": {"b": 1}}, [({"b": 1},)], False),
        ({"a": 1}, {}, {"a": [1, 2, 1.0, [3]]}, [(1.0,), (2,), ([3],)], True),
        ({"a": 1}, {}, {"a": []}, [(MISSING,)], True),
        ({"a": 1}, {}, {"a": [None]}, [(None,)], True),
        ({"a.b": 1}, {}, {"a": [{"b": 1}, {"b": [2, 3]}, 5]}, [(1,), (2,), (3,), (None,)], True),
        ({"a.0": 1}, {}, {"a": [7, 8]}, [(7,)], False),
        ({"a.0.b": 1}, {}, {"a": [{"b": 1}, {"b": 2}]}, [(1,)], False),
        ({"a": 1, "b": 1}, {}, {"a": [1, 2], "b": 3}, [(1, 3), (2, 3)], True),
        ({"a.b": 1, "a.c": 1}, {}, {"a": [{"b": 1, "c": 2}, {"b": 3}]}, [(1, 2), (3, None)], True),
        ({"a": 1, "a.b": 1}, {}, {"a": [{"b": 1}]}, [({"b": 1}, 1)], True),
        ({"a": 1}, {"sparse": True}, {"b": 1}, [], False),
        ({"a": 1}, {"sparse": True}, {"a": None}, [(None,)], False),
        ({"a": 1, "b": 1}, {"sparse": True}, {"b": 1}, [(None, 1)], False),
        ({"a": 1}, {"partialFilterExpression": {"b": {"$gt": 1}}}, {"a": 1, "b": 1}, [], False),
        ({"a": 1}, {"partialFilterExpression": {"b": {"$gt": 1}}}, {"a": 1, "b": 2}, [(1,)], False),
        ({"$**": 1}, {}, {"_id": 1, "a": 1, "b": {"c": [2, {"d": 3}]}}, [("a", 1), ("b.c", 2), ("b.c.d", 3)], True),
        ({"$**": 1}, {}, {"_id": 1, "a": {}, "b": []}, [("a", {}), ("b", MISSING)], True),
        ({"a.$**": 1}, {}, {"a": {"b": 1}, "c": 2}, [("a.b", 1)], False),
        ({"$**": 1}, {"wildcardProjection": {"a": 1}}, {"a": {"b": 1}, "c": 2}, [("a.b", 1)], False),
        (
            {"$**": 1},
            {"wildcardProjection": {"a": 0, "_id": 1}},
            {"_id": 9, "a": 1, "c": 2},
            [("_id", 9), ("c", 2)],
            False,
        ),
        ({"x": 1, "$**": 1}, {"wildcardProjection": {"x": 0}}, {"x": 5, "a": 1}, [(5, "a", 1)], False),
        ({"a": "text"}, {}, {"a": "words"}, [], False),
    ],
)
def test_a_document_has_these_keys_in_an_index(
    key: Any, options: Any, document: Any, keys: Any, is_multikey: bool
) -> None:
    found, entered_array = keys_of(document, index(key, **options))
    assert (list(found), entered_array) == (keys, is_multikey)


def test_a_compound_wildcard_index_has_an_entry_of_a_document_without_such_paths() -> None:
    found, _ = keys_of({"_id": 1, "x": 5}, index({"x": 1, "$**": 1}, wildcardProjection={"x": 0}))
    assert list(found) == [(5, MinKey(), MinKey())]


@pytest.mark.parametrize(
    ("code", "key", "options", "document"),
    [
        (171, {"a": 1, "b": 1}, {}, {"a": [1], "b": [2]}),
        (171, {"a.b": 1, "a.c": 1}, {}, {"a": {"b": [1], "c": [1]}}),
        (16766, {"a": "hashed"}, {}, {"a": [1]}),
        (7246301, {"a": 1, "$**": 1}, {"wildcardProjection": {"a": 0}}, {"a": [1], "b": 1}),
    ],
)
def test_a_document_that_an_index_cannot_hold_is_refused(code: int, key: Any, options: Any, document: Any) -> None:
    with pytest.raises(MongoFailure) as refusal:
        keys_of(document, index(key, **options))
    assert refusal.value.code == code


def test_equal_values_have_equal_hashes() -> None:
    hashed = index({"a": "hashed"})
    keys = [keys_of({"a": value}, hashed)[0][0] for value in (1, 1.0, Int64(1), Decimal128("1"), 2)]
    assert keys[0] == keys[1] == keys[2] == keys[3] != keys[4]
    assert type(keys[0][0]) is Int64
