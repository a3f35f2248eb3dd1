"""Operators that compare two values of any types in the order of BSON."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from asterism.languages.mongo.expressions.operator import CompileContext, Evaluate, Operator, Variables
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.order import compare


def _comparison(name: str, decide: Callable[[int, int], Any]) -> Operator:
    """An operator that looks at the order of its two arguments: -1, 0 or 1, given to `decide` beside a zero."""

    def compile_call(specification: Any, context: CompileContext) -> Evaluate:
        arguments = specification if isinstance(specification, list) else [specification]
        if len(arguments) != 2:
            raise MongoFailure(16020, f"Expression {name} takes exactly 2 arguments. {len(arguments)} were passed in.")
        left, right = (context.compile(argument) for argument in arguments)
        collate = context.collate

        def evaluate(document: Any, variables: Variables) -> Any:
            return decide(compare(left(document, variables), right(document, variables), collate), 0)

        return evaluate

    return Operator(name, compile_call)


OPERATORS: tuple[Operator, ...] = (
    _comparison("$cmp", lambda order, zero: order),
    _comparison("$eq", operator.eq),
    _comparison("$ne", operator.ne),
    _comparison("$gt", operator.gt),
    _comparison("$gte", operator.ge),
    _comparison("$lt", operator.lt),
    _comparison("$lte", operator.le),
)
