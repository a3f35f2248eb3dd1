"""Keywords of `$jsonSchema` for documents. Values of other types conform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.json_schema_rules import (
    KeywordTable,
    ParseSchema,
    Rule,
    Schema,
    names_of,
    object_of,
    size_of,
    wrong_type,
)
from asterism.values.bson.types import Document

Search = Callable[[str], Any]


def _count(keyword: str, fits: Callable[[int, int], bool]) -> Callable[[Any, Document, ParseSchema], Rule]:
    def compile_count(argument: Any, _schema: Document, _parse: ParseSchema) -> Rule:
        limit = size_of(keyword, argument)
        return Rule(
            keyword,
            lambda value: type(value) is not dict or fits(len(value), limit),
            lambda value: {
                "operatorName": keyword,
                "specifiedAs": {keyword: argument},
                "reason": "specified number of properties was not satisfied",
                "numberOfProperties": len(value),
            },
        )

    return compile_count


def _compile_required(argument: Any, _schema: Document, _parse: ParseSchema) -> Rule:
    names = names_of("required", argument)
    required = frozenset(names)
    return Rule(
        "required",
        lambda value: type(value) is not dict or required <= value.keys(),
        lambda value: {
            "operatorName": "required",
            "specifiedAs": {"required": names},
            "missingProperties": [name for name in sorted(names) if name not in value],
        },
    )


def _compile_properties(argument: Any, _schema: Document, parse: ParseSchema) -> Rule:
    schemas = {name: parse(object_of("properties", inner)) for name, inner in object_of("properties", argument).items()}

    def holds(value: Any) -> bool:
        if type(value) is not dict:
            return True
        for name, schema in schemas.items():  # noqa: SIM110 - a loop, since `all` over a generator costs twice as much
            if name in value and not schema.holds(value[name]):
                return False
        return True

    def explain(value: Any) -> Document:
        return {
            "operatorName": "properties",
            "propertiesNotSatisfied": [
                {"propertyName": name, **schema.annotations, "details": schema.explain(value[name])}
                for name, schema in schemas.items()
                if name in value and not schema.holds(value[name])
            ],
        }

    return Rule("properties", holds, explain)


def _parse_patterns(argument: Any, parse: ParseSchema) -> list[tuple[str, Search, Schema]]:
    schemas_by_pattern = object_of("patternProperties", argument)
    if not schemas_by_pattern:
        return []
    from asterism.languages.mongo.regular_expressions import compile_regex

    found: list[tuple[str, Search, Schema]] = []
    for pattern, inner in schemas_by_pattern.items():
        schema = parse(object_of("patternProperties", inner))
        try:
            search: Search = compile_regex(pattern, "").search
        except MongoFailure as failure:
            # The name of a property that is no pattern has another code than the pattern of a text.
            raise MongoFailure(2, f"Invalid regular expression in patternProperties: {failure.message}") from failure
        found.append((pattern, search, schema))
    return found


def _compile_pattern_properties(argument: Any, _schema: Document, parse: ParseSchema) -> Rule:
    patterns = _parse_patterns(argument, parse)

    def failing(value: Document) -> list[tuple[str, str, Schema]]:
        return [
            (name, pattern, schema)
            for name in value
            for pattern, search, schema in patterns
            if search(name) is not None and not schema.holds(value[name])
        ]

    def explain(value: Any) -> Document:
        return {
            "operatorName": "patternProperties",
            "details": [
                {
                    "propertyName": name,
                    "regexMatched": pattern,
                    **schema.annotations,
                    "details": schema.explain(value[name]),
                }
                for name, pattern, schema in failing(value)
            ],
        }

    return Rule("patternProperties", lambda value: type(value) is not dict or not failing(value), explain)


def _compile_additional_properties(argument: Any, schema: Document, parse: ParseSchema) -> Rule | None:
    if type(argument) is not bool and type(argument) is not dict:
        raise wrong_type("additionalProperties", "an object or a boolean")
    if argument is True:
        return None
    listed = frozenset(object_of("properties", schema.get("properties", {})))
    searches = [search for _, search, _ in _parse_patterns(schema.get("patternProperties", {}), parse)]
    inner = parse(argument) if type(argument) is dict else None

    def failing(value: Document) -> list[str]:
        return [
            name
            for name in value
            if name not in listed
            and not any(search(name) is not None for search in searches)
            and (inner is None or not inner.holds(value[name]))
        ]

    def explain(value: Any) -> Document:
        names = failing(value)
        if inner is None:
            return {
                "operatorName": "additionalProperties",
                "specifiedAs": {"additionalProperties": False},
                "additionalProperties": names,
            }
        return {
            "operatorName": "additionalProperties",
            "reason": "at least one additional property did not match the subschema",
            "failingProperty": names[0],
            **inner.annotations,
            "details": inner.explain(value[names[0]]),
        }

    return Rule("additionalProperties", lambda value: type(value) is not dict or not failing(value), explain)


def _compile_dependencies(argument: Any, _schema: Document, parse: ParseSchema) -> Rule:
    names_by_condition: dict[str, list[str]] = {}
    schemas_by_condition: dict[str, Schema] = {}
    for name, dependency in object_of("dependencies", argument).items():
        if type(dependency) is dict:
            schemas_by_condition[name] = parse(dependency)
        elif type(dependency) is list:
            names_by_condition[name] = names_of("dependencies", dependency)
        else:
            raise wrong_type("dependencies", "an object of objects and arrays")

    def failing(value: Document) -> list[Document]:
        found: list[Document] = []
        for name, needed in names_by_condition.items():
            missing = [other for other in needed if other not in value]
            if name in value and missing:
                found.append({"conditionalProperty": name, "missingProperties": missing})
        found.extend(
            {"conditionalProperty": name, **schema.annotations, "details": schema.explain(value)}
            for name, schema in schemas_by_condition.items()
            if name in value and not schema.holds(value)
        )
        return found

    return Rule(
        "dependencies",
        lambda value: type(value) is not dict or not failing(value),
        lambda value: {"operatorName": "dependencies", "failingDependencies": failing(value)},
    )


KEYWORDS: KeywordTable = {
    "minProperties": _count("minProperties", lambda count, limit: count >= limit),
    "maxProperties": _count("maxProperties", lambda count, limit: count <= limit),
    "required": _compile_required,
    "properties": _compile_properties,
    "patternProperties": _compile_pattern_properties,
    "additionalProperties": _compile_additional_properties,
    "dependencies": _compile_dependencies,
}
