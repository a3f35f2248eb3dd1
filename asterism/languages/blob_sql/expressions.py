"""The parser of expressions. From loose to tight: OR, AND, NOT, comparisons, + - ||, * / %, sign, operand."""

from __future__ import annotations

from typing import Final

from asterism.languages.blob_sql.errors import MalformedBlobQuery
from asterism.languages.blob_sql.functions import FUNCTIONS
from asterism.languages.blob_sql.lexer import Token
from asterism.languages.blob_sql.token_stream import TokenStream, whole_number
from asterism.languages.blob_sql.tree import (
    Aggregate,
    AggregateKind,
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
    Type,
    Unary,
)

# The parser is recursive, with up to fourteen frames for a level.
NESTING_LEVELS_MAX: Final = 32
# A chain such as 1 + 1 + … becomes a tree as deep as it is long, and the closures are recursive too.
ARITHMETIC_OPERATORS_MAX: Final = 200

_COMPARISONS: Final = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_CONSTANTS: Final[dict[str, bool | None]] = {"TRUE": True, "FALSE": False, "NULL": None}
_TYPES: Final = {
    **{kind.value: kind for kind in Type},
    "INTEGER": Type.INTEGER,
    "BIGINT": Type.INTEGER,
    "DOUBLE": Type.FLOAT,
    "DECIMAL": Type.FLOAT,
    "NUMERIC": Type.FLOAT,
    "REAL": Type.FLOAT,
    "VARCHAR": Type.STRING,
    "CHAR": Type.STRING,
    "BOOL": Type.BOOLEAN,
}
_AGGREGATES: Final = {kind.value: kind for kind in AggregateKind}
_RESERVED: Final = frozenset(
    "SELECT FROM WHERE LIMIT AND OR NOT IN IS LIKE BETWEEN ESCAPE AS GROUP ORDER HAVING".split()  # noqa: SIM905
)


