"""The index that a client wants to be used: `hint`, by name or by key pattern."""

from __future__ import annotations

from typing import Any, NamedTuple

from asterism.apis.mongo.data.ordering import NATURAL, is_direction
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.values.bson.numbers import exact_value
from asterism.values.bson.order import equal


class Hint(NamedTuple):
    """The name of an index, or `$natural`, and whether documents are wanted in reverse."""

    name: str
    is_reversed: bool = False


def check_hint_type(hint: Any) -> None:
    # Code is a text to Python.
    if type(hint) is not str and type(hint) is not dict:
        raise MongoFailure(9, "hint must be either a string or nested object")


def resolve_hint(hint: Any, record: CollectionRecord | None) -> Hint | None:
    """Return the index of a hint, None for a hint that says nothing; refuse one that names no index."""
    check_hint_type(hint)
    if hint == {}:
        return None
    if isinstance(hint, dict) and NATURAL in hint:
        if len(hint) > 1 or not is_direction(hint[NATURAL]):
            raise MongoFailure(2, "$natural hint must be set to 1 or -1, and stand alone")
        return Hint(NATURAL, exact_value(hint[NATURAL]) < 0)
    if record is None:
        return None
    for index in record.indexes:
        if not index.is_hidden and (index.name == hint if isinstance(hint, str) else _has_key(index, hint)):
            return Hint(index.name)
    raise MongoFailure(
        2,
        "error processing query: planner returned error :: caused by :: hint provided does not correspond to an "
        "existing index",
    )


def _has_key(index: IndexRecord, key: dict[str, Any]) -> bool:
    if list(index.key) != list(key) or "text" in key.values():
        return False
    return all(type(key[name]) is not bool and equal(value, key[name]) for name, value in index.key.items())
