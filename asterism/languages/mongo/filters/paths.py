"""The values that a path of a filter leads to: arrays of documents are entered, a number is an index or a name.

One value of a document can be reached in several ways, so a condition holds when it holds for one of the values. Values
inside an array that are not documents are passed over, and nested arrays are entered only by an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from asterism.languages.mongo.filters.match import Matches, Position, Test
from asterism.values.bson.types import MISSING, Document

Parts = tuple[str, ...]
ArrayMatches = Callable[[list[Any]], bool]


def split_path(path: str) -> Parts:
    return tuple(path.split("."))


def array_index(part: str) -> int | None:
    """Return the index that a component of a path stands for in an array, or None; `01` is only a name."""
    if part.isascii() and part.isdigit() and (part == "0" or part[0] != "0"):
        return int(part)
    return None


def matches_on_path(parts: Parts, test: Test, *, enter_last_array: bool) -> Matches:
    """Return whether the test holds for a value on the path. With `enter_last_array` the elements of an array at the
    end of the path are tested as well as the array itself."""
    in_document = _matches_field(parts[-1], test, enter_last_array)
    # Built from the end of the path: what it means below a document, and below an array.
    in_array = _matches_in_array(parts[-1], test, in_document, None, None)
    for part in reversed(parts[:-1]):
        outer = _matches_below(part, test, in_document, in_array)
        in_array = _matches_in_array(part, test, outer, in_document, in_array)
        in_document = outer
    return in_document


def _matches_below(name: str, test: Test, in_document: Matches, in_array: ArrayMatches) -> Matches:
    if_missing = test(MISSING)

    def matches(document: Document) -> bool:
        value = document.get(name, MISSING)
        if type(value) is dict:
            return in_document(value)
        if type(value) is list:
            return in_array(value)
        return if_missing

    return matches


def _matches_field(name: str, test: Test, enter_last_array: bool) -> Matches:
    if not enter_last_array:
        return lambda document: test(document.get(name, MISSING))

    def matches(document: Document) -> bool:
        value = document.get(name, MISSING)
        if type(value) is list:
            for element in value:
                if test(element):
                    return True
        return test(value)

    return matches


def _matches_in_array(
    part: str, test: Test, by_name: Matches, below: Matches | None, below_array: ArrayMatches | None
) -> ArrayMatches:
    """Return whether a path that begins with the part leads somewhere from the elements of an array. `below` and
    `below_array` are what follows after the part, None at its end."""

    def matches(array: list[Any]) -> bool:
        for element in array:  # noqa: SIM110 - a loop, since `any` over a generator costs twice as much
            if type(element) is dict and by_name(element):
                return True
        return False

    index = array_index(part)
    if index is None:
        return matches
    position = index

    def matches_index(array: list[Any]) -> bool:
        if position < len(array):
            element = array[position]
            if below is None or below_array is None:
                if test(element):
                    return True
            elif type(element) is dict:
                if below(element):
                    return True
            elif type(element) is list and below_array(element):
                return True
        return matches(array)

    return matches_index


def values_on_path(document: Any, parts: Parts, *, enter_last_array: bool) -> Iterator[tuple[Any, int | None]]:
    """Yield the values on the path, each with the position in the outermost array that was entered implicitly."""
    value = document
    for depth, part in enumerate(parts):
        if type(value) is not dict:
            yield MISSING, None
            return
        value = value.get(part, MISSING)
        if type(value) is list:
            yield from _values_in_array(value, parts[depth + 1 :], enter_last_array)
            return
    yield value, None


def _values_in_array(array: list[Any], parts: Parts, enter_last_array: bool) -> Iterator[tuple[Any, int | None]]:
    if not parts:
        if enter_last_array:
            yield from ((element, position) for position, element in enumerate(array))
        yield array, None
        return
    index, rest = array_index(parts[0]), parts[1:]
    for position, element in enumerate(array):
        if type(element) is dict:
            for value, _ in values_on_path(element, parts, enter_last_array=enter_last_array):
                yield value, position
        if position != index:
            continue
        # An index in the path is not an element that the server searched for, so that `$` does not mean it.
        if not rest:
            yield element, None
        elif type(element) is dict:
            yield from values_on_path(element, rest, enter_last_array=enter_last_array)
        elif type(element) is list:
            yield from _values_in_array(element, rest, enter_last_array)


def position_on_path(parts: Parts, test: Test, *, enter_last_array: bool) -> Position:
    """Return the function that finds which array element made the test hold."""

    def position(document: Any) -> int | None:
        for value, index in values_on_path(document, parts, enter_last_array=enter_last_array):
            if test(value):
                return index
        return None

    return position
