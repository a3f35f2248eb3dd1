"""The commands `count` and `distinct`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import ANY, NUMBER, OBJECT, TEXT, as_int
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.data.hints import check_hint_type, resolve_hint
from asterism.apis.mongo.data.scopes import open_scope, read_collation
from asterism.apis.mongo.data.selection import Selection
from asterism.apis.mongo.data.targets import check_uuid, collection_name
from asterism.apis.mongo.data.views import Source, resolve
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.filters.paths import split_path, values_on_path
from asterism.values.bson.codec import encode
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import exact_value, int_of_size, is_nan
from asterism.values.bson.order import Collate, sort_key
from asterism.values.bson.types import MISSING, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

ANSWER_BYTES_MAX = 16 * 1024 * 1024
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

COUNT_FIELDS: Final = {
    "query": FieldRule(OBJECT),
    # Its types have codes of their own.
    "limit": FieldRule(ANY),
    "skip": FieldRule(NUMBER),
    "hint": FieldRule(ANY),
    "collation": FieldRule(OBJECT),
    "fields": FieldRule(ANY),
    "collectionUUID": FieldRule(("binData",)),
    "includeQueryStatsMetrics": FieldRule(ANY),
    "encryptionInformation": FieldRule(ANY),
}

DISTINCT_FIELDS: Final = {
    "key": FieldRule(TEXT, is_required=True),
    "query": FieldRule(OBJECT),
    "hint": FieldRule(ANY),
    "collation": FieldRule(OBJECT),
    "collectionUUID": FieldRule(("binData",)),
    "includeQueryStatsMetrics": FieldRule(ANY),
}


async def count(call: Call) -> Document:
    name = collection_name(call)
    skip, limit = _read_skip(call.field("skip")), _read_limit(call.field("limit", MISSING))
    source = _source(call, name)
    total = await _count(call, source, skip, limit)
    return {"n": int_of_size(total)}


def _source(call: Call, name: str) -> Source:
    hint = call.field("hint", MISSING)
    if hint is not MISSING:
        check_hint_type(hint)
    source = resolve(call, call.database, name)
    check_uuid(call.field("collectionUUID"), source.record, call.database, name)
    return source


async def _count(call: Call, source: Source, skip: int, limit: int) -> int:
    filter = call.field("query") or {}
    is_whole = not source.is_view and not filter and call.unit is None
    if is_whole and source.collection is not None and call.field("hint", {}) == {}:
        size = await source.collection.size()
        return _within(size.items, skip, limit)
    if source.is_view:
        return _within(await _count_in_view(call, source, filter), skip, limit)
    selection = _selection(call, source, filter)
    if selection is None:
        return 0
    total = 0
    found = selection.hits(call)
    try:
        async for hits in found:
            total += len(hits)
            if limit and total >= skip + limit:
                break
    finally:
        await found.aclose()
    return _within(total, skip, limit)


def _within(total: int, skip: int, limit: int) -> int:
    left = max(total - skip, 0)
    return min(left, limit) if limit else left


def _selection(call: Call, source: Source, filter: Document) -> Selection | None:
    """Return the selection of the command's documents; None if there is no collection."""
    collation = read_collation(call.field("collation"), source.collation)
    scope = open_scope(call, collation=collation)
    hint = call.field("hint", MISSING)
    collection = source.collection
    if collection is None:
        compile_filter(filter, scope.context)
        if hint is not MISSING:
            resolve_hint(hint, None)
        return None
    return Selection(
        collection,
        scope,
        filter,
        hint=None if hint is MISSING else resolve_hint(hint, collection.record),
        collation=collation.specification,
        allowed=call.context.index_filters.allowed(collection.record, filter, collation=collation.specification),
    )


async def _count_in_view(call: Call, source: Source, filter: Document) -> int:
    total = 0
    async for documents in _documents_of_view(call, source, filter):
        total += len(documents)
    return total


def _documents_of_view(call: Call, source: Source, filter: Document) -> Any:
    from asterism.apis.mongo.data.aggregate import AggregateOptions, open_pipeline

    hint = call.field("hint", MISSING)
    if hint is not MISSING:
        resolve_hint(hint, source.record)
    options = AggregateOptions(
        database=call.database,
        collection=source.name,
        pipeline=[{"$match": filter}] if filter else [],
        hint=hint,
        collation=call.field("collation"),
    )
    return open_pipeline(call, options, source)


def _read_skip(value: Any) -> int:
    if value is None:
        return 0
    skip = as_int(value)
    if skip < 0:
        raise MongoFailure(2, f"BSON field 'skip' value must be >= 0, actual value '{skip}'")
    return skip


def _read_limit(value: Any) -> int:
    """Return the limit of a count; a negative one counts as its amount."""
    if value is MISSING:
        return 0
    if not is_number(value):
        raise MongoFailure(2, "limit value is not a valid number")
    exact = 0 if is_nan(value) else exact_value(value)
    if is_nan(value) or exact in (float("inf"), float("-inf")) or exact != int(exact):
        raise MongoFailure(9, f"Expected an integer, but found {value} in: limit")
    limit = int(exact)
    if not _INT64_MIN <= limit <= _INT64_MAX:
        raise MongoFailure(9, f"Cannot represent {value} as a 64-bit integer in: limit")
    if limit == _INT64_MIN:
        raise MongoFailure(2, "limit value for count cannot be min long")
    return abs(limit)


# --- distinct -------------------------------------------------------------------------------------------------------


async def distinct(call: Call) -> Document:
    name = collection_name(call)
    key: str = call.body["key"]
    if "\x00" in key:
        raise MongoFailure(31032, "The key of distinct must not contain a null byte")
    source = _source(call, name)
    filter = call.field("query") or {}
    collate = read_collation(call.field("collation"), source.collation).collate
    values = _Values(key, collate)
    if source.is_view:
        async for documents in _documents_of_view(call, source, filter):
            for document in documents:
                values.add(document)
    else:
        selection = _selection(call, source, filter)
        if selection is not None:
            async for hits in selection.hits(call):
                for hit in hits:
                    values.add(hit.decoded())
    answer: Document = {"values": values.in_order()}
    if source.is_view or (source.record is not None and "timeseries" in source.record.options):
        # MongoDB answers a distinct of a view with an integer here.
        answer["ok"] = 1
    return answer


class _Values:
    """The different values at a path, the first of equal ones."""

    __slots__ = ("_collate", "_found", "_parts", "_size")

    def __init__(self, path: str, collate: Collate | None) -> None:
        self._parts = split_path(path)
        self._collate = collate
        self._found: dict[Any, Any] = {}
        self._size = 0

    def add(self, document: Document) -> None:
        for value, _ in values_on_path(document, self._parts, enter_last_array=False):
            if type(value) is list:
                for element in value:
                    self._add_value(element)
            elif value is not MISSING:
                self._add_value(value)

    def _add_value(self, value: Any) -> None:
        key = sort_key(value, self._collate)
        if key in self._found:
            return
        self._found[key] = value
        self._size += _encoded_size(value)
        if self._size > ANSWER_BYTES_MAX:
            raise MongoFailure(17217, "distinct too big, 16mb cap")

    def in_order(self) -> list[Any]:
        return [self._found[key] for key in sorted(self._found)]


def _encoded_size(value: Any) -> int:
    return len(encode({"0": value})) - 5
