"""`$jsonSchema` over documents, without a server: what conforms, what a schema may be, how a refusal is explained."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.json_schema import compile_schema, explain_schema
from asterism.values.bson.types import DatetimeMS, Decimal128, Int64, ObjectId

pytestmark = pytest.mark.pure

NAN = float("nan")


def of_x(**rules: Any) -> dict[str, Any]:
    return {"properties": {"x": rules}}


CASES: list[tuple[Any, list[Any], list[Any]]] = [
    # schema, documents that conform, documents that do not
    ({}, [{}, {"x": 1}], []),
    ({"not": {}}, [], [{}]),
    ({"bsonType": "object"}, [{}], []),
    ({"bsonType": "array"}, [], [{}]),
    ({"required": ["a", ""]}, [{"a": None, "": 1}], [{"a": 1}]),
    (of_x(bsonType="number"), [{}, {"x": 1}, {"x": Int64(1)}, {"x": 1.5}, {"x": Decimal128("1")}], [{"x": True}]),
    (of_x(bsonType=["int", "null"]), [{"x": 1}, {"x": None}], [{"x": Int64(1)}]),
    (of_x(type="boolean"), [{"x": True}], [{"x": 1}]),
    (of_x(bsonType="date"), [{"x": DatetimeMS(0)}], [{"x": ObjectId()}]),
    (of_x(minimum=5), [{"x": 5}, {"x": "a"}, {"x": Decimal128("5.1")}], [{"x": 4.9}, {"x": NAN}]),
    (of_x(minimum=5, exclusiveMinimum=True), [{"x": 6}], [{"x": 5}]),
    (of_x(maximum=5, exclusiveMaximum=True), [{"x": 4}], [{"x": 5}]),
    (of_x(multipleOf=0.1), [{"x": 0.3}, {"x": "a"}], [{"x": 0.35}, {"x": NAN}]),
    (of_x(multipleOf=Decimal128("1E-6000")), [{"x": Decimal128("1E+6000")}], []),
    (of_x(minLength=2, maxLength=2), [{"x": "日本"}, {"x": 1}], [{"x": "日"}, {"x": "abc"}]),
    (of_x(minItems=1, maxItems=2), [{"x": [1]}, {"x": 1}], [{"x": []}, {"x": [1, 2, 3]}]),
    (of_x(uniqueItems=True), [{"x": [0, False]}], [{"x": [1, 1.0]}, {"x": [{"a": 1, "b": 2}, {"b": 2, "a": 1}]}]),
    (of_x(uniqueItems=False), [{"x": [1, 1]}], []),
    (of_x(items={"bsonType": "int"}), [{"x": []}, {"x": [1]}], [{"x": [1, "a"]}]),
    (of_x(items=[{"bsonType": "int"}], additionalItems=False), [{"x": [1]}], [{"x": [1, 2]}, {"x": ["a"]}]),
    (of_x(items=[{}], additionalItems={"bsonType": "int"}), [{"x": ["a", 2]}], [{"x": ["a", "b"]}]),
    (of_x(enum=[{"a": 1, "b": 2}, None]), [{"x": {"b": 2, "a": 1}}, {"x": None}], [{"x": 1}]),
    ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 1}]),
    ({"properties": {"a": {}}, "additionalProperties": False}, [{"a": 1}], [{"b": 1}]),
    ({"additionalProperties": {"bsonType": "int"}}, [{"b": 1}], [{"b": "x"}]),
    ({"dependencies": {"a": ["b"]}}, [{}, {"a": 1, "b": 1}], [{"a": 1}]),
    ({"dependencies": {"a": {"required": ["c"]}}}, [{}, {"a": 1, "c": 1}], [{"a": 1}]),
    ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1, "b": 1}], [{"a": 1}]),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"b": 1}], [{}]),
    (of_x(oneOf=[{"multipleOf": 3}, {"multipleOf": 5}]), [{"x": 3}], [{"x": 15}, {"x": 7}]),
    (of_x(**{"not": {"required": ["a"]}}), [{"x": {"b": 1}}], [{"x": {"a": 1}}, {"x": "text"}]),
]


@pytest.mark.parametrize(("schema", "conforming", "violating"), CASES)
def test_a_document_conforms_to_a_schema_or_the_violation_is_explained(
    schema: Any, conforming: list[Any], violating: list[Any]
) -> None:
    holds = compile_schema(schema)
    assert all(holds(document) for document in conforming)
    assert not any(holds(document) for document in violating)
    assert all(explain_schema(schema, document)["schemaRulesNotSatisfied"] == [] for document in conforming)
    assert all(explain_schema(schema, document)["schemaRulesNotSatisfied"] for document in violating)


@pytest.mark.parametrize(
    ("code", "schema"),
    [
        (14, 5),
        (14, {"required": "a"}),
        (14, {"required": [1]}),
        (9, {"required": []}),
        (9, {"required": ["a", "a"]}),
        (9, {"unknown": 1}),
        (9, {"$ref": "#/a"}),
        (9, {"bsonType": "int", "type": "number"}),
        (9, {"bsonType": "integer"}),
        (2, {"bsonType": "nothing"}),
        (2, {"type": "int"}),
        (14, {"bsonType": 16}),
        (9, {"bsonType": []}),
        (9, {"exclusiveMinimum": True}),
        (14, {"minimum": 1, "exclusiveMinimum": 1}),
        (14, {"minimum": "a"}),
        (9, {"minLength": -1}),
        (9, {"minLength": "a"}),
        (9, {"minLength": 1.5}),
        (9, {"multipleOf": 0}),
        (9, {"multipleOf": NAN}),
        (9, {"enum": []}),
        (9, {"enum": [1, 1.0]}),
        (2, {"allOf": []}),
        (14, {"allOf": [1]}),
        (14, {"not": []}),
        (14, {"items": 1}),
        (14, {"items": [1]}),
        (14, {"additionalItems": 1}),
        (14, {"additionalProperties": 1}),
        (14, {"properties": {"a": 1}}),
        (9, {"dependencies": {"a": []}}),
        (14, {"dependencies": {"a": 1}}),
        (14, {"title": 1}),
        (14, {"pattern": 1}),
    ],
)
def test_a_schema_that_cannot_be_right_is_refused_with_its_code(code: int, schema: Any) -> None:
    with pytest.raises(MongoFailure) as refusal:
        compile_schema(schema)
    assert refusal.value.code == code


def test_an_explanation_names_the_rules_and_the_values() -> None:
    schema = {
        "title": "person",
        "required": ["name", "age"],
        "properties": {"age": {"bsonType": "int", "minimum": 18, "description": "of age"}},
    }
    assert explain_schema(schema, {"age": 5}) == {
        "operatorName": "$jsonSchema",
        "title": "person",
        "schemaRulesNotSatisfied": [
            {
                "operatorName": "required",
                "specifiedAs": {"required": ["name", "age"]},
                "missingProperties": ["name"],
            },
            {
                "operatorName": "properties",
                "propertiesNotSatisfied": [
                    {
                        "propertyName": "age",
                        "description": "of age",
                        "details": [
                            {
                                "operatorName": "minimum",
                                "specifiedAs": {"minimum": 18},
                                "reason": "comparison failed",
                                "consideredValue": 5,
                            }
                        ],
                    }
                ],
            },
        ],
    }


def test_any_argument_of_any_keyword_gives_a_schema_or_a_refusal() -> None:
    keywords = (
        "allOf anyOf oneOf not enum type bsonType minimum maximum exclusiveMinimum multipleOf minLength maxLength "
        "minItems maxItems uniqueItems items additionalItems minProperties maxProperties required properties "
        "additionalProperties dependencies title description"
    )
    values = [
        None,
        True,
        1,
        -1,
        1.5,
        NAN,
        Decimal128("NaN"),
        "",
        "int",
        [],
        [1],
        ["a"],
        [{}],
        [[]],
        {},
        {"a": 1},
        {"a": {}},
    ]
    documents: list[Any] = [{}, {"a": 1}, {"a": {"b": [1]}}]
    refused = 0
    for keyword, value in itertools.product(keywords.split(), values):
        try:
            holds = compile_schema({"properties": {"a": {keyword: value}}, keyword: value})
        except MongoFailure:
            refused += 1
            continue
        assert all(type(holds(document)) is bool for document in documents)
    assert refused > 200
