"""The operators of projections that only `find` knows: $slice of a field, $elemMatch and the positional `a.$`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Match, VariablesCell
from asterism.languages.mongo.projections.names import Parts
from asterism.values.bson.types import MISSING, Decimal128, Document, Int64

_NUMBER_TYPES = (int, Int64, float, Decimal128)
# Beyond it an array has no elements: what infinities and integers of 64 bits are cut to.
INT32_MAX = 2**31 - 1


class Slice(NamedTuple):
    """The part of an array that $slice keeps: from `skip` on, counted from the end if negative."""

    parts: Parts
    skip: int
    # None for the first or last elements, whose number `skip` then is.
    limit: int | None

    def cut(self, array: list[Any]) -> list[Any]:
        if self.limit is None:
            return array[: self.skip] if self.skip >= 0 else array[self.skip :]
        start = self.skip if self.skip >= 0 else max(len(array) + self.skip, 0)
        return array[start : start + self.limit]


def _int32(value: Any) -> int:
    """Return a number without its fraction, cut to 32 bits; NaN is zero."""
    number = value.to_decimal() if type(value) is Decimal128 else value
    if number != number:
        return 0
    if abs(number) > INT32_MAX:
        return INT32_MAX if number > 0 else -INT32_MAX
    return int(number)


def find_slice(parts: Parts, operand: Any) -> Slice | None:
    """Return the $slice of `find`, or None for the operator of expressions."""
    if type(operand) in _NUMBER_TYPES:
        return Slice(parts, _int32(operand), None)
    if type(operand) is list and len(operand) == 2 and all(type(element) in _NUMBER_TYPES for element in operand):
        skip, limit = _int32(operand[0]), _int32(operand[1])
        if limit <= 0:
            raise MongoFailure(28724, f"$slice limit must be positive: {limit}")
        return Slice(parts, skip, limit)
    return None


def apply_slice(found: Slice, document: Document) -> Document:
    """Return the document with the array at the path cut, also in documents inside arrays on the way."""

    def below(value: Any, depth: int) -> Any:
        if type(value) is list:
            if depth == len(found.parts):
                return found.cut(value)
            return [below(element, depth) if type(element) in (dict, list) else element for element in value]
        if type(value) is dict and depth < len(found.parts):
            name = found.parts[depth]
            if name in value:
                return {**value, name: below(value[name], depth + 1)}
        return value

    output: Document = below(document, 0)
    return output


def compile_elem_match(name: str, condition: dict[str, Any], context: CompileContext) -> Evaluate:
    """Return the function that gives the array of the first element that meets the condition, or MISSING."""
    from asterism.languages.mongo.filters.compile import ELEMENT_FEATURES
    from asterism.languages.mongo.filters.compile import compile_elem_match as compile_predicate
    from asterism.languages.mongo.filters.predicate import Scope

    predicate = compile_predicate(condition, Scope(context, ELEMENT_FEATURES, VariablesCell()))
    position: Callable[[Any], int | None] | None = predicate.position_inside

    def evaluate(document: Any, _variables: Variables) -> Any:
        array = document.get(name)
        if type(array) is not list or position is None:
            return MISSING
        index = position(array)
        return MISSING if index is None else [array[index]]

    return evaluate


def apply_positional(parts: Parts, match: Match | None, document: Document, output: Document) -> Document:
    """Return the output with the first array on the path cut to the element that the filter matched."""

    def below(value: Any, depth: int) -> Any:
        if type(value) is list:
            index = match.array_index(document) if match is not None else None
            if index is None:
                raise MongoFailure(51246, "positional operator '.$' couldn't find a matching element in the array")
            if index >= len(value):
                raise MongoFailure(51247, "positional operator '.$' element mismatch")
            return [value[index]]
        if type(value) is dict and depth < len(parts) and parts[depth] in value:
            return {**value, parts[depth]: below(value[parts[depth]], depth + 1)}
        return value

    result: Document = below(output, 0)
    return result
