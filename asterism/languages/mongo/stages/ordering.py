"""Orderings of documents by paths: of $sort, of $top and the like, of windows.

A path that leads into an array sorts by the least element, or by the greatest when descending. An empty array sorts
below null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.paths import array_index
from asterism.values.bson.order import Collate, sort_key
from asterism.values.bson.types import MISSING, Document

Parts = tuple[str, ...]

# Between MinKey and null.
_EMPTY_ARRAY_KEY = (3,)
_NULL_KEY = sort_key(None)


class DescendingKey:
    """A key in the opposite order."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: DescendingKey) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DescendingKey) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class SortField:
    parts: Parts
    is_descending: bool = False
    # Returns the value to sort by, for `{$meta: ...}` in place of a direction.
    meta: Callable[[Document], Any] | None = None


class SortRule:
    """An order of documents by several fields."""

    def __init__(self, fields: Iterable[SortField], collate: Collate | None = None) -> None:
        self.fields = tuple(fields)
        self.collate = collate
        self._readers = tuple(_reader(field, collate) for field in self.fields)
        heads = [field.parts[0] for field in self.fields if field.meta is None]
        # Fields below one array must be read from one element of it.
        self._may_share_array = len(heads) > 1 and any(
            len(field.parts) > 1 and heads.count(field.parts[0]) > 1 for field in self.fields if field.meta is None
        )

    def sort(self, documents: list[Document]) -> list[Document]:
        """Return the documents in order; equal ones stay as they were."""
        if len(self.fields) == 1:
            return sorted(documents, key=self._readers[0], reverse=self.fields[0].is_descending)
        keys = [(self.keys(document), document) for document in documents]
        # One stable pass for each run of fields of one direction, the last run first.
        runs = [list(run) for _, run in groupby(range(len(self.fields)), key=lambda i: self.fields[i].is_descending)]
        for run in reversed(runs):
            start, stop = run[0], run[-1] + 1
            keys.sort(key=lambda pair: pair[0][start:stop], reverse=self.fields[start].is_descending)
        return [document for _, document in keys]

    def keys(self, document: Document) -> tuple[Any, ...]:
        """Return the key of each field, as if all were ascending."""
        self._check_parallel_arrays(document)
        if self._may_share_array:
            return self._shared_keys(document)
        return tuple(reader(document) for reader in self._readers)

    def key(self, document: Document) -> tuple[Any, ...]:
        """Return one key that orders documents as `sort` does."""
        keys = self.keys(document) if len(self.fields) > 1 else (self._readers[0](document),)
        return tuple(
            DescendingKey(key) if field.is_descending else key for key, field in zip(keys, self.fields, strict=True)
        )

    def _check_parallel_arrays(self, document: Document) -> None:
        arrays = {
            id(array)
            for field in self.fields
            if field.meta is None and (array := _first_array(document, field.parts)) is not None
        }
        if len(arrays) > 1:
            raise MongoFailure(2, "cannot sort with keys that are parallel arrays")

    def _shared_keys(self, document: Document) -> tuple[Any, ...]:
        rows = [
            tuple(_value_key(value, self.collate) for value in row)
            for row in _rows(document, [field.parts for field in self.fields])
        ]
        if len(rows) == 1:
            return rows[0]
        return min(
            rows,
            key=lambda row: tuple(
                DescendingKey(key) if field.is_descending else key for key, field in zip(row, self.fields, strict=True)
            ),
        )


def _first_array(value: Any, parts: Parts) -> list[Any] | None:
    for part in parts:
        if type(value) is not dict:
            return None
        value = value.get(part)
        if type(value) is list:
            return value
    return None


class _EmptyArray:
    """The sort value of an array without elements."""


_EMPTY_ARRAY = _EmptyArray()


def _value_key(value: Any, collate: Collate | None) -> Any:
    return _EMPTY_ARRAY_KEY if value is _EMPTY_ARRAY else sort_key(value, collate)


def _rows(document: Any, paths: list[Parts]) -> list[list[Any]]:
    """Return the combinations of values that the paths have in one document, taking one element of every array."""
    values: list[Any] = []
    shared: dict[int, tuple[list[Any], list[int]]] = {}
    rests: list[Parts] = []
    for position, parts in enumerate(paths):
        value = document
        rest = parts
        while rest and type(value) is dict:
            value, rest = value.get(rest[0], MISSING), rest[1:]
        rests.append(rest)
        if type(value) is list:
            shared.setdefault(id(value), (value, []))[1].append(position)
            values.append(None)
        else:
            values.append(MISSING if rest else value)
    rows = [values]
    for array, positions in shared.values():
        inner = [
            row for element in array for row in _element_rows(element, [rests[position] for position in positions])
        ]
        if not inner:
            inner = [[MISSING if rests[position] else _EMPTY_ARRAY for position in positions]]
        rows = [_merged(row, positions, part) for row in rows for part in inner]
    return rows


def _element_rows(element: Any, paths: list[Parts]) -> list[list[Any]]:
    if type(element) is dict and all(paths):
        return _rows(element, paths)
    return [[MISSING if path else element for path in paths]]


def _merged(row: list[Any], positions: list[int], part: list[Any]) -> list[Any]:
    merged = list(row)
    for position, value in zip(positions, part, strict=True):
        merged[position] = value
    return merged


def _reader(field: SortField, collate: Collate | None) -> Callable[[Document], Any]:
    """Return the function that reads the sort key of one field."""
    if field.meta is not None:
        return field.meta
    choose = max if field.is_descending else min

    def array_key(values: list[Any]) -> Any:
        return choose([_value_key(value, collate) for value in values])

    if len(field.parts) == 1:
        name = field.parts[0]

        def read(document: Document) -> Any:
            value = document.get(name)
            if type(value) is list:
                return array_key(value) if value else _EMPTY_ARRAY_KEY
            return sort_key(value, collate)

        return read

    def read_path(document: Document) -> Any:
        return array_key(_values(document, field.parts))

    return read_path


def _values(value: Any, parts: Parts) -> list[Any]:
    for depth, part in enumerate(parts):
        if type(value) is dict:
            value = value.get(part, MISSING)
        elif type(value) is list:
            return _values_in_array(value, parts[depth:])
        else:
            return [MISSING]
    if type(value) is list:
        return value or [_EMPTY_ARRAY]
    return [value]


def _values_in_array(array: list[Any], parts: Parts) -> list[Any]:
    index = array_index(parts[0])
    if index is not None and index < len(array):
        return _values(array[index], parts[1:])
    found = [value for element in array for value in (_values(element, parts) if type(element) is dict else [MISSING])]
    return found or [MISSING]
