"""The stage $setWindowFields: documents in partitions, each in order, with the results of window functions added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext, Variables
from asterism.languages.mongo.expressions.paths import split_path
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.projection import compile_add_fields
from asterism.languages.mongo.stages.keys import hash_key
from asterism.languages.mongo.stages.ordering import SortRule
from asterism.languages.mongo.stages.sorting import parse_ordering
from asterism.languages.mongo.stages.stage import (
    BATCH_DOCUMENTS,
    Batches,
    MemoryMeter,
    Pacer,
    RunContext,
    Scope,
    Stage,
    StageRow,
    evaluate_many,
)
from asterism.languages.mongo.stages.windows.bounds import FAILED_TO_PARSE
from asterism.languages.mongo.stages.windows.partition import Evaluate, FunctionScope, Partition
from asterism.languages.mongo.stages.windows.ranking import RANK_NAMES
from asterism.languages.mongo.stages.windows.table import WINDOW_FUNCTIONS
from asterism.values.bson.kinds import type_name
from asterism.values.bson.order import sort_key
from asterism.values.bson.types import MISSING, Document

_FIELDS = ("partitionBy", "sortBy", "output")
Output = list[tuple[str, Evaluate]]
PartitionKeys = Callable[[list[Document], Variables], list[Any]]


def _wrong_type(name: str, value: Any) -> MongoFailure:
    return MongoFailure(
        14, f"BSON field '$setWindowFields.{name}' is the wrong type '{type_name(value)}', expected type 'object'"
    )


def _compile_window_fields(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict:
        raise MongoFailure(FAILED_TO_PARSE, "the $setWindowFields stage specification must be an object")
    for name in specification:
        if name not in _FIELDS:
            raise MongoFailure(40415, f"BSON field '$setWindowFields.{name}' is an unknown field.")
    sort_by, output = specification.get("sortBy"), specification.get("output")
    if sort_by is not None and type(sort_by) is not dict:
        raise _wrong_type("sortBy", sort_by)
    if "output" not in specification:
        raise MongoFailure(40414, "BSON field '$setWindowFields.output' is missing but a required field")
    if type(output) is not dict:
        raise _wrong_type("output", output)
    ordering = parse_ordering(sort_by, scope.context) if sort_by else None
    functions = [
        (path, _compile_function(path, value, scope.context, ordering, has_sort=sort_by is not None))
        for path, value in output.items()
    ]
    partition_by = specification.get("partitionBy")
    keys_of = None if partition_by is None else evaluate_many(partition_by, scope.context)
    return window_stage("$setWindowFields", specification, scope.context, keys_of, ordering, functions)


def _compile_function(
    path: str, specification: Any, context: CompileContext, ordering: SortRule | None, *, has_sort: bool
) -> Evaluate:
    if type(specification) is not dict:
        raise MongoFailure(FAILED_TO_PARSE, f"The field '{path}' must be an object with a window function")
    split_path(path)
    names = [name for name in specification if name[:1] == "$"]
    if names and names[0] in RANK_NAMES and len(specification) > 1:
        raise MongoFailure(5371601, f"Rank style window functions take no other arguments: {names[0]}")
    for name in specification:
        if name[:1] != "$" and name != "window":
            raise MongoFailure(FAILED_TO_PARSE, f"Window function found an unknown argument: {name}")
    if len(names) != 1:
        raise MongoFailure(FAILED_TO_PARSE, f"Expected exactly one window function for the field '{path}'")
    compile_function = WINDOW_FUNCTIONS.get(names[0])
    if compile_function is None:
        raise MongoFailure(FAILED_TO_PARSE, f"Unrecognized window function, {names[0]}")
    function_scope = FunctionScope(context, ordering, specification.get("window", MISSING), has_sort)
    return compile_function(names[0], specification[names[0]], function_scope)


def window_stage(
    name: str,
    specification: Any,
    context: CompileContext,
    keys_of: PartitionKeys | None,
    ordering: SortRule | None,
    functions: Output,
) -> Stage:
    """Return the stage that adds the results of functions to the documents of each partition."""
    write = _writer([path for path, _ in functions], context)

    async def run(source: Batches, run_context: RunContext) -> Batches:
        pacer, meter = Pacer(run_context), MemoryMeter(name, run_context)
        variables = run_context.variables
        groups: dict[Any, tuple[Any, list[Document]]] = {}
        async for batch in source:
            meter.add(batch)
            keys = [None] * len(batch) if keys_of is None else keys_of(batch, variables)
            for key, document in zip(keys, batch, strict=True):
                _add_to_group(groups, key, document, context)
            await pacer.pause()
        # The reference server sorts by the partition's key first.
        for _, documents in sorted(groups.values(), key=lambda group: sort_key(group[0], context.collate)):
            ordered = documents if ordering is None else ordering.sort(documents)
            partition = Partition(ordered, ordering, variables)
            columns = []
            for _, function in functions:
                columns.append(function(partition))
                await pacer.pause()
            for start in range(0, len(ordered), BATCH_DOCUMENTS):
                stop = min(start + BATCH_DOCUMENTS, len(ordered))
                yield [
                    write(ordered[place], [column[place] for column in columns], variables)
                    for place in range(start, stop)
                ]
                await pacer.pause()

    return Stage(name, specification, run=run)


def _add_to_group(
    groups: dict[Any, tuple[Any, list[Document]]], key: Any, document: Document, context: CompileContext
) -> None:
    if type(key) is list:
        raise MongoFailure(14, "An expression used to partition cannot evaluate to value of type array")
    if key is MISSING:
        key = None
    group = groups.setdefault(hash_key(key, context.collate), (key, []))
    group[1].append(document)


def _writer(paths: list[str], context: CompileContext) -> Callable[[Document, list[Any], Variables], Document]:
    """Return the function that adds values to a document at the paths."""
    if not any("." in path for path in paths):
        return lambda document, values, variables: {**document, **dict(zip(paths, values, strict=True))}
    # $addFields knows how a path goes through documents and arrays.
    names = [f"w{place}" for place in range(len(paths))]
    fields = {path: f"$${name}" for path, name in zip(paths, names, strict=True)}
    add_fields = compile_add_fields(fields, context.with_variables(*names))
    return lambda document, values, variables: add_fields(
        document, {**variables, **dict(zip(names, values, strict=True))}
    )


ROWS = (StageRow("$setWindowFields", _compile_window_fields),)
