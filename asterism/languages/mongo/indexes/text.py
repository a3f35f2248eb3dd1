"""Text indexes: an entry for every term of a document, with its score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.match import Matches
from asterism.languages.mongo.filters.paths import values_on_path
from asterism.languages.mongo.text.fields import TextFields
from asterism.languages.mongo.text.search import TextSearch
from asterism.models.collections.records import IndexRecord
from asterism.models.collections.rules import IndexProfile
from asterism.values.bson.types import Document, Missing

_NO_KEYS: tuple[Sequence[tuple[Any, ...]], bool] = ((), False)


def is_text_index(index: IndexRecord) -> bool:
    return index.key.get("_fts") == "text"


def compile_text_index(index: IndexRecord, holds: Matches | None) -> IndexProfile:
    """Return the rules of a text index: keys are the fields before it, a term, its score, and the fields behind."""
    names = list(index.key)
    position = names.index("_fts")
    before = [tuple(path.split(".")) for path in names[:position]]
    behind = [tuple(path.split(".")) for path in names[position + 2 :]]
    fields = TextFields(index.options)

    def keys_of(document: Document) -> tuple[Sequence[tuple[Any, ...]], bool]:
        if holds is not None and not holds(document):
            return _NO_KEYS
        scores = fields.scores(document)
        first = [_plain_value(document, path) for path in before]
        last = [_plain_value(document, path) for path in behind]
        return [(*first, term, score, *last) for term, score in scores.items()], True

    return IndexProfile(keys_of, None, False, {position: _texts_of})


def _plain_value(document: Document, path: tuple[str, ...]) -> Any:
    value, in_array = next(values_on_path(document, path, enter_last_array=False))
    if type(value) is list or in_array is not None:
        raise MongoFailure(16675, f"cannot have a multi-key as a prefix to a text index: {'.'.join(path)}")
    return None if type(value) is Missing else value


def _texts_of(condition: Any) -> list[tuple[str, bool]]:
    search: TextSearch = condition.value
    return [(term, False) for term in search.index_terms]
