"""The parser of filters: from text to a tree of conditions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from asterism.languages.odata.malformed_filter import MalformedFilter
from asterism.languages.odata.tree import (
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
from asterism.models.tables.property_types import INT32, INT64, EdmType
from asterism.values.ticks import ticks_of

# No person or client writes deeper nesting, and the parser is recursive.
NESTING_LEVELS_MAX: Final = 100
# The tree of a filter as long as a URL can be takes a megabyte; the cache must not hold hundreds of those.
_CACHED_CHARACTERS_MAX: Final = 4096

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<paren>[()])
    | (?P<typed>datetime|guid|binary|X|x)'(?P<content>[^']*)'
    | '(?P<string>(?:[^']|'')*)'
    | (?P<number>-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[LlDdFfMm]?)(?![\w'])
    | (?P<word>[^\W\d](?:\w|[^\x00-\x7f\s])*)
    )""",
    re.VERBOSE,
)
_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_COMPARISONS: Final = {comparison.value: comparison for comparison in Comparison}
_RESERVED: Final = frozenset({"and", "or", "not", *_COMPARISONS})
_CONSTANTS: Final = {"true": True, "false": False}
_OPERANDS: Final = ("name", "literal")


class _Token(NamedTuple):
    kind: str
    value: str
    position: int
    literal: Literal | None = None


def parse_filter(text: str) -> Condition:
    """Return the tree of a filter; MalformedFilter says where the text is not a filter, and why."""
    return _parse_cached(text) if len(text) <= _CACHED_CHARACTERS_MAX else _parse(text)


# Clients repeat a text, for each page and with each run.
@lru_cache(maxsize=512)
def _parse_cached(text: str) -> Condition:
    return _parse(text)


def _parse(text: str) -> Condition:
    parser = _Parser(_tokens(text))
    condition = parser.disjunction(0)
    parser.expect_end()
    return condition


# --- tokens ---------------------------------------------------------------------------------------------------------


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, length = 0, len(text.rstrip())
    while at < length:
        found = _TOKEN.match(text, at)
        if found is None:
            raise MalformedFilter("The text is not a name, an operator or a literal.", at)
        tokens.append(_token(found))
        at = found.end()
    tokens.append(_Token("end", "", length))
    return tokens


def _token(found: re.Match[str]) -> _Token:
    position = found.end() - len(found.group().lstrip())
    match found.lastgroup:
        case "paren":
            return _Token(found["paren"], "", position)
        case "string":
            return _literal(EdmType.STRING, found["string"].replace("''", "'"), position)
        case "content":
            return _typed(found["typed"], found["content"], position)
        case "number":
            return _number(found["number"], position)
        case _:
            word = found["word"]
            if word in _CONSTANTS:
                return _literal(EdmType.BOOLEAN, _CONSTANTS[word], position)
            # Names may contain characters that are not letters (the vowels of Hindi, combining accents).
            if not word.isidentifier():
                raise MalformedFilter("The text is not the name of a property.", position)
            return _Token(word if word in _RESERVED else "name", word, position)


def _literal(kind: EdmType, value: str | int | float | bool | bytes, position: int) -> _Token:
    return _Token("literal", "", position, Literal(kind, value))


def _typed(prefix: str, content: str, position: int) -> _Token:
    if prefix == "datetime":
        ticks = ticks_of(content)
        if ticks is None:
            raise MalformedFilter("The text is not a datetime.", position)
        return _literal(EdmType.DATETIME, ticks, position)
    if prefix == "guid":
        if not _GUID.fullmatch(content):
            raise MalformedFilter("The text is not a guid.", position)
        return _literal(EdmType.GUID, content.lower(), position)
    try:
        return _literal(EdmType.BINARY, bytes.fromhex(content), position)
    except ValueError:
        raise MalformedFilter("The text is not a sequence of hexadecimal digits.", position) from None


def _number(text: str, position: int) -> _Token:
    suffix = text[-1].lower()
    digits = text[:-1] if suffix in "ldfm" else text
    if suffix == "l" or (suffix not in "dfm" and digits.lstrip("-").isdigit()):
        if not digits.lstrip("-").isdigit() or len(digits) > 20 or int(digits) not in INT64:
            raise MalformedFilter("The number is not an integer of 64 bits.", position)
        whole = int(digits)
        # Clients omit the L between 2**31 and 2**32.
        return _literal(EdmType.INT64 if suffix == "l" or whole not in INT32 else EdmType.INT32, whole, position)
    return _literal(EdmType.DOUBLE, float(digits), position)


# --- conditions -----------------------------------------------------------------------------------------------------


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        if token.kind == "end":
            raise MalformedFilter("The filter ends too early.", token.position)
        self._at += 1
        return token

    def expect_end(self) -> None:
        token = self._peek()
        if token.kind != "end":
            raise MalformedFilter("The condition before this text is complete.", token.position)

    def _check_level(self, level: int) -> None:
        if level > NESTING_LEVELS_MAX:
            raise MalformedFilter(
                f"The filter has more than {NESTING_LEVELS_MAX} levels of nesting.", self._peek().position
            )

    def disjunction(self, level: int) -> Condition:
        self._check_level(level)
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
        self._check_level(level)
        self._take()
        return Not(self._negation(level + 1))

    def _primary(self, level: int) -> Condition:
        token = self._take()
        if token.kind == "(":
            inner = self.disjunction(level + 1)
            self._close(token)
            return self._maybe_compared(inner, token)
        _check_operand(token)
        comparison = _COMPARISONS.get(self._peek().kind)
        if comparison is None:
            return _alone(token)
        self._take()
        return _comparison(token, comparison, self._operand())

    def _maybe_compared(self, inner: Condition, opening: _Token) -> Condition:
        """Parse `(Active) eq true`, which some writers of filters produce: a property in parentheses is an operand."""
        comparison = _COMPARISONS.get(self._peek().kind)
        if comparison is None:
            return inner
        if not isinstance(inner, IsTrue):
            raise MalformedFilter("A condition in parentheses cannot be compared.", opening.position)
        self._take()
        return _comparison(_Token("name", inner.name, opening.position), comparison, self._operand())

    def _operand(self) -> _Token:
        token = self._take()
        if token.kind == "(":
            opening, token = token, self._take()
            self._close(opening)
        _check_operand(token)
        return token

    def _close(self, opening: _Token) -> None:
        if self._take().kind != ")":
            raise MalformedFilter("The parenthesis is not closed.", opening.position)


def _check_operand(token: _Token) -> None:
    if token.kind not in _OPERANDS:
        raise MalformedFilter("A property or a literal must stand here.", token.position)


def _alone(token: _Token) -> Condition:
    if token.literal is None:
        return IsTrue(token.value)
    if token.literal.type is not EdmType.BOOLEAN:
        raise MalformedFilter("A literal alone is not a condition.", token.position)
    return Constant(bool(token.literal.value))


def _comparison(left: _Token, comparison: Comparison, right: _Token) -> Condition:
    if left.literal is None and right.literal is not None:
        return Compare(left.value, comparison, right.literal)
    if left.literal is not None and right.literal is None:
        return Compare(right.value, MIRRORED[comparison], left.literal)
    # The service compares neither two properties nor two constants.
    raise MalformedFilter("A comparison must have a property on one side and a literal on the other.", left.position)
