"""Texts as words, for full-text search.

A word is a run of letters and digits in lower case, without the ending of an English plural; a number keeps the points
and commas within it. Stop words can be searched for, but do not count in the length of a text. A term of several words
matches where they follow each other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from asterism.languages.cosmos_sql.functions.stop_words import STOP_WORDS

_WORD: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)+(?![^\W_])|[^\W_]+")
_STEM_LETTERS_MIN: Final = 3
# The words of an item's text are read several times in a row; few texts are cached, and no huge ones.
_TEXTS_KEPT: Final = 8
_KEPT_TEXT_CHARACTERS_MAX: Final = 65_536
_WORDS_KEPT: Final = 16_384


class Words(NamedTuple):
    """The words of a text in order, which callers must not change, and the number of words that are not stop words."""

    stems: list[str]
    length: int


def words_of(text: str) -> Words:
    return _cached_words(text) if len(text) <= _KEPT_TEXT_CHARACTERS_MAX else _split(text)


def occurrences(words: list[str], phrase: list[str]) -> int:
    """Return the number of occurrences of the phrase in the words; zero for an empty phrase."""
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


_cached_words = lru_cache(maxsize=_TEXTS_KEPT)(_split)


@lru_cache(maxsize=_WORDS_KEPT)
def _stem(word: str) -> str:
    """Return the word without the ending of a plural: of cities, houses and cars, but not of gas, glass or virus."""
    if len(word) <= _STEM_LETTERS_MIN or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > _STEM_LETTERS_MIN + 1:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "shes", "ches", "xes")) else word[:-1]
