"""Indexes of collections as the storage model needs them: the keys of a document, and the order of text.

An array on the path of a field gives a key for each of its elements; two fields with arrays of their own cannot be
indexed together. A missing value is null, unless the index is sparse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.filters.match import Matches
from asterism.languages.mongo.indexes.entries import ordered_keys
from asterism.languages.mongo.indexes.geo import compile_geo_index
from asterism.languages.mongo.indexes.text import compile_text_index, is_text_index
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.models.collections.rules import IndexProfile, KeysOfDocument
from asterism.values.bson.types import MISSING, DatetimeMS, Document, Missing, Timestamp

_Path = tuple[str, ...]
_WILDCARD = "$**"


def compile_index(_: CollectionRecord, index: IndexRecord) -> IndexProfile:
    """Return the rules of an index. Those of hashes and all paths keep no entries: the documents are read instead."""
    if any(kind in ("2d", "2dsphere") for kind in index.key.values()):
        return compile_geo_index(index, _holds(index))
    if is_text_index(index):
        return compile_text_index(index, _holds(index))
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


def _holds(index: IndexRecord) -> Matches | None:
    """Return the condition of a partial index."""
    partial = index.options.get("partialFilterExpression")
    context = new_context(DatetimeMS(0), Timestamp(0, 0))
    return compile_filter(partial, context).matches if partial else None


def _keys_of(index: IndexRecord) -> KeysOfDocument:
    paths = [tuple(path.split(".")) for path in index.key]
    is_sparse = bool(index.options.get("sparse"))
    holds = _holds(index)
    slow_keys_of = ordered_keys(index.key, sparse=is_sparse)
    top = paths[0][0] if len(paths) == 1 and len(paths[0]) == 1 else None

    def keys_of(document: Document) -> tuple[Sequence[tuple[Any, ...]], bool]:
        if holds is not None and not holds(document):
            return (), False
        if top is not None:
            # Nearly every index: one field at the top.
            value = document.get(top, MISSING)
            if type(value) is not list:
                return ((), False) if is_sparse and value is MISSING else (((_stored(value),),), False)
        return slow_keys_of(document)

    return keys_of


def _stored(value: Any) -> Any:
    return None if type(value) is Missing else value
