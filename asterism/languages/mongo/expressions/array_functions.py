"""Operators that compute an expression for the elements of an array: `$map`, `$filter`, `$reduce`, and sorting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from asterism.languages.mongo.expressions.constants import is_nullish
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, named
from asterism.languages.mongo.expressions.paths import read_path
from asterism.languages.mongo.expressions.truth import is_true
from asterism.languages.mongo.expressions.variables import check_bindable
from asterism.languages.mongo.expressions.widths import INT32_MAX, fits_int64, integral, integral_int32, width_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.order import sort_key

INVALID_N = 7548606


def _element_name(fields: dict[str, Any]) -> str:
    """Return the name of the variable for an element: `as`, or `this`."""
    name = fields.get("as", "this")
    if type(name) is not str:
        raise MongoFailure(9, f"'as' must be a string, but is of type {type_name(name)}")
    check_bindable(name)
    return name


def _compile_map(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    read_input = context.compile(fields["input"])
    name = _element_name(fields)
    compute = context.with_variables(name).compile(fields["in"])

    def evaluate(document: Any, variables: Variables) -> Any:
        array = read_input(document, variables)
        if is_nullish(array):
            return None
        if not isinstance(array, list):
            raise MongoFailure(16883, f"input to $map must be an array not {type_name(array)}")
        scope = dict(variables)
        result = []
        for element in array:
            scope[name] = element
            value = compute(document, scope)
            result.append(None if is_nullish(value) else value)
        return result

    return evaluate


def _compile_filter(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    read_input = context.compile(fields["input"])
    name = _element_name(fields)
    condition = context.with_variables(name).compile(fields["cond"])
    read_limit = context.compile(fields.get("limit"))

    def evaluate(document: Any, variables: Variables) -> Any:
        array = read_input(document, variables)
        if is_nullish(array):
            return None
        if not isinstance(array, list):
            raise MongoFailure(28651, f"input to $filter must be an array not {type_name(array)}")
        limit = _filter_limit(read_limit(document, variables), len(array))
        scope = dict(variables)
        result: list[Any] = []
        for element in array:
            scope[name] = element
            if is_true(condition(document, scope)):
                result.append(element)
                if len(result) >= limit:
                    break
        return result

    return evaluate


def _filter_limit(value: Any, length: int) -> int:
    if is_nullish(value):
        return max(length, 1)
    limit = integral_int32(value)
    if limit is None:
        raise MongoFailure(327391, "$filter: limit must be represented as a 32-bit integral value")
    if limit <= 0:
        raise MongoFailure(327392, f"$filter: limit must be greater than 0, but is {limit}")
    return limit


def _compile_reduce(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    read_input = context.compile(fields["input"])
    read_initial = context.compile(fields["initialValue"])
    compute = context.with_variables("this", "value").compile(fields["in"])

    def evaluate(document: Any, variables: Variables) -> Any:
        array = read_input(document, variables)
        if is_nullish(array):
            return None
        if not isinstance(array, list):
            raise MongoFailure(40080, f"$reduce requires that 'input' be an array, found: {type_name(array)}")
        value = read_initial(document, variables)
        scope = dict(variables)
        for element in array:
            scope["this"] = element
            scope["value"] = value
            value = compute(document, scope)
        return value

    return evaluate


def _compile_sort_array(fields: dict[str, Any], context: CompileContext) -> Evaluate:
    read_input = context.compile(fields["input"])
    sort = _array_sorter(fields["sortBy"], context)

    def evaluate(document: Any, variables: Variables) -> Any:
        array = read_input(document, variables)
        if is_nullish(array):
            return None
        if not isinstance(array, list):
            raise MongoFailure(2942504, f"The input argument to $sortArray must be an array, found: {type_name(array)}")
        return sort(array)

    return evaluate


def _array_sorter(sort_by: Any, context: CompileContext) -> Callable[[list[Any]], list[Any]]:
    collate = context.collate
    if width_of(sort_by) is not None:
        direction = integral(sort_by)
        if direction not in (1, -1):
            raise MongoFailure(2942506, "The $sort element value must be either 1 or -1")
        return lambda array: sorted(array, key=lambda element: sort_key(element, collate), reverse=direction == -1)
    if not isinstance(sort_by, dict):
        raise MongoFailure(2942507, "The sortBy of $sortArray must be 1, -1, or an object with such values")
    keys: list[tuple[tuple[str, ...], bool]] = []
    for name, value in sort_by.items():
        direction = integral(value)
        if direction not in (1, -1):
            raise MongoFailure(2942505, f"Invalid sort clause {name}: the value must be either 1 or -1")
        keys.append((tuple(name.split(".")), direction == -1))
    if not keys:
        raise MongoFailure(2942505, "The sortBy of $sortArray must have at least one field")

    def _keyed(path: tuple[str, ...], collation: Any, element: Any) -> Any:
        return _value_key(element, path, collation)

    def sort(array: list[Any]) -> list[Any]:
        # Sorting is stable, so that the least important key goes first.
        for parts, is_descending in reversed(keys):
            array = sorted(
                array,
                key=partial(_keyed, parts, collate),
                reverse=is_descending,
            )
        return array

    return sort


def _value_key(element: Any, parts: tuple[str, ...], collate: Any) -> Any:
    """Return the sort key of a field. Unlike in the stage `$sort`, an array counts as a whole."""
    value = read_path(element, parts) if isinstance(element, dict) else None
    return sort_key(None if is_nullish(value) else value, collate)


def count_of(value: Any, what: str) -> int:
    """Return the `n` of `$firstN` and its kin, or refuse it."""
    number = integral(value)
    if number is None or not fits_int64(number) or number <= 0:
        raise MongoFailure(INVALID_N, f"'n' of {what} must be a positive integer, but is {value!r}")
    return min(number, INT32_MAX)


def _of_n(name: str, take: Callable[[list[Any], int, Any], list[Any]]) -> Operator:
    def compile_fields(fields: dict[str, Any], context: CompileContext) -> Evaluate:
        read_input, read_n = context.compile(fields["input"]), context.compile(fields["n"])
        collate = context.collate

        def evaluate(document: Any, variables: Variables) -> Any:
            array = read_input(document, variables)
            if not isinstance(array, list):
                raise MongoFailure(5788200, f"Input of {name} must be an array, but is {type_name(array)}")
            return take(array, count_of(read_n(document, variables), name), collate)

        return evaluate

    return named(
        name,
        compile_fields,
        required=("n", "input"),
        not_an_object=5787900,
        unknown_field=5787901,
        missing_field=5787906,
    )


def _extreme(*, greatest: bool) -> Callable[[list[Any], int, Any], list[Any]]:
    def take(array: list[Any], count: int, collate: Any) -> list[Any]:
        values = [element for element in array if not is_nullish(element)]
        return sorted(values, key=lambda element: sort_key(element, collate), reverse=greatest)[:count]

    return take


OPERATORS: tuple[Operator, ...] = (
    named(
        "$map",
        _compile_map,
        required=("input", "in"),
        optional=("as",),
        not_an_object=16878,
        unknown_field=16879,
        missing_field={"input": 16880, "in": 16882},
    ),
    named(
        "$filter",
        _compile_filter,
        required=("input", "cond"),
        optional=("as", "limit"),
        not_an_object=28646,
        unknown_field=28647,
        missing_field={"input": 28648, "cond": 28650},
    ),
    named(
        "$reduce",
        _compile_reduce,
        required=("input", "initialValue", "in"),
        not_an_object=40075,
        unknown_field=40076,
        missing_field={"input": 40077, "initialValue": 40078, "in": 40079},
    ),
    named(
        "$sortArray",
        _compile_sort_array,
        required=("input", "sortBy"),
        not_an_object=2942500,
        unknown_field=2942501,
        missing_field={"input": 2942502, "sortBy": 2942503},
    ),
    _of_n("$firstN", lambda array, count, collate: array[:count]),
    _of_n("$lastN", lambda array, count, collate: array[-count:]),
    _of_n("$maxN", _extreme(greatest=True)),
    _of_n("$minN", _extreme(greatest=False)),
)
