"""Functions of full-text search: tests for terms in a text, and its relevance to them (BM25)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from asterism.languages.cosmos_sql.compiling.semantics import is_number, json_number
from asterism.languages.cosmos_sql.functions.function import ANY_NUMBER, Function
from asterism.languages.cosmos_sql.functions.words import occurrences, words_of
from asterism.values.undefined import UNDEFINED

# BM25's k1, the saturation of repeated terms, and b, the penalty of long texts.
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75


class TermCounts(NamedTuple):
    """The number of words of a text, stop words aside, and the occurrences of each term."""

    words: int
    terms: tuple[int, ...]


def count_terms(text: object, terms: Sequence[object]) -> TermCounts | None:
    """Return the counts, or None unless the text and each term is a string. A list of terms stands for any of them."""
    if type(text) is not str:
        return None
    words = words_of(text)
    counts = []
    for term in terms:
        phrases = cast("list[object]", term) if type(term) is list else [term]
        texts = [phrase for phrase in phrases if isinstance(phrase, str)]
        if len(texts) < len(phrases):
            return None
        counts.append(sum([occurrences(words.stems, words_of(phrase).stems) for phrase in texts]))
    return TermCounts(words.length, tuple(counts))


def relevance(counts: TermCounts, documents: float, words: float, hits: Sequence[float]) -> float:
    """Return BM25 of one text among `documents`, which have `words` altogether; `hits` of them have each term."""
    # Without words, or with a mean that rounds to zero, no text is long.
    mean_words = (words / documents if documents > 0 else 0.0) or 1.0
    length = 1.0 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * counts.words / abs(mean_words)
    total = 0.0
    for count, hit in zip(counts.terms, hits, strict=True):
        # Statistics from a client may have more hits than documents.
        rarity = math.log1p((max(documents - hit, 0.0) + 0.5) / (max(hit, 0.0) + 0.5))
        total += rarity * count * (_SATURATION + 1.0) / (count + _SATURATION * length)
    return total


def _contains_all(text: object, *terms: object) -> object:
    counts = count_terms(text, terms)
    return UNDEFINED if counts is None else all(counts.terms)


def _contains_any(text: object, *terms: object) -> object:
    counts = count_terms(text, terms)
    return UNDEFINED if counts is None else any(counts.terms)


def _word_count(text: object) -> object:
    return words_of(text).length if type(text) is str else UNDEFINED


def _score(text: object, terms: object, documents: object, words: object, hits: object) -> object:
    """Return the score of a FullTextScore in which the client has put the statistics of all partitions."""
    if type(terms) is not list or type(hits) is not list or len(terms) != len(hits):
        return UNDEFINED
    if not all(map(is_number, (documents, words, *hits))):
        return UNDEFINED
    counts = count_terms(text, terms)
    if counts is None:
        return UNDEFINED
    try:
        return json_number(relevance(counts, float(cast(float, documents)), float(cast(float, words)), hits))
    except OverflowError:
        return UNDEFINED


FULL_TEXT_FUNCTIONS: Final[dict[str, Function]] = {
    "FULLTEXTCONTAINS": Function(2, 2, _contains_all),
    "FULLTEXTCONTAINSALL": Function(2, ANY_NUMBER, _contains_all),
    "FULLTEXTCONTAINSANY": Function(2, ANY_NUMBER, _contains_any),
    "_FULLTEXTSCORE": Function(5, 5, _score),
    "_FULLTEXTWORDCOUNT": Function(1, 1, _word_count),
}
