"""The tokens of a filter or action."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from asterism.languages.bus_sql.errors import malformed

# Spec S4: the limit of the service, for filters and actions alike.
EXPRESSION_CHARACTERS_MAX: Final = 1024

_TOKEN: Final = re.compile(
    r"""(?:
      (?P<blank>\s+)
    | "(?P<quoted>(?:[^"]|"")+)"
    | \[(?P<bracketed>(?:[^\]]|\]\])+)\]
    | '(?P<string>(?:[^']|'')*)'
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
    | @(?P<parameter>\w+)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><>|!=|<=|>=|[-+*/%=<>(),.;])
    )""",
    re.VERBOSE | re.DOTALL,
)
# Words that are no names, unless they are quoted.
RESERVED: Final = frozenset(
    ("AND", "OR", "NOT", "LIKE", "ESCAPE", "IN", "IS", "NULL", "EXISTS", "TRUE", "FALSE", "SET", "REMOVE")
)
_SHOWN_CHARACTERS_MAX: Final = 20


class Token(NamedTuple):
    """`kind` is word, name (quoted), string, number, parameter, sign or end; `text` has no quotes."""

    kind: str
    text: str
    position: int

    @property
    def keyword(self) -> str:
        """The word in capitals, or nothing if it was quoted or is not a word."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def shown(self) -> str:
        """The token in a sentence."""
        return "the end" if self.kind == "end" else f"'{self.text[:_SHOWN_CHARACTERS_MAX]}'"


class Tokens:
    """The tokens of a text, with a place to read at."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens_of(text)
        self._at = 0

    def peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.peek()
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def accept(self, keyword: str) -> bool:
        if self.peek().keyword != keyword:
            return False
        self.take()
        return True

    def accept_sign(self, *signs: str) -> str | None:
        token = self.peek()
        if token.kind != "sign" or token.text not in signs:
            return None
        return self.take().text

    def expect(self, keyword: str) -> None:
        if not self.accept(keyword):
            raise malformed(f"{keyword} was expected in place of {self.peek().shown}.", self.peek().position)

    def expect_sign(self, sign: str) -> None:
        if self.accept_sign(sign) is None:
            raise malformed(f"'{sign}' was expected in place of {self.peek().shown}.", self.peek().position)

    def expect_end(self) -> None:
        token = self.peek()
        if token.kind != "end":
            raise malformed(f"The expression is complete before {token.shown}.", token.position)


def _tokens_of(text: str) -> list[Token]:
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise malformed(
            f"The expression has {len(text):,} characters; at most {EXPRESSION_CHARACTERS_MAX:,} are allowed.",
            EXPRESSION_CHARACTERS_MAX,
        )
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise malformed("The text is not a name, a constant or an operator.", at)
        if found.lastgroup != "blank":
            tokens.append(_token(str(found.lastgroup), found[str(found.lastgroup)], at))
        at = found.end()
    tokens.append(Token("end", "", at))
    return tokens


def _token(kind: str, text: str, position: int) -> Token:
    match kind:
        case "quoted":
            return Token("name", text.replace('""', '"'), position)
        case "bracketed":
            return Token("name", text.replace("]]", "]"), position)
        case "string":
            return Token("string", text.replace("''", "'"), position)
        case _:
            return Token(kind, text, position)
