"""Operators that treat arrays as sets: order and repetition count for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.constants import Constant, is_constant, is_nullish
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables
from asterism.languages.mongo.expressions.truth import is_true
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.order import sort_key

Set = dict[Any, Any]


def _set_of(array: list[Any], collate: Any) -> Set:
    """Return the distinct elements by their keys; of equal elements the first stays."""
    result: Set = {}
    for element in array:
        result.setdefault(sort_key(element, collate), element)
    return result


def _check_array(name: str, value: Any, code: int) -> list[Any]:
    if not isinstance(value, list):
        raise MongoFailure(code, f"All operands of {name} must be arrays. One argument is of type: {type_name(value)}")
    return value


def _count_error(name: str, count: int, given: int) -> MongoFailure:
    plural = "" if count == 1 else "s"
    return MongoFailure(16020, f"Expression {name} takes exactly {count} argument{plural}. {given} were passed in.")


def _pair(
    name: str, codes: tuple[int, int], combine: Callable[[Set, Set], Any], *, null_if_null: bool = False
) -> Operator:
    """An operator of two sets; `codes` answer a first and a second argument that is no array."""

    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        arguments = specification if isinstance(specification, list) else [specification]
        if len(arguments) != 2:
            raise _count_error(name, 2, len(arguments))
        left, right = (context.compile(argument) for argument in arguments)
        collate = context.collate
        # The set of a constant is built once, not for every document.
        ready = _set_of(right.value, collate) if type(right) is Constant and isinstance(right.value, list) else None

        def evaluate(document: Any, variables: Variables) -> Any:
            first, second = left(document, variables), right(document, variables)
            if null_if_null and (is_nullish(first) or is_nullish(second)):
                return None
            first_set = _set_of(_check_array(name, first, codes[0]), collate)
            second_set = ready if ready is not None else _set_of(_check_array(name, second, codes[1]), collate)
            return combine(first_set, second_set)

        return evaluate

    return Operator(name, compile_call)


def _difference(left: Set, right: Set) -> list[Any]:
    return [element for key, element in left.items() if key not in right]


def _many(name: str, code: int, combine: Callable[[Set, Set], Set]) -> Operator:
    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        arguments = specification if isinstance(specification, list) else [specification]
        # Constants come last, so that a null from a document wins over a constant of a wrong type.
        closures = sorted((context.compile(argument) for argument in arguments), key=is_constant)
        collate = context.collate

        def evaluate(document: Any, variables: Variables) -> Any:
            result: Set | None = None
            for closure in closures:
                value = closure(document, variables)
                if is_nullish(value):
                    return None
                elements = _set_of(_check_array(name, value, code), collate)
                result = elements if result is None else combine(result, elements)
            return list((result or {}).values())

        return evaluate

    return Operator(name, compile_call)


def _compile_equals(specification: Any, context: CompileContext) -> Evaluate:
    arguments = specification if isinstance(specification, list) else [specification]
    if len(arguments) < 2:
        raise MongoFailure(17045, f"$setEquals needs at least two arguments had: {len(arguments)}")
    closures = [context.compile(argument) for argument in arguments]
    collate = context.collate
    for closure in closures:
        if type(closure) is Constant:
            _check_array("$setEquals", closure.value, 5887502)

    def evaluate(document: Any, variables: Variables) -> bool:
        expected: Set | None = None
        for closure in closures:
            elements = _set_of(_check_array("$setEquals", closure(document, variables), 17044), collate)
            if expected is None:
                expected = elements
            elif elements.keys() != expected.keys():
                return False
        return True

    return evaluate


def _elements_true(name: str, code: int, decide: Callable[[Any], bool]) -> Operator:
    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        arguments = specification if isinstance(specification, list) else [specification]
        if len(arguments) != 1:
            raise _count_error(name, 1, len(arguments))
        closure = context.compile(arguments[0])

        def evaluate(document: Any, variables: Variables) -> bool:
            value = closure(document, variables)
            if not isinstance(value, list):
                raise MongoFailure(code, f"{name}'s argument must be an array, but is {type_name(value)}")
            return decide(map(is_true, value))

        return evaluate

    return Operator(name, compile_call)


OPERATORS: tuple[Operator, ...] = (
    _pair("$setDifference", (17048, 17049), _difference, null_if_null=True),
    _pair("$setIsSubset", (17046, 17042), lambda left, right: left.keys() <= right.keys()),
    _many("$setUnion", 17043, lambda left, right: {**left, **{key: right[key] for key in right if key not in left}}),
    _many(
        "$setIntersection",
        17047,
        lambda left, right: {key: element for key, element in left.items() if key in right},
    ),
    Operator("$setEquals", _compile_equals),
    _elements_true("$allElementsTrue", 17040, all),
    _elements_true("$anyElementTrue", 17041, any),
)
