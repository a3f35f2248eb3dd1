"""Expressions as functions of a record. Truth has three values: true, false and NULL."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Protocol, assert_never

from asterism.languages.blob_sql.comparison import calculate, compare
from asterism.languages.blob_sql.conversion import cast, to_boolean, to_number, to_text
from asterism.languages.blob_sql.functions import FUNCTIONS
from asterism.languages.blob_sql.tree import (
    Aggregate,
    Binary,
    Call,
    Cast,
    Expression,
    IsIn,
    IsLike,
    IsNull,
    Literal,
    Logic,
    Path,
    Unary,
    Value,
)
from asterism.languages.like import like_matcher

# A list of texts, or what JSON has.
Record = Any
Evaluate = Callable[[Record], Value]


class NoValue(Enum):
    """The value of a path that a record of JSON does not have; results leave it out."""

    MISSING = "missing"


MISSING: Final = NoValue.MISSING


class Columns(Protocol):
    """The columns of an input, which a header may name."""

    def at(self, path: Path) -> Callable[[Record], Value | NoValue]:
        """Return the function that reads a path; FatalFault if no record can have it."""


class Compiler:
    """`results` holds the values of aggregates, in their order, when an expression with aggregates is evaluated."""

    def __init__(self, columns: Columns, results: list[Value]) -> None:
        self._columns = columns
        self._results = results

    def projected(self, expression: Expression) -> Callable[[Record], Value | NoValue]:
        """Return the function of a result, which may be missing."""
        return self._columns.at(expression) if isinstance(expression, Path) else self.compiled(expression)

    def condition(self, expression: Expression) -> Callable[[Record], bool]:
        """Return the function that tells whether a record is selected: NULL does not select it."""
        truth = self._truth(expression)
        return lambda record: truth(record) is True

    def compiled(self, expression: Expression) -> Evaluate:
        match expression:
            case Literal(value):
                return lambda _: value
            case Path():
                return self._path(expression)
            case Unary():
                return self._unary(expression)
            case Binary(sign, left, right):
                return self._binary(sign, self.compiled(left), self.compiled(right))
            case Logic():
                return self._logic(expression)
            case IsNull(operand, is_negated):
                evaluate = self.compiled(operand)
                return lambda record: (evaluate(record) is None) is not is_negated
            case IsIn():
                return self._is_in(expression)
            case IsLike():
                return self._is_like(expression)
            case Cast(operand, target):
                evaluate = self.compiled(operand)
                return lambda record: cast(evaluate(record), target)
            case Call():
                return self._call(expression)
            case Aggregate(_, _, number):
                results = self._results
                return lambda _: results[number]
            case _:
                assert_never(expression)

    def _path(self, path: Path) -> Evaluate:
        read = self._columns.at(path)

        def evaluate(record: Record) -> Value:
            value = read(record)
            return None if value is MISSING else value

        return evaluate

    def _truth(self, expression: Expression) -> Callable[[Record], bool | None]:
        evaluate = self.compiled(expression)

        def truth(record: Record) -> bool | None:
            value = evaluate(record)
            return value if value is None or isinstance(value, bool) else to_boolean(value)

        return truth

    def _unary(self, unary: Unary) -> Evaluate:
        if unary.sign == "NOT":
            truth = self._truth(unary.operand)

            def negation(record: Record) -> Value:
                value = truth(record)
                return None if value is None else not value

            return negation
        evaluate = self.compiled(unary.operand)

        def negative(record: Record) -> Value:
            value = evaluate(record)
            return None if value is None else -to_number(value)

        return negative

    def _binary(self, sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
        if sign in ("=", "<>", "<", "<=", ">", ">="):
            return lambda record: compare(sign, left(record), right(record))
        return lambda record: calculate(sign, left(record), right(record))

    def _logic(self, logic: Logic) -> Evaluate:
        operands = [self._truth(operand) for operand in logic.operands]
        decisive = logic.sign == "OR"

        def evaluate(record: Record) -> Value:
            answer: bool | None = not decisive
            for operand in operands:
                value = operand(record)
                if value is decisive:
                    return decisive
                if value is None:
                    answer = None
            return answer

        return evaluate

    def _is_in(self, expression: IsIn) -> Evaluate:
        operand = self.compiled(expression.operand)
        choices = [self.compiled(choice) for choice in expression.choices]

        def evaluate(record: Record) -> Value:
            value = operand(record)
            answer: bool | None = False
            for choice in choices:
                equal = compare("=", value, choice(record))
                if equal:
                    return True
                if equal is None:
                    answer = None
            return answer

        return evaluate

    def _is_like(self, expression: IsLike) -> Evaluate:
        operand, pattern = self.compiled(expression.operand), self.compiled(expression.pattern)
        escape = expression.escape

        def evaluate(record: Record) -> Value:
            value, wanted = operand(record), pattern(record)
            if value is None or wanted is None:
                return None
            return like_matcher(to_text(wanted), escape)(to_text(value))

        return evaluate

    def _call(self, call: Call) -> Evaluate:
        function = FUNCTIONS[call.function]
        arguments = [self.compiled(argument) for argument in call.arguments]

        def evaluate(record: Record) -> Value:
            values = [argument(record) for argument in arguments]
            return None if None in values and not function.takes_null else function.apply(values)

        return evaluate
