"""Keywords of `$jsonSchema` for any value: allOf, anyOf, oneOf, not, enum, type, bsonType."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.json_schema_rules import (
    KeywordTable,
    ParseSchema,
    Rule,
    Schema,
    array_of,
    object_of,
    refusal,
    unordered_key,
    wrong_type,
)
from asterism.values.bson.kinds import NAMES_TO_NUMBERS, type_name
from asterism.values.bson.types import Document

_NUMBER_NAMES = frozenset(("int", "long", "double", "decimal"))
# The types of JSON, by the types of BSON that they mean.
_JSON_TYPES = {
    "object": frozenset(("object",)),
    "array": frozenset(("array",)),
    "number": _NUMBER_NAMES,
    "boolean": frozenset(("bool",)),
    "string": frozenset(("string",)),
    "null": frozenset(("null",)),
}
_BSON_TYPES = {**{name: frozenset((name,)) for name in NAMES_TO_NUMBERS}, "number": _NUMBER_NAMES}


def _branches(keyword: str, argument: Any, parse: ParseSchema) -> list[Schema]:
    branches = array_of(keyword, argument)
    if not branches:
        raise MongoFailure(2, f"$jsonSchema keyword '{keyword}' must be a non-empty array")
    return [parse(object_of(keyword, branch)) for branch in branches]


def _unsatisfied(keyword: str, branches: list[Schema], value: Any) -> Document:
    return {
        "operatorName": keyword,
        "schemasNotSatisfied": [
            {"index": index, **branch.annotations, "details": branch.explain(value)}
            for index, branch in enumerate(branches)
            if not branch.holds(value)
        ],
    }


def _compile_all_of(argument: Any, _schema: Document, parse: ParseSchema) -> Rule:
    branches = _branches("allOf", argument, parse)
    return Rule(
        "allOf",
        lambda value: all(branch.holds(value) for branch in branches),
        lambda value: _unsatisfied("allOf", branches, value),
    )


def _compile_any_of(argument: Any, _schema: Document, parse: ParseSchema) -> Rule:
    branches = _branches("anyOf", argument, parse)
    return Rule(
        "anyOf",
        lambda value: any(branch.holds(value) for branch in branches),
        lambda value: _unsatisfied("anyOf", branches, value),
    )


def _compile_one_of(argument: Any, _schema: Document, parse: ParseSchema) -> Rule:
    branches = _branches("oneOf", argument, parse)

    def explain(value: Any) -> Document:
        matching = [index for index, branch in enumerate(branches) if branch.holds(value)]
        if not matching:
            return _unsatisfied("oneOf", branches, value)
        return {
            "operatorName": "oneOf",
            "reason": "more than one subschema matched",
            "matchingSchemaIndexes": matching,
        }

    return Rule("oneOf", lambda value: sum(branch.holds(value) for branch in branches) == 1, explain)


def _compile_not(argument: Any, _schema: Document, parse: ParseSchema) -> Rule:
    inner = parse(object_of("not", argument))
    return Rule(
        "not",
        lambda value: not inner.holds(value),
        lambda _value: {"operatorName": "not", "reason": "child expression matched"},
    )


def _compile_enum(argument: Any, _schema: Document, _parse: ParseSchema) -> Rule:
    values = array_of("enum", argument)
    if not values:
        raise MongoFailure(9, "$jsonSchema keyword 'enum' cannot be an empty array")
    keys = {unordered_key(value) for value in values}
    if len(keys) < len(values):
        raise MongoFailure(9, "$jsonSchema keyword 'enum' array cannot contain duplicate values")
    return Rule(
        "enum",
        lambda value: unordered_key(value) in keys,
        lambda value: refusal("enum", values, "value was not found in enum", value),
    )


def _compile_type(keyword: str, known: dict[str, frozenset[str]], argument: Any) -> Rule:
    names = argument if type(argument) is list else [argument]
    if any(type(name) is not str for name in names):
        raise wrong_type(keyword, "either a string or an array of strings")
    if not names:
        raise MongoFailure(9, f"$jsonSchema keyword '{keyword}' must name at least one type")
    if len(set(names)) < len(names):
        raise MongoFailure(9, f"$jsonSchema keyword '{keyword}' has duplicate values")
    accepted: set[str] = set()
    for name in names:
        if name == "integer":
            raise MongoFailure(9, "$jsonSchema type 'integer' is not currently supported.")
        if name not in known:
            raise MongoFailure(2, f"Unknown type name alias: {name}")
        accepted |= known[name]

    def explain(value: Any) -> Document:
        return {
            **refusal(keyword, argument, "type did not match", value),
            "consideredType": type_name(value),
        }

    return Rule(keyword, lambda value: type_name(value) in accepted, explain)


KEYWORDS: KeywordTable = {
    "allOf": _compile_all_of,
    "anyOf": _compile_any_of,
    "oneOf": _compile_one_of,
    "not": _compile_not,
    "enum": _compile_enum,
    "type": lambda argument, _schema, _parse: _compile_type("type", _JSON_TYPES, argument),
    "bsonType": lambda argument, _schema, _parse: _compile_type("bsonType", _BSON_TYPES, argument),
}