class ExpressionParser:
    """Expressions at the place of `tokens`; `table_names` may stand before a path."""

    def __init__(self, tokens: TokenStream, table_names: frozenset[str]) -> None:
        self._tokens = tokens
        self._table_names = table_names
        self._level = 0
        self._arithmetic_operators = 0
        self._is_in_aggregate = False
        self._columns_end = 0
        self.aggregates: list[Aggregate] = []

    def leave_columns(self) -> None:
        """Mark the end of the columns: aggregates have a meaning before it."""
        self._columns_end = len(self.aggregates)

    @property
    def aggregates_in_condition(self) -> bool:
        return len(self.aggregates) > self._columns_end

    def condition(self) -> Expression:
        return self.expression()

    def expression(self) -> Expression:
        if self._level == 0:
            self._arithmetic_operators = 0
        self._level += 1
        if self._level > NESTING_LEVELS_MAX:
            raise self._error(f"There are more than {NESTING_LEVELS_MAX} levels of nesting.")
        found = self._logic("OR")
        self._level -= 1
        return found

    def _error(self, reason: str, token: Token | None = None) -> MalformedBlobQuery:
        return MalformedBlobQuery(reason, (token or self._tokens.peek()).position)

    def _logic(self, sign: str) -> Expression:
        operands = [self._operand_of(sign)]
        while self._tokens.accept(sign):
            operands.append(self._operand_of(sign))
        return operands[0] if len(operands) == 1 else Logic(sign, tuple(operands))

    def _operand_of(self, sign: str) -> Expression:
        return self._logic("AND") if sign == "OR" else self._negation()

    def _negation(self) -> Expression:
        negations = 0
        while self._tokens.accept("NOT"):
            negations += 1
        found = self._comparison()
        # Twice NOT is a truth value again, and three values have no other than that.
        return found if not negations else Unary("NOT", found if negations % 2 else Unary("NOT", found))

    def _comparison(self) -> Expression:
        left = self._sum()
        token = self._tokens.peek()
        if token.kind == "sign" and token.text in _COMPARISONS:
            self._tokens.take()
            return Binary(_COMPARISONS[token.text], left, self._sum())
        if self._tokens.accept("IS"):
            is_negated = self._tokens.accept("NOT")
            if not self._tokens.accept("MISSING"):
                self._tokens.expect("NULL")
            return IsNull(left, is_negated)
        is_negated = self._tokens.accept("NOT")
        found = self._predicate(left)
        if found is None:
            if is_negated:
                raise self._error("IN, LIKE or BETWEEN was expected.")
            return left
        return Unary("NOT", found) if is_negated else found

    def _predicate(self, left: Expression) -> Expression | None:
        tokens = self._tokens
        if tokens.accept("IN"):
            tokens.expect_sign("(")
            return IsIn(left, self._arguments())
        if tokens.accept("LIKE"):
            pattern = self._sum()
            escape = ""
            if tokens.accept("ESCAPE"):
                token = tokens.take()
                if token.kind != "string" or len(token.text) != 1:
                    raise self._error("ESCAPE takes one character in single quotes.", token)
                escape = token.text
            return IsLike(left, pattern, escape)
        if tokens.accept("BETWEEN"):
            low = self._sum()
            tokens.expect("AND")
            return Logic("AND", (Binary(">=", left, low), Binary("<=", left, self._sum())))
        return None

    def _sum(self) -> Expression:
        return self._chain(("+", "-", "||"))

    def _chain(self, signs: tuple[str, ...]) -> Expression:
        is_sum = "+" in signs
        found = self._chain(("*", "/", "%")) if is_sum else self._signed()
        while (token := self._tokens.peek()).kind == "sign" and token.text in signs:
            self._tokens.take()
            self._arithmetic_operators += 1
            if self._arithmetic_operators > ARITHMETIC_OPERATORS_MAX:
                raise self._error(
                    f"An expression has more than {ARITHMETIC_OPERATORS_MAX} arithmetic operators.", token
                )
            found = Binary(token.text, found, self._chain(("*", "/", "%")) if is_sum else self._signed())
        return found

    def _signed(self) -> Expression:
        is_negative = False
        while (token := self._tokens.peek()).kind == "sign" and token.text in "+-":
            self._tokens.take()
            is_negative ^= token.text == "-"
        found = self._operand()
        if not is_negative:
            return found
        if isinstance(found, Literal) and isinstance(found.value, (int, float)) and not isinstance(found.value, bool):
            return Literal(-found.value)
        return Unary("-", found)

    def _operand(self) -> Expression:
        tokens = self._tokens
        token = tokens.take()
        if token.kind == "string":
            return Literal(token.text)
        if token.kind == "number":
            # Twenty digits and more are beyond 64 bits.
            return Literal(int(token.text) if token.text.isdecimal() and len(token.text) < 20 else float(token.text))
        if token.kind == "sign" and token.text == "(":
            found = self.expression()
            tokens.expect_sign(")")
            return found
        if token.kind == "name":
            return self._path(token)
        if token.kind == "word" and token.keyword not in _RESERVED:
            return self._word(token)
        raise self._error("An expression was expected.", token)

    def _word(self, token: Token) -> Expression:
        if token.keyword in _CONSTANTS:
            return Literal(_CONSTANTS[token.keyword])
        if not self._tokens.accept_sign("("):
            return self._path(token)
        if token.keyword in _AGGREGATES:
            return self._aggregate(_AGGREGATES[token.keyword], token)
        match token.keyword:
            case "CAST":
                return self._cast()
            case "TRIM":
                return self._trim()
            case "SUBSTRING":
                return self._substring(token)
            case _:
                return self._call(token)

    def _path(self, token: Token) -> Expression:
        tokens = self._tokens
        steps: list[str | int] = [token.text]
        is_table = token.text.upper() in self._table_names
        while True:
            if tokens.accept_sign("."):
                steps.append(tokens.name())
            elif tokens.accept_sign("["):
                if tokens.accept_sign("*"):
                    if not is_table or len(steps) > 1:
                        raise self._error("A path in an expression takes one element: write [0] or a path in FROM.")
                else:
                    steps.append(self._member_or_index())
                tokens.expect_sign("]")
            else:
                break
        # A column may have the name of the table; with steps behind it, the name is the table's.
        has_table = is_table and (len(steps) > 1 or token.keyword == "BLOBSTORAGE")
        return Path(tuple(steps[1:] if has_table else steps), token.position)

    def _member_or_index(self) -> str | int:
        token = self._tokens.peek()
        if token.kind in ("string", "name"):
            return self._tokens.take().text
        return whole_number(self._tokens)

    def _arguments(self) -> tuple[Expression, ...]:
        """Return what stands between parentheses, after the opening one: at least one expression."""
        found = [self.expression()]
        while self._tokens.accept_sign(","):
            found.append(self.expression())
        self._tokens.expect_sign(")")
        return tuple(found)

    def _aggregate(self, kind: AggregateKind, token: Token) -> Expression:
        if self._is_in_aggregate:
            raise self._error("An aggregate must not stand in another one.", token)
        operand: Expression | None = None
        if not (kind is AggregateKind.COUNT and self._tokens.accept_sign("*")):
            self._is_in_aggregate = True
            operand = self.expression()
            self._is_in_aggregate = False
        self._tokens.expect_sign(")")
        found = Aggregate(kind, operand, len(self.aggregates))
        self.aggregates.append(found)
        return found

    def _cast(self) -> Expression:
        operand = self.expression()
        self._tokens.expect("AS")
        token = self._tokens.take()
        if token.keyword not in _TYPES:
            raise self._error("The types are INT, FLOAT, STRING, BOOLEAN and TIMESTAMP.", token)
        # A length or precision, as in DECIMAL(10, 2), has no effect.
        if self._tokens.accept_sign("("):
            self._arguments()
        self._tokens.expect_sign(")")
        return Cast(operand, _TYPES[token.keyword])

    def _trim(self) -> Expression:
        """Read TRIM(text) and TRIM([LEADING|TRAILING|BOTH] [characters] FROM text)."""
        tokens = self._tokens
        side = next((word for word in ("LEADING", "TRAILING", "BOTH") if tokens.accept(word)), "BOTH")
        characters: Expression = Literal(" ")
        if not tokens.accept("FROM"):
            first = self.expression()
            if not tokens.accept("FROM"):
                tokens.expect_sign(")")
                return Call("TRIM", (Literal(side), characters, first))
            characters = first
        operand = self.expression()
        tokens.expect_sign(")")
        return Call("TRIM", (Literal(side), characters, operand))

    def _substring(self, token: Token) -> Expression:
        """Read SUBSTRING(text, start[, length]) and SUBSTRING(text FROM start [FOR length])."""
        tokens = self._tokens
        arguments = [self.expression()]
        if tokens.accept("FROM"):
            arguments.append(self.expression())
            if tokens.accept("FOR"):
                arguments.append(self.expression())
            tokens.expect_sign(")")
        else:
            tokens.expect_sign(",")
            arguments.extend(self._arguments())
        return self._checked_call("SUBSTRING", tuple(arguments), token)

    def _call(self, token: Token) -> Expression:
        if token.keyword not in FUNCTIONS:
            names = ", ".join(sorted({*FUNCTIONS, "CAST", *_AGGREGATES}))
            raise self._error(f"There is no such function. The functions are {names}.", token)
        return self._checked_call(token.keyword, self._arguments(), token)

    def _checked_call(self, name: str, arguments: tuple[Expression, ...], token: Token) -> Expression:
        if len(arguments) not in FUNCTIONS[name].counts:
            raise self._error(f"{name} does not take {len(arguments)} arguments.", token)
        return Call(name, arguments)
