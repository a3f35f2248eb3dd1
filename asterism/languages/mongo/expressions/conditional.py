"""Operators that choose between expressions: `$cond`, `$ifNull`, `$switch`."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.expressions.constants import Constant, FailedConstant, is_nullish
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables
from asterism.languages.mongo.expressions.truth import is_true
from asterism.languages.mongo.failure import MongoFailure

_COND_FIELDS = {"if": 17080, "then": 17081, "else": 17082}


def _compile_cond(specification: Any, context: CompileContext) -> Evaluate:
    if isinstance(specification, dict):
        for name in specification:
            if name not in _COND_FIELDS:
                raise MongoFailure(17083, f"Unrecognized parameter to $cond: {name}")
        for name, code in _COND_FIELDS.items():
            if name not in specification:
                raise MongoFailure(code, f"Missing '{name}' parameter to $cond")
        arguments = [specification[name] for name in _COND_FIELDS]
    else:
        arguments = specification if isinstance(specification, list) else [specification]
        if len(arguments) != 3:
            raise MongoFailure(16020, f"Expression $cond takes exactly 3 arguments. {len(arguments)} were passed in.")
    condition, then, otherwise = (context.compile(argument) for argument in arguments)

    def evaluate(document: Any, variables: Variables) -> Any:
        if is_true(condition(document, variables)):
            return then(document, variables)
        return otherwise(document, variables)

    return evaluate


def _compile_if_null(specification: Any, context: CompileContext) -> Evaluate:
    arguments = specification if isinstance(specification, list) else [specification]
    if len(arguments) < 2:
        raise MongoFailure(1257300, f"$ifNull needs at least two arguments, had: {len(arguments)}")
    *closures, last = [context.compile(argument) for argument in arguments]

    def evaluate(document: Any, variables: Variables) -> Any:
        for closure in closures:
            value = closure(document, variables)
            if not is_nullish(value):
                return value
        return last(document, variables)

    return evaluate


def _compile_switch(specification: Any, context: CompileContext) -> Evaluate:
    if not isinstance(specification, dict):
        raise MongoFailure(40060, "$switch requires an object as an argument")
    branches: list[tuple[Evaluate, Evaluate]] = []
    default: Evaluate | None = None
    for name, value in specification.items():
        if name == "branches":
            if not isinstance(value, list):
                raise MongoFailure(40061, "$switch expected an array for 'branches'")
            branches = [_compile_branch(branch, context) for branch in value]
        elif name == "default":
            default = context.compile(value)
        else:
            raise MongoFailure(40067, f"$switch found an unknown argument: {name}")
    if not branches:
        raise MongoFailure(40068, "$switch requires at least one branch")
    return _reachable(branches, default)


def _compile_branch(branch: Any, context: CompileContext) -> tuple[Evaluate, Evaluate]:
    if not isinstance(branch, dict):
        raise MongoFailure(40062, "$switch expected each branch to be an object")
    for name in branch:
        if name not in ("case", "then"):
            raise MongoFailure(40063, f"$switch found an unknown argument to a branch: {name}")
    if "case" not in branch:
        raise MongoFailure(40064, "$switch requires each branch have a 'case' expression")
    if "then" not in branch:
        raise MongoFailure(40065, "$switch requires each branch have a 'then' expression")
    return context.compile(branch["case"]), context.compile(branch["then"])


def _reachable(branches: list[tuple[Evaluate, Evaluate]], default: Evaluate | None) -> Evaluate:
    """Return the closure over the branches that can be taken: those whose condition is false in any case, and those
    behind a condition that is always true, count for nothing, not even for their failures."""
    if type(default) is FailedConstant:
        return default
    kept: list[tuple[Evaluate, Evaluate]] = []
    for condition, then in branches:
        if type(condition) is FailedConstant:
            return condition
        if type(condition) is Constant:
            if not is_true(condition.value):
                continue
            default = then
            break
        kept.append((condition, then))
    for evaluate in (*(then for _, then in kept), default):
        if type(evaluate) is FailedConstant:
            return evaluate
    if not kept and default is not None:
        return default

    def evaluate_switch(document: Any, variables: Variables) -> Any:
        for condition, then in kept:
            if is_true(condition(document, variables)):
                return then(document, variables)
        if default is None:
            raise MongoFailure(
                40069, "$switch could not find a matching branch for an input, and no default was specified."
            )
        return default(document, variables)

    return evaluate_switch


OPERATORS: tuple[Operator, ...] = (
    Operator("$cond", _compile_cond),
    Operator("$ifNull", _compile_if_null),
    Operator("$switch", _compile_switch, folds_itself=True),
)
