"""The command `find`. A find by `_id` is the most frequent command of all: it reads one body and sends it as it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import ANY, NUMBER, OBJECT, TRUTH, as_bool, as_int
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.cursors import Patience
from asterism.apis.mongo.data.answers import first_batch, open_cursor, slices_of
from asterism.apis.mongo.data.bounds import index_key_of, read_bounds
from asterism.apis.mongo.data.hints import Hint, check_hint_type, resolve_hint
from asterism.apis.mongo.data.ordering import read_sort
from asterism.apis.mongo.data.scopes import CollationChoice, open_scope, read_collation
from asterism.apis.mongo.data.selection import SORT_BYTES_MAX, Hit, Selection, plain_id
from asterism.apis.mongo.data.tailing import Shape, Tail
from asterism.apis.mongo.data.targets import check_uuid, collection_name
from asterism.apis.mongo.data.views import Source, resolve
from asterism.languages.mongo.expressions.misc import META_VARIABLE
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.projection import compile_projection
from asterism.languages.mongo.stages.metadata import check_available, metadata_names
from asterism.values.bson.codec import encode
from asterism.values.bson.types import MISSING, Document, Int64

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.commands import Answer
    from asterism.apis.mongo.data.variables import CommandScope
    from asterism.models.collections.collection import Collection
from asterism.models.collections.records import ID_INDEX_NUMBER
from asterism.models.collections.rules import CollectionRules

FIELDS: Final = {
    "filter": FieldRule(OBJECT, null_code=14),
    "sort": FieldRule(OBJECT, null_code=14),
    "projection": FieldRule(OBJECT, null_code=14),
    "hint": FieldRule(ANY),
    "skip": FieldRule(NUMBER),
    "limit": FieldRule(NUMBER),
    "batchSize": FieldRule(NUMBER),
    "singleBatch": FieldRule(TRUTH),
    "max": FieldRule(OBJECT),
    "min": FieldRule(OBJECT),
    "returnKey": FieldRule(TRUTH),
    "showRecordId": FieldRule(TRUTH),
    "tailable": FieldRule(TRUTH),
    "oplogReplay": FieldRule(TRUTH),
    "noCursorTimeout": FieldRule(TRUTH),
    "awaitData": FieldRule(TRUTH),
    "allowPartialResults": FieldRule(TRUTH),
    "collation": FieldRule(OBJECT),
    "allowDiskUse": FieldRule(TRUTH),
    "let": FieldRule(OBJECT),
    "collectionUUID": FieldRule(("binData",)),
    "term": FieldRule(NUMBER),
    "readOnce": FieldRule(TRUTH),
    "includeQueryStatsMetrics": FieldRule(TRUTH),
    "encryptionInformation": FieldRule(ANY),
}

# A command with these fields only, and an `_id` to look for, takes the short way.
_SHORT_WAY: Final = frozenset(
    {
        "find", "filter", "limit", "singleBatch", "$db", "lsid", "$readPreference", "$clusterTime", "comment",
        "txnNumber", "autocommit", "startTransaction", "apiVersion",
    }
)  # fmt: skip


async def find(call: Call) -> Answer:
    name = collection_name(call)
    body = call.body
    if body.keys() <= _SHORT_WAY and (call.deadline is None):
        wanted = plain_id(body.get("filter", _NO_FILTER))
        if wanted is not MISSING and type(body.get("limit", 1)) is int and body.get("limit", 1) >= 0:
            collection = call.store.find(call.account, call.database, name, call.unit)
            if collection is not None:
                rules = collection.rules
                found = await _read_by_id(call, collection, rules, wanted)
                if found is not None:
                    return first_batch(rules.record.namespace, found)
    return await _find(call, name)


_NO_FILTER: Document = {}


async def _read_by_id(call: Call, collection: Collection, rules: CollectionRules, wanted: Any) -> list[bytes] | None:
    """Return the document of an id, as a list; None if the general way has to be taken."""
    options = rules.record.options
    if (rules.is_sharded and rules.record.shard_key != ("_id",)) or (type(wanted) is str and "collation" in options):
        return None
    document = await collection.read(wanted, rules=rules, unit=call.unit, spent=call.spent)
    use = call.context.usage.of(call.account, call.database, rules.record.name)
    use.index_uses[rules.record.uuid, ID_INDEX_NUMBER] += 1
    return [] if document is None else [document.body]


class FindOptions:
    """The fields of a find, checked."""

    __slots__ = (
        "await_data", "batch_size", "collation", "filter", "hint", "limit", "projection", "single_batch", "skip",
        "sort", "tailable",
    )  # fmt: skip

    def __init__(self, fields: Document) -> None:
        self.filter: Document = fields.get("filter") or {}
        self.sort: Document | None = fields.get("sort")
        self.projection: Document | None = fields.get("projection") or None
        self.collation: Document | None = fields.get("collation")
        self.hint: Any = fields.get("hint", MISSING)
        if self.hint is not MISSING:
            check_hint_type(self.hint)
        self.skip = _count(fields, "skip") or 0
        self.limit = _count(fields, "limit") or 0
        self.batch_size = _count(fields, "batchSize")
        self.single_batch = _is_set(fields, "singleBatch")
        self.tailable = _is_set(fields, "tailable")
        self.await_data = _is_set(fields, "awaitData")
        if self.await_data and not self.tailable:
            raise MongoFailure(9, "Cannot set 'awaitData' without also setting 'tailable'")
        if self.tailable:
            if self.single_batch:
                raise MongoFailure(2, "Cannot use tailable option with the 'singleBatch' option")
            if self.sort and self.sort != {"$natural": 1}:
                raise MongoFailure(2, "cannot use tailable option with a sort other than {$natural: 1}")


def _count(fields: Document, name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    count = as_int(value)
    if count < 0:
        raise MongoFailure(2, f"BSON field '{name}' value must be >= 0, actual value '{count}'")
    return count


def _is_set(fields: Document, name: str) -> bool:
    value = fields.get(name)
    return value is not None and as_bool(value)


async def _find(call: Call, name: str) -> Answer:
    options = FindOptions(call.body)
    source = resolve(call, call.database, name)
    check_uuid(call.field("collectionUUID"), source.record, call.database, name)
    if source.is_view:
        return await _find_in_view(call, name, options, source)
    collation = read_collation(options.collation, source.collation)
    scope = open_scope(call, let=call.field("let"), collation=collation)
    namespace = f"{call.database}.{name}"
    collection = source.collection
    if collection is None:
        _check_unused(options, scope)
        return await open_cursor(call, namespace, slices_of([]), batch_size=None)
    if options.tailable and "timeseries" in collection.record.options:
        raise MongoFailure(168, "Option tailable not supported in aggregation.")
    if options.tailable and not collection.record.options.get("capped"):
        raise MongoFailure(2, "tailable cursor requested on non capped collection")
    selection = new_selection(call, collection, options, scope, collation)
    shape = _shape(call, collection, options, scope, selection)
    verify = verifier(call, collection)
    if options.tailable and (await collection.size()).items:
        patience = Patience()
        tail = Tail(selection, skip=options.skip, limit=options.limit, patience=patience)
        return await open_cursor(
            call,
            namespace,
            tail.slices(call, shape),
            batch_size=options.batch_size,
            waits=True,
            verify=verify,
            patience=patience if options.await_data else None,
        )
    return await open_cursor(
        call,
        namespace,
        _results(call, selection, options, shape),
        batch_size=options.batch_size,
        single_batch=options.single_batch,
        limit=options.limit or None,
        verify=verify,
    )


def _check_unused(options: FindOptions, scope: CommandScope) -> None:
    """Refuse what is wrong even where there is nothing to read."""
    match = compile_filter(options.filter, scope.context)
    read_sort(options.sort, scope.context)
    if options.hint is not MISSING:
        resolve_hint(options.hint, None)
    if options.projection:
        compile_projection(options.projection, scope.context, filter_match=match)


def verifier(call: Call, collection: Collection) -> Callable[[], None]:
    """Return the check that a cursor's collection is still the one that it was opened on."""
    record = collection.record
    database, name, uuid = record.database, record.name, record.uuid

    def verify() -> None:
        found = call.store.record(call.account, database, name, call.unit)
        if found is None or found.uuid != uuid:
            raise MongoFailure(175, f"collection dropped or renamed. Its name was {database}.{name}")

    return verify


