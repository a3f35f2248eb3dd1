"""Indexes of collections as the storage model needs them: the keys of a document, and the order of text.

An array on the path of a field gives a key for each of its elements; two fields with arrays of their own cannot be
indexed together. A missing value is null, unless the index is sparse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.rules import IndexProfile, KeysOfDocument
from asterism.values.bson.types import MISSING, DatetimeMS, Document, Missing, Timestamp

_Path = tuple[str, ...]
_WILDCARD = "$**"


def compile_index(_: CollectionRecord, index: IndexRecord) -> IndexProfile:
    """Return the rules of an index. Those of text, places, hashes and all paths keep no entries: the documents are
    read instead."""
    is_ordered = all(_is_direction(direction) for direction in index.key.values()) and not any(
        path == _WILDCARD or path.endswith("." + _WILDCARD) for path in index.key
    )
    if not is_ordered:
        return IndexProfile(lambda _: ((), False), None, False)
    return IndexProfile(_keys_of(index), _collate_of(index.options.get("collation")), True)


def _is_direction(direction: object) -> bool:
    return isinstance(direction, (int, float)) and not isinstance(direction, bool)


def _collate_of(collation: Mapping[str, Any] | None) -> Any:
    if not collation:
        return None
    from asterism.values.bson.collation import make_collation

    return make_collation(dict(collation)).key


def _keys_of(index: IndexRecord) -> KeysOfDocument:
    paths = [tuple(path.split(".")) for path in index.key]
    is_sparse = bool(index.options.get("sparse"))
    partial = index.options.get("partialFilterExpression")
    context = new_context(DatetimeMS(0), Timestamp(0, 0))
    holds = None if not partial else compile_filter(partial, context).matches
    top = paths[0][0] if len(paths) == 1 and len(paths[0]) == 1 else None

    def keys_of(document: Document) -> tuple[Sequence[tuple[Any, ...]], bool]:
        if holds is not None and not holds(document):
            return (), False
        if top is not None:
            # Nearly every index: one field at the top.
            value = document.get(top, MISSING)
            if type(value) is not list:
                return ((), False) if is_sparse and value is MISSING else (((_stored(value),),), False)
        keys, is_array = _expand(document, paths, {})
        if is_sparse:
            keys = [values for values in keys if any(type(value) is not Missing for value in values)]
        return [tuple(map(_stored, values)) for values in keys], is_array

    return keys_of


def _stored(value: Any) -> Any:
    return None if type(value) is Missing else value


def _expand(document: Document, paths: Sequence[_Path], chosen: dict[_Path, Any]) -> tuple[list[tuple[Any, ...]], bool]:
    """Return the keys of a document in which some arrays are replaced by one of their elements."""
    arrays: dict[_Path, list[Any]] = {}
    values = []
    for path in paths:
        value, prefix = _walk(document, path, chosen)
        values.append(value)
        if prefix is not None:
            arrays[prefix] = value
    if not arrays:
        return [tuple(values)], bool(chosen)
    prefix = min(arrays, key=len)
    if any(other[: len(prefix)] != prefix for other in arrays):
        names = [".".join(path) for path in arrays]
        raise MongoFailure(171, f"cannot index parallel arrays [{names[0]}] [{names[1]}]")
    elements = arrays[prefix] or [MISSING]
    found: list[tuple[Any, ...]] = []
    for element in elements:
        more, _ = _expand(document, paths, {**chosen, prefix: element})
        found += more
    return found, True


def _walk(document: Any, path: _Path, chosen: dict[_Path, Any]) -> tuple[Any, _Path | None]:
    """Return the value at a path; or an array on the way, with its own path, if no element of it is chosen."""
    value: Any = document
    for depth, part in enumerate(path):
        if type(value) is dict:
            value = value.get(part, MISSING)
        elif type(value) is list and part.isdigit():
            value = value[int(part)] if int(part) < len(value) else MISSING
        else:
            return MISSING, None
        here = path[: depth + 1]
        if type(value) is list:
            is_position = depth + 1 < len(path) and path[depth + 1].isdigit()
            if here in chosen:
                value = chosen[here]
                if type(value) is list:
                    return (value, None) if depth + 1 == len(path) else (MISSING, None)
            elif not is_position:
                return value, here
    return value, None
