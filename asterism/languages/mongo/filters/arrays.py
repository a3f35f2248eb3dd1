"""$all, $elemMatch and $size: conditions on an array as a whole, and on one of its elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.filters.comparison import compile_eq
from asterism.languages.mongo.filters.evaluation import compile_regex_value
from asterism.languages.mongo.filters.integers import whole_number
from asterism.languages.mongo.filters.match import Node
from asterism.languages.mongo.filters.predicate import Predicate, Scope, all_hold, at_element, bad_value, never
from asterism.values.bson.types import Regex

INT32_MAX = 2**31 - 1

CompileNode = Callable[[dict[str, Any], Scope], Node]
CompileOperators = Callable[[dict[str, Any], Scope], tuple[Predicate, ...]]


def compile_size(operand: Any, _scope: Scope) -> Predicate:
    size = whole_number(operand)
    if size is None:
        raise bad_value(f"Failed to parse $size. Expected an integer: $size: {operand!r}")
    if size < 0:
        raise bad_value("Failed to parse $size. Expected a non-negative number")
    if size > INT32_MAX:
        raise bad_value("Failed to parse $size. Cannot represent as an integer of 32 bits")
    return Predicate("size", lambda value: type(value) is list and len(value) == size, size, enter_last_array=False)


def compile_elem_match(
    operand: Any,
    scope: Scope,
    compile_operators: CompileOperators,
    compile_node: CompileNode,
    holds_for_documents: Callable[[dict[str, Any]], bool],
) -> Predicate:
    """Compile `{$elemMatch: {$gt: 1}}`, over values, and `{$elemMatch: {a: 1}}`, over documents."""
    if type(operand) is not dict:
        raise bad_value("$elemMatch needs an Object")
    inside = scope.inside_array()
    if holds_for_documents(operand):
        node = compile_node(operand, inside)
        kind, test = "elemMatchObject", _document_test(node.matches)
    else:
        node = at_element(all_hold(compile_operators(operand, inside)))
        kind, test = "elemMatch", node.matches

    def position(value: Any) -> int | None:
        for index, element in enumerate(value):
            if test(element):
                return index
        return None

    def matches(value: Any) -> bool:
        return type(value) is list and position(value) is not None

    return Predicate(kind, matches, enter_last_array=False, position_inside=position, element_node=node)


def _document_test(matches: Callable[[dict[str, Any]], bool]) -> Callable[[Any], bool]:
    """An array inside the array is a document whose names are the indexes."""

    def test(element: Any) -> bool:
        if type(element) is list:
            return matches({str(index): value for index, value in enumerate(element)})
        return type(element) is dict and matches(element)

    return test


def compile_all(operand: Any, scope: Scope, compile_elements: Callable[[Any, Scope], Predicate]) -> Predicate:
    if type(operand) is not list:
        raise bad_value("$all needs an array")
    if not operand:
        return never()
    first_is_elem_match = _is_elem_match(operand[0])
    children: list[Predicate] = []
    for element in operand:
        if _is_elem_match(element) != first_is_elem_match:
            raise bad_value("$all/$elemMatch has to be consistent")
        if first_is_elem_match:
            if len(element) != 1:
                raise bad_value("$all/$elemMatch has to be consistent")
            children.append(compile_elements(element["$elemMatch"], scope))
        elif type(element) is Regex:
            children.append(compile_regex_value(element, scope))
        elif type(element) is dict and next(iter(element), "").startswith("$") and "$ref" not in element:
            raise bad_value("no $ expressions in $all")
        else:
            children.append(compile_eq(element, scope))
    return all_hold(tuple(children))


def _is_elem_match(value: Any) -> bool:
    return type(value) is dict and next(iter(value), "") == "$elemMatch"