def new_selection(
    call: Call, collection: Collection, options: FindOptions, scope: CommandScope, collation: CollationChoice
) -> Selection:
    record = collection.record
    hint: Hint | None = None if options.hint is MISSING else resolve_hint(options.hint, record)
    least, most = call.field("min"), call.field("max")
    accepts = None
    if least or most:
        accepts = read_bounds(least or {}, most or {}, hint, collection, scope.collate)
    return Selection(
        collection,
        scope,
        options.filter,
        order=read_sort(options.sort, scope.context),
        hint=hint,
        collation=collation.specification,
        accepts=accepts,
        wanted=_wanted(options),
        metadata=metadata_names(options.projection),
        allowed=call.context.index_filters.allowed(
            record, options.filter, options.sort, options.projection, collation.specification
        ),
        sort_bytes_max=SORT_BYTES_MAX * (10 if _is_set(call.body, "allowDiskUse") else 1),
    )


def _wanted(options: FindOptions) -> int:
    """Return how many documents the first batch needs; 0 if it is not known."""
    counts = [count for count in (options.limit, options.batch_size) if count]
    return options.skip + min(counts) if counts else 0


def _shape(
    call: Call, collection: Collection, options: FindOptions, scope: CommandScope, selection: Selection
) -> Shape | None:
    """Return the function that makes the result of a document; None for the stored body as it is."""
    variables = scope.variables
    returns_key, shows_id = _is_set(call.body, "returnKey"), _is_set(call.body, "showRecordId")
    project = None
    if options.projection:
        project = compile_projection(options.projection, scope.context, filter_match=selection.match)
    if project is None and not returns_key and not shows_id:
        return None
    names = metadata_names([options.projection, options.sort])
    check_available(names, has_text=selection.match.text is not None, has_near=selection.match.geo is not None)
    if project is not None and not returns_key and not shows_id:
        projection = project
        if names:
            return lambda hit: encode(projection(hit.decoded(), {**variables, META_VARIABLE: hit.metadata or {}}))
        return lambda hit: encode(projection(hit.decoded(), variables))

    def shape(hit: Hit) -> bytes:
        document = hit.decoded()
        if returns_key:
            result = index_key_of(document, selection.plan.index, collection)
        else:
            result = document if project is None else project(document, variables)
        if shows_id:
            result = {**result, "$recordId": _record_id(hit)}
        return encode(result)

    return shape


