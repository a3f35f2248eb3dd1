"""The parser of expressions, by precedence climbing.

From loosest to tightest: `? :`, `??`, OR, AND, then IN / BETWEEN / LIKE, `||`, `|`, `^`, `&`, equality, order, shifts,
sums, products, and the prefixes `- + ~ NOT`. NOT binds as tightly as a minus sign: `NOT c.a = 1` is `(NOT c.a) = 1`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from asterism.languages.cosmos_sql.syntax import tree
from asterism.languages.cosmos_sql.syntax.lexer import IDENTIFIER, NUMBER, PARAMETER, STRING, Token
from asterism.languages.cosmos_sql.syntax.token_stream import TokenStream
from asterism.languages.cosmos_sql.syntax.tree import Expression, Span, SubqueryKind
from asterism.values.undefined import UNDEFINED

# Open parentheses cost no frame (see `expression`), so generated filters like ((((a OR b) OR c) OR d) OR e) may nest
# deeper.
OPEN_PARENTHESES_MAX: Final = 1000

_CONDITIONAL, _COALESCE, _OR, _AND, _PREDICATE = 1, 2, 3, 4, 5
_LOOSEST_BINARY = 6
_NOT_INFIX = 0
_BINARY_LEVELS = (
    ("||",),
    ("|",),
    ("^",),
    ("&",),
    ("=", "!=", "<>"),
    ("<", "<=", ">", ">="),
    ("<<", ">>", ">>>"),
    ("+", "-"),
    ("*", "/", "%"),
)
# The binding power of each infix symbol; NOT is infix in NOT IN, NOT BETWEEN and NOT LIKE.
_POWERS: Final[dict[str, int]] = {
    "?": _CONDITIONAL,
    "??": _COALESCE,
    "OR": _OR,
    "AND": _AND,
    **dict.fromkeys(("IN", "BETWEEN", "LIKE", "NOT"), _PREDICATE),
    **{symbol: _LOOSEST_BINARY + level for level, symbols in enumerate(_BINARY_LEVELS) for symbol in symbols},
}
_PREFIXES: Final = frozenset({"-", "+", "~", "NOT"})
_CONSTANTS: Final[dict[str, object]] = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}
# Names that are numbers, except before a property: in `NaN.x` the name is an alias.
_NUMBER_NAMES: Final = {"NaN": math.nan, "Infinity": math.inf}
_SUBQUERY_KINDS: Final = {kind.value: kind for kind in SubqueryKind if kind is not SubqueryKind.SCALAR}
# Keywords that are function names when a parenthesis follows.
_FUNCTION_KEYWORDS: Final = frozenset({"LEFT", "RIGHT"})


class ExpressionParser:
    """Reads expressions from `stream`; `parse_query` reads a subquery from the same stream."""

    def __init__(self, stream: TokenStream, parse_query: Callable[[], tree.Query]) -> None:
        self._stream = stream
        self._parse_query = parse_query
        self._open_parentheses = 0

    def expression(self, minimum_power: int = _CONDITIONAL) -> Expression:
        """Parse the longest expression here whose infix symbols bind with at least `minimum_power`."""
        stream = self._stream
        stream.enter_rule()
        opened: list[tuple[int, list[Token]]] = []
        while True:
            prefixes = self._prefixes()
            start = stream.current
            if start.symbol == "(" and stream.following().symbol != "SELECT":
                self._open_parenthesis()
                opened.append((minimum_power, prefixes))
                minimum_power = _CONDITIONAL
                continue
            left = self._with_infixes(
                self._with_prefixes(prefixes, self._with_members(self._primary(start))), minimum_power
            )
            while opened:
                stream.expect(")")
                self._open_parentheses -= 1
                minimum_power, prefixes = opened.pop()
                left = self._with_infixes(self._with_prefixes(prefixes, self._with_members(left)), minimum_power)
            stream.leave_rule()
            return left

    def expressions(self, *, closed_by: str) -> tuple[Expression, ...]:
        """Parse zero or more expressions separated by commas, and the symbol that closes the list."""
        if self._stream.take_if(closed_by):
            return ()
        found = [self.expression()]
        while self._stream.take_if(","):
            found.append(self.expression())
        self._stream.expect(closed_by)
        return tuple(found)

    def function_call(self) -> tree.Call:
        """Parse `name(arguments)` or `udf.name(arguments)`."""
        stream = self._stream
        start = stream.current.start
        is_udf = stream.take_if("udf") is not None
        if is_udf:
            stream.expect(".")
        name_token = stream.current
        if name_token.symbol not in _FUNCTION_KEYWORDS:
            stream.expect_name()
        else:
            stream.take()
        stream.expect("(")
        arguments = self.expressions(closed_by=")")
        name = name_token.text if is_udf else name_token.text.upper()
        name_span = Span(name_token.start, name_token.end)
        return tree.Call(name, arguments, is_udf, name_span, span=stream.span_from(start))

    # --- operands ---------------------------------------------------------------------------------------------------

    def _prefixes(self) -> list[Token]:
        prefixes = []
        while self._stream.current.symbol in _PREFIXES:
            prefixes.append(self._stream.take())
            self._stream.check_chain(len(prefixes))
        return prefixes

    def _with_prefixes(self, prefixes: list[Token], operand: Expression) -> Expression:
        for prefix in reversed(prefixes):
            span = Span(prefix.start, self._stream.previous_end)
            operand = tree.Unary(prefix.symbol, operand, span=span)
        return operand

    def _primary(self, start: Token) -> Expression:
        stream = self._stream
        symbol = start.symbol
        span = Span(start.start, start.end)
        if symbol in (STRING, NUMBER):
            return tree.Literal(stream.take().value, span=span)
        if symbol == PARAMETER:
            return tree.Parameter(stream.take().text, span=span)
        if symbol in _CONSTANTS:
            stream.take()
            return tree.Literal(_CONSTANTS[symbol], span=span)
        opens_list = stream.following().symbol == "("
        if symbol in _SUBQUERY_KINDS and opens_list:
            stream.take()
            return self._subquery(_SUBQUERY_KINDS[symbol], start)
        if symbol == "udf" or (opens_list and (symbol == IDENTIFIER or symbol in _FUNCTION_KEYWORDS)):
            return self.function_call()
        if start.text in _NUMBER_NAMES and stream.following().symbol not in (".", "["):
            return tree.Literal(_NUMBER_NAMES[stream.take().text], span=span)
        if stream.at_name():
            return tree.Path(stream.take().text, span=span)
        return self._bracketed(start)

    def _bracketed(self, start: Token) -> Expression:
        stream = self._stream
        if start.symbol == "(":
            return self._subquery(SubqueryKind.SCALAR, start)
        if stream.take_if("["):
            return tree.ArrayLiteral(self.expressions(closed_by="]"), span=stream.span_from(start.start))
        if not stream.take_if("{"):
            stream.refuse()
        return tree.ObjectLiteral(self._properties(), span=stream.span_from(start.start))

    def _subquery(self, kind: SubqueryKind, start: Token) -> Expression:
        self._stream.expect("(")
        query = self._parse_query()
        self._stream.expect(")")
        return tree.Subquery(kind, query, span=self._stream.span_from(start.start))

    def _properties(self) -> tuple[tuple[str, Expression], ...]:
        stream = self._stream
        if stream.take_if("}"):
            return ()
        found = [self._property()]
        while stream.take_if(","):
            found.append(self._property())
        stream.expect("}")
        return tuple(found)

    def _property(self) -> tuple[str, Expression]:
        stream = self._stream
        # The service accepts names without quotes too, as JavaScript does.
        name = stream.expect_name() if stream.at_name() else str(stream.expect(STRING).value)
        stream.expect(":")
        return name, self.expression()

    def _with_members(self, target: Expression) -> Expression:
        """Parse every `.name` and `[step]` after `target`; constant steps below an alias make one path."""
        stream = self._stream
        if stream.current.symbol not in (".", "["):
            return target
        first, members = target.span.start, 0
        alias = target.alias if isinstance(target, tree.Path) else None
        steps: list[str | int] = list(target.steps) if isinstance(target, tree.Path) else []
        while stream.current.symbol in (".", "["):
            step = self._step()
            constant = step.value if isinstance(step, tree.Literal) else None
            if alias is not None and (type(constant) is str or type(constant) is int):
                steps.append(constant)
                continue
            if alias is not None:
                target = tree.Path(alias, tuple(steps), span=Span(first, step.span.start))
                alias = None
            members += 1
            stream.check_chain(members)
            target = tree.Member(target, step, span=stream.span_from(first))
        return target if alias is None else tree.Path(alias, tuple(steps), span=stream.span_from(first))

    def _step(self) -> Expression:
        stream = self._stream
        if stream.take_if("."):
            start = stream.current.start
            name = stream.expect_name()
            return tree.Literal(name, span=stream.span_from(start))
        stream.expect("[")
        step = self.expression()
        stream.expect("]")
        return step

    # --- infixes ----------------------------------------------------------------------------------------------------

    def _with_infixes(self, left: Expression, minimum_power: int) -> Expression:
        stream, chained = self._stream, 0
        while (power := _POWERS.get(stream.current.symbol, _NOT_INFIX)) >= minimum_power:
            chained += 1
            stream.check_chain(chained)
            if power >= _LOOSEST_BINARY:
                operator = stream.take().symbol
                right = self.expression(power + 1)
                span = Span(left.span.start, right.span.end)
                left = tree.Binary("!=" if operator == "<>" else operator, left, right, span=span)
            elif power == _PREDICATE:
                left = self._predicate(left)
            else:
                left = self._logical(left, power)
        return left

    def _logical(self, left: Expression, power: int) -> Expression:
        stream = self._stream
        start = left.span.start
        if power in (_AND, _OR):
            operands = self._operands(left, power)
            span = stream.span_from(start)
            return tree.And(operands, span=span) if power == _AND else tree.Or(operands, span=span)
        stream.take()
        if power == _COALESCE:
            right = self.expression(_COALESCE + 1)
            return tree.Coalesce(left, right, span=stream.span_from(start))
        consequent = self.expression()
        stream.expect(":")
        alternative = self.expression()
        return tree.Conditional(left, consequent, alternative, span=stream.span_from(start))

    def _operands(self, first: Expression, power: int) -> tuple[Expression, ...]:
        """Parse all operands of a chain of AND or OR. Both are associative: chains in parentheses join their parent."""
        symbol, kind = ("AND", tree.And) if power == _AND else ("OR", tree.Or)
        operands = list(first.operands) if isinstance(first, kind) else [first]
        while self._stream.take_if(symbol):
            operand = self.expression(power + 1)
            operands.extend(operand.operands if isinstance(operand, kind) else (operand,))
        return tuple(operands)

    def _predicate(self, value: Expression) -> Expression:
        stream = self._stream
        start = value.span.start
        negated = stream.take_if("NOT") is not None
        if stream.take_if("IN"):
            stream.expect("(")
            if stream.current.symbol == ")":
                stream.refuse()
            haystack = self.expressions(closed_by=")")
            return tree.In(value, haystack, negated, span=stream.span_from(start))
        if stream.take_if("BETWEEN"):
            low = self.expression(_LOOSEST_BINARY)
            stream.expect("AND")
            high = self.expression(_LOOSEST_BINARY)
            return tree.Between(value, low, high, negated, span=stream.span_from(start))
        stream.expect("LIKE")
        pattern = self.expression(_LOOSEST_BINARY)
        escape = str(stream.expect(STRING).value) if stream.take_if("ESCAPE") else None
        return tree.Like(value, pattern, escape, negated, span=stream.span_from(start))

    # --- limits -----------------------------------------------------------------------------------------------------

    def _open_parenthesis(self) -> None:
        self._open_parentheses += 1
        if self._open_parentheses > OPEN_PARENTHESES_MAX:
            self._stream.refuse_nesting()
        self._stream.take()
