"""The index terms of many items at once.

Items that are written together are mostly of one shape. The values of one property are then encoded together, a column
at a time: the path is looked up once instead of once per item, and values that are all alike are encoded once. Values
that do not fit a column (arrays, values of several types, objects of several shapes) are walked item by item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asterism.models.documents.indexes.paths import Segment
from asterism.models.documents.indexes.terms import KNOWN_CHARACTERS_MAX, PathNode, Term

# Walks one value and adds its terms; terms may repeat if there are arrays in it.
Walk = Callable[[PathNode, Any, list[Term]], object]
# Returns the child of a node.
Below = Callable[[PathNode, Segment], PathNode]


class TermColumns:
    """The terms of many items: columns with one term for each item, and the further terms of each beside them."""

    def __init__(self, item_count: int, *, walk: Walk, below: Below) -> None:
        self._item_count = item_count
        self._walk = walk
        self._below = below
        self._columns: list[Sequence[Term]] = []
        self._beside: list[list[Term]] | None = None

    def add_objects(self, node: PathNode, objects: Sequence[Mapping[str, Any]]) -> bool:
        """Add the members of one object per item, if all have the same names in the same order."""
        names = list(objects[0])
        if not all(list(members) == names for members in objects):
            return False
        for name in names:
            self._add_values(node.below.get(name) or self._below(node, name), [members[name] for members in objects])
        return True

    def of_each(self) -> list[Sequence[Term]]:
        """Return the terms of each item, each term once."""
        rows: list[Sequence[Term]] = (
            list(zip(*self._columns, strict=True)) if self._columns else [()] * self._item_count
        )
        if self._beside is None:
            return rows
        return [(*row, *beside) for row, beside in zip(rows, self._beside, strict=True)]

    def _add_values(self, node: PathNode, values: list[Any]) -> None:
        kinds = set(map(type, values))
        if len(kinds) == 1:
            (kind,) = kinds
            if kind is dict:
                if node.indexed:
                    self._columns.append([node.object_term] * self._item_count)
                if not node.walked or self.add_objects(node, values):
                    return
            elif kind is not list:
                if node.indexed:
                    self._columns.append(_column(node, kind, values))
                return
            elif _are_same_strings(values):
                terms: list[Term] = []
                self._walk(node, values[0], terms)
                self._columns += [[term] * self._item_count for term in dict.fromkeys(terms)]
                return
        self._add_beside(node, values, kinds)

    def _add_beside(self, node: PathNode, values: list[Any], kinds: set[type]) -> None:
        if self._beside is None:
            self._beside = [[] for _ in values]
        had_object_term = kinds == {dict} and node.indexed
        for beside, value in zip(self._beside, values, strict=True):
            terms: list[Term] = []
            self._walk(node, value, terms)
            # Terms of one property repeat only among themselves.
            beside += dict.fromkeys(terms[1:] if had_object_term else terms)


def _are_same_strings(arrays: list[list[Any]]) -> bool:
    """Return True if all are the same array of strings. Equal values of other types may differ: 1 equals true."""
    first = arrays[0]
    return all(type(element) is str for element in first) and arrays.count(first) == len(arrays)


def _column(node: PathNode, kind: type, values: list[Any]) -> Sequence[Term]:
    """Return the terms of scalars of one type at one path."""
    first = values[0]
    if values.count(first) == len(values):
        return [node.scalar_term(first)] * len(values)
    if kind is str and max(map(len, values)) <= KNOWN_CHARACTERS_MAX and "\x00" not in "".join(values):
        return node.short_string_terms(values)
    return [node.scalar_term(value) for value in values]
