"""The parser's position in the token list, and its errors at that position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from asterism.languages.cosmos_sql.malformed_query import MalformedQuery
from asterism.languages.cosmos_sql.syntax.lexer import ALIAS_WORDS, END, IDENTIFIER, Token
from asterism.languages.cosmos_sql.syntax.tree import Span
from asterism.reading.turns import pause

SYNTAX_ERROR = "SC1001"

# Rules inside each other (an expression in an expression, a query in a query), each at most five Python frames: half of
# the interpreter's 1,000 frames stay free for the caller.
NESTED_RULES_MAX = 100
# Chained operators or steps, each of which is a level of the tree; see `parser.TREE_LEVELS_MAX`.
CHAINED_MAX = 150
# An IN of the longest text has about 100,000 numbers of four digits, each with a comma.
TOKENS_MAX = 250_000
_TOKENS_BETWEEN_PAUSES = 256


class TokenStream:
    """Tokens read from left to right; `current` is the next token to be taken."""

    __slots__ = ("_following", "_nested_rules", "_taken", "_tokens", "current", "previous_end")

    def __init__(self, tokens: Iterator[Token]) -> None:
        """Read `tokens` as they are needed: of a malformed text, none after the error."""
        self._tokens = tokens
        self._taken = 0
        self._nested_rules = 0
        self.current = next(tokens)
        self._following = next(tokens, self.current)
        self.previous_end = 0

    def take(self) -> Token:
        """Return the current token and advance. The last token (END or BAD) fits no rule and is never taken."""
        token = self.current
        self.previous_end = token.end
        self.current = self._following
        self._following = next(self._tokens, self.current)
        self._taken += 1
        if not self._taken % _TOKENS_BETWEEN_PAUSES:
            pause()
            if self._taken > TOKENS_MAX:
                reason = f"The query has more than {TOKENS_MAX} words and symbols."
                raise MalformedQuery(SYNTAX_ERROR, reason, token.start, token.end)
        return token

    def take_if(self, symbol: str) -> Token | None:
        return self.take() if self.current.symbol == symbol else None

    def expect(self, symbol: str) -> Token:
        if self.current.symbol != symbol:
            self.refuse()
        return self.take()

    def expect_name(self) -> str:
        """Take an identifier, or one of the keywords that may serve as an identifier."""
        if not self.at_name():
            self.refuse()
        return self.take().text

    def at_name(self) -> bool:
        return self.current.symbol == IDENTIFIER or self.current.symbol in ALIAS_WORDS

    def following(self) -> Token:
        """Return the token after the current token, or the current token at the end of the text."""
        return self._following

    def span_from(self, start: int) -> Span:
        """Return the span from `start` to the end of the token taken last."""
        return Span(start, self.previous_end)

    def enter_rule(self) -> None:
        """Count a recursive rule until `leave_rule`."""
        self._nested_rules += 1
        if self._nested_rules > NESTED_RULES_MAX:
            self.refuse_nesting()

    def leave_rule(self) -> None:
        self._nested_rules -= 1

    def check_chain(self, length: int) -> None:
        """Refuse a chain that is longer than the tree may be high, before all of it is read."""
        if length > CHAINED_MAX:
            self.refuse_nesting()

    def refuse_nesting(self) -> NoReturn:
        token = self.current
        raise MalformedQuery(SYNTAX_ERROR, "The query is nested too deeply.", token.start, token.end)

    def refuse(self) -> NoReturn:
        """Raise the error for a current token that fits no rule."""
        token = self.current
        if token.symbol == END:
            raise MalformedQuery(SYNTAX_ERROR, "Syntax error, unexpected end of the query.", token.start, token.end)
        reason = f"Syntax error, incorrect syntax near '{token.text}'."
        raise MalformedQuery(SYNTAX_ERROR, reason, token.start, token.end)
