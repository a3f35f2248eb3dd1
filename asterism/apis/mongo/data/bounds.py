"""`min` and `max` of find: bounds on the keys of an index, and the keys themselves for `returnKey`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from asterism.apis.mongo.data.hints import Hint
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.collection import Collection
from asterism.models.collections.records import IndexRecord
from asterism.values.bson.order import Collate, compare
from asterism.values.bson.types import Document

_ID_INDEX = "_id_"
KeysOf = Callable[[Document], Sequence[tuple[Any, ...]]]


def read_bounds(
    least: Document, most: Document, hint: Hint | None, collection: Collection, collate: Collate | None
) -> Callable[[Document], bool]:
    """Return the test whether a document has a key from `least` on and before `most`."""
    index = None if hint is None else collection.record.index(hint.name)
    if index is None:
        raise MongoFailure(51173, "When using min()/max() a hint of which index to use must be provided")
    for bound in (least, most):
        if bound and list(bound) != list(index.key):
            raise MongoFailure(51174, "The index chosen is not compatible with min/max")
    if least and most and list(least) != list(most):
        raise MongoFailure(51176, "min and max must have the same field names")
    signs = [_sign(direction) for direction in index.key.values()]
    low, high = tuple(least.values()), tuple(most.values())
    if low and high and _compare(low, high, signs, collate) >= 0:
        raise MongoFailure(51175, "The value provided for min() does not come before the value provided for max()")
    keys_of = _keys_of(index, collection)

    def accepts(document: Document) -> bool:
        return any(
            (not low or _compare(key, low, signs, collate) >= 0)
            and (not high or _compare(key, high, signs, collate) < 0)
            for key in keys_of(document)
        )

    return accepts


def _sign(direction: Any) -> int:
    return -1 if isinstance(direction, (int, float)) and direction < 0 else 1


def _compare(left: Sequence[Any], right: Sequence[Any], signs: Sequence[int], collate: Collate | None) -> int:
    for known, other, sign in zip(left, right, signs, strict=True):
        order = compare(known, other, collate)
        if order:
            return order * sign
    return 0


def _keys_of(index: IndexRecord, collection: Collection) -> KeysOf:
    if index.name == _ID_INDEX:
        return lambda document: [(document.get("_id"),)]
    for rules in collection.rules.indexes:
        if rules.record.name == index.name:
            keys_of = rules.keys_of
            return lambda document: keys_of(document)[0]
    return lambda document: ()


def index_key_of(document: Document, name: str | None, collection: Collection) -> Document:
    """Return the key of a document in the index that found it; an empty document without an index."""
    index = None if name is None else collection.record.index(name)
    if index is None:
        return {}
    keys = _keys_of(index, collection)(document)
    return dict(zip(index.key, keys[0], strict=False)) if keys else {}
