"""Indexes as pure rules: specifications checked and completed, conflicts between them, keys of documents."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.indexes.collations import collate_of, stored_collation
from asterism.languages.mongo.indexes.conflicts import SAME, conflicts, indexes_to_create
from asterism.languages.mongo.indexes.entries import KeysOf, hashed_keys, ordered_keys, where, wildcard_keys
from asterism.languages.mongo.indexes.key_pattern import (
    check_key,
    default_name,
    is_id_key,
    stored_text_key,
    text_fields,
)
from asterism.languages.mongo.indexes.options import check_options, check_plane_bounds, version_of
from asterism.languages.mongo.indexes.partial_filters import compile_partial_filter
from asterism.languages.mongo.indexes.refusals import cannot_create, wrong_type
from asterism.languages.mongo.indexes.specification import IndexKind, IndexSpec, Keys
from asterism.languages.mongo.indexes.wildcard_projections import path_filter_of
from asterism.values.bson.order import compare
from asterism.values.bson.types import Document

__all__ = [
    "ID_INDEX",
    "SAME",
    "IndexSpec",
    "Keys",
    "conflicts",
    "default_name",
    "indexes_to_create",
    "keys_of",
    "parse_index",
]

_ID_INDEX_OPTIONS = frozenset(("key", "name", "ns", "v", "collation"))


def parse_index(specification: Any, *, default_collation: Document | None = None) -> IndexSpec:
    """Return the index that a document of `createIndexes` describes, with all its options checked. Without a collation
    of its own it has that of the collection."""
    if type(specification) is not dict:
        raise wrong_type("indexes", "an array of objects")
    key, name = _key_and_name(specification)
    options = check_options(specification)
    kind = check_key(key)
    version = version_of(specification)
    if is_id_key(key):
        return _id_index(specification, options, version)
    if name == "_id_":
        raise MongoFailure(2, "The index name '_id_' is reserved for the _id index")
    _check_combinations(key, kind, options, version)
    given = options.pop("collation", default_collation)
    collation = stored_collation(given) if given is not None else None
    collate = collate_of(collation)
    if collation is not None:
        if kind == "text":
            raise cannot_create("Index type 'text' does not support collation")
        options["collation"] = collation
    partial = options.get("partialFilterExpression")
    holds = compile_partial_filter(partial, collate) if partial is not None else None
    keys = where(holds, _compile_keys(key, kind, options))
    stored_key = key
    if kind == "text":
        stored_key = stored_text_key(key)
        _complete_text_options(key, options)
    elif kind == "2dsphere":
        options.setdefault("2dsphereIndexVersion", 3)
    return IndexSpec(stored_key, name, kind, options, version, keys)


def keys_of(document: Document, index: IndexSpec) -> Keys:
    """Return the keys of a document in an index, and whether an array stood on the way. Text and places have none here:
    their entries are made by the search."""
    return index.keys_of(document)


def _key_and_name(specification: Document) -> tuple[Document, str]:
    for name in ("key", "name"):
        if name not in specification:
            raise MongoFailure(9, f"The '{name}' field is a required property of an index specification")
    key, name = specification["key"], specification["name"]
    if type(key) is not dict:
        raise wrong_type("key", "an object")
    if type(name) is not str:
        raise wrong_type("name", "a string")
    if not name or "\x00" in name:
        raise cannot_create("The index name cannot be empty or contain null characters")
    if name == "*":
        raise MongoFailure(2, "The index name '*' is not valid.")
    return key, name


def _id_index(specification: Document, options: Document, version: int) -> IndexSpec:
    if compare(specification["key"]["_id"], 1) != 0:
        raise MongoFailure(2, "The field 'key' for an _id index must be {_id: 1}, but got another direction")
    for name in specification:
        if name not in _ID_INDEX_OPTIONS:
            raise MongoFailure(197, f"The field '{name}' is not valid for an _id index specification.")
    collation = stored_collation(options["collation"]) if "collation" in options else None
    key = {"_id": 1}
    stored = {} if collation is None else {"collation": collation}
    return IndexSpec(key, "_id_", "ordered", stored, version, ordered_keys(key, sparse=False))


def _check_combinations(key: Document, kind: IndexKind, options: Document, version: int) -> None:
    """Check what the options of an index must not be together."""
    if "expireAfterSeconds" in options and (len(key) > 1 or kind == "wildcard"):
        raise cannot_create("TTL indexes are single-field indexes, compound indexes do not support TTL")
    if options.get("sparse") and "partialFilterExpression" in options:
        raise cannot_create("cannot mix 'partialFilterExpression' and 'sparse' options")
    if kind == "hashed" and options.get("unique"):
        raise MongoFailure(16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
    if kind == "wildcard":
        for name in ("unique", "sparse"):
            if options.get(name):
                raise cannot_create(f"Index type 'wildcard' does not support the {name} option")
        if version < 2:
            raise cannot_create("Index type 'wildcard' requires index version 2")
    elif "wildcardProjection" in options:
        raise MongoFailure(2, "The field 'wildcardProjection' is only allowed in a wildcard index")
    if kind != "text" and "weights" in options:
        raise cannot_create("the field 'weights' can only be specified with text indexes")
    if kind == "2d":
        check_plane_bounds(options)


def _compile_keys(key: Document, kind: IndexKind, options: Document) -> KeysOf:
    sparse = bool(options.get("sparse"))
    if kind == "ordered":
        return ordered_keys(key, sparse=sparse)
    if kind == "hashed":
        return hashed_keys(key, sparse=sparse)
    if kind == "wildcard":
        return wildcard_keys(key, path_filter_of(key, options.get("wildcardProjection")))
    return lambda _document: ((), False)


def _complete_text_options(key: Document, options: Document) -> None:
    weights = {**dict.fromkeys(text_fields(key), 1), **options.get("weights", {})}
    options["weights"] = {path: weights[path] for path in sorted(weights)}
    options.setdefault("default_language", "english")
    options.setdefault("language_override", "language")
    options.setdefault("textIndexVersion", 3)


ID_INDEX = parse_index({"key": {"_id": 1}, "name": "_id_"})