def _record_id(hit: Hit) -> Int64:
    """Return a number that stays the same while the document exists."""
    digest = blake2b(hit.key.point + hit.key.id_key, digest_size=8).digest()
    return Int64(int.from_bytes(digest, "big") >> 1)


async def _results(
    call: Call, selection: Selection, options: FindOptions, shape: Shape | None
) -> AsyncGenerator[list[bytes], None]:
    skip, left = options.skip, options.limit or -1
    found = selection.hits(call)
    try:
        async for hits in found:
            if skip:
                skipped = min(skip, len(hits))
                skip -= skipped
                hits = hits[skipped:]
            if 0 <= left < len(hits):
                hits = hits[:left]
            left -= len(hits) if left >= 0 else 0
            if hits:
                yield [hit.body for hit in hits] if shape is None else [shape(hit) for hit in hits]
            if left == 0:
                return
    finally:
        await found.aclose()


async def _find_in_view(call: Call, name: str, options: FindOptions, source: Source) -> Answer:
    """Answer a find of a view by the aggregation that it stands for."""
    from asterism.apis.mongo.data.aggregate import AggregateOptions, run_aggregate

    for unsupported in ("min", "max", "returnKey", "showRecordId", "tailable", "awaitData", "oplogReplay"):
        if call.field(unsupported):
            raise MongoFailure(168, f"Option {unsupported} not supported in aggregation.")
    if options.sort and "$natural" in options.sort:
        raise MongoFailure(72, "$natural sort is not supported on views")
    stages: list[Document] = []
    if options.filter:
        stages.append({"$match": options.filter})
    if options.sort:
        stages.append({"$sort": options.sort})
    if options.skip:
        stages.append({"$skip": Int64(options.skip)})
    if options.limit:
        stages.append({"$limit": Int64(options.limit)})
    if options.projection:
        stages.append({"$project": options.projection})
    return await run_aggregate(
        call,
        AggregateOptions(
            database=call.database,
            collection=name,
            pipeline=stages,
            batch_size=options.batch_size,
            single_batch=options.single_batch,
            hint=options.hint,
            collation=options.collation,
            let=call.field("let"),
            allow_disk_use=_is_set(call.body, "allowDiskUse"),
        ),
        source,
    )
