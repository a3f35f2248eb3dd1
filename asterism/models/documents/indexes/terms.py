"""The paths that a container's items have, as a tree, and the index terms of the values at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from asterism.keyspaces.routing.families import INDEX
from asterism.models.documents.indexes.paths import Segment, child_token
from asterism.values.value_order import NUL, NUL_ESCAPED, ValueOrder

# With the partition's prefix, the path token and the item's place this stays below the store's 511 bytes for a key.
VALUE_BYTES_MAX = 200


# Bytes and not a tuple: every write makes some twenty of them, and the garbage collector would look at each tuple.
Term = bytes


@dataclass(slots=True)
class Rule:
    """A node in the tree of the policy's paths; a verdict is None if the policy does not have one."""

    scalar: bool | None = None
    subtree: bool | None = None
    below: dict[Segment, Rule] = field(default_factory=dict)

    def at(self, segments: Sequence[Segment]) -> Rule:
        rule = self
        for segment in segments:
            rule = rule.below.setdefault(segment, Rule())
        return rule


# Values remembered for each path, so that a container with very many paths remembers some megabytes at most.
KNOWN_VALUES_MAX = 16
# So few characters that their encoding is never truncated.
KNOWN_CHARACTERS_MAX = 32


class PathNode:
    """A path that was met in an item: its token, whether its scalar is indexed, and the paths below it."""

    __slots__ = (
        "_encode_number",
        "_last",
        "_last_term",
        "_order",
        "_string_end",
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

    def __init__(self, token: bytes, order: ValueOrder, *, rule: Rule | None, inherited: bool) -> None:
        self.token = token
        self._order = order
        # Kept here: it runs for every number of every write.
        self._encode_number = order.encode_number
        # The bytes that every term of this path begins with.
        self.start = INDEX + token
        self._string_start = self.start + order.string_start
        self._string_end = order.string_end
        self.object_term: Term = self.start + order.any_object
        self.rule = rule
        self.verdict = inherited if rule is None or rule.subtree is None else rule.subtree
        self.indexed = self.verdict if rule is None or rule.scalar is None else rule.scalar
        # Terms of the first few short strings met here: most properties have few values, and those are met again. The
        # last number or string is known as well: items that are written together have many values in common.
        self.known: dict[str, Term] = {}
        self._last: str | int | float | None = None
        self._last_term: Term = b""
        # If nothing is included and no rule concerns the paths below, none of them has terms.
        self.walked = self.verdict or (rule is not None and bool(rule.below))
        self.below: dict[Segment, PathNode] = {}

    def short_string_term(self, value: str) -> Term:
        """Return the term of a string of at most `KNOWN_CHARACTERS_MAX` characters that is not in `known`."""
        if value == self._last:
            return self._last_term
        utf8 = value.encode()
        if NUL in utf8:
            utf8 = utf8.replace(NUL, NUL_ESCAPED)
        term = self._string_start + utf8 + self._string_end
        if len(self.known) < KNOWN_VALUES_MAX:
            self.known[value] = term
        self._last, self._last_term = value, term
        return term

    def short_string_terms(self, values: Sequence[str]) -> list[Term]:
        """Return the terms of many short strings that differ, none of them with a NUL in it."""
        start, end = self._string_start, self._string_end
        return [start + value.encode() + end for value in values]

    def number_term(self, value: int | float) -> Term:
        if value == self._last:
            return self._last_term
        term = self.start + self._encode_number(value)
        self._last, self._last_term = value, term
        return term

    def term(self, value: Any) -> Term:
        """Return the term of any other scalar: a long string, true, false, null, or a type of the dialect."""
        return self.start + self._order.encode(value, bytes_max=VALUE_BYTES_MAX)

    def scalar_term(self, value: Any) -> Term:
        """Return the term of any scalar."""
        kind = type(value)
        if kind is str and len(value) <= KNOWN_CHARACTERS_MAX:
            return self.known.get(value) or self.short_string_term(value)
        return self.number_term(value) if kind is int or kind is float else self.term(value)

    def array_term(self) -> Term:
        return self.start + self._order.any_array

    def child(self, segment: Segment) -> PathNode:
        rule = self.rule.below.get(segment) if self.rule is not None else None
        return PathNode(child_token(self.token, segment), self._order, rule=rule, inherited=self.verdict)
