"""`$jsonSchema`: a schema compiled into rules, each of which decides about a value and can explain a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters import (
    json_schema_arrays,
    json_schema_logic,
    json_schema_objects,
    json_schema_scalars,
)
from asterism.languages.mongo.filters.json_schema_rules import KeywordTable, Schema, string_of
from asterism.values.bson.types import Document

_KEYWORDS: KeywordTable = {
    **json_schema_logic.KEYWORDS,
    **json_schema_scalars.KEYWORDS,
    **json_schema_arrays.KEYWORDS,
    **json_schema_objects.KEYWORDS,
}
# Keywords that another one reads: they are checked there and make no rule of their own.
_COMPANIONS = frozenset(("exclusiveMinimum", "exclusiveMaximum", "additionalItems", "title", "description"))


def compile_schema(schema: Document) -> Callable[[Document], bool]:
    """Compile a schema into the decision whether a document conforms to it."""
    return parse_schema(schema).holds


def explain_schema(schema: Document, document: Document) -> Document:
    """Return what a document that does not conform to the schema violates: the details of DocumentValidationFailure."""
    parsed = parse_schema(schema)
    return {"operatorName": "$jsonSchema", **parsed.annotations, "schemaRulesNotSatisfied": parsed.explain(document)}


def parse_schema(schema: Any) -> Schema:
    """Parse a schema and those inside it."""
    if type(schema) is not dict:
        raise MongoFailure(14, "$jsonSchema must be an object")
    for keyword in schema:
        if keyword not in _KEYWORDS and keyword not in _COMPANIONS:
            raise MongoFailure(9, f"Unknown $jsonSchema keyword: {keyword}")
    annotations = {name: string_of(name, schema[name]) for name in ("title", "description") if name in schema}
    if "type" in schema and "bsonType" in schema:
        raise MongoFailure(9, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'")
    json_schema_scalars.check_exclusive_bounds(schema)
    json_schema_arrays.check_additional_items(schema, parse_schema)
    rules = []
    for keyword, compile_keyword in _KEYWORDS.items():
        if keyword in schema:
            rule = compile_keyword(schema[keyword], schema, parse_schema)
            if rule is not None:
                rules.append(rule)
    return Schema(tuple(rules), annotations)
