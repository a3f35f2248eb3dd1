"""Operators of truth: `$and`, `$or`, `$not`."""

from __future__ import annotations

from typing import Any

from asterism.languages.mongo.expressions.constants import Constant, FailedConstant
from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables, positional
from asterism.languages.mongo.expressions.truth import is_true


def _connective(name: str, *, decisive: bool) -> Operator:
    """An operator that has its result as soon as an argument is `decisive`."""

    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        arguments = specification if isinstance(specification, list) else [specification]
        closures = [context.compile(argument) for argument in arguments]
        for closure in closures:
            # A constant decides for every document, so that arguments in front of it are not computed either.
            if type(closure) is Constant and is_true(closure.value) is decisive:
                failing = next((part for part in closures if type(part) is FailedConstant), None)
                return failing or Constant(decisive)

        def evaluate(document: Any, variables: Variables) -> bool:
            for closure in closures:
                if is_true(closure(document, variables)) is decisive:
                    return decisive
            return not decisive

        return evaluate

    return Operator(name, compile_call)


OPERATORS: tuple[Operator, ...] = (
    _connective("$and", decisive=False),
    _connective("$or", decisive=True),
    positional("$not", lambda value: not is_true(value), 1, 1),
)
