"""Stages that read more than their input, or divide it: `$documents`, `$unwind`, `$unionWith`, `$facet`."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.expressions.operator import Variables
from asterism.languages.mongo.expressions.paths import check_field_name, split_path
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.stage import (
    Batches,
    Position,
    RunContext,
    Scope,
    Stage,
    StageRow,
    Within,
    batches_of,
    collect,
)
from asterism.values.bson.types import Document, Int64, Missing


def _compile_documents(specification: Any, scope: Scope) -> Stage:
    evaluate = scope.context.compile(specification)

    async def run(_: Batches, context: RunContext) -> Batches:
        documents = evaluate({}, context.variables)
        if type(documents) is not list:
            raise MongoFailure(5858203, "an array is expected: $documents")
        for document in documents:
            if type(document) is not dict:
                raise MongoFailure(40228, "$documents: every element must be an object")
        if documents:
            yield documents

    return Stage("$documents", specification, run=run)


def _compile_unwind(specification: Any, _: Scope) -> Stage:
    options = {"path": specification} if type(specification) is str else specification
    if type(options) is not dict:
        raise MongoFailure(15981, "expected either a string or an object as specification for $unwind stage")
    for name in options:
        if name not in ("path", "includeArrayIndex", "preserveNullAndEmptyArrays"):
            raise MongoFailure(28811, f"unrecognized option to $unwind stage: {name}")
    path, index_name = options.get("path"), options.get("includeArrayIndex")
    keeps = options.get("preserveNullAndEmptyArrays", False)
    if "path" not in options:
        raise MongoFailure(28812, "no path specified to $unwind stage")
    if path == "":
        raise MongoFailure(28812, "no path specified to $unwind stage")
    if type(path) is not str:
        raise MongoFailure(28808, "expected a string as the path for $unwind stage")
    if type(keeps) is not bool:
        raise MongoFailure(28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage")
    if "includeArrayIndex" in options:
        if type(index_name) is not str or not index_name:
            raise MongoFailure(28810, "expected a non-empty string for the includeArrayIndex option to $unwind stage")
        if index_name.startswith("$"):
            raise MongoFailure(28822, "includeArrayIndex option to $unwind stage should not be prefixed with a '$'")
        split_path(index_name)
    if not path.startswith("$"):
        raise MongoFailure(28818, f"path option to $unwind stage should be prefixed with a '$': {path}")
    parts = split_path(path[1:], too_long_code=15)

    def transform(documents: list[Document], _: Variables) -> list[Document]:
        output: list[Document] = []
        for document in documents:
            value = _plain_path(document, parts)
            if type(value) is list and value:
                for index, element in enumerate(value):
                    output.append(_indexed(_with(document, parts, element), index_name, Int64(index)))
            elif type(value) is list or value is None or type(value) is Missing:
                if keeps:
                    kept = _without(document, parts) if type(value) is list else document
                    output.append(_indexed(kept, index_name, None))
            else:
                output.append(_indexed(document, index_name, None))
        return output

    return Stage("$unwind", specification, transform=transform)


def _plain_path(value: Any, parts: tuple[str, ...]) -> Any:
    from asterism.values.bson.types import MISSING

    for part in parts:
        if type(value) is not dict:
            return MISSING
        value = value.get(part, MISSING)
    return value


def _with(document: Document, parts: tuple[str, ...], value: Any) -> Document:
    """Return a document with another value at a path that exists."""
    head, *rest = parts
    inner = _with(document.get(head, {}), tuple(rest), value) if rest else value
    return {**document, head: inner}


def _without(document: Document, parts: tuple[str, ...]) -> Document:
    head, *rest = parts
    if rest:
        return {**document, head: _without(document[head], tuple(rest))}
    return {name: value for name, value in document.items() if name != head}


def _indexed(document: Document, name: str | None, index: Any) -> Document:
    if name is None:
        return document
    return set_path(document, tuple(name.split(".")), index)


def set_path(document: Any, parts: tuple[str, ...], value: Any) -> Document:
    base = document if type(document) is dict else {}
    head, *rest = parts
    return {**base, head: set_path(base.get(head), tuple(rest), value) if rest else value}


def _compile_union(specification: Any, scope: Scope) -> Stage:
    options = {"coll": specification} if type(specification) is str else specification
    if type(options) is not dict:
        raise MongoFailure(9, "the $unionWith stage specification must be an object or string")
    for name in options:
        if name not in ("coll", "pipeline"):
            raise MongoFailure(40415, f"BSON field '$unionWith.{name}' is an unknown field.")
    collection = options.get("coll")
    if collection is not None and type(collection) is not str:
        raise MongoFailure(14, "BSON field '$unionWith.coll' must be a string")
    stages = options.get("pipeline", [])
    if type(stages) is not list:
        raise MongoFailure(14, "BSON field '$unionWith.pipeline' must be an array")
    pipeline = scope.compile_pipeline(stages, scope.context, place=scope.place.inside(Within.UNION, collection))
    if collection is None and not pipeline.is_sourceless:
        raise MongoFailure(9, "$unionWith stage without explicit collection must have a pipeline with $documents")

    async def run(source: Batches, run_context: RunContext) -> Batches:
        async for batch in source:
            yield batch
        async for batch in await run_context.read(collection, None, pipeline, run_context.variables):
            yield batch

    reads = () if collection is None else ((None, collection),)
    return Stage("$unionWith", specification, run=run, inner=(pipeline,), reads=reads)


def _compile_facet(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict or not specification:
        raise MongoFailure(40169, "the $facet specification must be a non-empty object")
    facets = {}
    for name, stages in specification.items():
        check_field_name(name)
        if type(stages) is not list:
            raise MongoFailure(40170, f"arguments to $facet must be arrays, {name} is not")
        place = scope.place.inside(Within.FACET, scope.place.collection)
        facets[name] = scope.compile_pipeline(stages, scope.context, place=place, stage_not_an_object=40171)

    async def run(source: Batches, run_context: RunContext) -> Batches:
        documents = await collect(source)
        output: Document = {}
        for name, pipeline in facets.items():
            output[name] = await collect(pipeline.run(batches_of(list(documents)), run_context))
        yield [output]

    return Stage("$facet", specification, run=run, inner=tuple(facets.values()))


ROWS = (
    StageRow("$documents", _compile_documents, Position.FIRST, frozenset({Within.FACET}), is_source=True),
    StageRow("$unwind", _compile_unwind),
    StageRow("$unionWith", _compile_union),
    StageRow("$facet", _compile_facet, refused_in=frozenset({Within.FACET})),
)
