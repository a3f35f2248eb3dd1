"""The syntax tree of a regular expression. Flags are resolved by the parser: a node says all about itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class RegexProblem(Exception):
    """Raised for a pattern that PCRE refuses, or that has a construct we do not have."""


class Place(Enum):
    """The places that an anchor can stand for."""

    TEXT_START = auto()
    TEXT_END = auto()
    # At the end, or before the newline that ends the text.
    LAST_LINE_END = auto()
    LINE_START = auto()
    LINE_END = auto()
    WORD_BOUNDARY = auto()
    NO_WORD_BOUNDARY = auto()
    SEARCH_START = auto()


class Mode(Enum):
    GREEDY = auto()
    LAZY = auto()
    POSSESSIVE = auto()


@dataclass(frozen=True, slots=True)
class Character:
    text: str
    ignores_case: bool


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """One character of a set, which is kept in the notation of RE2."""

    form: str
    ignores_case: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    place: Place
    # The set of the characters of words, in the notation of RE2; of word boundaries only.
    word: str = ""


@dataclass(frozen=True, slots=True)
class MatchStart:
    """`\\K`: what was matched before does not belong to the match."""


@dataclass(frozen=True, slots=True)
class Group:
    body: Node
    # None for a group that captures nothing.
    number: int | None = None


@dataclass(frozen=True, slots=True)
class AtomicGroup:
    body: Node


@dataclass(frozen=True, slots=True)
class Look:
    body: Node
    is_behind: bool
    is_negative: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    body: Node
    least: int
    # None for any number of times.
    most: int | None
    mode: Mode


@dataclass(frozen=True, slots=True)
class BackReference:
    number: int
    ignores_case: bool


@dataclass(frozen=True, slots=True)
class Conditional:
    # The number of a group that must have matched, or a look around that must hold.
    condition: int | Look
    yes: Node
    no: Node


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple[Node, ...]
    # `(?|`: groups of different branches have the same numbers.
    shares_numbers: bool = False


Node = (
    Character
    | CharacterSet
    | Anchor
    | MatchStart
    | Group
    | AtomicGroup
    | Look
    | Repeat
    | BackReference
    | Conditional
    | Sequence
    | Choice
)


@dataclass(frozen=True, slots=True)
class Pattern:
    root: Node
    group_count: int


def width(node: Node) -> int | None:
    """The number of characters that a node matches, or None if it varies."""
    match node:
        case Character() | CharacterSet():
            return 1
        case Anchor() | MatchStart() | Look():
            return 0
        case Group(body=body) | AtomicGroup(body=body):
            return width(body)
        case Repeat(body=body, least=least, most=most):
            size = width(body)
            return least * size if size is not None and (least == most or size == 0) else None
        case BackReference():
            return None
        case Conditional(yes=yes, no=no):
            return width(yes) if width(yes) == width(no) else None
        case Sequence(items=items):
            sizes = [width(item) for item in items]
            return None if any(size is None for size in sizes) else sum(size or 0 for size in sizes)
        case Choice(branches=branches):
            first = width(branches[0])
            return first if all(width(branch) == first for branch in branches) else None
