"""The command `aggregate`: pipelines over a collection, a view, a database, or documents that they make themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import ANY, ARRAY, BOOL, NUMBER, OBJECT, TRUTH, as_int, check_document
from asterism.apis.mongo.commands import FieldRule
from asterism.apis.mongo.data.answers import open_cursor
from asterism.apis.mongo.data.documents import DOCUMENT_BYTES_MAX, too_large
from asterism.apis.mongo.data.find import verifier
from asterism.apis.mongo.data.hints import check_hint_type, resolve_hint
from asterism.apis.mongo.data.ordering import read_sort
from asterism.apis.mongo.data.run_context import CollectionRunContext, documents_of
from asterism.apis.mongo.data.scopes import CollationChoice, check_view_collation, open_scope, read_collation
from asterism.apis.mongo.data.selection import Selection
from asterism.apis.mongo.data.targets import check_namespace, check_uuid
from asterism.apis.mongo.data.validation import is_bypassed
from asterism.apis.mongo.data.variables import CommandScope
from asterism.apis.mongo.data.views import Source, resolve
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.change_streams import CHANGE_STREAM
from asterism.languages.mongo.stages.metadata import metadata_of_stages
from asterism.languages.mongo.stages.pipeline import Pipeline, Split, compile_pipeline
from asterism.languages.mongo.stages.stage import PipelinePlace, batches_of
from asterism.values.bson.codec import encode
from asterism.values.bson.kinds import is_number, type_name
from asterism.values.bson.numbers import int_of_size
from asterism.values.bson.types import MISSING, Decimal128, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.commands import Answer

FIELDS: Final = {
    "pipeline": FieldRule(ARRAY, is_required=True, null_code=14),
    "cursor": FieldRule(OBJECT, null_code=14),
    "explain": FieldRule(BOOL, null_code=14),
    "allowDiskUse": FieldRule(BOOL, null_code=14),
    "bypassDocumentValidation": FieldRule(TRUTH),
    "hint": FieldRule(ANY),
    "collation": FieldRule(OBJECT),
    "let": FieldRule(OBJECT),
    "collectionUUID": FieldRule(("binData",)),
    "needsMerge": FieldRule(BOOL),
    "fromMongos": FieldRule(BOOL),
    "exchange": FieldRule(OBJECT),
    "isMapReduceCommand": FieldRule(BOOL),
    "includeQueryStatsMetrics": FieldRule(ANY),
    "encryptionInformation": FieldRule(ANY),
    "requestReshardingResumeToken": FieldRule(BOOL),
    "allowPartialResults": FieldRule(TRUTH),
}
_CURSOR: Final = {"batchSize": FieldRule(NUMBER)}
MEMORY_BYTES_MAX = 100 * 1024 * 1024
# Results may be larger than stored documents by what an operator of the server itself would add.
RESULT_BYTES_MAX = DOCUMENT_BYTES_MAX + 16 * 1024
# The name under which cursors of whole databases go.
DATABASE_CURSORS = "$cmd.aggregate"


@dataclass(slots=True)
class AggregateOptions:
    """The fields of an aggregate, checked. `collection` is None for `aggregate: 1`."""

    database: str
    collection: str | None
    pipeline: list[Any] = field(default_factory=list)
    batch_size: int | None = None
    single_batch: bool = False
    hint: Any = MISSING
    collation: Document | None = None
    let: Document | None = None
    allow_disk_use: bool = False
    bypass: bool = False

    @property
    def namespace(self) -> str:
        return f"{self.database}.{DATABASE_CURSORS if self.collection is None else self.collection}"


async def aggregate(call: Call) -> Answer:
    options = read_options(call)
    if call.field("explain"):
        check_api(call, options, explains=True)
        from asterism.apis.mongo.data.explain import explain_aggregate

        return await explain_aggregate(call, options, "queryPlanner")
    check_api(call, options)
    check_stages_in_transaction(call, options)
    if options.pipeline and isinstance(options.pipeline[0], dict) and CHANGE_STREAM in options.pipeline[0]:
        from asterism.apis.mongo.change_streams.opening import open_change_stream

        return await open_change_stream(call, options)
    source = find_source(call, options)
    return await run_aggregate(call, options, source)


def read_options(call: Call, body: Document | None = None) -> AggregateOptions:
    fields = call.body if body is None else body
    collection = _read_collection(fields.get("aggregate"))
    if collection is not None:
        check_namespace(call.database, collection)
    cursor = fields.get("cursor")
    size: Any = None
    if cursor is not None:
        check_document("aggregate.cursor", cursor, _CURSOR)
        size = cursor.get("batchSize")
    if size is not None and as_int(size) < 0:
        raise MongoFailure(2, f"BSON field 'batchSize' value must be >= 0, actual value '{size}'")
    if fields.get("explain"):
        if fields.get("writeConcern") is not None:
            raise MongoFailure(9, "Aggregation explain does not support the 'writeConcern' option")
    elif "cursor" not in fields and body is None:
        raise MongoFailure(9, "The 'cursor' option is required, except for aggregate with the explain argument")
    hint = fields.get("hint", MISSING)
    if hint is not MISSING:
        check_hint_type(hint)
    return AggregateOptions(
        database=call.database,
        collection=collection,
        pipeline=fields["pipeline"],
        batch_size=None if size is None else as_int(size),
        hint=hint,
        collation=fields.get("collation"),
        let=fields.get("let"),
        # The suite of the reference server has it on unless a command says no.
        allow_disk_use=fields.get("allowDiskUse") is not False,
        bypass=is_bypassed(fields.get("bypassDocumentValidation")),
    )


def _read_collection(value: Any) -> str | None:
    if type(value) is str:
        return value
    if not is_number(value):
        raise MongoFailure(73, f"collection name has invalid type {type_name(value)}")
    number = float(value.to_decimal()) if isinstance(value, Decimal128) else float(value)
    if number != 1.0:
        raise MongoFailure(2, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
    return None


def find_source(call: Call, options: AggregateOptions) -> Source:
    if options.collection is None:
        if call.field("collectionUUID") is not None:
            raise MongoFailure(4928901, "collectionUUID is not supported with aggregate: 1")
        return Source(options.database, DATABASE_CURSORS, None, [], False, None)
    source = resolve(call, options.database, options.collection)
    check_uuid(call.field("collectionUUID"), source.record, options.database, options.collection)
    return source


# Stages outside of version 1 of the stable API.
_UNSTABLE_STAGES: Final = frozenset(
    {
        "$currentOp", "$indexStats", "$listLocalSessions", "$listSessions", "$planCacheStats", "$search", "$searchMeta",
        "$vectorSearch", "$listSearchIndexes", "$queryStats", "$listSampledQueries", "$listCatalog", "$querySettings",
    }
)  # fmt: skip
# Stages that describe this server, which no other moment than now has.
_LOCAL_STAGES: Final = frozenset({"$currentOp", "$listClusterCatalog", "$listLocalSessions", "$planCacheStats"})


def check_api(call: Call, options: AggregateOptions, *, explains: bool = False) -> None:
    """Refuse stages that the stable API does not promise, if the client wants nothing else."""
    if not call.field("apiStrict"):
        return
    for stage in options.pipeline:
        name = next(iter(stage), "") if isinstance(stage, dict) else ""
        is_partly = name == "$collStats" and isinstance(stage[name], dict) and bool(set(stage[name]) - {"count"})
        if name in _UNSTABLE_STAGES or is_partly:
            raise MongoFailure(323, f"stage {name} is not allowed with 'apiStrict: true' in API Version 1")
    if explains:
        raise MongoFailure(323, "The 'explain' field is not allowed with 'apiStrict: true' in API Version 1")


# Stages that write, that describe the server, or that no snapshot has.
_NOT_IN_TRANSACTIONS: Final = frozenset(
    {
        "$changeStream", "$collStats", "$currentOp", "$indexStats", "$listCatalog", "$listClusterCatalog",
        "$listLocalSessions", "$listSampledQueries", "$listSearchIndexes", "$listSessions", "$merge", "$out",
        "$planCacheStats", "$queryStats", "$unionWith",
    }
)  # fmt: skip


def check_stages_in_transaction(call: Call, options: AggregateOptions) -> None:
    if not call.is_in_transaction:
        return
    for stage in options.pipeline:
        name = next(iter(stage), "") if isinstance(stage, dict) else ""
        if name in _NOT_IN_TRANSACTIONS:
            raise MongoFailure(263, f"Stage not supported inside of a multi-document transaction: {name}")


def check_level(call: Call, pipeline: Pipeline) -> None:
    """Refuse a read concern that a stage cannot have."""
    level = (call.read_concern or {}).get("level")
    if level in (None, "local"):
        return
    if level == "linearizable" and pipeline.writes_to is not None:
        raise MongoFailure(72, "$out and $merge cannot be used with a 'linearizable' read concern level")
    for stage in pipeline.stages:
        if stage.name in _LOCAL_STAGES:
            raise MongoFailure(72, f"Aggregation stage {stage.name} requires read concern local but found {level}")


def _check_place(pipeline: Pipeline, options: AggregateOptions) -> None:
    """Refuse a pipeline that needs a collection where it has none, and `$documents` where there is one."""
    if options.collection is None and not pipeline.is_sourceless:
        raise MongoFailure(73, "{aggregate: 1} is not valid for a pipeline that reads a collection")
    if options.collection is not None and pipeline.stages and pipeline.stages[0].name == "$documents":
        raise MongoFailure(73, "'$documents' can only be run with {aggregate: 1}")


class PreparedPipeline:
    """A pipeline, compiled for its source: the part that the store answers, and the rest."""

    __slots__ = ("_options", "call", "collation", "pipeline", "run_context", "scope", "source", "split")

    def __init__(self, call: Call, options: AggregateOptions, source: Source) -> None:
        self.call = call
        self.source = source
        self._options = options
        self.collation: CollationChoice = read_collation(options.collation, source.collation)
        if source.is_view and options.collation:
            check_view_collation(self.collation, source)
        self.scope: CommandScope = open_scope(call, let=options.let, collation=self.collation)
        place = PipelinePlace(options.database, options.collection, in_transaction=call.is_in_transaction)
        stages = [*source.pipeline, *options.pipeline] if source.pipeline else options.pipeline
        self.pipeline: Pipeline = compile_pipeline(stages, self.scope.context, place=place)
        if not source.is_made:
            _check_place(self.pipeline, options)
        check_level(call, self.pipeline)
        self.split: Split = self.pipeline.split_for_source()
        self.run_context = CollectionRunContext(
            call,
            options.database,
            source,
            self.scope.variables,
            collation=self.collation,
            memory_bytes_max=None if options.allow_disk_use else MEMORY_BYTES_MAX,
            bypass=options.bypass,
        )

    def selection(self) -> Selection | None:
        """Return the documents that the store is asked for; None if there are none to read."""
        collection = self.source.collection
        hint = self._options.hint
        if collection is None or self.pipeline.is_sourceless:
            if hint is not MISSING:
                resolve_hint(hint, None)
            return None
        split = self.split
        return Selection(
            collection,
            self.scope,
            split.filter or {},
            order=read_sort(split.sort, self.scope.context),
            hint=None if hint is MISSING else resolve_hint(hint, collection.record),
            collation=self.collation.specification,
            wanted=split.skip + split.limit if split.limit is not None else 0,
            metadata=metadata_of_stages(split.rest.stages),
            allowed=self.call.context.index_filters.allowed(
                collection.record, split.filter or {}, split.sort, None, self.collation.specification
            ),
            sort_bytes_max=MEMORY_BYTES_MAX * (10 if self._options.allow_disk_use else 1),
        )

    def slices(self) -> AsyncGenerator[list[bytes], None]:
        """Return the results as BSON. Stored bodies that no stage looks at are passed on as they are."""
        selection = self.selection()
        rest = self.split.rest
        if selection is not None:
            counted = _counted_field(rest)
            if counted is not None:
                return self._count(selection, *counted)
            if not rest.stages:
                return self._bodies(selection)
        return _encoded(self.documents(selection))

    def documents(self, selection: Selection | None) -> AsyncIterator[list[Document]]:
        """Return the results as documents."""
        if self.pipeline.is_sourceless:
            return self.pipeline.run(batches_of([]), self.run_context)
        if selection is None:
            return self.split.rest.run(batches_of([]), self.run_context)
        return self.split.rest.run(documents_of(self.call, selection, self.split), self.run_context)

    async def _bodies(self, selection: Selection) -> AsyncGenerator[list[bytes], None]:
        split = self.split
        skip, left = split.skip, split.limit
        found = selection.hits(self.call)
        try:
            async for hits in found:
                bodies = [hit.body for hit in hits[skip:]] if skip else [hit.body for hit in hits]
                skip = max(0, skip - len(hits))
                if left is not None:
                    bodies = bodies[:left]
                    left -= len(bodies)
                if bodies:
                    yield bodies
                if left == 0:
                    return
        finally:
            await found.aclose()

    async def _count(self, selection: Selection, name: str, group: Any) -> AsyncGenerator[list[bytes], None]:
        """Count without a look at the bodies, for the shape that drivers send for `countDocuments`."""
        total, split = 0, self.split
        collection = self.source.collection
        assert collection is not None, "only documents of a collection are counted"
        is_whole = not split.filter and self.call.unit is None and self._options.hint is MISSING
        if is_whole:
            total = (await collection.size()).items
        else:
            most = None if split.limit is None else split.skip + split.limit
            found = selection.hits(self.call)
            try:
                async for hits in found:
                    total += len(hits)
                    if most is not None and total >= most:
                        break
            finally:
                await found.aclose()
        total = max(0, total - split.skip)
        if split.limit is not None:
            total = min(total, split.limit)
        if total:
            counted = {name: int_of_size(total)}
            yield [encode(counted if group is MISSING else {"_id": group, **counted})]


def _counted_field(rest: Pipeline) -> tuple[str, Any] | None:
    """Return the name of the count and the `_id` of the group, if the stages only count; None if they do more."""
    if len(rest.specification) != 1:
        return None
    stage = rest.specification[0]
    if "$count" in stage:
        return stage["$count"], MISSING
    group = stage.get("$group")
    if not isinstance(group, dict) or len(group) != 2:
        return None
    identity = group.get("_id")
    ((name, counted),) = [entry for entry in group.items() if entry[0] != "_id"] if "_id" in group else [("", None)]
    if counted != {"$sum": 1} or type(counted["$sum"]) is not int:
        return None
    return (name, identity) if identity is None or type(identity) is int else None


async def _encoded(batches: AsyncIterator[list[Document]]) -> AsyncGenerator[list[bytes], None]:
    try:
        async for documents in batches:
            bodies = [encode(document) for document in documents]
            for body in bodies:
                if len(body) > RESULT_BYTES_MAX:
                    raise too_large(len(body))
            yield bodies
    finally:
        close = getattr(batches, "aclose", None)
        if close is not None:
            await close()


async def run_aggregate(call: Call, options: AggregateOptions, source: Source) -> Answer:
    prepared = PreparedPipeline(call, options, source)
    slices = prepared.slices()
    verify = None if source.collection is None else verifier(call, source.collection)
    if prepared.pipeline.writes_to is not None:
        # The collection may be the one that was just replaced.
        verify = None
        # Written before the answer, whatever the size of the first batch.
        async for _ in slices:
            pass
        slices = _nothing()
    return await open_cursor(
        call,
        options.namespace,
        slices,
        batch_size=options.batch_size,
        single_batch=options.single_batch,
        verify=verify,
    )


async def _nothing() -> AsyncGenerator[list[bytes], None]:
    return
    yield


def open_pipeline(call: Call, options: AggregateOptions, source: Source) -> AsyncIterator[list[Document]]:
    """Return the documents of a pipeline, for commands that answer from them."""
    prepared = PreparedPipeline(call, options, source)
    return prepared.documents(prepared.selection())
