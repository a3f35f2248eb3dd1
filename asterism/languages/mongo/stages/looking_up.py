"""The stage $lookup: documents of another collection as an array, by equal values, by a pipeline, or by both."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from asterism.languages.mongo.expressions.operator import Evaluate
from asterism.languages.mongo.expressions.paths import split_path
from asterism.languages.mongo.expressions.variables import check_bindable
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import compile_filter
from asterism.languages.mongo.filters.paths import array_index
from asterism.languages.mongo.stages.joining import set_path
from asterism.languages.mongo.stages.stage import (
    Batches,
    Pacer,
    RunContext,
    Scope,
    Stage,
    StageRow,
    Within,
    batches_of,
    collect,
)
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING, Document, Regex

FAILED_TO_PARSE: Final = 9
_FIELDS: Final = ("from", "as", "localField", "foreignField", "let", "pipeline")


class Join(NamedTuple):
    """The fields of $lookup, checked; `collection` None is a pipeline that makes its own documents."""

    collection: str | None
    target: tuple[str, ...]
    local: tuple[str, ...] | None
    foreign: str | None
    let: dict[str, Evaluate]
    stages: list[Any]


def equality_filter(field: str, values: list[Any]) -> Document:
    """Return the filter for documents in which a field has one of the values; null finds missing fields, too."""
    known = [None if value is MISSING else value for value in values]
    if any(isinstance(value, Regex) for value in known):
        # In `$in` an expression would be matched; here it is a value.
        return {"$or": [{field: {"$eq": value}} for value in known]}
    return {field: {"$in": known}}


# --- reading ------------------------------------------------------------------------------------------------------


def _wrong_type(name: str, value: Any, wanted: str) -> MongoFailure:
    return MongoFailure(
        14, f"BSON field '$lookup.{name}' is the wrong type '{type_name(value)}', expected type '{wanted}'"
    )


def _check_types(specification: Document) -> None:
    for name, value in specification.items():
        if name not in _FIELDS:
            raise MongoFailure(40415, f"BSON field '$lookup.{name}' is an unknown field.")
        if name == "pipeline":
            if type(value) is not list:
                raise _wrong_type(name, value, "array")
            for stage in value:
                if type(stage) is not dict:
                    raise _wrong_type("pipeline", stage, "object")
        elif name == "let":
            if value is not None and type(value) is not dict:
                raise _wrong_type(name, value, "object")
        elif name != "from" and value is not None and type(value) is not str:
            raise _wrong_type(name, value, "string")


def read_collection(value: Any, stage: str) -> str:
    """Return the name of the other collection, which lies in the same database."""
    if type(value) is dict:
        for name, part in value.items():
            if name not in ("db", "coll"):
                raise MongoFailure(40415, f"BSON field '{stage}.from.{name}' is an unknown field.")
            if type(part) is not str:
                raise _wrong_type(f"from.{name}", part, "string")
        raise MongoFailure(FAILED_TO_PARSE, f"{stage} reads collections of its own database only")
    if type(value) is not str:
        raise MongoFailure(FAILED_TO_PARSE, f"{stage} argument 'from' must be a string, found {type_name(value)}")
    if not value or value.startswith(".") or "\x00" in value:
        raise MongoFailure(73, f"Invalid namespace specified '{value}'")
    return value


def _makes_documents(stages: Any) -> bool:
    return type(stages) is list and len(stages) > 0 and type(stages[0]) is dict and "$documents" in stages[0]


def _read(specification: Any, scope: Scope) -> Join:
    if type(specification) is not dict:
        raise MongoFailure(FAILED_TO_PARSE, "the $lookup specification must be an Object")
    if specification.get("from") is None and not _makes_documents(specification.get("pipeline")):
        raise MongoFailure(FAILED_TO_PARSE, "must specify 'from' field for a $lookup")
    _check_types(specification)
    if specification.get("as") is None:
        raise MongoFailure(40414, "BSON field '$lookup.as' is missing but a required field")
    target = split_path(specification["as"])
    source = specification.get("from")
    collection = None if source is None else read_collection(source, "$lookup")
    stages = specification.get("pipeline")
    # Empty names count as absent.
    local, foreign = specification.get("localField") or None, specification.get("foreignField") or None
    if (local is None) != (foreign is None):
        raise MongoFailure(FAILED_TO_PARSE, "$lookup requires both or neither of 'localField' and 'foreignField'")
    if local is None and stages is None:
        raise MongoFailure(FAILED_TO_PARSE, "$lookup requires either 'pipeline' or 'localField' and 'foreignField'")
    let = specification.get("let")
    if let is not None and stages is None:
        raise MongoFailure(FAILED_TO_PARSE, "$lookup with a 'let' argument must also have a 'pipeline'")
    if collection is not None and _makes_documents(stages):
        raise MongoFailure(73, "$lookup with a 'from' cannot begin its pipeline with $documents")
    if foreign is not None:
        _join_path(foreign)
    for name in let or {}:
        check_bindable(name)
    variables = {name: scope.context.compile(value) for name, value in (let or {}).items()}
    return Join(collection, target, None if local is None else _join_path(local), foreign, variables, stages or [])


def _join_path(path: str) -> tuple[str, ...]:
    return split_path(path, too_long_code=15)


# --- running ------------------------------------------------------------------------------------------------------


def local_values(document: Any, parts: tuple[str, ...]) -> list[Any]:
    """Return the values to join by: those of an array each by itself. In an array a number is an index."""
    value = document
    for place, part in enumerate(parts):
        if type(value) is dict:
            value = value.get(part, MISSING)
        elif type(value) is list:
            index = array_index(part)
            if index is None:
                found = [local_values(element, parts[place:]) for element in value if type(element) is dict]
                return [joined for values in found for joined in values] or [None]
            value = value[index] if index < len(value) else MISSING
        else:
            value = MISSING
    if type(value) is list:
        return value or [None]
    return [None if value is MISSING else value]


def _compile_lookup(specification: Any, scope: Scope) -> Stage:
    join = _read(specification, scope)
    context = scope.context.with_variables(*join.let) if join.let else scope.context
    place = scope.place.inside(Within.LOOKUP, join.collection)
    pipeline = scope.compile_pipeline(join.stages, context, place=place)
    # Documents that a pipeline makes itself are joined by equal values before its other stages see them.
    makes_first = join.collection is None and join.local is not None
    first = scope.compile_pipeline(join.stages[:1], context, place=place) if makes_first else pipeline
    rest = scope.compile_pipeline(join.stages[1:], context, place=place) if makes_first else pipeline
    is_independent = join.local is None and not join.let

    async def joined(document: Document, run_context: RunContext) -> list[Document]:
        variables = run_context.variables
        if join.let:
            variables = {**variables, **{name: of(document, variables) for name, of in join.let.items()}}
        if join.local is None or join.foreign is None:
            return await collect(await run_context.read(join.collection, None, pipeline, variables))
        values = local_values(document, join.local)
        inner = run_context.with_variables(variables)
        if join.collection is not None:
            found = await run_context.lookup(join.collection, None, join.foreign, values)
            return await pipeline.run_on(found, inner)
        made = await collect(first.run(batches_of([]), inner))
        match = compile_filter(equality_filter(join.foreign, values), context)
        return await rest.run_on(list(filter(match.with_variables(variables), made)), inner)

    async def run(source: Batches, run_context: RunContext) -> Batches:
        pacer = Pacer(run_context)
        shared: list[Document] | None = None
        async for batch in source:
            output = []
            for document in batch:
                if is_independent:
                    # Nothing of the document is asked for, so that all have the same result.
                    shared = await joined(document, run_context) if shared is None else shared
                    found = shared
                else:
                    found = await joined(document, run_context)
                output.append(set_path(document, join.target, found))
                await pacer.pause()
            yield output

    reads = () if join.collection is None else ((None, join.collection),)
    return Stage("$lookup", specification, run=run, inner=(pipeline,), reads=reads)


ROWS = (StageRow("$lookup", _compile_lookup),)
