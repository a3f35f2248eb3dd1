"""The condition behind a field in a filter, before it is bound to a path: a test of a value, or several tests.

The same operators are bound to a path (`{a: {$gt: 1}}`) and to the elements of an array, where arrays are not entered
again (`{a: {$elemMatch: {$gt: 1}}}`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Matches, Node, Position, Test, VariablesCell, conjunction, negation
from asterism.languages.mongo.filters.paths import matches_on_path, position_on_path, split_path, values_on_path

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Predicate:
    """An operator with its operand. `kind` is the operator's name for the planner; `not` and `and` have children."""

    kind: str
    test: Test
    value: Any = None
    enter_last_array: bool = True
    children: tuple[Predicate, ...] = ()
    # For $elemMatch: the position of the element inside the array that the test held for, and the part of the filter
    # that the elements are held against.
    position_inside: Position | None = None
    element_node: Node | None = None


def bad_value(message: str) -> MongoFailure:
    return MongoFailure(2, message)


def all_hold(children: tuple[Predicate, ...]) -> Predicate:
    if len(children) == 1:
        return children[0]
    tests = tuple(child.test for child in children)
    return Predicate("and", lambda value: all(test(value) for test in tests), children=children)


def does_not_hold(child: Predicate) -> Predicate:
    test = child.test
    return Predicate("not", lambda value: not test(value), children=(child,))


def never(value: Any = None) -> Predicate:
    return Predicate("alwaysFalse", lambda _: False, value)


def at_path(predicate: Predicate, path: str) -> Node:
    """Bind a predicate to a path of the document."""
    if predicate.kind == "not":
        return negation(at_path(predicate.children[0], path))
    if predicate.kind == "and":
        return conjunction(tuple(at_path(child, path) for child in predicate.children))
    parts, test, enter = split_path(path), predicate.test, predicate.enter_last_array
    matches = matches_on_path(parts, test, enter_last_array=enter)
    position = position_on_path(parts, test, enter_last_array=enter)
    if predicate.position_inside is not None:
        position = _position_inside(parts, test, predicate.position_inside)
    return Node(predicate.kind, matches, position, path, predicate.value, _element_nodes(predicate))


def at_element(predicate: Predicate) -> Node:
    """Bind a predicate to a value itself, an element of an array; the path of the node is empty."""
    if predicate.kind == "not":
        return negation(at_element(predicate.children[0]))
    if predicate.kind == "and":
        return conjunction(tuple(at_element(child) for child in predicate.children))
    return Node(predicate.kind, predicate.test, value=predicate.value, children=_element_nodes(predicate))


def _element_nodes(predicate: Predicate) -> tuple[Node, ...]:
    return () if predicate.element_node is None else (predicate.element_node,)


def _position_inside(parts: tuple[str, ...], test: Test, inside: Position) -> Position:
    """An array that was entered on the way counts before the array at the end."""

    def position(document: Any) -> int | None:
        for value, index in values_on_path(document, parts, enter_last_array=False):
            if test(value):
                return inside(value) if index is None else index
        return None

    return position


@dataclass(frozen=True, slots=True)
class Scope:
    """The things that operators of a filter may do and refer to at one place."""

    context: CompileContext
    features: frozenset[str]
    cell: VariablesCell
    # True if the place is the document itself, not an element of an array.
    is_top_level: bool = True
    # Compiles the JavaScript of $where; None where there is no interpreter.
    where: Callable[[Any], Matches] | None = None

    def inside_array(self) -> Scope:
        return replace(self, is_top_level=False)
