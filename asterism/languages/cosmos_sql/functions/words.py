"""Texts as words: what full-text search compares.

A word is a run of letters and digits in lower case, without the ending of an English plural; a number keeps the points
and commas within it. No word is too common to be looked for, but stop words do not count in the length of a text. A
term of several words is found where they follow each other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from asterism.languages.cosmos_sql.functions.stop_words import STOP_WORDS

_WORD: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)+(?![^\W_])|[^\W_]+")
_STEM_LETTERS_MIN: Final = 3
# An item's text is asked for several times in a row; of few items at once, and not of huge ones.
_TEXTS_KEPT: Final = 8
_KEPT_TEXT_CHARACTERS_MAX: Final = 65_536
_WORDS_KEPT: Final = 16_384


class Words(NamedTuple):
    """The words of a text in their order, not to be changed, and how many of them are no stop words."""

    stems: list[str]
    length: int


def words_of(text: str) -> Words:
    return _kept_words(text) if len(text) <= _KEPT_TEXT_CHARACTERS_MAX else _split(text)


def occurrences(words: list[str], phrase: list[str]) -> int:
    """How often the phrase stands among the words; never, if it has none."""
    if not phrase:
        return 0
    first, size = phrase[0], len(phrase)
    if size == 1:
        return words.count(first)
    found, at = 0, 0
    for _ in range(words.count(first)):
        at = words.index(first, at)
        found += words[at : at + size] == phrase
        at += 1
    return found


def _split(text: str) -> Words:
    words = _WORD.findall(text.lower())
    stops = sum(map(STOP_WORDS.__contains__, words))
    return Words([_stem(word) for word in words], len(words) - stops)


_kept_words = lru_cache(maxsize=_TEXTS_KEPT)(_split)


@lru_cache(maxsize=_WORDS_KEPT)
def _stem(word: str) -> str:
    """Without the ending of a plural: cities, houses and cars, but neither gas, glass nor virus."""
    if len(word) <= _STEM_LETTERS_MIN or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > _STEM_LETTERS_MIN + 1:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "shes", "ches", "xes")) else word[:-1]
