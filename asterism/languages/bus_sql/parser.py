"""Text to tree: OR binds less than AND, AND less than NOT, NOT less than comparisons, those less than arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from asterism.languages.bus_sql.errors import malformed
from asterism.languages.bus_sql.lexer import RESERVED, Token, Tokens
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
    Remove,
    Set,
    Statement,
)

# Each level takes about eight frames of the parser's stack and two of a closure's.
NESTING_LEVELS_MAX: Final = 32
# Spec S4.
ACTION_STATEMENTS_MAX: Final = 32
_INTEGER_MAX: Final = 2**63 - 1
_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_SCOPES: Final = {"SYS": True, "USER": False}


def parse_filter(text: str) -> Expression:
    """Return the tree of a condition; MalformedRule for any other text."""
    parser = _Parser(text)
    condition = parser.condition()
    parser.tokens.expect_end()
    return condition


def parse_action(text: str) -> tuple[Statement, ...]:
    """Return the statements of an action; MalformedRule for any other text."""
    parser = _Parser(text)
    statements: list[Statement] = []
    while parser.tokens.peek().kind != "end":
        if len(statements) == ACTION_STATEMENTS_MAX:
            raise malformed(f"An action has at most {ACTION_STATEMENTS_MAX} statements.", parser.tokens.peek().position)
        statements.append(parser.statement())
        parser.tokens.accept_sign(";")
    return tuple(statements)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = Tokens(text)
        self._depth = 0

    # --- statements -------------------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        tokens = self.tokens
        if tokens.accept("REMOVE"):
            return Remove(self._property())
        if not tokens.accept("SET"):
            raise malformed(f"SET or REMOVE was expected in place of {tokens.peek().shown}.", tokens.peek().position)
        target = self._property()
        tokens.expect_sign("=")
        return Set(target, self._sum())

    # --- conditions -------------------------------------------------------------------------------------------------

    def condition(self) -> Expression:
        return _checked_condition(self._disjunction())

    def _disjunction(self) -> Expression:
        return self._chain("OR", self._conjunction, Or)

    def _conjunction(self) -> Expression:
        return self._chain("AND", self._negation, And)

    def _chain(self, keyword: str, operand: Callable[[], Expression], node: type[And] | type[Or]) -> Expression:
        position = self.tokens.peek().position
        operands = [operand()]
        while self.tokens.accept(keyword):
            operands.append(operand())
        if len(operands) == 1:
            return operands[0]
        return node(tuple(_checked_condition(each) for each in operands), position)

    def _negation(self) -> Expression:
        position = self.tokens.peek().position
        if not self.tokens.accept("NOT"):
            return self._predicate()
        return Not(_checked_condition(self._deeper(self._negation)), position)

    def _predicate(self) -> Expression:
        left = self._sum()
        tokens = self.tokens
        position = tokens.peek().position
        operator = tokens.accept_sign("=", "<>", "!=", "<=", "<", ">=", ">")
        if operator is not None:
            return Comparison("<>" if operator == "!=" else operator, left, self._sum(), position)
        if tokens.accept("IS"):
            is_negated = tokens.accept("NOT")
            tokens.expect("NULL")
            return _negated_if(is_negated, IsNull(left, position))
        is_negated = tokens.peek(1).keyword in ("LIKE", "IN") and tokens.accept("NOT")
        if tokens.accept("LIKE"):
            pattern = self._sum()
            escape = self._sum() if tokens.accept("ESCAPE") else None
            return _negated_if(is_negated, Like(left, pattern, escape, position))
        if tokens.accept("IN"):
            return _negated_if(is_negated, In(left, self._choices(), position))
        return left

    def _choices(self) -> tuple[Expression, ...]:
        self.tokens.expect_sign("(")
        choices = [self._sum()]
        while self.tokens.accept_sign(","):
            choices.append(self._sum())
        self.tokens.expect_sign(")")
        return tuple(choices)

    # --- values -----------------------------------------------------------------------------------------------------

    def _sum(self) -> Expression:
        return self._arithmetic(self._product, "+", "-")

    def _product(self) -> Expression:
        return self._arithmetic(self._signed, "*", "/", "%")

    def _arithmetic(self, operand: Callable[[], Expression], *signs: str) -> Expression:
        position = self.tokens.peek().position
        first = operand()
        rest: list[tuple[str, Expression]] = []
        while (sign := self.tokens.accept_sign(*signs)) is not None:
            rest.append((sign, operand()))
        return Arithmetic(first, tuple(rest), position) if rest else first

    def _signed(self) -> Expression:
        position = self.tokens.peek().position
        sign = self.tokens.accept_sign("+", "-")
        if sign is None:
            return self._primary()
        operand = self._deeper(self._signed)
        return operand if sign == "+" else Negative(operand, position)

    def _primary(self) -> Expression:
        tokens = self.tokens
        token = tokens.take()
        match token.kind:
            case "number":
                return Constant(_number(token), token.position)
            case "string":
                return Constant(token.text, token.position)
            case "parameter":
                return Parameter(token.text, token.position)
            case "sign" if token.text == "(":
                inner = self._deeper(self._disjunction)
                tokens.expect_sign(")")
                return inner
            case "word" if token.keyword in _CONSTANTS:
                return Constant(_CONSTANTS[token.keyword], token.position)
            case "word" if token.keyword == "EXISTS":
                tokens.expect_sign("(")
                wanted = self._property()
                tokens.expect_sign(")")
                return Exists(wanted, token.position)
            case "word" if token.keyword not in RESERVED and tokens.peek().text == "(" and tokens.peek().kind == "sign":
                return self._function(token)
            case _:
                return self._property_at(token)

    def _function(self, name: Token) -> Expression:
        self.tokens.expect_sign("(")
        match name.keyword:
            case "NEWID":
                self.tokens.expect_sign(")")
                return NewId(name.position)
            case "PROPERTY" | "P":
                inner = self._deeper(self._sum)
                self.tokens.expect_sign(")")
                return NamedProperty(inner, name.position)
            case _:
                raise malformed(f"There is no function {name.shown}; there are newid, property and p.", name.position)

    def _property(self) -> Property:
        return self._property_at(self.tokens.take())

    def _property_at(self, token: Token) -> Property:
        name = _name(token)
        if token.keyword not in _SCOPES or self.tokens.accept_sign(".") is None:
            return Property(name, False, token.position)
        return Property(_name(self.tokens.take()), _SCOPES[token.keyword], token.position)

    def _deeper(self, parse: Callable[[], Expression]) -> Expression:
        if self._depth == NESTING_LEVELS_MAX:
            raise malformed(
                f"The expression is nested deeper than {NESTING_LEVELS_MAX} levels.", self.tokens.peek().position
            )
        self._depth += 1
        parsed = parse()
        self._depth -= 1
        return parsed


def _name(token: Token) -> str:
    if token.kind == "name" or (token.kind == "word" and token.keyword not in RESERVED):
        return token.text
    raise malformed(f"A name, a constant or '(' was expected in place of {token.shown}.", token.position)


def _number(token: Token) -> int | float:
    if token.text.isascii() and token.text.isdigit():
        number = int(token.text)
        if number > _INTEGER_MAX:
            raise malformed("The number does not fit into 64 bits.", token.position)
        return number
    try:
        value = float(token.text)
    except ValueError:
        raise malformed("The number is malformed.", token.position) from None
    if math.isinf(value):
        raise malformed("The number is too large.", token.position)
    return value


def _negated_if(is_negated: bool, condition: Expression) -> Expression:
    return Not(condition, condition.position) if is_negated else condition


def _checked_condition(expression: Expression) -> Expression:
    """Return the expression, unless it can be seen that its value is never true or false."""
    match expression:
        case Constant(value) if not isinstance(value, bool):
            raise malformed("A condition was expected in place of a constant.", expression.position)
        case Arithmetic() | Negative() | NewId():
            raise malformed("A condition was expected in place of a value.", expression.position)
        case _:
            return expression
