"""LIKE: `%` stands for any text, `_` for any character."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache


@lru_cache(maxsize=256)
def like_matcher(pattern: str, escape: str) -> Callable[[str], bool]:
    """Return a test for texts.

    The parts between `%` are searched one after the other, each from where the last one ended: the first place is
    always the best, so that no pattern takes more than the product of its length and the text's.
    """
    parts = _parts(pattern, escape)
    compiled = [re.compile("".join(part), re.DOTALL) for part in parts]
    if len(compiled) == 1:
        return lambda text: compiled[0].fullmatch(text) is not None
    first, *middle, last = compiled
    last_length = len(parts[-1])

    def test(text: str) -> bool:
        found = first.match(text)
        if found is None:
            return False
        at = found.end()
        for part in middle:
            found = part.search(text, at)
            if found is None:
                return False
            at = found.end()
        return len(text) - last_length >= at and last.match(text, len(text) - last_length) is not None

    return test


def _parts(pattern: str, escape: str) -> list[list[str]]:
    """Return the parts between `%` as lists of expressions, each for one character."""
    parts: list[list[str]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            parts[-1].append(re.escape(next(characters, escape)))
        elif character == "%":
            parts.append([])
        else:
            parts[-1].append("." if character == "_" else re.escape(character))
    return parts
