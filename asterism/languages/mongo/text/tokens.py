"""Words of a text, as text indexes see them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from asterism.languages.mongo.text.languages import TextLanguage


class Sensitivity(NamedTuple):
    """The differences between words that count."""

    case: bool = False
    diacritics: bool = False


ANY_FORM = Sensitivity()


@lru_cache(4096)
def is_delimiter(character: str) -> bool:
    """Return whether a character separates words; an apostrophe does so in most languages, which is decided apart."""
    return character != "_" and unicodedata.category(character)[0] in "PSZC"


def words(text: str, language: TextLanguage) -> Iterator[str]:
    """Yield the words of a text as they are written."""
    start: int | None = None
    keeps_apostrophes = language.keeps_apostrophes
    for position, character in enumerate(text):
        if is_delimiter(character) and not (keeps_apostrophes and character == "'"):
            if start is not None:
                yield text[start:position]
                start = None
        elif start is None:
            start = position
    if start is not None:
        yield text[start:]


def terms(text: str, language: TextLanguage, sensitivity: Sensitivity = ANY_FORM) -> Iterator[str]:
    """Yield the stems of the words of a text that carry a meaning."""
    stop_words, stem = language.stop_words, language.stem
    for word in words(text, language):
        lower = word.lower()
        if lower in stop_words:
            continue
        term = stem(word if sensitivity.case else lower)
        yield term if sensitivity.diacritics else without_diacritics(term)


def fold(text: str, sensitivity: Sensitivity = ANY_FORM) -> str:
    """Return a text so that those are equal that differ only in what does not count."""
    folded = text if sensitivity.case else text.lower()
    return folded if sensitivity.diacritics else without_diacritics(folded)


def without_diacritics(text: str) -> str:
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(part for part in parts if unicodedata.category(part) != "Mn"))
