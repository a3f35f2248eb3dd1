"""Operators that look into arrays or build them, computed from values alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.constants import is_nullish
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, positional
from asterism.languages.mongo.expressions.widths import integral_int32, width_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.order import equal
from asterism.values.bson.types import MISSING

# An array of a range may take 100 MB in the reference server, at 16 bytes for a number.
RANGE_LENGTH_MAX = 100 * 1024 * 1024 // 16


def _element_at(array: Any, index: Any) -> Any:
    if is_nullish(array) or is_nullish(index):
        return None
    if not isinstance(array, list):
        raise MongoFailure(28689, f"$arrayElemAt's first argument must be an array, but is {type_name(array)}")
    if width_of(index) is None:
        raise MongoFailure(28690, f"$arrayElemAt's second argument must be a numeric value, but is {type_name(index)}")
    position = integral_int32(index)
    if position is None:
        raise MongoFailure(28691, "$arrayElemAt's second argument must be representable as a 32-bit integer")
    return array[position] if -len(array) <= position < len(array) else MISSING


def _end_of(name: str, position: int) -> Operator:
    def compute(array: Any) -> Any:
        if not isinstance(array, list):
            raise MongoFailure(28689, f"{name}'s argument must be an array, but is {type_name(array)}")
        return array[position] if array else MISSING

    return positional(name, compute, 1, 1, null_if_null=True)


# An array that fits into a document of 16 MB has fewer: the name of each further element alone takes 9 bytes.
_ELEMENTS_MAX = 2_000_000


def _concatenate(*arrays: Any) -> Any:
    result: list[Any] = []
    for array in arrays:
        if is_nullish(array):
            return None
        if not isinstance(array, list):
            raise MongoFailure(28664, f"$concatArrays only supports arrays, not {type_name(array)}")
        result += array
        if len(result) > _ELEMENTS_MAX:
            raise MongoFailure(10334, f"an array of more than {_ELEMENTS_MAX} elements cannot be a value")
    return result


def _reverse(array: Any) -> Any:
    if not isinstance(array, list):
        raise MongoFailure(
            34435, f"The argument to $reverseArray must be an array, but was of type: {type_name(array)}"
        )
    return array[::-1]


def _size(array: Any) -> int:
    if not isinstance(array, list):
        raise MongoFailure(17124, f"The argument to $size must be an array, but was of type: {type_name(array)}")
    return len(array)


def _range_number(value: Any, what: str, codes: tuple[int, int]) -> int:
    if width_of(value) is None:
        raise MongoFailure(codes[0], f"$range requires a numeric {what} value, found value of type: {type_name(value)}")
    number = integral_int32(value)
    if number is None:
        raise MongoFailure(codes[1], f"$range requires a {what} value that can be represented as a 32-bit integer")
    return number


def _range(start_value: Any, end_value: Any, step_value: Any = 1) -> list[int]:
    start = _range_number(start_value, "starting", (34443, 34444))
    end = _range_number(end_value, "ending", (34445, 34446))
    step = _range_number(step_value, "step", (34447, 34448))
    if step == 0:
        raise MongoFailure(34449, "$range requires a non-zero step value")
    numbers = range(start, end, step)
    if len(numbers) > RANGE_LENGTH_MAX:
        raise MongoFailure(146, "$range would use too much memory (104857600 bytes)")
    return list(numbers)


def _slice_number(value: Any, which: str) -> int:
    if width_of(value) is None:
        raise MongoFailure(28725, f"{which} argument to $slice must be numeric, but is of type: {type_name(value)}")
    number = integral_int32(value)
    if number is None:
        raise MongoFailure(28726, f"{which} argument to $slice can't be represented as a 32-bit integer")
    return number


def _slice_array(*arguments: Any) -> Any:
    if is_nullish(arguments[0]) or is_nullish(arguments[1]):
        return None
    array = arguments[0]
    if not isinstance(array, list):
        raise MongoFailure(28724, f"First argument to $slice must be an array, but is of type: {type_name(array)}")
    number = _slice_number(arguments[1], "Second")
    if len(arguments) == 2:
        return array[:number] if number >= 0 else array[number:]
    if is_nullish(arguments[2]):
        return None
    length = _slice_number(arguments[2], "Third")
    if length <= 0:
        raise MongoFailure(28729, f"Third argument to $slice must be positive: {length}")
    start = number if number >= 0 else max(len(array) + number, 0)
    return array[start : start + length]


def _object_to_array(document: Any) -> Any:
    if not isinstance(document, dict):
        raise MongoFailure(40390, f"$objectToArray requires a document input, found: {type_name(document)}")
    return [{"k": name, "v": value} for name, value in document.items()]


def _array_to_object(array: Any) -> Any:
    if not isinstance(array, list):
        raise MongoFailure(40386, f"$arrayToObject requires an array input, found: {type_name(array)}")
    if not array:
        return {}
    if isinstance(array[0], list):
        return dict(_pair_of_array(element) for element in array)
    if isinstance(array[0], dict):
        return dict(_pair_of_document(element) for element in array)
    raise MongoFailure(40398, f"Unrecognized input type format for $arrayToObject: {type_name(array[0])}")


def _pair_of_array(element: Any) -> tuple[str, Any]:
    if not isinstance(element, list):
        raise MongoFailure(40396, "$arrayToObject requires a consistent input format. Elements must all be arrays")
    if len(element) != 2:
        raise MongoFailure(40397, f"$arrayToObject requires an array of size 2 arrays, found size: {len(element)}")
    name, value = element
    if type(name) is not str:
        raise MongoFailure(40395, "$arrayToObject requires an array of key-value pairs, where the key is a string")
    if "\0" in name:
        raise MongoFailure(4940400, "Key field cannot contain an embedded null byte")
    return name, value


def _pair_of_document(element: Any) -> tuple[str, Any]:
    if not isinstance(element, dict):
        raise MongoFailure(40391, "$arrayToObject requires a consistent input format. Elements must all be objects")
    if len(element) != 2:
        raise MongoFailure(40392, "$arrayToObject requires an object with keys 'k' and 'v'")
    if "k" not in element or "v" not in element:
        raise MongoFailure(40393, "$arrayToObject requires an object with keys 'k' and 'v'")
    if type(element["k"]) is not str:
        raise MongoFailure(40394, "$arrayToObject requires an object with keys 'k' and 'v', where 'k' is a string")
    if "\0" in element["k"]:
        raise MongoFailure(4940401, "Key field cannot contain an embedded null byte")
    return element["k"], element["v"]


def _collating(name: str, least: int, most: int, function: Callable[..., Any]) -> Operator:
    """An operator whose function gets the collation of the command as `collate`."""

    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        collate = context.collate
        return positional(name, lambda *values: function(*values, collate=collate), least, most).compile(
            specification, context
        )

    return Operator(name, compile_call)


def _is_in(value: Any, array: Any, *, collate: Any) -> bool:
    if not isinstance(array, list):
        raise MongoFailure(40081, f"$in requires an array as a second argument, found: {type_name(array)}")
    return any(equal(element, value, collate) for element in array)


def _index_bound(value: Any, which: str) -> int:
    number = integral_int32(value)
    if number is None:
        raise MongoFailure(9711600, f"$indexOfArray requires an integral {which} index, found: {type_name(value)}")
    if number < 0:
        raise MongoFailure(9711601, f"$indexOfArray requires a nonnegative {which} index, found: {number}")
    return number


def _index_of_array(*arguments: Any, collate: Any) -> Any:
    array = arguments[0]
    if is_nullish(array):
        return None
    if not isinstance(array, list):
        raise MongoFailure(40090, f"$indexOfArray requires an array as a first argument, found: {type_name(array)}")
    start = _index_bound(arguments[2], "starting") if len(arguments) > 2 else 0
    end = min(_index_bound(arguments[3], "ending"), len(array)) if len(arguments) > 3 else len(array)
    for position in range(start, end):
        if equal(array[position], arguments[1], collate):
            return position
    return -1


def _compile_zip(specification: Any, context: CompileContext) -> Evaluate:
    if not isinstance(specification, dict):
        raise MongoFailure(34460, f"$zip only supports an object as an argument, found {type_name(specification)}")
    inputs: list[Evaluate] = []
    defaults: list[Evaluate] = []
    to_longest = False
    for name, value in specification.items():
        if name == "inputs":
            if not isinstance(value, list):
                raise MongoFailure(34461, f"inputs must be an array of expressions, found {type_name(value)}")
            inputs = [context.compile(element) for element in value]
        elif name == "defaults":
            if not isinstance(value, list):
                raise MongoFailure(34462, f"defaults must be an array of expressions, found {type_name(value)}")
            defaults = [context.compile(element) for element in value]
        elif name == "useLongestLength":
            if type(value) is not bool:
                raise MongoFailure(34463, f"useLongestLength must be a bool, found {type_name(value)}")
            to_longest = value
        else:
            raise MongoFailure(34464, f"$zip found an unknown argument: {name}")
    if not inputs:
        raise MongoFailure(34465, "$zip requires at least one input array")
    if defaults and not to_longest:
        raise MongoFailure(34466, "cannot specify defaults unless useLongestLength is true")
    if defaults and len(defaults) != len(inputs):
        raise MongoFailure(34467, "defaults and inputs must have the same length")
    return _zip(inputs, defaults or [lambda document, variables: None] * len(inputs), to_longest)


def _zip(inputs: list[Evaluate], defaults: list[Evaluate], to_longest: bool) -> Evaluate:
    def evaluate(document: Any, variables: Variables) -> Any:
        arrays = []
        for closure in inputs:
            array = closure(document, variables)
            if is_nullish(array):
                return None
            if not isinstance(array, list):
                raise MongoFailure(34468, f"$zip found a non-array expression in input: {type_name(array)}")
            arrays.append(array)
        if not to_longest:
            return [list(row) for row in zip(*arrays, strict=False)]
        fillers = [closure(document, variables) for closure in defaults]
        fillers = [None if is_nullish(filler) else filler for filler in fillers]
        return [
            [array[row] if row < len(array) else filler for array, filler in zip(arrays, fillers, strict=True)]
            for row in range(max(map(len, arrays)))
        ]

    return evaluate


OPERATORS: tuple[Operator, ...] = (
    positional("$arrayElemAt", _element_at, 2, 2),
    positional("$arrayToObject", _array_to_object, 1, 1, null_if_null=True),
    positional("$concatArrays", _concatenate, 0, None),
    _end_of("$first", 0),
    _end_of("$last", -1),
    _collating("$in", 2, 2, _is_in),
    _collating("$indexOfArray", 2, 4, _index_of_array),
    positional("$isArray", lambda value: isinstance(value, list), 1, 1),
    positional("$objectToArray", _object_to_array, 1, 1, null_if_null=True),
    positional("$range", _range, 2, 3),
    positional("$reverseArray", _reverse, 1, 1, null_if_null=True),
    positional("$size", _size, 1, 1),
    positional("$slice", _slice_array, 2, 3),
    Operator("$zip", _compile_zip),
)
