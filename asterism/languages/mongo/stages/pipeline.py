"""Pipelines: a list of stages, checked, compiled, and run over batches of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.javascript import runs_javascript
from asterism.languages.mongo.stages.growth import bound_growth
from asterism.languages.mongo.stages.metadata import bind_metadata
from asterism.languages.mongo.stages.rules import check_rules
from asterism.languages.mongo.stages.sorting import fuse_limits
from asterism.languages.mongo.stages.stage import (
    Batches,
    Pacer,
    PipelinePlace,
    RunContext,
    Scope,
    Stage,
    Transform,
    batches_of,
)
from asterism.languages.mongo.stages.table import STAGES
from asterism.values.bson.types import Document

__all__ = ["Pipeline", "Split", "compile_pipeline"]

# The reference server refuses longer pipelines, and sub-pipelines that are nested deeper.
STAGES_MAX = 1000
DEPTH_MAX = 20


class Split(NamedTuple):
    """The beginning of a pipeline, which the source of the documents can do better, and the rest of it. The order is
    filter, then sort, then skip, then limit; `sort` is as in the command `find`."""

    filter: Document | None
    sort: Document | None
    skip: int
    limit: int | None
    rest: Pipeline


@dataclass(frozen=True, slots=True)
class Pipeline:
    specification: list[Any]
    stages: tuple[Stage, ...]
    context: CompileContext
    place: PipelinePlace

    @property
    def leading_match(self) -> Document | None:
        """The filter of the $match stages that the pipeline begins with, or None."""
        return self.split_for_source().filter

    @property
    def writes_to(self) -> Any:
        """The target of $out or $merge as `writing.OutTarget` or `merging.MergeTarget`, or None."""
        last = self.stages[-1] if self.stages else None
        return last.meaning if last is not None and last.name in ("$out", "$merge") else None

    @property
    def is_sourceless(self) -> bool:
        """True if the first stage makes the documents, so that no collection is read."""
        return bool(self.stages) and STAGES[self.stages[0].name].is_source

    @property
    def reads(self) -> tuple[tuple[str | None, str], ...]:
        """Collections that the stages read beside the source, as (database or None, collection)."""
        found = [read for stage in self.stages for read in stage.reads]
        found.extend(read for stage in self.stages for inner in stage.inner for read in inner.reads)
        return tuple(dict.fromkeys(found))

    def split_for_source(self) -> Split:
        """Return the filter, sort, skip and limit at the beginning, and the pipeline of the remaining stages."""
        filters: list[Document] = []
        sort: Document | None = None
        skip, limit = 0, None
        index = 0
        for stage in self.stages:
            meaning = stage.meaning
            if stage.name == "$match" and sort is None and not skip and limit is None:
                if meaning:
                    filters.append(meaning)
            elif stage.name == "$sort" and sort is None and not skip and limit is None:
                if meaning is None:
                    break
                sort = meaning
            elif stage.name == "$skip" and limit is None:
                skip += meaning
            elif stage.name == "$limit":
                limit = meaning if limit is None else min(limit, meaning)
            else:
                break
            index += 1
        filter_ = filters[0] if len(filters) == 1 else {"$and": filters} if filters else None
        rest = Pipeline(self.specification[index:], self.stages[index:], self.context, self.place)
        return Split(filter_, sort, skip, limit, rest)

    def run(self, source: Batches, run_context: RunContext) -> Batches:
        """Return the output for an input. Nothing is read before the output is."""
        flow = source
        in_turns = runs_javascript(self.specification)
        transforms: list[Transform] = []
        for stage in self.stages:
            if stage.transform is not None:
                transforms.append(stage.transform)
                continue
            if transforms:
                flow = _run_transforms(flow, tuple(transforms), run_context, in_turns=in_turns)
                transforms = []
            assert stage.run is not None
            flow = stage.run(flow, run_context)
        return _run_transforms(flow, tuple(transforms), run_context, in_turns=in_turns) if transforms else flow

    async def run_on(self, documents: list[Document], run_context: RunContext) -> list[Document]:
        """Return the output for a list, without coroutines as far as stages handle batches alone."""
        stages = self.stages
        index = 0
        for stage in stages:
            if stage.transform is None:
                break
            documents = stage.transform(documents, run_context.variables)
            index += 1
        if index == len(stages):
            return documents
        rest = Pipeline(self.specification[index:], stages[index:], self.context, self.place)
        output: list[Document] = []
        async for batch in rest.run(batches_of(documents), run_context):
            output.extend(batch)
        return output

    def transform(self, document: Document, variables: Variables) -> Document:
        """Return what an update pipeline makes of a document: its stages all handle documents alone."""
        documents = [document]
        for stage in self.stages:
            assert stage.transform is not None
            documents = stage.transform(documents, variables)
        return documents[0]


async def _run_transforms(
    source: Batches, transforms: tuple[Transform, ...], run_context: RunContext, *, in_turns: bool
) -> Batches:
    pacer = Pacer(run_context)
    variables = run_context.variables
    async for batch in source:
        documents = batch
        for transform in transforms:
            if in_turns:
                documents = await run_context.in_turns(transform, documents, variables)
            else:
                documents = transform(documents, variables)
            if not documents:
                break
        if documents:
            yield documents
        await pacer.pause()


def compile_pipeline(
    stages: Sequence[Any], context: CompileContext, *, place: PipelinePlace, stage_not_an_object: int = 14
) -> Pipeline:
    """Compile a pipeline, or raise MongoFailure for one that is wrong whatever the documents are."""
    if len(place.around) > DEPTH_MAX:
        raise MongoFailure(232, f"Maximum number of nested sub-pipelines exceeded. Limit is {DEPTH_MAX}")
    for specification in stages:
        if type(specification) is not dict:
            raise MongoFailure(stage_not_an_object, "Each element of the 'pipeline' array must be an object")
    if len(stages) > STAGES_MAX:
        raise MongoFailure(7749501, f"Pipeline length must be no longer than {STAGES_MAX} stages.")
    compiled: list[Stage] = []
    for index, specification in enumerate(stages):
        if len(specification) != 1:
            raise MongoFailure(40323, "A pipeline stage specification object must contain exactly one field.")
        ((name, argument),) = specification.items()
        row = STAGES.get(name)
        if row is None:
            raise MongoFailure(40324, f"Unrecognized pipeline stage name: '{name}'")
        compiled.append(row.compile(argument, Scope(context, place, compile_pipeline, index)))
    check_rules(compiled, place)
    return Pipeline(list(stages), tuple(bind_metadata(fuse_limits(bound_growth(compiled)))), context, place)
