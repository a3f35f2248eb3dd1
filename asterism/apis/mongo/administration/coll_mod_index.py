"""The field `index` of `collMod`: expiry, hidden indexes, and the two steps toward a unique one."""

from __future__ import annotations

from typing import Any, Final

from asterism.apis.mongo.arguments import NUMBER, OBJECT, TEXT, TRUTH, as_bool, as_int, check_document
from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import FieldRule
from asterism.languages.mongo.failure import MongoFailure
from asterism.models.collections.index_changes import change_index_options, find_duplicates, rebuild_index
from asterism.models.collections.records import ID_INDEX, CollectionRecord, IndexRecord
from asterism.values.bson.order import equal
from asterism.values.bson.types import Document, Int64

_FIELDS: Final = {
    "name": FieldRule(TEXT),
    "keyPattern": FieldRule(OBJECT),
    "expireAfterSeconds": FieldRule(NUMBER),
    "hidden": FieldRule(TRUTH),
    "unique": FieldRule(TRUTH),
    "prepareUnique": FieldRule(TRUTH),
}
_CHANGES: Final = ("expireAfterSeconds", "hidden", "unique", "prepareUnique")
_SECONDS_MAX: Final = 2**31 - 1
# Violations that an error shows.
_SHOWN_MAX: Final = 100


async def change_index(call: Call, record: CollectionRecord, wanted: Document, *, dry_run: bool) -> Document:
    """Change an index and return what it was before and after."""
    check_document("collMod.index", wanted, _FIELDS)
    name, pattern = wanted.get("name"), wanted.get("keyPattern")
    if (name is None) == (pattern is None):
        raise MongoFailure(72, "Must specify either index name or key pattern, and not both")
    changes = {change: wanted[change] for change in _CHANGES if wanted.get(change) is not None}
    if not changes:
        raise MongoFailure(72, "no expireAfterSeconds, hidden, unique, or prepareUnique field")
    index = _find(record, name, pattern)
    answer: Document = {}
    options = dict(index.options)
    if "expireAfterSeconds" in changes:
        _change_expiry(index, options, changes["expireAfterSeconds"], answer)
    if "hidden" in changes:
        is_clustered = "clusteredIndex" in record.options
        _change_hidden(index, options, as_bool(changes["hidden"]), answer, is_clustered=is_clustered)
    is_prepared = bool(index.options.get("prepareUnique"))
    if "prepareUnique" in changes and as_bool(changes["prepareUnique"]) != is_prepared:
        if len(changes) > 1:
            raise MongoFailure(72, "'prepareUnique' cannot be changed together with other options")
        return await _change_prepared(call, record, index, is_prepared=not is_prepared)
    if "unique" in changes:
        return await _make_unique(call, record, index, as_bool(changes["unique"]), answer, dry_run=dry_run)
    if options != index.options:
        await change_index_options(call.store, call.account, record, index, options)
    return answer


def _find(record: CollectionRecord, name: str | None, pattern: Document | None) -> IndexRecord:
    if name is not None:
        found = [index for index in record.indexes if index.name == name]
    else:
        found = [
            index for index in record.indexes if list(index.key) == list(pattern or ()) and equal(index.key, pattern)
        ]
    if not found:
        raise MongoFailure(27, f"cannot find index {name or pattern} for ns {record.namespace}")
    if len(found) > 1:
        names = ", ".join(index.name for index in found)
        raise MongoFailure(181, f"index keyPattern {pattern} matches {len(found)} indexes ({names}), name one of them")
    return found[0]


def _change_expiry(index: IndexRecord, options: dict[str, Any], value: Any, answer: Document) -> None:
    seconds = min(as_int(value), _SECONDS_MAX)
    if seconds < 0:
        raise MongoFailure(72, "TTL index 'expireAfterSeconds' option must be within an acceptable range")
    special = any(path.endswith("$**") for path in index.key) or "text" in index.key.values()
    if index.name == ID_INDEX or len(index.key) > 1 or special:
        raise MongoFailure(72, "TTL indexes are single-field indexes, and not on _id")
    if "expireAfterSeconds" in options:
        answer["expireAfterSeconds_old"] = Int64(as_int(options["expireAfterSeconds"]))
    options["expireAfterSeconds"] = seconds
    answer["expireAfterSeconds_new"] = Int64(seconds)


def _change_hidden(
    index: IndexRecord, options: dict[str, Any], hidden: bool, answer: Document, *, is_clustered: bool
) -> None:
    if index.name == ID_INDEX:
        raise MongoFailure(6011800 if is_clustered else 2, "can't hide _id index")
    if hidden == index.is_hidden:
        return
    answer["hidden_old"], answer["hidden_new"] = index.is_hidden, hidden
    options["hidden"] = hidden
    if not hidden:
        del options["hidden"]


async def _change_prepared(call: Call, record: CollectionRecord, index: IndexRecord, *, is_prepared: bool) -> Document:
    """Begin or end to refuse new documents that have the key of another."""
    options = {name: value for name, value in index.options.items() if name != "prepareUnique"}
    if is_prepared:
        options["prepareUnique"] = True
    if not index.options.get("unique"):
        await rebuild_index(call.store, call.account, record, index, options)
    return {"prepareUnique_old": not is_prepared, "prepareUnique_new": is_prepared}


async def _make_unique(
    call: Call, record: CollectionRecord, index: IndexRecord, wanted: bool, answer: Document, *, dry_run: bool
) -> Document:
    if not wanted:
        raise MongoFailure(2, "collMod does not support converting an unique index to non-unique")
    if index.options.get("unique"):
        return answer
    if not dry_run and not index.options.get("prepareUnique"):
        raise MongoFailure(72, "Cannot make index unique: prepareUnique must be set before")
    collection = call.collection()
    duplicates = [] if collection is None else await find_duplicates(collection, index)
    if duplicates:
        raise MongoFailure(
            359,
            "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.",
            details={"violations": [{"ids": ids} for ids in duplicates[:_SHOWN_MAX]]},
        )
    if dry_run:
        return answer
    options = {name: value for name, value in index.options.items() if name != "prepareUnique"}
    await rebuild_index(call.store, call.account, record, index, {**options, "unique": True})
    return {**answer, "unique_new": True}
