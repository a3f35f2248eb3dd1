"""Languages of text indexes: their names, their stems, and the words that they leave out."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

import snowballstemmer

from asterism.languages.mongo.text.stop_words import STOP_WORDS

_CODES: Final = {
    "da": "danish", "nl": "dutch", "en": "english", "fi": "finnish", "fr": "french", "de": "german", "hu": "hungarian",
    "it": "italian", "nb": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "es": "spanish",
    "sv": "swedish", "tr": "turkish",
}  # fmt: skip
# Without stems and without words to leave out.
NO_LANGUAGE: Final = "none"
# Stems of words that were met lately: stemming takes some 20 microseconds, and texts repeat their words.
_STEMS_KEPT: Final = 50_000


class TextLanguage(NamedTuple):
    name: str
    stem: Callable[[str], str]
    stop_words: frozenset[str]

    @property
    def keeps_apostrophes(self) -> bool:
        return self.name == "english"


def find_language(name: str) -> TextLanguage | None:
    """Return a language by its name or its code, in any case; None for one that text indexes do not have."""
    wanted = name.lower()
    wanted = _CODES.get(wanted, wanted)
    if wanted == NO_LANGUAGE or wanted in STOP_WORDS:
        return _language(wanted)
    return None


@lru_cache
def _language(name: str) -> TextLanguage:
    if name == NO_LANGUAGE:
        return TextLanguage(name, lambda word: word, frozenset())
    stemmer = snowballstemmer.stemmer(name)

    @lru_cache(_STEMS_KEPT)
    def stem(word: str) -> str:
        return str(stemmer.stemWord(word))

    return TextLanguage(name, stem, STOP_WORDS[name])
