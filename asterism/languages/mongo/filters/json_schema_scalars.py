"""Keywords of `$jsonSchema` for numbers and text. Values of other types conform."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.json_schema_rules import (
    KeywordTable,
    ParseSchema,
    Rule,
    boolean_of,
    number_of,
    refusal,
    size_of,
    string_of,
)
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import is_nan, to_decimal
from asterism.values.bson.order import compare
from asterism.values.bson.types import Document

_EXCLUSIVE = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}


def check_exclusive_bounds(schema: Document) -> None:
    for bound, exclusive in _EXCLUSIVE.items():
        if exclusive in schema:
            boolean_of(exclusive, schema[exclusive])
            if bound not in schema:
                raise MongoFailure(9, f"$jsonSchema keyword '{bound}' must be a present if {exclusive} is present")


def _bound(keyword: str, sign: int) -> Callable[[Any, Document, ParseSchema], Rule]:
    """A bound of numbers; the comparison of value and bound must give `sign`, or 0 unless the bound is exclusive."""

    def compile_bound(argument: Any, schema: Document, _parse: ParseSchema) -> Rule:
        bound = number_of(keyword, argument)
        exclusive = bool(schema.get(_EXCLUSIVE[keyword], False))
        bound_is_nan = is_nan(bound)

        def holds(value: Any) -> bool:
            if not is_number(value):
                return True
            # NaN is not in any order but with itself.
            if bound_is_nan or is_nan(value):
                return bound_is_nan and is_nan(value) and not exclusive
            order = compare(value, bound)
            return order == sign or (order == 0 and not exclusive)

        def explain(value: Any) -> Document:
            explanation = refusal(keyword, bound, "comparison failed", value)
            if exclusive:
                explanation["specifiedAs"][_EXCLUSIVE[keyword]] = True
            return explanation

        return Rule(keyword, holds, explain)

    return compile_bound


def _compile_multiple_of(argument: Any, _schema: Document, _parse: ParseSchema) -> Rule:
    divisor = to_decimal(number_of("multipleOf", argument))
    if divisor.is_nan() or divisor <= 0:
        raise MongoFailure(9, "$jsonSchema keyword 'multipleOf' must have a positive value")
    exact = Fraction(divisor) if divisor.is_finite() else None

    def holds(value: Any) -> bool:
        if not is_number(value):
            return True
        dividend = to_decimal(value)
        if not dividend.is_finite():
            return False
        # Fractions, since the quotient may have more digits than a decimal holds.
        return Fraction(dividend) % exact == 0 if exact is not None else dividend == 0

    return Rule(
        "multipleOf",
        holds,
        lambda value: refusal(
            "multipleOf", argument, "considered value is not a multiple of the specified value", value
        ),
    )


def _length(keyword: str, fits: Callable[[int, int], bool]) -> Callable[[Any, Document, ParseSchema], Rule]:
    def compile_length(argument: Any, _schema: Document, _parse: ParseSchema) -> Rule:
        limit = size_of(keyword, argument)
        return Rule(
            keyword,
            lambda value: type(value) is not str or fits(len(value), limit),
            lambda value: refusal(keyword, argument, "specified string length was not satisfied", value),
        )

    return compile_length


def _compile_pattern(argument: Any, _schema: Document, _parse: ParseSchema) -> Rule:
    pattern = string_of("pattern", argument)
    from asterism.languages.mongo.regular_expressions import compile_regex

    search = compile_regex(pattern, "").search
    return Rule(
        "pattern",
        lambda value: type(value) is not str or search(value) is not None,
        lambda value: refusal("pattern", argument, "regular expression did not match", value),
    )


KEYWORDS: KeywordTable = {
    "minimum": _bound("minimum", 1),
    "maximum": _bound("maximum", -1),
    "multipleOf": _compile_multiple_of,
    "minLength": _length("minLength", lambda length, limit: length >= limit),
    "maxLength": _length("maxLength", lambda length, limit: length <= limit),
    "pattern": _compile_pattern,
}
