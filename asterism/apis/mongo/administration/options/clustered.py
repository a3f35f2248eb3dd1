"""`clusteredIndex`: documents that lie in the order of their ids, as all of ours do."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.arguments import NUMBER, OBJECT, TEXT, TRUTH, as_bool, as_int, check_document, wrong_type
from asterism.apis.mongo.commands import FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.order import equal
from asterism.values.bson.types import Document

_FIELDS: Final = {
    "key": FieldRule(OBJECT, is_required=True),
    "unique": FieldRule(TRUTH, is_required=True),
    "name": FieldRule(TEXT),
    "v": FieldRule(NUMBER),
}


def read_clustered(value: Any) -> Document | None:
    """Return the stored form of `clusteredIndex`, None for one that is off."""
    if type_name(value) in TRUTH:
        if as_bool(value):
            raise MongoFailure(5979703, "Cannot create a collection with {clusteredIndex: true}, only with a key")
        return None
    if not isinstance(value, dict):
        raise wrong_type("create.clusteredIndex", value, OBJECT)
    check_document("create.clusteredIndex", value, _FIELDS)
    if "v" in value and value["v"] is not None and as_int(value["v"]) != 2:
        raise MongoFailure(5979704, "The clusteredIndex option 'v' must be 2")
    if not equal(value["key"], {"_id": 1}):
        raise MongoFailure(197, "The clusteredIndex option is only supported for key: {_id: 1}")
    if not as_bool(value["unique"]):
        raise MongoFailure(5979700, "The clusteredIndex option requires unique: true to be specified")
    return {"v": 2, "key": {"_id": 1}, "name": value.get("name") or "_id_", "unique": True}
