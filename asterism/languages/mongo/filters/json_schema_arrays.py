"""Keywords of `$jsonSchema` for arrays. Values of other types conform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.filters.json_schema_rules import (
    KeywordTable,
    ParseSchema,
    Rule,
    Schema,
    boolean_of,
    object_of,
    refusal,
    size_of,
    unordered_key,
    wrong_type,
)
from asterism.values.bson.types import Document


def _count(keyword: str, fits: Callable[[int, int], bool]) -> Callable[[Any, Document, ParseSchema], Rule]:
    def compile_count(argument: Any, _schema: Document, _parse: ParseSchema) -> Rule:
        limit = size_of(keyword, argument)
        return Rule(
            keyword,
            lambda value: type(value) is not list or fits(len(value), limit),
            lambda value: refusal(keyword, argument, "array did not match specified length", value),
        )

    return compile_count


def _compile_unique_items(argument: Any, _schema: Document, _parse: ParseSchema) -> Rule | None:
    if not boolean_of("uniqueItems", argument):
        return None

    def duplicate_of(value: list[Any]) -> list[Any]:
        """Return the first element that occurred before, in a list, or an empty list."""
        seen = set()
        for element in value:
            key = unordered_key(element)
            if key in seen:
                return [element]
            seen.add(key)
        return []

    def explain(value: Any) -> Document:
        return {
            **refusal("uniqueItems", True, "found a duplicate item", value),
            "duplicatedValue": duplicate_of(value)[0],
        }

    return Rule("uniqueItems", lambda value: type(value) is not list or not duplicate_of(value), explain)


def check_additional_items(schema: Document, parse: ParseSchema) -> None:
    """Check `additionalItems`, which has a meaning only beside an array of `items`."""
    if "additionalItems" in schema and type(schema["additionalItems"]) is not bool:
        if type(schema["additionalItems"]) is not dict:
            raise wrong_type("additionalItems", "either an object or a boolean")
        parse(schema["additionalItems"])


def _compile_items(argument: Any, schema: Document, parse: ParseSchema) -> Rule:
    if type(argument) is dict:
        every = parse(argument)
        return _items_rule("items", 0, lambda _index: every)
    if type(argument) is not list:
        raise wrong_type("items", "an array or an object")
    by_index = [parse(object_of("items", item)) for item in argument]
    items = _items_rule("items", 0, lambda index: by_index[index] if index < len(by_index) else None)
    rest = schema.get("additionalItems", True)
    if rest is True:
        return items
    additional = _no_items_beyond(len(by_index)) if rest is False else _items_beyond(len(by_index), parse(rest))
    return Rule(
        "items",
        lambda value: items.holds(value) and additional.holds(value),
        lambda value: (additional if items.holds(value) else items).explain(value),
    )


def _items_beyond(start: int, schema: Schema) -> Rule:
    return _items_rule("additionalItems", start, lambda _index: schema)


def _items_rule(keyword: str, start: int, schema_at: Callable[[int], Schema | None]) -> Rule:
    """The rule that the elements from `start` on conform to the schemas of their indexes."""

    def first_failing(value: list[Any]) -> tuple[int, Schema] | None:
        for index in range(start, len(value)):
            schema = schema_at(index)
            if schema is None:
                return None
            if not schema.holds(value[index]):
                return index, schema
        return None

    def explain(value: Any) -> Document:
        failing = first_failing(value)
        if failing is None:
            return {"operatorName": keyword}
        index, schema = failing
        return {
            "operatorName": keyword,
            "reason": "At least one item did not match the sub-schema",
            "itemIndex": index,
            **schema.annotations,
            "details": schema.explain(value[index]),
        }

    return Rule(keyword, lambda value: type(value) is not list or first_failing(value) is None, explain)


def _no_items_beyond(count: int) -> Rule:
    return Rule(
        "additionalItems",
        lambda value: type(value) is not list or len(value) <= count,
        lambda value: {
            "operatorName": "additionalItems",
            "specifiedAs": {"additionalItems": False},
            "reason": "found additional items",
            "additionalItems": value[count:],
        },
    )


KEYWORDS: KeywordTable = {
    "minItems": _count("minItems", lambda count, limit: count >= limit),
    "maxItems": _count("maxItems", lambda count, limit: count <= limit),
    "uniqueItems": _compile_unique_items,
    "items": _compile_items,
}
