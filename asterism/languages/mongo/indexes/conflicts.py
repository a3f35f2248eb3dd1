"""Conflicts of a new index with those that exist: the same index, another under its name, or the same by another."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Final, Literal

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.indexes.partial_filters import comparable
from asterism.languages.mongo.indexes.refusals import cannot_create
from asterism.languages.mongo.indexes.specification import IndexSpec
from asterism.values.bson.order import equal

SAME: Final = "same"
# The server's limit of indexes in a collection, the one of `_id` among them.
INDEXES_MAX = 64

# Options that tell indexes over the same key apart: both may exist beside each other.
_IDENTIFYING = ("unique", "sparse", "collation", "partialFilterExpression", "wildcardProjection")
# Options that two equal indexes may differ in.
_IGNORED = ("background", "textIndexVersion", "2dsphereIndexVersion")


class _Likeness(Enum):
    DIFFERENT = auto()
    # The same entries with other options, such as the time of expiry.
    EQUIVALENT = auto()
    IDENTICAL = auto()


def conflicts(existing: IndexSpec, new: IndexSpec) -> MongoFailure | Literal["same"] | None:
    """Return the refusal of a new index because of an existing one, SAME if they are one, or None."""
    likeness = _likeness(existing, new)
    if existing.name == new.name:
        if likeness is _Likeness.DIFFERENT:
            return MongoFailure(
                86,
                "An existing index has the same name as the requested index. When index names are not specified, they "
                f"are auto generated and can cause conflicts. Please refer to our documentation. Index: {new.name}",
            )
        if likeness is _Likeness.EQUIVALENT:
            return MongoFailure(
                85, f"An equivalent index already exists with the same name but different options: {new.name}"
            )
        return SAME
    if likeness is not _Likeness.DIFFERENT:
        return MongoFailure(85, f"Index already exists with a different name: {existing.name}")
    if existing.kind == new.kind == "text":
        return cannot_create(f"only one text index per collection allowed, found existing text index '{existing.name}'")
    return None


def indexes_to_create(existing: Sequence[IndexSpec], wanted: Sequence[IndexSpec]) -> list[IndexSpec]:
    """Return the indexes that do not exist yet; raise for the first conflict, also among themselves.
    `existing` contains the index of `_id`."""
    found: list[IndexSpec] = []
    for index in wanted:
        outcomes = [conflicts(other, index) for other in (*existing, *found)]
        for outcome in outcomes:
            if isinstance(outcome, MongoFailure):
                raise outcome
        if SAME not in outcomes:
            found.append(index)
    if found and len(existing) + len(found) > INDEXES_MAX:
        raise cannot_create(f"add index fails, too many indexes: a collection has at most {INDEXES_MAX}")
    return found


def _likeness(left: IndexSpec, right: IndexSpec) -> _Likeness:
    if not equal(left.key, right.key):
        return _Likeness.DIFFERENT
    for name in _IDENTIFYING:
        if not _equal_option(name, left.options.get(name), right.options.get(name)):
            return _Likeness.DIFFERENT
    names = {*left.options, *right.options}.difference(_IDENTIFYING, _IGNORED)
    if all(equal(left.options.get(name), right.options.get(name)) for name in names):
        return _Likeness.IDENTICAL
    return _Likeness.EQUIVALENT


def _equal_option(name: str, left: Any, right: Any) -> bool:
    if name == "partialFilterExpression" and left is not None and right is not None:
        return bool(comparable(left) == comparable(right))
    return equal(left, right)
