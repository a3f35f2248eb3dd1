"""Trees to closures over a message. A condition is True, False or None (unknown); only True matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from asterism.languages.bus_sql.errors import malformed
from asterism.languages.bus_sql.subject import Subject, system_reader
from asterism.languages.bus_sql.tree import (
    And,
    Arithmetic,
    Comparison,
    Constant,
    Exists,
    Expression,
    In,
    IsNull,
    Like,
    NamedProperty,
    Negative,
    NewId,
    Not,
    Or,
    Parameter,
    Property,
)
from asterism.languages.bus_sql.values import Kind, calculate, comparer, kind_of, negative
from asterism.languages.like import like_matcher
from asterism.models.messages.rules import FilterFailed
from asterism.values.amqp.types import Uuid

Evaluate = Callable[[Subject], Any]

_GUID_BYTES: Final = 16
_EQUAL: Final = comparer("=")
_SCOPES: Final = {"sys": True, "user": False}


class Compiler:
    """Compiles the expressions of one filter or action, which share parameters."""

    def __init__(self, parameters: Mapping[str, Any], random_bytes: Callable[[int], bytes]) -> None:
        """`parameters` by their names in lower case, without the @."""
        self._parameters = parameters
        self._random_bytes = random_bytes

    def compile(self, expression: Expression) -> Evaluate:
        match expression:
            case Constant(value):
                return lambda _: value
            case Parameter():
                return self._parameter(expression)
            case Property():
                return property_reader(expression)
            case NamedProperty(name):
                return _named_property(self.compile(name))
            case NewId():
                return self._new_id
            case Negative(operand):
                evaluate = self.compile(operand)
                return lambda subject: negative(evaluate(subject))
            case Arithmetic():
                return self._arithmetic(expression)
            case Exists(wanted):
                return _exists(wanted)
            case _:
                return self._condition(expression)

    def _condition(self, expression: Comparison | Like | In | IsNull | Not | And | Or) -> Evaluate:
        match expression:
            case Comparison():
                return self._comparison(expression)
            case Like():
                return self._like(expression)
            case In():
                return self._in(expression)
            case IsNull(operand):
                evaluate = self.compile(operand)
                return lambda subject: evaluate(subject) is None
            case Not(operand):
                return _not(self.compile(operand))
            case And(operands):
                return _all(tuple(map(self.compile, operands)))
            case Or(operands):
                return _any(tuple(map(self.compile, operands)))

    def _parameter(self, parameter: Parameter) -> Evaluate:
        name = parameter.name.lower()
        if name not in self._parameters:
            raise malformed(f"The parameter '@{parameter.name}' has no value.", parameter.position)
        value = self._parameters[name]
        return lambda _: value

    def _new_id(self, _: Subject) -> Uuid:
        random = bytearray(self._random_bytes(_GUID_BYTES))
        # RFC 4122: version 4, made of random numbers.
        random[6] = random[6] & 0x0F | 0x40
        random[8] = random[8] & 0x3F | 0x80
        return Uuid(random)

    def _arithmetic(self, expression: Arithmetic) -> Evaluate:
        first = self.compile(expression.first)
        rest = tuple((sign, self.compile(operand)) for sign, operand in expression.rest)

        def evaluate(subject: Subject) -> Any:
            value = first(subject)
            for sign, operand in rest:
                value = calculate(sign, value, operand(subject))
            return value

        return evaluate

    def _comparison(self, expression: Comparison) -> Evaluate:
        compare = comparer(expression.operator)
        left, right = self.compile(expression.left), self.compile(expression.right)
        if isinstance(expression.right, Constant):
            # The usual form: a property and a constant.
            constant = expression.right.value
            return lambda subject: compare(left(subject), constant)
        return lambda subject: compare(left(subject), right(subject))

    def _like(self, expression: Like) -> Evaluate:
        operand, pattern = self.compile(expression.operand), self.compile(expression.pattern)
        escape: Evaluate = (lambda _: "") if expression.escape is None else self.compile(expression.escape)
        if isinstance(expression.escape, Constant) and not _is_escape(expression.escape.value):
            raise malformed("The escape character of LIKE must be a single character.", expression.escape.position)

        def evaluate(subject: Subject) -> bool | None:
            text, wanted, escaped = operand(subject), pattern(subject), escape(subject)
            if text is None or wanted is None or escaped is None:
                return None
            if kind_of(text) is not Kind.TEXT or kind_of(wanted) is not Kind.TEXT:
                return False
            if escaped != "" and not _is_escape(escaped):
                raise FilterFailed("The escape character of LIKE must be a single character.")
            return like_matcher(wanted, escaped)(text)

        return evaluate

    def _in(self, expression: In) -> Evaluate:
        operand = self.compile(expression.operand)
        choices = tuple(map(self.compile, expression.choices))

        def evaluate(subject: Subject) -> bool | None:
            value = operand(subject)
            found: bool | None = False
            for choice in choices:
                is_equal = _EQUAL(value, choice(subject))
                if is_equal:
                    return True
                if is_equal is None:
                    found = None
            return found

        return evaluate


def property_reader(wanted: Property) -> Evaluate:
    name = wanted.name
    return system_reader(name) if wanted.is_system else lambda subject: subject.user(name)


def _exists(wanted: Property) -> Evaluate:
    if wanted.is_system:
        read = system_reader(wanted.name)
        return lambda subject: read(subject) is not None
    name = wanted.name
    return lambda subject: subject.user_name(name) is not None


def _named_property(name_of: Evaluate) -> Evaluate:
    def evaluate(subject: Subject) -> Any:
        name = name_of(subject)
        if name is None:
            return None
        if kind_of(name) is not Kind.TEXT:
            raise FilterFailed("The function property needs the name of a property.")
        scope, dot, rest = name.partition(".")
        if dot and scope.lower() in _SCOPES:
            return property_reader(Property(rest, _SCOPES[scope.lower()], 0))(subject)
        return subject.user(name)

    return evaluate


def _is_escape(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1


def _not(evaluate: Evaluate) -> Evaluate:
    def negated(subject: Subject) -> bool | None:
        value = evaluate(subject)
        return None if value is None else value is not True

    return negated


def _all(operands: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(subject: Subject) -> bool | None:
        result: bool | None = True
        for operand in operands:
            value = operand(subject)
            if value is None:
                result = None
            elif value is not True:
                return False
        return result

    return evaluate


def _any(operands: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(subject: Subject) -> bool | None:
        result: bool | None = False
        for operand in operands:
            value = operand(subject)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return evaluate
