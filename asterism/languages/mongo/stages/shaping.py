"""Stages that handle every document alone: $match, $project, $set, $unset, $replaceRoot, $redact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.operator import Evaluate, Variables
from asterism.languages.mongo.expressions.variables import DESCEND, KEEP, PRUNE
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import MATCH_FEATURES, compile_filter
from asterism.languages.mongo.projection import compile_add_fields, compile_project, compile_unset
from asterism.languages.mongo.stages.stage import Position, Scope, Stage, StageRow, each
from asterism.values.bson.types import MISSING, Document


def compile_match(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict:
        raise MongoFailure(15959, "the match filter must be an expression in an object")
    match = compile_filter(specification, scope.context, features=MATCH_FEATURES)
    if scope.index > 0 and match.text is not None:
        raise MongoFailure(17313, "$match with $text is only allowed as the first pipeline stage")

    def transform(documents: list[Document], variables: Variables) -> list[Document]:
        return list(filter(match.with_variables(variables), documents))

    return Stage("$match", specification, transform=transform, meaning=specification)


def _compile_project(specification: Any, scope: Scope) -> Stage:
    return each("$project", compile_project(specification, scope.context), specification)


def _adder(name: str) -> Callable[[Any, Scope], Stage]:
    return lambda specification, scope: each(name, compile_add_fields(specification, scope.context), specification)


def _compile_unset(specification: Any, scope: Scope) -> Stage:
    return each("$unset", compile_unset(specification), specification)


def _replace(name: str, evaluate: Evaluate, specification: Any) -> Stage:
    def replace(document: Document, variables: Variables) -> Document:
        root = evaluate(document, variables)
        if type(root) is not dict:
            raise MongoFailure(40228, "'replacement document' must evaluate to an object")
        return root

    return each(name, replace, specification)


def _compile_replace_root(specification: Any, scope: Scope) -> Stage:
    if type(specification) is not dict:
        raise MongoFailure(40229, "expected an object as specification for $replaceRoot stage")
    for name in specification:
        if name != "newRoot":
            raise MongoFailure(40415, f"BSON field '$replaceRoot.{name}' is an unknown field.")
    if "newRoot" not in specification:
        raise MongoFailure(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field")
    return _replace("$replaceRoot", scope.context.compile(specification["newRoot"]), specification)


def _compile_replace_with(specification: Any, scope: Scope) -> Stage:
    return _replace("$replaceWith", scope.context.compile(specification), specification)


def _compile_redact(specification: Any, scope: Scope) -> Stage:
    context = scope.context.with_variables("CURRENT")
    decide = context.compile(specification)

    def transform(documents: list[Document], variables: Variables) -> list[Document]:
        kept = (_redact(document, document, decide, variables) for document in documents)
        return [document for document in kept if document is not MISSING]

    return Stage("$redact", specification, transform=transform)


def _redact(value: Document, root: Document, decide: Evaluate, variables: Variables) -> Any:
    """Return what is left of a document, or MISSING. Documents below are decided on each by itself."""
    decision = decide(root, {**variables, "CURRENT": value})
    if decision is KEEP:
        return value
    if decision is PRUNE:
        return MISSING
    if decision is not DESCEND:
        raise MongoFailure(
            17053, "$redact's expression should not return anything aside from $$KEEP, $$DESCEND, $$PRUNE"
        )
    output: Document = {}
    for name, member in value.items():
        kept = _redact_member(member, root, decide, variables)
        if kept is not MISSING:
            output[name] = kept
    return output


def _redact_member(value: Any, root: Document, decide: Evaluate, variables: Variables) -> Any:
    if type(value) is dict:
        return _redact(value, root, decide, variables)
    if type(value) is list:
        kept = (_redact_member(element, root, decide, variables) for element in value)
        return [element for element in kept if element is not MISSING]
    return value


ROWS = (
    StageRow("$match", compile_match),
    StageRow("$project", _compile_project),
    StageRow("$addFields", _adder("$addFields")),
    StageRow("$set", _adder("$set")),
    StageRow("$unset", _compile_unset),
    StageRow("$replaceRoot", _compile_replace_root),
    StageRow("$replaceWith", _compile_replace_with),
    StageRow("$redact", _compile_redact, Position.ANYWHERE),
)
