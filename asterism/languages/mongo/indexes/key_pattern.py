"""The key of an index: names of fields with a direction or the name of a special index."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.indexes.refusals import cannot_create
from asterism.languages.mongo.indexes.specification import IndexKind
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.numbers import is_nan
from asterism.values.bson.order import compare
from asterism.values.bson.types import Document

WILDCARD = "$**"
# The server's limit of fields in a compound index.
KEY_FIELDS_MAX = 32

_SPECIAL_KINDS: dict[str, IndexKind] = {"2d": "2d", "2dsphere": "2dsphere", "hashed": "hashed", "text": "text"}
_REFERENCE_NAMES = ("$ref", "$id", "$db")


def default_name(key: Document) -> str:
    """Return the name that clients give to an index without one, such as `a_1_b_-1`."""
    return "_".join(f"{path}_{_shown(value)}" for path, value in key.items())


def _shown(value: Any) -> str:
    return str(int(value)) if type(value) is float and value.is_integer() else str(value)


def is_wildcard_path(path: str) -> bool:
    return path == WILDCARD or path.endswith("." + WILDCARD)


def is_id_key(key: Document) -> bool:
    return list(key) == ["_id"] and is_number(key["_id"]) and not is_nan(key["_id"])


def check_key(key: Document) -> IndexKind:
    """Check the key of an index and return the kind of index that it asks for."""
    if not key:
        raise cannot_create("Index keys cannot be an empty object")
    if len(key) > KEY_FIELDS_MAX:
        raise MongoFailure(13103, f"Index key pattern has more than {KEY_FIELDS_MAX} fields")
    for path, value in key.items():
        _check_value(path, value)
        _check_path(path)
    kinds = {_SPECIAL_KINDS[value] for value in key.values() if type(value) is str}
    if len(kinds) > 1:
        raise cannot_create("Can't use more than one index plugin for a single index")
    wildcards = [path for path, value in key.items() if is_wildcard_path(path) and value != "text"]
    if wildcards:
        return _check_wildcard(key, wildcards, kinds)
    if "hashed" in kinds and list(key.values()).count("hashed") > 1:
        raise MongoFailure(31303, "A maximum of one index field is allowed to be hashed")
    return next(iter(kinds), "ordered")


def _check_value(path: str, value: Any) -> None:
    if is_number(value):
        if is_nan(value):
            raise cannot_create("Values in the index key pattern cannot be NaN")
        if compare(value, 0) == 0:
            raise cannot_create("Values in the index key pattern cannot be 0")
        return
    if type(value) is not str:
        raise cannot_create(
            f"Values in v:2 index key pattern cannot be of type {type_name(value)}. Only numbers > 0, numbers < 0, and "
            "strings are allowed."
        )
    if value == "wildcard" and not is_wildcard_path(path):
        raise MongoFailure(7246202, "A wildcard index must have a wildcard field, such as '$**'")
    if value not in _SPECIAL_KINDS:
        raise cannot_create(f"Unknown index plugin '{value}'")


def _check_path(path: str) -> None:
    if not path:
        raise cannot_create("Index keys cannot be an empty field")
    parts = path.split(".")
    for position, part in enumerate(parts):
        if not part:
            raise cannot_create(f"Index key '{path}' cannot contain an empty field name")
        is_last = position + 1 == len(parts)
        is_reference = position > 0 and part in _REFERENCE_NAMES
        if part.startswith("$") and not is_reference and not (part == WILDCARD and is_last):
            raise cannot_create(f"Index key contains an illegal field name: field name starts with '$': {path}")
    if parts.count(WILDCARD) > 1:
        raise cannot_create(f"Index key contains the wildcard more than once: {path}")


def _check_wildcard(key: Document, wildcards: list[str], kinds: set[IndexKind]) -> IndexKind:
    if kinds:
        raise cannot_create("A wildcard index cannot be combined with another kind of index")
    if len(wildcards) > 1:
        raise MongoFailure(7246201, "A compound wildcard index can only have one wildcard field")
    prefix = wildcards[0][: -len(WILDCARD)]
    for path in key:
        if prefix and path != wildcards[0] and ((path + ".").startswith(prefix) or prefix.startswith(path + ".")):
            raise cannot_create(f"The field '{path}' of a compound wildcard index overlaps with '{wildcards[0]}'")
    return "wildcard"


def text_fields(key: Document) -> list[str]:
    """Return the fields of a text index, which must stand next to each other."""
    paths = [path for path, value in key.items() if value == "text"]
    first = list(key).index(paths[0])
    if list(key)[first : first + len(paths)] != paths:
        raise cannot_create("'text' fields in index must all be adjacent")
    return paths


def stored_text_key(key: Document) -> Document:
    """Return the key of a text index as it is stored: all its fields are behind `_fts`."""
    stored: Document = {}
    for path, value in key.items():
        if value != "text":
            stored[path] = value
        else:
            stored["_fts"], stored["_ftsx"] = "text", 1
    return stored
