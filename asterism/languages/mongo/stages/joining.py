"""Stages that read more than their input, or divide it: `$documents`, `$unwind`, `$lookup`, `$unionWith`, `$facet`."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.expressions.operator import Variables
from asterism.languages.mongo.expressions.paths import read_path
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
from asterism.values.bson.order import Collate, sort_key
from asterism.values.bson.types import Document, Int64, Missing

_LOOKUP_FIELDS = frozenset({"from", "as", "localField", "foreignField", "let", "pipeline"})


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
    if type(path) is not str:
        raise MongoFailure(28808, "expected a string as the path for $unwind stage")
    if type(keeps) is not bool:
        raise MongoFailure(28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage")
    if "includeArrayIndex" in options:
        if type(index_name) is not str or not index_name:
            raise MongoFailure(28810, "expected a non-empty string for the includeArrayIndex option to $unwind stage")
        if index_name.startswith("$"):
            raise MongoFailure(28822, "includeArrayIndex option to $unwind stage should not be prefixed with a '$'")
    if not path.startswith("$"):
        raise MongoFailure(28818, f"path option to $unwind stage should be prefixed with a '$': {path}")
    parts = tuple(path[1:].split("."))
    if any(not part or part.startswith("$") for part in parts):
        raise MongoFailure(16410 if any(part.startswith("$") for part in parts) else 15998, f"bad path {path}")

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


def foreign_namespace(specification: Any, name: str) -> tuple[str | None, str]:
    if type(specification) is dict:
        database, collection = specification.get("db"), specification.get("coll")
        if type(database) is not str or type(collection) is not str:
            raise MongoFailure(9, f"{name} 'from' must be a string or have db and coll")
        return database, collection
    if type(specification) is not str:
        raise MongoFailure(9 if name == "$lookup" else 14, f"{name} needs the name of a collection")
    return None, specification


def _compile_lookup(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict:
        raise MongoFailure(9, "the $lookup specification must be an Object")
    for name, value in specification.items():
        if name not in _LOOKUP_FIELDS:
            raise MongoFailure(9, f"unknown argument to $lookup: {name}")
        if name in ("as", "localField", "foreignField") and type(value) is not str:
            raise MongoFailure(9, f"$lookup argument '{name}' must be a string")
    target = specification.get("as")
    if not target:
        raise MongoFailure(9, "must specify 'as' field for a $lookup")
    local, foreign = specification.get("localField"), specification.get("foreignField")
    if (local is None) != (foreign is None) or (local is None and "pipeline" not in specification):
        raise MongoFailure(9, "$lookup requires both or neither of 'localField' and 'foreignField', or a 'pipeline'")
    let = specification.get("let", {})
    if type(let) is not dict:
        raise MongoFailure(9, "$lookup argument 'let' must be an object")
    variables = {name: scope.context.compile(value) for name, value in let.items()}
    database, collection = (
        (None, None) if "from" not in specification else foreign_namespace(specification["from"], "$lookup")
    )
    context = scope.context.with_variables(*let)
    place = scope.place.inside(Within.LOOKUP, collection)
    stages = specification.get("pipeline", [])
    if type(stages) is not list:
        raise MongoFailure(9, "'pipeline' option must be specified as an array")
    pipeline = scope.compile_pipeline(stages, context, place=place)
    if collection is None and not pipeline.is_sourceless:
        raise MongoFailure(9, "must specify 'from' field for a $lookup")
    as_parts = tuple(target.split("."))
    local_parts = tuple(local.split(".")) if local is not None else ()

    async def joined(document: Document, run_context: RunContext) -> list[Document]:
        inner = {
            **run_context.variables,
            **{name: of(document, run_context.variables) for name, of in variables.items()},
        }
        if local is None:
            return await collect(await run_context.read(collection, database, pipeline, inner))
        value = read_path(document, local_parts)
        values = value if type(value) is list else [None if type(value) is Missing else value]
        assert collection is not None, "an equality join has a collection"
        found = await run_context.lookup(collection, database, str(foreign), values)
        wanted = {sort_key(value_of, scope.context.collate) for value_of in values}
        matching = [other for other in found if matches_one_of(other, str(foreign), wanted, scope.context.collate)]
        return await pipeline.run_on(matching, run_context.with_variables(inner))

    async def run(source: Batches, run_context: RunContext) -> Batches:
        async for batch in source:
            yield [set_path(document, as_parts, await joined(document, run_context)) for document in batch]

    reads = () if collection is None else ((database, collection),)
    return Stage("$lookup", specification, run=run, inner=(pipeline,), reads=reads)


def matches_one_of(document: Document, path: str, wanted: set[Any], collate: Collate | None) -> bool:
    """Return whether a field has one of the values, given by their sort keys, or an element that has."""
    value = read_path(document, tuple(path.split(".")))
    values = [value] if type(value) is not list else [value, *value]
    return any(sort_key(None if type(found) is Missing else found, collate) in wanted for found in values)


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
        if not name or name.startswith("$") or "." in name:
            raise MongoFailure(16410 if name.startswith("$") else 40352, f"bad name of a facet: '{name}'")
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
    StageRow("$lookup", _compile_lookup),
    StageRow("$unionWith", _compile_union),
    StageRow("$facet", _compile_facet, refused_in=frozenset({Within.FACET})),
)
