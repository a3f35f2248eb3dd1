"""`idIndex`: the specification of the index of `_id`, which can only be the usual one."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.arguments import NUMBER, as_int, wrong_type
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.indexes.collations import stored_collation
from asterism.values.bson.kinds import type_name
from asterism.values.bson.numbers import exact_value, is_nan
from asterism.values.bson.order import equal
from asterism.values.bson.types import Document

_KNOWN: Final = frozenset({"key", "name", "v", "ns", "collation"})
_VERSIONS: Final = (1, 2)


def check_id_index(specification: Document, collation: Document | None) -> None:
    """Refuse an index of `_id` that no collection has. `collation` is that of the collection."""
    for name in ("key", "name"):
        if name not in specification:
            raise MongoFailure(9, f"The '{name}' field is a required property of an index specification")
    key, name = specification["key"], specification["name"]
    if type(key) is not dict:
        raise wrong_type("idIndex.key", key, ("object",))
    if type(name) is not str:
        raise wrong_type("idIndex.name", name, ("string",))
    if not name:
        raise MongoFailure(67, "The index name cannot be empty")
    for option in specification:
        if option not in _KNOWN:
            raise MongoFailure(197, f"The field '{option}' is not valid for an _id index specification.")
    _check_version(specification)
    if list(key) != ["_id"] or not equal(key["_id"], 1):
        raise MongoFailure(2, "The field 'key' for an _id index must be {_id: 1}")
    own = specification.get("collation")
    if own is not None and type(own) is not dict:
        raise wrong_type("idIndex.collation", own, ("object",))
    if own is not None and not equal(stored_collation(own), collation):
        raise MongoFailure(2, "The _id index must have the same collation as the collection.")


def _check_version(specification: Document) -> None:
    if "v" not in specification:
        return
    version: Any = specification["v"]
    if type_name(version) not in NUMBER:
        raise wrong_type("idIndex.v", version, NUMBER)
    if is_nan(version) or exact_value(version) != as_int(version):
        raise MongoFailure(2, "Index version must be representable as a 32-bit integer")
    if as_int(version) not in _VERSIONS:
        raise MongoFailure(67, f"Invalid index specification: index version {as_int(version)} is not supported")
