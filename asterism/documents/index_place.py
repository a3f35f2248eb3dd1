"""Where in items scalars stand: the places that a container's items have, and the terms of what stands there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from asterism.documents.index_paths import Segment, child_token
from asterism.keyspaces.layout import INDEX
from asterism.values.key_bytes import (
    NUL,
    NUL_ESCAPED,
    STRING_END,
    STRING_START,
    TAG_ARRAY,
    TAG_OBJECT,
    encode,
    encode_number,
)

# With the partition's prefix, the path token and the item's place this stays below the store's 511 bytes for a key.
VALUE_BYTES_MAX = 200
# What stands for any array and any object in a term.
ARRAY_VALUE = bytes([TAG_ARRAY])
OBJECT_VALUE = bytes([TAG_OBJECT])


# Bytes and not a tuple: every write makes some twenty of them, and the garbage collector would look at each tuple.
Term = bytes


@dataclass(slots=True)
class Rule:
    """One place in the tree of the policy's paths; a verdict is None where the policy says nothing."""

    scalar: bool | None = None
    subtree: bool | None = None
    below: dict[Segment, Rule] = field(default_factory=dict)

    def at(self, segments: Sequence[Segment]) -> Rule:
        rule = self
        for segment in segments:
            rule = rule.below.setdefault(segment, Rule())
        return rule


# Of each path, so that a container with very many paths remembers some megabytes at the most.
KNOWN_VALUES_MAX = 16
# So few characters that their encoding is never cut.
KNOWN_CHARACTERS_MAX = 32


class Place:
    """A path that was met in an item: its token, whether its scalar is indexed, and the paths below it."""

    __slots__ = (
        "_last",
        "_last_term",
        "_string_start",
        "below",
        "indexed",
        "known",
        "object_term",
        "rule",
        "start",
        "token",
        "verdict",
        "walked",
    )

    def __init__(self, token: bytes, *, rule: Rule | None, inherited: bool) -> None:
        self.token = token
        # What every term of this path begins with.
        self.start = INDEX + token
        self._string_start = self.start + STRING_START
        self.object_term: Term = self.start + OBJECT_VALUE
        self.rule = rule
        self.verdict = inherited if rule is None or rule.subtree is None else rule.subtree
        self.indexed = self.verdict if rule is None or rule.scalar is None else rule.scalar
        # Terms of the first few short strings met here: most properties have few values, and those are met again. The
        # last number or string is known as well: items that are written together have many values in common.
        self.known: dict[str, Term] = {}
        self._last: str | int | float | None = None
        self._last_term: Term = b""
        # Where nothing is included and no rule speaks of what is below, nothing below needs a look.
        self.walked = self.verdict or (rule is not None and bool(rule.below))
        self.below: dict[Segment, Place] = {}

    def short_string_term(self, value: str) -> Term:
        """The term of a string of at most `KNOWN_CHARACTERS_MAX` characters that is not in `known`."""
        if value == self._last:
            return self._last_term
        utf8 = value.encode()
        if NUL in utf8:
            utf8 = utf8.replace(NUL, NUL_ESCAPED)
        term = self._string_start + utf8 + STRING_END
        if len(self.known) < KNOWN_VALUES_MAX:
            self.known[value] = term
        self._last, self._last_term = value, term
        return term

    def short_string_terms(self, values: Sequence[str]) -> list[Term]:
        """The same for many that are unlike each other, none of them with a NUL in it."""
        start, end = self._string_start, STRING_END
        return [start + value.encode() + end for value in values]

    def number_term(self, value: int | float) -> Term:
        if value == self._last:
            return self._last_term
        term = self.start + encode_number(value)
        self._last, self._last_term = value, term
        return term

    def term(self, value: Any) -> Term:
        """The term of any other scalar: a long string, true, false, null."""
        return self.start + encode(value, bytes_max=VALUE_BYTES_MAX)

    def scalar_term(self, value: Any) -> Term:
        """The term of any scalar."""
        kind = type(value)
        if kind is str and len(value) <= KNOWN_CHARACTERS_MAX:
            return self.known.get(value) or self.short_string_term(value)
        return self.number_term(value) if kind is int or kind is float else self.term(value)

    def child(self, segment: Segment) -> Place:
        rule = self.rule.below.get(segment) if self.rule is not None else None
        return Place(child_token(self.token, segment), rule=rule, inherited=self.verdict)
