"""Updates that are pipelines: the stages that change one document, applied in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import Document

Transform = Callable[[Document, Variables], Document]

# Stages that exist but do not change one document into one document.
_OTHER_STAGES = frozenset(
    [
        "$bucket",
        "$bucketAuto",
        "$changeStream",
        "$changeStreamSplitLargeEvent",
        "$collStats",
        "$count",
        "$currentOp",
        "$densify",
        "$documents",
        "$facet",
        "$fill",
        "$geoNear",
        "$graphLookup",
        "$group",
        "$indexStats",
        "$limit",
        "$listLocalSessions",
        "$listSampledQueries",
        "$listSearchIndexes",
        "$listSessions",
        "$lookup",
        "$match",
        "$merge",
        "$out",
        "$planCacheStats",
        "$querySettings",
        "$queryStats",
        "$rankFusion",
        "$redact",
        "$sample",
        "$score",
        "$scoreFusion",
        "$search",
        "$searchMeta",
        "$setWindowFields",
        "$shardedDataDistribution",
        "$skip",
        "$sort",
        "$sortByCount",
        "$unionWith",
        "$unwind",
        "$vectorSearch",
    ]
)


def compile_stages(stages: list[Any], context: CompileContext) -> Transform:
    """Compile the stages of an update into one function."""
    transforms = [_compile_stage(stage, context) for stage in stages]

    def transform(document: Document, variables: Variables) -> Document:
        for apply in transforms:
            document = apply(document, variables)
        return document

    return transform


def _compile_stage(stage: Any, context: CompileContext) -> Transform:
    if type(stage) is not dict:
        raise MongoFailure(14, "Each element of the 'pipeline' array must be an object")
    if len(stage) != 1:
        raise MongoFailure(40323, "A pipeline stage specification object must contain exactly one field.")
    name, specification = next(iter(stage.items()))
    if name in _OTHER_STAGES:
        raise MongoFailure(72, f"{name} is not allowed to be used within an update")
    compile_stage = _STAGES.get(name)
    if compile_stage is None:
        raise MongoFailure(40324, f"Unrecognized pipeline stage name: '{name}'")
    return compile_stage(specification, context)


def _compile_add_fields(specification: Any, context: CompileContext) -> Transform:
    from asterism.languages.mongo.projection import compile_add_fields

    return compile_add_fields(specification, context)


def _compile_project(specification: Any, context: CompileContext) -> Transform:
    from asterism.languages.mongo.projection import compile_project

    return compile_project(specification, context)


def _compile_unset(specification: Any, _context: CompileContext) -> Transform:
    from asterism.languages.mongo.projection import compile_unset

    return compile_unset(specification)


def _compile_replace_root(specification: Any, context: CompileContext) -> Transform:
    if type(specification) is not dict:
        raise MongoFailure(
            40229, f"expected an object as specification for $replaceRoot stage, got {type_name(specification)}"
        )
    for name in specification:
        if name != "newRoot":
            raise MongoFailure(40415, f"BSON field '$replaceRoot.{name}' is an unknown field.")
    if "newRoot" not in specification:
        raise MongoFailure(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field")
    return _compile_replace_with(specification["newRoot"], context)


def _compile_replace_with(specification: Any, context: CompileContext) -> Transform:
    evaluate = context.compile(specification)

    def replace(document: Document, variables: Variables) -> Document:
        value = evaluate(document, variables)
        if type(value) is not dict:
            raise MongoFailure(
                40228,
                f"'newRoot' expression must evaluate to an object, but resulting value was of type: {type_name(value)}",
            )
        return value

    return replace


_STAGES: dict[str, Callable[[Any, CompileContext], Transform]] = {
    "$set": _compile_add_fields,
    "$addFields": _compile_add_fields,
    "$project": _compile_project,
    "$unset": _compile_unset,
    "$replaceRoot": _compile_replace_root,
    "$replaceWith": _compile_replace_with,
}
