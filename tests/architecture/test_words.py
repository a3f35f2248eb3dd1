"""The rules of wording that a parser can check: names, docstrings and comments in plain technical English.

Every test collects all offences before it fails, one line each.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

# Every folder of the project that holds code.
ROOMS = ("asterism", "benchmarks", "conformance", "examples", "scripts", "tests")

# Placeholders that say neither what a thing is nor which of two things it is.
IDENTIFIERS = {"told", "one"}
# The first word of a docstring or comment that is a clause without a main clause, or that has a person as its subject.
HEAD = re.compile(r"(?:what|who|whoever|whether|where|nobody|somebody|anybody|everybody|that which)\b", re.IGNORECASE)
# "Where" and "whether" may begin a later sentence, which then has a main clause.
SENTENCE_HEAD = re.compile(r"(?<=[.:;!?]\s)(?:What|Who|Whoever|That which)\b")
PEOPLE = re.compile(r"\b(?:whoever|nobody|somebody|anybody|everybody)\b", re.IGNORECASE)
# Lower case: "is None" is about the value.
PHRASES = re.compile(r"\b(?:is none|time is over|begins? anew|in one go|stands? in line)\b")
# Nouns that end in -ing. All other class names that do are participles: a Mover, not a Moving.
NOUNS_IN_ING = re.compile(r"(?:Encoding|Greeting|Listing|Mapping|Ring|Setting|String|Thing|Warning)$")


@dataclass(frozen=True)
class Source:
    """A file's path below the project, its syntax tree, and its docstrings and comments with their lines."""

    path: str
    tree: ast.Module
    prose: tuple[tuple[int, str], ...]


def read_source(path: str, text: str) -> Source:
    tree = ast.parse(text)
    return Source(path, tree, tuple(sorted([*docstrings(tree), *comments(text)])))


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every string that is a statement of its own, also below a field."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, joined(node.value.value.splitlines())


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield comments, those of adjoining lines as a single text: only its first word is the head of a sentence."""
    block: list[str] = []
    first_line = last_line = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        is_alone = not token.line[:column].strip()
        if block and not (is_alone and line == last_line + 1):
            yield first_line, joined(block)
            block = []
        if not block:
            first_line = line
        block.append(token.string.lstrip("#: "))
        last_line = line
    if block:
        yield first_line, joined(block)


def joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())


def identifiers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        if isinstance(node, ast.Name):
            yield line, node.id
        elif isinstance(node, ast.Attribute):
            yield line, node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            yield line, node.arg or ""
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield line, node.name
        elif isinstance(node, ast.alias | ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            name = node.asname if isinstance(node, ast.alias) else node.name
            yield line, name or ""


def placeholders(source: Source) -> list[str]:
    return [
        f"{source.path}:{line} names something {name!r}"
        for line, name in sorted(set(identifiers(source.tree)))
        if name in IDENTIFIERS
    ]


def headless_clauses(source: Source) -> list[str]:
    return [
        f"{source.path}:{line} begins a sentence with {found.group()!r}: {text[:60]}"
        for line, text in source.prose
        if (found := HEAD.match(text) or SENTENCE_HEAD.search(text))
    ]


def people(source: Source) -> list[str]:
    return [
        f"{source.path}:{line} says {found.group()!r}: {text[:60]}"
        for line, text in source.prose
        if (found := PEOPLE.search(text))
    ]


def phrases(source: Source) -> list[str]:
    return [
        f"{source.path}:{line} says {found.group()!r}: {text[:60]}"
        for line, text in source.prose
        if (found := PHRASES.search(text))
    ]


def participles(source: Source) -> list[str]:
    return [
        f"{source.path}:{node.lineno} has the class {node.name}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("ing") and not NOUNS_IN_ING.search(node.name)
    ]


SOURCES = [
    read_source(str(path.relative_to(PROJECT)), path.read_text(encoding="utf-8"))
    for room in ROOMS
    for path in sorted((PROJECT / room).rglob("*.py"))
]


def check(rule: str, find: Callable[[Source], list[str]]) -> None:
    """Fail with the rule and one line per offence, unless every file keeps the rule."""
    offences = [offence for source in SOURCES for offence in find(source)]
    assert not offences, "\n  ".join([rule, *offences])


def test_names_say_what_a_thing_is() -> None:
    check("a name is the noun of the thing: headers, reply, partition, key", placeholders)


def test_docstrings_and_comments_begin_with_a_verb_or_a_noun() -> None:
    check("no docstring, comment or sentence in it is a clause without its head", headless_clauses)


def test_the_subject_is_the_code_or_its_caller() -> None:
    check("the subject is the code or its caller, not a person", people)


def test_known_words_stand_for_known_things() -> None:
    check("expired, restarts, at once, queues: the word that the field has", phrases)


def test_classes_are_nouns() -> None:
    check("a class is a noun, not a participle", participles)


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (placeholders, "told = request.headers"),
        (placeholders, "names = [one.name for one in ()]"),
        (placeholders, "def answer(told): ..."),
        (placeholders, "call(one=1)"),
        (placeholders, "record.told"),
        (placeholders, "from module import name as one"),
        (placeholders, "try: ...\nexcept ValueError as told: ..."),
        (placeholders, "match value:\n    case [one, *_]: ..."),
        (headless_clauses, '"""What a key grants."""'),
        (headless_clauses, "class Key:\n    key: str\n    '''Who shows it.'''"),
        (headless_clauses, "def is_open():\n    '''Whether it is open.'''"),
        (headless_clauses, "# Where the copy ends."),
        (headless_clauses, "# That which is left over."),
        (headless_clauses, "limit = 3  # what the service allows"),
        (headless_clauses, "# The lock is held.\n# Who waits is woken."),
        (people, "# The entry is kept, and nobody reads it."),
        (people, "# Read by\n# whoever asks."),
        (phrases, "# An item whose time is over."),
        (phrases, "def find():\n    '''Return the key; it is none of the account's.'''"),
        (participles, "class Moving: ..."),
        (participles, "class _UsageGathering: ..."),
    ],
)
def test_an_offence_is_noticed(find: Callable[[Source], list[str]], text: str) -> None:
    assert len(find(read_source("room.py", text))) == 1


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (placeholders, "one_of_two = 'one' + toldest"),
        (headless_clauses, "# The entry is kept: this is\n# what the service does."),
        (headless_clauses, "# Whatever follows is ignored."),
        (headless_clauses, 'message = "What is this?"'),
        (headless_clauses, "# A lock is taken. Where it is not, the caller retries."),
        (people, '"""Return the bodies of some."""'),
        (phrases, "# The value is None."),
        (participles, "class JsonString: ...\nclass Warning: ...\nclass Mover: ..."),
    ],
)
def test_plain_words_are_left_alone(find: Callable[[Source], list[str]], text: str) -> None:
    assert find(read_source("room.py", text)) == []
