"""LIKE patterns: `%` any text, `_` any character, `[a-c]` one of a set, `[^a-c]` one outside it.

A pattern is cut at its `%` into pieces of fixed length. The first and the last are held at the ends, the others are
found from left to right, each as early as possible: no backtracking, so no pattern is slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

Matcher = Callable[[str], bool]


@lru_cache(maxsize=256)
def like_matcher(pattern: str, escape: str | None) -> Matcher:
    """Tells whether a whole string fits `pattern`; the character after `escape` stands for itself."""
    pieces = [(re.compile("".join(piece), re.DOTALL), len(piece)) for piece in _pieces(pattern, escape)]
    first, first_length = pieces[0]
    if len(pieces) == 1:
        return lambda text: first.fullmatch(text) is not None
    last, last_length = pieces[-1]
    middle = [piece for piece, length in pieces[1:-1] if length]

    def matches(text: str) -> bool:
        last_start = len(text) - last_length
        if first_length > last_start or first.match(text) is None or last.match(text, last_start) is None:
            return False
        position = first_length
        for piece in middle:
            found = piece.search(text, position, last_start)
            if found is None:
                return False
            position = found.end()
        return True

    return matches


def _pieces(pattern: str, escape: str | None) -> list[list[str]]:
    """The pattern between its `%`, each piece as regular expressions of one character."""
    pieces: list[list[str]] = [[]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        set_end = pattern.find("]", position + 2) if character == "[" else -1
        if character == escape and position + 1 < len(pattern):
            position += 1
            pieces[-1].append(re.escape(pattern[position]))
        elif character == "%":
            pieces.append([])
        elif character == "_":
            pieces[-1].append(".")
        elif set_end != -1:
            pieces[-1].append(_character_set(pattern[position + 1 : set_end]))
            position = set_end
        else:
            pieces[-1].append(re.escape(character))
        position += 1
    return pieces


def _character_set(members: str) -> str:
    negation = "^" if members.startswith("^") and len(members) > 1 else ""
    members = members[len(negation) :]
    parts = []
    position = 0
    while position < len(members):
        is_range = members[position + 1 : position + 2] == "-" and position + 2 < len(members)
        low, high = members[position], members[position + 2] if is_range else members[position]
        # A range that runs backwards holds nothing.
        if low <= high:
            parts.append(f"{re.escape(low)}-{re.escape(high)}")
        position += 3 if is_range else 1
    empty = "." if negation else r"(?!)."
    return f"[{negation}{''.join(parts)}]" if parts else empty
