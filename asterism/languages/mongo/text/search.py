"""The search of `$text`: terms of which a document must have one, terms it must not have, and phrases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.text.fields import IndexedText, TextFields
from asterism.languages.mongo.text.languages import TextLanguage, find_language
from asterism.languages.mongo.text.tokens import ANY_FORM, Sensitivity, fold, is_delimiter, terms
from asterism.values.bson.types import Document

_ALLOWED = ("$search", "$language", "$caseSensitive", "$diacriticSensitive")


@dataclass(slots=True)
class SearchWords:
    """The parts of a search as they are written."""

    wanted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    refused_phrases: list[str] = field(default_factory=list)


def split_search(text: str, language: TextLanguage) -> SearchWords:
    """Return the parts of a search: `-word` is refused, `"words"` are a phrase, whose words are wanted as well."""
    parts = SearchWords()
    is_refused = False
    after_space = True
    phrase_start: int | None = None
    word_start: int | None = None
    # A space at the end ends the last word.
    for position, character in enumerate(text + " "):
        if not is_delimiter(character) or (language.keeps_apostrophes and character == "'"):
            if word_start is None:
                word_start = position
                # A minus refuses what follows up to the next space.
                is_refused = is_refused and not after_space
            continue
        if word_start is not None:
            word = text[word_start:position]
            word_start = None
            after_space = False
            if not is_refused:
                parts.wanted.append(word)
            elif phrase_start is None:
                parts.refused.append(word)
        if character == "-" and phrase_start is None and after_space:
            is_refused = True
            after_space = False
        elif character == '"' and phrase_start is None:
            is_refused = is_refused and not after_space
            phrase_start = position + 1
            after_space = False
        elif character == '"' and phrase_start is not None:
            (parts.refused_phrases if is_refused else parts.phrases).append(text[phrase_start:position])
            phrase_start = None
            after_space = False
        elif character.isspace() and phrase_start is None:
            after_space = True
            is_refused = False
    return parts


class TextSearch:
    """A search. `bind` gives it the text index of the collection, without which it cannot decide."""

    __slots__ = ("_fields", "_language_name", "_refused", "_text", "_wanted", "_words", "index_terms", "sensitivity")

    def __init__(self, text: str, language: str, sensitivity: Sensitivity) -> None:
        self._text = text
        self._language_name = language
        self.sensitivity = sensitivity
        self._fields: TextFields | None = None
        self._words = SearchWords()
        self._wanted: frozenset[str] = frozenset()
        self._refused: frozenset[str] = frozenset()
        # The terms whose entries lead to candidates.
        self.index_terms: tuple[str, ...] = ()

    def bind(self, fields: TextFields) -> None:
        language = (find_language(self._language_name) if self._language_name else None) or fields.language
        parts = split_search(self._text, language)
        self._fields = fields
        self._words = parts
        self.index_terms = tuple(dict.fromkeys(terms(" ".join(parts.wanted), language)))
        self._wanted = frozenset(terms(" ".join(parts.wanted), language, self.sensitivity))
        self._refused = frozenset(terms(" ".join(parts.refused), language, self.sensitivity))

    def matches(self, document: Document) -> bool:
        assert self._fields is not None, "a search is bound to its index before documents are looked at"
        texts = list(self._fields.texts(document))
        found: set[str] = set()
        for text, _, language in texts:
            found.update(terms(text, language, self.sensitivity))
        if found.isdisjoint(self._wanted) or not found.isdisjoint(self._refused):
            return False
        return all(self._has_phrase(texts, phrase) for phrase in self._words.phrases) and not any(
            self._has_phrase(texts, phrase) for phrase in self._words.refused_phrases
        )

    def _has_phrase(self, texts: list[IndexedText], phrase: str) -> bool:
        wanted = fold(phrase, self.sensitivity)
        return any(wanted in fold(text, self.sensitivity) for text, _, _ in texts)

    def score(self, document: Document) -> float:
        """Return the sum of the scores that the document has for the terms of the search."""
        assert self._fields is not None, "a search is bound to its index before documents are looked at"
        scores = self._fields.scores(document)
        return sum((scores.get(term, 0.0) for term in self.index_terms), 0.0)


def parse_text(operand: Any) -> TextSearch:
    """Return the search behind `$text`."""
    if type(operand) is not dict:
        raise MongoFailure(2, "$text expects an object")
    if "$search" not in operand:
        raise MongoFailure(4, 'Missing expected field "$search"')
    text = _read(operand, "$search", str, "")
    language = _read(operand, "$language", str, "")
    case = _read(operand, "$caseSensitive", bool, ANY_FORM.case)
    diacritics = _read(operand, "$diacriticSensitive", bool, ANY_FORM.diacritics)
    for name in operand:
        if name not in _ALLOWED:
            raise MongoFailure(2, f"extra fields in $text: {name}")
    if language and find_language(language) is None:
        raise MongoFailure(2, f"unsupported language: '{language}'")
    return TextSearch(text, language, Sensitivity(case, diacritics))


def _read(operand: Document, name: str, kind: type, default: Any) -> Any:
    value = operand.get(name, default)
    if type(value) is not kind:
        raise MongoFailure(14, f'"{name}" had the wrong type. Expected {"string" if kind is str else "bool"}')
    return value
