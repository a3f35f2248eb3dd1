"""The stage $fill: values for fields that are null or missing, constant or from the documents around."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.projection import compile_add_fields
from asterism.languages.mongo.stages.sorting import parse_ordering
from asterism.languages.mongo.stages.stage import Batches, RunContext, Scope, Stage, StageRow, each, evaluate_many
from asterism.languages.mongo.stages.windows.partition import FunctionScope
from asterism.languages.mongo.stages.windows.stage import window_stage
from asterism.languages.mongo.stages.windows.table import WINDOW_FUNCTIONS
from asterism.values.bson.kinds import type_name
from asterism.values.bson.types import MISSING, Document

_FIELDS = ("partitionBy", "partitionByFields", "sortBy", "output")
_METHODS = {"linear": "$linearFill", "locf": "$locf"}


def _wrong_type(name: str, value: Any, wanted: str) -> MongoFailure:
    return MongoFailure(
        14, f"BSON field '$fill.{name}' is the wrong type '{type_name(value)}', expected type '{wanted}'"
    )


def _read(specification: Any) -> Document:
    if type(specification) is not dict:
        raise MongoFailure(9, "The $fill stage specification must be an object")
    for name in specification:
        if name not in _FIELDS:
            raise MongoFailure(40415, f"BSON field '$fill.{name}' is an unknown field.")
    if "output" not in specification:
        raise MongoFailure(40414, "BSON field '$fill.output' is missing but a required field")
    for name in ("sortBy", "output"):
        value = specification.get(name)
        if name in specification and type(value) is not dict:
            raise _wrong_type(name, value, "object")
    if "partitionBy" in specification and "partitionByFields" in specification:
        raise MongoFailure(6050204, "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'")
    return specification


def _partition(specification: Document) -> Any:
    """Return the expression of a partition's key; None for one partition."""
    if "partitionByFields" in specification:
        paths = specification["partitionByFields"]
        if type(paths) is not list or not all(type(path) is str for path in paths):
            raise _wrong_type("partitionByFields", paths, "array of strings")
        for path in paths:
            if path.startswith("$"):
                raise MongoFailure(6050203, "fields in 'partitionByFields' may not be expressions")
        # Names with dots are no names of fields in an expression.
        return {f"k{place}": f"${path}" for place, path in enumerate(paths)} or None
    partition = specification.get("partitionBy")
    if partition is not None and type(partition) not in (str, dict):
        raise _wrong_type("partitionBy", partition, "string or object")
    return partition


def _read_output(output: Document) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the expressions and the methods by path."""
    values, methods = {}, {}
    for path, rule in output.items():
        if type(rule) is not dict or len(rule) != 1 or next(iter(rule)) not in ("value", "method"):
            raise MongoFailure(6050200, f"The output '{path}' of $fill must have either a 'value' or a 'method'")
        if "value" in rule:
            values[path] = rule["value"]
        elif type(rule["method"]) is not str or rule["method"] not in _METHODS:
            raise MongoFailure(6050202, f"Method must be either 'locf' or 'linear', not {rule['method']!r}")
        else:
            methods[path] = rule["method"]
    return values, methods


def _compile_fill(specification: Any, scope: Scope) -> Stage:
    fields = _read(specification)
    context = scope.context
    partition = _partition(fields)
    values, methods = _read_output(fields["output"])
    add_values = compile_add_fields({path: {"$ifNull": [f"${path}", value]} for path, value in values.items()}, context)
    constant = each("$fill", add_values, specification)
    if not methods:
        return constant
    sort_by = fields.get("sortBy")
    if not sort_by and "linear" in methods.values():
        raise MongoFailure(605001, "Fill method 'linear' requires a 'sortBy'")
    ordering = parse_ordering(sort_by, context) if sort_by else None
    functions = []
    for path, method in methods.items():
        name = _METHODS[method]
        function_scope = FunctionScope(context, ordering, MISSING, has_sort=True)
        functions.append((path, WINDOW_FUNCTIONS[name](name, f"${path}", function_scope)))
    keys_of = None if partition is None else evaluate_many(partition, context)
    windows = window_stage("$fill", specification, context, keys_of, ordering, functions)
    assert windows.run is not None
    assert constant.transform is not None
    fill_from_neighbors, fill_constants = windows.run, constant.transform

    async def run(source: Batches, run_context: RunContext) -> Batches:
        async for batch in fill_from_neighbors(source, run_context):
            yield fill_constants(batch, run_context.variables) if values else batch

    return Stage("$fill", specification, run=run)


ROWS = (StageRow("$fill", _compile_fill),)
