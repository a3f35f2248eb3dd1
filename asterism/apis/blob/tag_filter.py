"""Expressions over tags: the conditions `x-ms-if-tags` and `x-ms-source-if-tags`, and the search of Find Blobs by Tags.

`"name" = 'value' AND "name" >= 'value'`. A search has comparisons joined by AND, also of `@container`. A condition has
`<>`, OR and parentheses besides, and no `@container`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final, NamedTuple, assert_never

from asterism.errors import AsterismError, Category

CONTAINER: Final = "@container"
# More than a URL or the headers of a request hold.
EXPRESSION_CHARACTERS_MAX: Final = 16_384
COMPARISONS_MAX: Final = 100
_NESTING_LEVELS_MAX: Final = 20

_TOKEN: Final = re.compile(
    r"""\s*(?:
      "(?P<quoted>(?:[^"]|"")*)"
    | '(?P<value>(?:[^']|'')*)'
    | (?P<operator><>|>=|<=|=|>|<)
    | (?P<paren>[()])
    | (?P<word>@?[A-Za-z0-9_]+)
    )""",
    re.VERBOSE,
)


@dataclass(eq=False)
class MalformedTagFilter(AsterismError):
    """`reason` is a sentence about the text at `position`, an offset in characters."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The expression over tags cannot be parsed."
    reason: str
    position: int


class Comparison(Enum):
    EQ = "="
    NE = "<>"
    GT = ">"
    GE = ">="
    LT = "<"
    LE = "<="


_OPERATORS: Final[dict[Comparison, Callable[[str, str], bool]]] = {
    Comparison.EQ: operator.eq,
    Comparison.NE: operator.ne,
    Comparison.GT: operator.gt,
    Comparison.GE: operator.ge,
    Comparison.LT: operator.lt,
    Comparison.LE: operator.le,
}


