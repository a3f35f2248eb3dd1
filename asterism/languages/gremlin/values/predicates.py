"""Predicates (`P` and `TextP`) as functions of a value.

A comparison that cannot be made is false, and its negation true, as in TinkerPop 3.8. Texts are asked of texts alone:
a value of another type contains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.elements import Edge, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Predicate, Traversal
from asterism.languages.gremlin.values.comparison import are_equal, compare
from asterism.languages.gremlin.values.types import type_test
from asterism.values.linear_patterns import PatternRefused, compile_linear

Test = Callable[[Any], bool]

# A pattern is a part of a traversal, whose size is limited; this limits what a pattern may become.
_PATTERN_BYTES_MAX = 1024 * 1024


def compile_predicate(predicate: Predicate) -> Test:
    """Return the test of a predicate. Raises ExecutionFailure for arguments that it cannot have."""
    compiler = _COMPILERS.get(predicate.operator)
    if compiler is None:
        raise ExecutionFailure(f"P.{predicate.operator} is not a predicate.")
    return compiler(predicate.value)


def as_test(argument: Any) -> Test:
    """Return the test of an argument that is a predicate, or a value to be equal to."""
    return compile_predicate(argument) if isinstance(argument, Predicate) else _equals(argument)


def comparison_of_two(operator: str) -> Callable[[Any, Any], bool] | None:
    """Return a comparison as a function of the value and the other value, for `where`; None if it is not one."""
    return _TESTS_OF_TWO.get(operator)


def _equals(wanted: Any) -> Test:
    kind = type(wanted)
    if kind is str:
        return lambda value: bool(value == wanted)
    if kind is int:
        return lambda value: value == wanted and type(value) is not bool
    _refuse_traversal(wanted)
    return lambda value: are_equal(value, wanted)


def _differs(wanted: Any) -> Test:
    equals = _equals(wanted)
    return lambda value: not equals(value)


def is_less(value: Any, other: Any) -> bool:
    order = compare(value, other)
    return order is not None and order < 0


def is_at_most(value: Any, other: Any) -> bool:
    order = compare(value, other)
    return order is not None and order <= 0


def is_greater(value: Any, other: Any) -> bool:
    order = compare(value, other)
    return order is not None and order > 0


def is_at_least(value: Any, other: Any) -> bool:
    order = compare(value, other)
    return order is not None and order >= 0


def _comparison(test: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    def compile_comparison(limit: Any) -> Test:
        _refuse_traversal(limit)
        return lambda value: test(value, limit)

    return compile_comparison


class _Members:
    """The values of `within`: texts, elements and plain numbers by their hash, all others one by one."""

    def __init__(self, members: Iterable[Any]) -> None:
        self.hashed: set[Any] = set()
        self.others: list[Any] = []
        for member in members:
            kind = type(member)
            # Neither booleans, which equal 0 and 1, nor NaN, which is found by its identity.
            if kind in (str, Vertex, Edge, VertexProperty, int) or (kind is float and member == member):
                self.hashed.add(member)
            else:
                self.others.append(member)

    def have(self, value: Any) -> bool:
        kind = type(value)
        if kind in (str, Vertex, Edge, VertexProperty, int, float) and value in self.hashed:
            return True
        if kind is str or isinstance(value, list | dict | set | bool) or value is None:
            return any(are_equal(value, member) for member in self.others)
        # Numbers of other types equal plain ones.
        return any(are_equal(value, member) for member in self.others) or (
            kind not in (Vertex, Edge, VertexProperty, int, float)
            and any(are_equal(value, member) for member in self.hashed)
        )


def _within(members: Any) -> Test:
    if not isinstance(members, list | tuple | set | frozenset):
        members = [members]
    for member in members:
        _refuse_traversal(member)
    return _Members(members).have


def _without(members: Any) -> Test:
    within = _within(members)
    return lambda value: not within(value)


def _span(
    operator: str, low_test: Callable[[Any, Any], bool], high_test: Callable[[Any, Any], bool]
) -> Callable[[Any], Test]:
    def compile_span(ends: Any) -> Test:
        if not isinstance(ends, list | tuple) or len(ends) != 2:
            raise ExecutionFailure(f"P.{operator} takes two values.")
        low, high = ends
        if operator == "outside":
            return lambda value: low_test(value, low) or high_test(value, high)
        return lambda value: low_test(value, low) and high_test(value, high)

    return compile_span


def _all_of(predicates: Any) -> Test:
    tests = [compile_predicate(predicate) for predicate in predicates]
    return lambda value: all(test(value) for test in tests)


def _any_of(predicates: Any) -> Test:
    tests = [compile_predicate(predicate) for predicate in predicates]
    return lambda value: any(test(value) for test in tests)


def _not(predicate: Any) -> Test:
    if not isinstance(predicate, Predicate):
        raise ExecutionFailure("Cannot negate a null P")
    test = compile_predicate(predicate)
    return lambda value: not test(value)


def _text(method: Callable[[str, str], bool], *, is_negated: bool) -> Callable[[Any], Test]:
    def compile_text(part: Any) -> Test:
        if part is None:
            return lambda _: is_negated
        if not isinstance(part, str):
            raise ExecutionFailure(f"A predicate of texts takes a text, not {part!r}.")
        return lambda value: (isinstance(value, str) and method(value, part)) is not is_negated

    return compile_text


def _pattern(*, is_negated: bool) -> Callable[[Any], Test]:
    def compile_pattern(pattern: Any) -> Test:
        if not isinstance(pattern, str):
            raise ExecutionFailure(f"TextP.regex takes a text, not {pattern!r}.")
        try:
            search = compile_linear(pattern, memory_bytes_max=_PATTERN_BYTES_MAX).search
        except PatternRefused as error:
            raise ExecutionFailure(
                f"The pattern {pattern!r} cannot be used: {error}. Patterns are those of RE2, without back references "
                "and looking around."
            ) from None

        def matches(value: Any) -> bool:
            if not isinstance(value, str):
                return is_negated
            try:
                return (search(value) is not None) is not is_negated
            except UnicodeEncodeError:
                # Half of a surrogate pair, which RE2 cannot read, matches nothing.
                return is_negated

        return matches

    return compile_pattern


def _refuse_traversal(argument: Any) -> None:
    if isinstance(argument, Traversal):
        raise ExecutionFailure("A predicate compares with a value, not with a traversal; use where() or filter().")


_TESTS_OF_TWO: dict[str, Callable[[Any, Any], bool]] = {
    "eq": are_equal,
    "neq": lambda value, other: not are_equal(value, other),
    "lt": is_less,
    "lte": is_at_most,
    "gt": is_greater,
    "gte": is_at_least,
}

_COMPILERS: dict[str, Callable[[Any], Test]] = {
    "eq": _equals,
    "neq": _differs,
    "lt": _comparison(is_less),
    "lte": _comparison(is_at_most),
    "gt": _comparison(is_greater),
    "gte": _comparison(is_at_least),
    "inside": _span("inside", is_greater, is_less),
    "outside": _span("outside", is_less, is_greater),
    "between": _span("between", is_at_least, is_less),
    "within": _within,
    "without": _without,
    "and": _all_of,
    "or": _any_of,
    "not": _not,
    "typeOf": type_test,
    "startingWith": _text(str.startswith, is_negated=False),
    "notStartingWith": _text(str.startswith, is_negated=True),
    "endingWith": _text(str.endswith, is_negated=False),
    "notEndingWith": _text(str.endswith, is_negated=True),
    "containing": _text(str.__contains__, is_negated=False),
    "notContaining": _text(str.__contains__, is_negated=True),
    "regex": _pattern(is_negated=False),
    "notRegex": _pattern(is_negated=True),
}
PREDICATES = frozenset(_COMPILERS)
