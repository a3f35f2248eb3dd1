"""The compiler of expressions: from the document that a client wrote to a closure over documents.

Texts that begin with `$` are paths, documents whose first name begins with `$` are calls of operators, other
documents and arrays are built from their parts, and everything else stands for itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from asterism.languages.mongo.expressions.constants import Constant, FailedConstant, is_constant
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables
from asterism.languages.mongo.expressions.paths import check_field_name
from asterism.languages.mongo.expressions.tables import collect_operators
from asterism.languages.mongo.expressions.text import checked
from asterism.languages.mongo.expressions.variables import compile_path
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.javascript import Interpreter
from asterism.values.bson.types import MISSING, DatetimeMS, Timestamp

OPERATORS: dict[str, Operator] = {operator.name: operator for operator in collect_operators()}


def new_context(
    now: DatetimeMS,
    cluster_time: Timestamp,
    collate: Any = None,
    variables: Iterable[str] = (),
    javascript: Interpreter | None = None,
) -> CompileContext:
    """Return the context of a command's expressions; `variables` are the names of its `let`."""
    return CompileContext(compile_expression, now, cluster_time, collate, frozenset(variables), javascript)


def compile_expression(specification: Any, context: CompileContext) -> Evaluate:
    """Return the closure of an expression, or raise MongoFailure for one that cannot be right for any document."""
    evaluate = compile_part(specification, context)
    if type(evaluate) is FailedConstant:
        raise evaluate.failure
    return evaluate


def compile_part(specification: Any, context: CompileContext) -> Evaluate:
    """Return the closure of a part of an expression: a `FailedConstant` if its constants cannot be computed."""
    if type(specification) is str:
        return compile_path(specification, context) if specification[:1] == "$" else Constant(checked(specification))
    if isinstance(specification, dict):
        return _compile_document(specification, context)
    if isinstance(specification, list):
        return _compile_array(specification, context)
    return Constant(specification)


def _compile_document(specification: dict[str, Any], context: CompileContext) -> Evaluate:
    for name in specification:
        if name[:1] == "$":
            return _compile_call(name, specification, context)
        break
    names = list(specification)
    for name in names:
        check_field_name(name)
    closures = [compile_part(value, context) for value in specification.values()]

    def evaluate(document: Any, variables: Variables) -> Any:
        result = {}
        for name, closure in zip(names, closures, strict=True):
            value = closure(document, variables)
            if value is not MISSING:
                result[name] = value
        return result

    return _fold(evaluate, closures)


def _compile_array(specification: list[Any], context: CompileContext) -> Evaluate:
    closures = [compile_part(element, context) for element in specification]

    def evaluate(document: Any, variables: Variables) -> Any:
        values = [closure(document, variables) for closure in closures]
        return [None if value is MISSING else value for value in values]

    return _fold(evaluate, closures)


def _compile_call(name: str, specification: dict[str, Any], context: CompileContext) -> Evaluate:
    if len(specification) > 1:
        raise MongoFailure(
            15983,
            "an object representing an expression must have exactly one field: " + ", ".join(map(repr, specification)),
        )
    operator = OPERATORS.get(name)
    if operator is None:
        raise MongoFailure(168, f"Unrecognized expression '{name}'")
    parts: list[Evaluate] = []

    def compile_and_note(part: Any, part_context: CompileContext) -> Evaluate:
        evaluate = compile_part(part, part_context)
        parts.append(evaluate)
        return evaluate

    call = operator.compile(specification[name], replace(context, compile_with=compile_and_note))
    if operator.folds_itself or type(call) is Constant or type(call) is FailedConstant:
        return call
    return _fold(call, parts, is_pure=operator.is_pure)


def _fold(evaluate: Evaluate, parts: list[Evaluate], *, is_pure: bool = True) -> Evaluate:
    """Return the constant that an expression of constant parts amounts to, or the failure of one of its parts."""
    for part in parts:
        if type(part) is FailedConstant:
            return part
    if not is_pure or not all(map(is_constant, parts)):
        return evaluate
    try:
        return Constant(evaluate({}, {}))
    except MongoFailure as failure:
        return FailedConstant(failure)
