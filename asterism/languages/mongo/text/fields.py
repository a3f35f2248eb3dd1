"""The texts of a document that a text index has, and the score of each term in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.text.languages import TextLanguage, find_language
from asterism.languages.mongo.text.tokens import terms
from asterism.values.bson.types import Document

WILDCARD: Final = "$**"
DEFAULT_LANGUAGE: Final = "english"


class IndexedText(NamedTuple):
    text: str
    weight: float
    language: TextLanguage


class TextFields:
    """The fields of a text index with their weights and languages."""

    __slots__ = ("_is_wildcard", "_override", "_prefixes", "_weights", "language")

    def __init__(self, options: Document) -> None:
        self._weights: dict[str, float] = {path: float(weight) for path, weight in options["weights"].items()}
        self._is_wildcard = WILDCARD in self._weights
        self._override: str = options.get("language_override", "language")
        # Paths of documents with indexed fields in them.
        self._prefixes = {
            path[:end] for path in self._weights for end, character in enumerate(path) if character == "."
        }
        language = find_language(options.get("default_language", DEFAULT_LANGUAGE))
        assert language is not None, "the options of an index were checked"
        self.language = language

    def texts(self, document: Document) -> Iterator[IndexedText]:
        """Yield the indexed texts; MongoFailure for a document in an unknown language."""
        yield from self._in_document(document, "", self.language)

    def _in_document(self, document: Document, path: str, outer: TextLanguage) -> Iterator[IndexedText]:
        language = self._language_of(document, outer)
        for name, value in document.items():
            if self._is_wildcard and name == self._override:
                continue
            yield from self._in_value(value, f"{path}.{name}" if path else name, language, in_array=False)

    def _in_value(self, value: Any, path: str, language: TextLanguage, *, in_array: bool) -> Iterator[IndexedText]:
        if type(value) is str:
            weight = self._weights.get(path, self._weights.get(WILDCARD))
            if weight is not None:
                yield IndexedText(value, weight, language)
        elif type(value) is dict:
            if self._is_wildcard or path in self._prefixes:
                yield from self._in_document(value, path, language)
        elif type(value) is list and (not in_array or self._is_wildcard):
            for element in value:
                yield from self._in_value(element, path, language, in_array=True)

    def _language_of(self, document: Document, outer: TextLanguage) -> TextLanguage:
        if self._override not in document:
            return outer
        name = document[self._override]
        if type(name) is not str:
            raise MongoFailure(17261, "found language override field in document with non-string type")
        language = find_language(name)
        if language is None:
            raise MongoFailure(17262, f"language override unsupported: {name}")
        return language

    def scores(self, document: Document) -> dict[str, float]:
        """Return the terms of a document with their scores: more for terms that are frequent, for short texts, and by
        the weights of their fields."""
        scores: dict[str, float] = {}
        for text, weight, language in self.texts(document):
            found = list(terms(text, language))
            counts: dict[str, int] = {}
            for term in found:
                counts[term] = counts.get(term, 0) + 1
            for term, count in counts.items():
                # Each further occurrence counts half of the one before.
                frequency = 2.0 - 0.5 ** (count - 1)
                share = 0.5 * count / len(found) + 0.5
                # A text that is nothing but the term.
                boost = 1.1 if len(text) == len(term) and text.lower() == term else 1.0
                scores[term] = scores.get(term, 0.0) + weight * frequency * share * boost
        return scores
