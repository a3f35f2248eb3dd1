"""From the text of a `$filter` to its tree."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from asterism.apis.table.edm import INT32, INT64, EdmType
from asterism.apis.table.errors import Refusal, invalid_input
from asterism.apis.table.filter_tree import (
    MIRRORED,
    And,
    Compare,
    Comparison,
    Condition,
    Constant,
    IsTrue,
    Literal,
    Not,
    Or,
)
from asterism.apis.table.timestamps import ticks_of

# Deeper nesting is no filter that a person or a client writes, and the parser follows it by calling itself.
NESTING_LEVELS_MAX: Final = 100
# The tree of a filter as long as a URL can be is a megabyte; hundreds of those are not kept.
_REMEMBERED_CHARACTERS_MAX: Final = 4096

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<paren>[()])
    | (?P<typed>datetime|guid|binary|X|x)'(?P<content>[^']*)'
    | '(?P<string>(?:[^']|'')*)'
    | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[LlDdFfMm]?)(?![\w'])
    | (?P<word>[^\W\d](?:\w|[^\x00-\x7f\s])*)
    )""",
    re.VERBOSE,
)
_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_COMPARISONS: Final = {one.value: one for one in Comparison}
_RESERVED: Final = frozenset({"and", "or", "not", *_COMPARISONS})
_CONSTANTS: Final = {"true": True, "false": False}


class _Token(NamedTuple):
    kind: str
    value: str
    literal: Literal | None = None


_END: Final = _Token("end", "")


def refused() -> Refusal:
    return invalid_input("The query condition specified in the request is invalid.")


def parse_filter(text: str) -> Condition:
    """The tree of a filter; InvalidInput for a text that is none."""
    return _parse_known(text) if len(text) <= _REMEMBERED_CHARACTERS_MAX else _parse(text)


# Clients send one text again and again, for each page and with each run.
@lru_cache(maxsize=512)
def _parse_known(text: str) -> Condition:
    return _parse(text)


def _parse(text: str) -> Condition:
    parser = _Parser(_tokens(text))
    condition = parser.disjunction(0)
    parser.expect_end()
    return condition


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, length = 0, len(text.rstrip())
    while at < length:
        found = _TOKEN.match(text, at)
        if found is None:
            raise refused()
        tokens.append(_token(found))
        at = found.end()
    tokens.append(_END)
    return tokens


def _token(found: re.Match[str]) -> _Token:
    match found.lastgroup:
        case "paren":
            return _Token(found["paren"], "")
        case "string":
            return _literal(EdmType.STRING, found["string"].replace("''", "'"))
        case "content":
            return _typed(found["typed"], found["content"])
        case "number":
            return _number(found["number"])
        case _:
            word = found["word"]
            if word in _CONSTANTS:
                return _literal(EdmType.BOOLEAN, _CONSTANTS[word])
            # Names hold signs that are no letters too (the vowels of Hindi, accents that stand alone).
            if not word.isidentifier():
                raise refused()
            return _Token(word if word in _RESERVED else "name", word)


def _literal(kind: EdmType, value: str | int | float | bool | bytes) -> _Token:
    return _Token("literal", "", Literal(kind, value))


def _typed(prefix: str, content: str) -> _Token:
    if prefix == "datetime":
        ticks = ticks_of(content)
        if ticks is None:
            raise refused()
        return _literal(EdmType.DATETIME, ticks)
    if prefix == "guid":
        if not _GUID.fullmatch(content):
            raise refused()
        return _literal(EdmType.GUID, content.lower())
    try:
        return _literal(EdmType.BINARY, bytes.fromhex(content))
    except ValueError:
        raise refused() from None


def _number(text: str) -> _Token:
    suffix = text[-1].lower()
    digits = text[:-1] if suffix in "ldfm" else text
    if suffix == "l" or (suffix not in "dfm" and digits.lstrip("-").isdigit()):
        if not digits.lstrip("-").isdigit() or len(digits) > 20 or int(digits) not in INT64:
            raise refused()
        whole = int(digits)
        # Clients leave the L away between 2**31 and 2**32.
        return _literal(EdmType.INT64 if suffix == "l" or whole not in INT32 else EdmType.INT32, whole)
    return _literal(EdmType.DOUBLE, float(digits))


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        if token.kind == "end":
            raise refused()
        self._at += 1
        return token

    def expect_end(self) -> None:
        if self._peek().kind != "end":
            raise refused()

    def disjunction(self, level: int) -> Condition:
        if level > NESTING_LEVELS_MAX:
            raise refused()
        parts = [self._conjunction(level)]
        while self._peek().kind == "or":
            self._take()
            parts.append(self._conjunction(level))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _conjunction(self, level: int) -> Condition:
        parts = [self._negation(level)]
        while self._peek().kind == "and":
            self._take()
            parts.append(self._negation(level))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _negation(self, level: int) -> Condition:
        if self._peek().kind != "not":
            return self._primary(level)
        if level > NESTING_LEVELS_MAX:
            raise refused()
        self._take()
        return Not(self._negation(level + 1))

    def _primary(self, level: int) -> Condition:
        token = self._take()
        if token.kind == "(":
            inner = self.disjunction(level + 1)
            if self._take().kind != ")":
                raise refused()
            return self._maybe_compared(inner)
        if token.kind not in ("name", "literal"):
            raise refused()
        comparison = _COMPARISONS.get(self._peek().kind)
        if comparison is None:
            return _alone(token)
        self._take()
        return _comparison(token, comparison, self._operand())

    def _maybe_compared(self, inner: Condition) -> Condition:
        """`(Active) eq true`, which some writers of filters produce: a property in parentheses is an operand."""
        comparison = _COMPARISONS.get(self._peek().kind)
        if comparison is None:
            return inner
        if not isinstance(inner, IsTrue):
            raise refused()
        self._take()
        return _comparison(_Token("name", inner.name), comparison, self._operand())

    def _operand(self) -> _Token:
        token = self._take()
        if token.kind == "(":
            token = self._take()
            if self._take().kind != ")":
                raise refused()
        if token.kind not in ("name", "literal"):
            raise refused()
        return token


def _alone(token: _Token) -> Condition:
    if token.literal is None:
        return IsTrue(token.value)
    if token.literal.type is not EdmType.BOOLEAN:
        raise refused()
    return Constant(bool(token.literal.value))


def _comparison(left: _Token, comparison: Comparison, right: _Token) -> Condition:
    if left.literal is None and right.literal is not None:
        return Compare(left.value, comparison, right.literal)
    if left.literal is not None and right.literal is None:
        return Compare(right.value, MIRRORED[comparison], left.literal)
    # Two properties, or two constants: the service compares neither.
    raise refused()