@dataclass(frozen=True, slots=True)
class TagTest:
    """A comparison of a tag, or of the container where `name` is `@container`, with a text."""

    name: str
    comparison: Comparison
    value: str


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[TagExpression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[TagExpression, ...]


TagExpression = TagTest | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class TagSearch:
    """A search: tests that must all hold. `container` is the only container to search, where the search names one."""

    tests: tuple[TagTest, ...]

    @property
    def container(self) -> str | None:
        for test in self.tests:
            if test.name == CONTAINER and test.comparison is Comparison.EQ:
                return test.value
        return None

    @property
    def tag_names(self) -> tuple[str, ...]:
        """The names of tags in the order of the search, each once: those that an answer shows."""
        return tuple(dict.fromkeys(test.name for test in self.tests if test.name != CONTAINER))

    def matches(self, tags: Mapping[str, str], *, container: str) -> bool:
        return all(_holds(test, tags, container) for test in self.tests)


def parse_condition(text: str) -> TagExpression:
    """Return the tree of a condition header."""
    return _Parser(text, is_search=False).whole()


def parse_search(text: str) -> TagSearch:
    """Return the tests of a search, in their order."""
    tree = _Parser(text, is_search=True).whole()
    match tree:
        case TagTest():
            return TagSearch((tree,))
        case AllOf(parts):
            return TagSearch(tuple(part for part in parts if isinstance(part, TagTest)))
        case AnyOf():
            raise MalformedTagFilter("A search joins its comparisons with AND.", 0)
        case _:
            assert_never(tree)


def matches(expression: TagExpression, tags: Mapping[str, str]) -> bool:
    """Return whether a condition holds for a blob with these tags."""
    match expression:
        case TagTest():
            return _holds(expression, tags, "")
        case AllOf(parts):
            return all(matches(part, tags) for part in parts)
        case AnyOf(parts):
            return any(matches(part, tags) for part in parts)
        case _:
            assert_never(expression)


def _holds(test: TagTest, tags: Mapping[str, str], container: str) -> bool:
    found = container if test.name == CONTAINER else tags.get(test.name)
    # A blob without the tag differs from every value, and compares with none.
    if found is None:
        return test.comparison is Comparison.NE
    return _OPERATORS[test.comparison](found, test.value)


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


def _tokens(text: str) -> list[_Token]:
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise MalformedTagFilter(f"The expression has more than {EXPRESSION_CHARACTERS_MAX} characters.", 0)
    tokens: list[_Token] = []
    at, length = 0, len(text.rstrip())
    while at < length:
        found = _TOKEN.match(text, at)
        if found is None:
            blanks = len(text[at:]) - len(text[at:].lstrip())
            raise MalformedTagFilter("The text is not a name, an operator or a quoted value.", at + blanks)
        tokens.append(_token(found))
        at = found.end()
    tokens.append(_Token("end", "", length))
    return tokens


def _token(found: re.Match[str]) -> _Token:
    kind = str(found.lastgroup)
    position = found.end() - len(found.group().lstrip())
    match kind:
        case "quoted":
            return _Token("name", found[kind].replace('""', '"'), position)
        case "value":
            return _Token("value", found[kind].replace("''", "'"), position)
        case "word":
            word = found[kind].upper()
            return _Token(word, word, position) if word in ("AND", "OR") else _Token("name", found[kind], position)
        case _:
            return _Token(kind, found[kind], position)


class _Parser:
    def __init__(self, text: str, *, is_search: bool) -> None:
        self._tokens = _tokens(text)
        self._is_search = is_search
        self._at = 0
        self._comparisons = 0

    def whole(self) -> TagExpression:
        tree = self._disjunction(0)
        token = self._take()
        if token.kind != "end":
            raise MalformedTagFilter("The expression before this text is complete: AND was expected.", token.position)
        return tree

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _next_is(self, kind: str, text: str) -> bool:
        token = self._tokens[self._at]
        return token.kind == kind and token.text == text

    def _disjunction(self, level: int) -> TagExpression:
        parts = [self._conjunction(level)]
        while self._next_is("OR", "OR"):
            token = self._take()
            if self._is_search:
                raise MalformedTagFilter("A search joins its comparisons with AND, not with OR.", token.position)
            parts.append(self._conjunction(level))
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _conjunction(self, level: int) -> TagExpression:
        parts = [self._operand(level)]
        while self._next_is("AND", "AND"):
            self._take()
            parts.append(self._operand(level))
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _operand(self, level: int) -> TagExpression:
        if self._is_search or not self._next_is("paren", "("):
            return self._test()
        token = self._take()
        if level >= _NESTING_LEVELS_MAX:
            raise MalformedTagFilter(f"There are more than {_NESTING_LEVELS_MAX} levels of nesting.", token.position)
        inner = self._disjunction(level + 1)
        if not self._next_is("paren", ")"):
            raise MalformedTagFilter("A closing parenthesis was expected.", self._tokens[self._at].position)
        self._take()
        return inner

    def _test(self) -> TagTest:
        name, sign, value = self._take(), self._take(), self._take()
        for token, kind, expected in (
            (name, "name", "The name of a tag was expected."),
            (sign, "operator", "One of the operators = > >= < <= was expected."),
            (value, "value", "A value in single quotes was expected."),
        ):
            if token.kind != kind:
                raise MalformedTagFilter(expected, token.position)
        self._comparisons += 1
        if self._comparisons > COMPARISONS_MAX:
            raise MalformedTagFilter(f"There are more than {COMPARISONS_MAX} comparisons.", name.position)
        comparison = Comparison(sign.text)
        if self._is_search and comparison is Comparison.NE:
            raise MalformedTagFilter("A search has the operators = > >= < and <=, not <>.", sign.position)
        return TagTest(self._checked_name(name), comparison, value.text)

    def _checked_name(self, token: _Token) -> str:
        if not token.text.startswith("@"):
            return token.text
        if token.text.lower() != CONTAINER:
            raise MalformedTagFilter("The only name with an @ is @container.", token.position)
        if not self._is_search:
            raise MalformedTagFilter("A condition compares tags; it has no @container.", token.position)
        return CONTAINER
