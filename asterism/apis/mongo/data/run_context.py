"""The surroundings of a running pipeline: other collections to read, and the target of `$out` and `$merge`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from asterism.apis.mongo.data.catalog_stages import check_plan_cache, list_catalog, list_sessions
from asterism.apis.mongo.data.merge_target import MergeTarget, unique_over
from asterism.apis.mongo.data.near import found_of, only_geo_path
from asterism.apis.mongo.data.ordering import read_sort
from asterism.apis.mongo.data.out_target import OutTarget
from asterism.apis.mongo.data.scopes import CollationChoice, check_view_collation
from asterism.apis.mongo.data.selection import Selection
from asterism.apis.mongo.data.statistics import collection_statistics, index_statistics
from asterism.apis.mongo.data.variables import CommandScope
from asterism.apis.mongo.data.views import Source, resolve
from asterism.apis.mongo.javascript import ScriptInterpreter
from asterism.apis.mongo.running import running_operations
from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.stages.looking_up import equality_filter
from asterism.languages.mongo.stages.metadata import metadata_of_stages
from asterism.languages.mongo.stages.pipeline import Pipeline, Split, compile_pipeline
from asterism.languages.mongo.stages.stage import (
    BATCH_DOCUMENTS,
    Batches,
    PipelinePlace,
    Uniqueness,
    Within,
    batches_of,
)
from asterism.reading.turns import Turns
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.languages.mongo.geo.near import Found
    from asterism.languages.mongo.stages.geo_near import GeoNear


async def documents_of(call: Call, selection: Selection, split: Split) -> AsyncIterator[list[Document]]:
    """Yield the documents that the source gives to the rest of a pipeline."""
    skip, left = split.skip, split.limit
    found = selection.hits(call)
    try:
        async for hits in found:
            if skip:
                skipped = min(skip, len(hits))
                skip -= skipped
                hits = hits[skipped:]
            if left is not None:
                hits = hits[:left]
                left -= len(hits)
            for start in range(0, len(hits), BATCH_DOCUMENTS):
                yield [hit.with_metadata() for hit in hits[start : start + BATCH_DOCUMENTS]]
            if left == 0:
                return
    finally:
        await found.aclose()


class CollectionRunContext:
    """The run context of one command. Reads and writes are those of its transaction, if it has one."""

    __slots__ = ("_bypass", "_call", "_collation", "_database", "_source", "memory_bytes_max", "variables")

    def __init__(
        self,
        call: Call,
        database: str,
        source: Source,
        variables: Variables,
        *,
        collation: CollationChoice,
        memory_bytes_max: int | None,
        bypass: bool = False,
    ) -> None:
        self._call = call
        self._collation = collation
        self._database = database
        self._source = source
        self._bypass = bypass
        self.variables = variables
        self.memory_bytes_max = memory_bytes_max

    def check_time(self) -> None:
        self._call.check_time()

    async def in_turns(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await Turns(self._call.context.monotonic_seconds, self.check_time).run(function, *arguments)

    def with_variables(self, variables: Variables) -> CollectionRunContext:
        return CollectionRunContext(
            self._call,
            self._database,
            self._source,
            variables,
            collation=self._collation,
            memory_bytes_max=self.memory_bytes_max,
            bypass=self._bypass,
        )

    # --- reading ----------------------------------------------------------------------------------------------------

    async def read(
        self, collection: str | None, database: str | None, pipeline: Pipeline, variables: Variables
    ) -> Batches:
        inner = self.with_variables(variables)
        if collection is None or pipeline.is_sourceless:
            return pipeline.run(batches_of([]), inner)
        source = self._resolve(database, collection)
        inner._source = source
        if source.is_view:
            return pipeline.run(self._view(source, pipeline.context), inner)
        split = pipeline.split_for_source()
        if source.collection is None:
            return split.rest.run(batches_of([]), inner)
        scope = CommandScope.of(pipeline.context, variables)
        selection = Selection(
            source.collection,
            scope,
            split.filter or {},
            order=read_sort(split.sort, scope.context),
            collation=self._collation.specification,
            metadata=metadata_of_stages(split.rest.stages),
        )
        return split.rest.run(documents_of(self._call, selection, split), inner)

    def _resolve(self, database: str | None, collection: str) -> Source:
        """Return the source of another collection; refuse a view with another collation than the command's."""
        source = resolve(self._call, database or self._database, collection)
        if source.is_view:
            check_view_collation(self._collation, source)
        return source

    def _view(self, source: Source, context: CompileContext) -> Batches:
        """Return the documents of a view. Its pipeline knows no variables of the one that reads it."""
        plain = new_context(context.now, context.cluster_time, context.collate, javascript=context.javascript)
        place = PipelinePlace(source.database, source.name, Within.VIEW)
        pipeline = compile_pipeline(source.pipeline, plain, place=place)
        split = pipeline.split_for_source()
        inner = self.with_variables({})
        if source.collection is None:
            return split.rest.run(batches_of([]), inner)
        scope = CommandScope.of(plain, {})
        selection = Selection(source.collection, scope, split.filter or {}, order=read_sort(split.sort, plain))
        return split.rest.run(documents_of(self._call, selection, split), inner)

    async def lookup(self, collection: str, database: str | None, field: str, values: list[Any]) -> list[Document]:
        source = self._resolve(database, collection)
        scope = self._plain_scope()
        filter = equality_filter(field, values)
        if source.is_view:
            accepts = compile_filter(filter, scope.context).with_variables({})
            return [
                document async for batch in self._view(source, scope.context) for document in batch if accepts(document)
            ]
        if source.collection is None:
            return []
        selection = Selection(source.collection, scope, filter, collation=self._collation.specification)
        return [hit.decoded() async for hits in selection.hits(self._call) for hit in hits]

    def _plain_scope(self) -> CommandScope:
        context = self._call.context
        return CommandScope(
            context.now(),
            context.cluster_time(),
            collate=self._collation.collate,
            javascript=ScriptInterpreter(self._call.services.scripts),
        )

    async def near(self, request: GeoNear) -> AsyncIterator[list[tuple[Document, Found]]]:
        source = self._source
        if source.collection is None:
            raise MongoFailure(26, f"$geoNear requires a geospatial index when running on {source.name}")
        path = request.key or only_geo_path(source.collection.record)
        scope = self._plain_scope().with_values(self.variables)
        selection = Selection(
            source.collection,
            scope,
            request.query,
            near=request.search_at(path, self.variables),
            collation=self._collation.specification,
        )
        async for hits in selection.hits(self._call):
            yield [(hit.decoded(), found_of(hit)) for hit in hits]

    # --- writing ----------------------------------------------------------------------------------------------------

    async def write_out(self, database: str | None, collection: str, batches: Batches, options: dict[str, Any]) -> None:
        target = OutTarget(self._call, database or self._database, collection, bypass=self._bypass)
        await target.replace_by(batches, options)

    async def unique_on(self, database: str | None, collection: str, fields: Sequence[str]) -> Uniqueness:
        record = self._call.store.record(self._call.account, database or self._database, collection)
        return unique_over(record, fields, self._collation)

    async def merge_find(self, database: str | None, collection: str, key: Document) -> Document | None:
        return await self._merge_target(database, collection).find(key)

    async def merge_insert(self, database: str | None, collection: str, document: Document) -> None:
        await self._merge_target(database, collection).insert(document)

    async def merge_update(
        self, database: str | None, collection: str, before: Document, change: Callable[[Document], Document]
    ) -> bool:
        return await self._merge_target(database, collection).update(before, change)

    def _merge_target(self, database: str | None, collection: str) -> MergeTarget:
        return MergeTarget(
            self._call,
            database or self._database,
            collection,
            self._plain_scope(),
            collation=self._collation,
            bypass=self._bypass,
        )

    # --- the server -------------------------------------------------------------------------------------------------

    async def collection_statistics(self, specification: dict[str, Any]) -> list[Document]:
        name = self._call.target if isinstance(self._call.target, str) else self._source.name
        return await collection_statistics(self._call, self._source, name, specification)

    async def index_statistics(self) -> list[Document]:
        return index_statistics(self._call, self._source)

    async def current_operations(self, specification: dict[str, Any]) -> list[Document]:
        return running_operations(self._call, specification)

    async def system_documents(self, stage: str, specification: dict[str, Any]) -> list[Document]:
        if stage in ("$listLocalSessions", "$listSessions"):
            return list_sessions(self._call, specification)
        if stage == "$listClusterCatalog":
            return list_catalog(self._call, specification)
        if stage == "$planCacheStats":
            check_plan_cache(self._source)
        # Plans are not kept, and there is no command that sets how queries are planned.
        return []
