"""Text search without a server: terms, scores, and what a search finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.filters.compile import VALIDATOR_FEATURES, compile_filter
from asterism.languages.mongo.index_profile import compile_index
from asterism.languages.mongo.text.fields import TextFields
from asterism.languages.mongo.text.languages import find_language
from asterism.languages.mongo.text.search import TextSearch, parse_text, split_search
from asterism.languages.mongo.text.stop_words import STOP_WORDS
from asterism.languages.mongo.text.tokens import terms, words
from asterism.models.collections.records import CollectionRecord, IndexRecord
from asterism.values.bson.types import DatetimeMS, Document, Timestamp

pytestmark = pytest.mark.pure

CONTEXT = new_context(DatetimeMS(0), Timestamp(1, 1))
ENGLISH = find_language("en")
assert ENGLISH is not None


def fields(weights: dict[str, int] | None = None, **options: Any) -> TextFields:
    return TextFields({"weights": weights or {"t": 1}, **options})


def search(text: str, index: TextFields | None = None, **options: Any) -> TextSearch:
    found = parse_text({"$search": text, **{f"${name}": value for name, value in options.items()}})
    found.bind(index or fields())
    return found


def matches(text: str, value: Any, index: TextFields | None = None, **options: Any) -> bool:
    return search(text, index, **options).matches({"t": value})


def test_words_end_at_punctuation_and_are_stemmed() -> None:
    assert list(terms("The dogs' running, re-RUN of hello@world_1!", ENGLISH)) == [
        "dog", "run", "re", "run", "hello", "world_1",
    ]  # fmt: skip
    french = find_language("french")
    assert french is not None
    assert list(words("l'école d'été", french)) == ["l", "école", "d", "été"]
    none = find_language("none")
    assert none is not None
    assert list(terms("The Cafés", none)) == ["the", "cafes"]
    assert find_language("klingon") is None
    assert {find_language(name) is None for name in STOP_WORDS} == {False}


def test_a_search_has_terms_phrases_and_refusals() -> None:
    parts = split_search('coffee -tea "black cup" -"hot milk" pre-war -x-y -"a b"c d', ENGLISH)
    assert parts.wanted == ["coffee", "black", "cup", "pre", "war", "d"]
    assert parts.refused == ["tea", "x", "y", "c"]
    assert (parts.phrases, parts.refused_phrases) == (["black cup"], ["hot milk", "a b"])


def test_documents_match_by_any_term_all_phrases_and_no_refusal() -> None:
    assert matches("run tea", "I was running")
    assert not matches("the", "the only")
    assert not matches("-tea", "coffee")
    assert not matches("coffee -tea", "Tea and coffee")
    assert matches('"brown fox" quick', "a BROWN Fox")
    assert not matches('"brown fox"', "brown dog, red fox")
    assert not matches('fox -"brown fox"', "the brown fox")
    assert matches("CAFE", "un café")
    assert not matches("cafe", "café", diacriticSensitive=True)
    assert [matches("Cafe", text, caseSensitive=True) for text in ("Café", "café")] == [True, False]
    assert matches("hello", [1, "hello", ["deep"]])
    assert not matches("deep", [1, "hello", ["deep"]])


def test_fields_have_weights_and_documents_languages() -> None:
    index = fields({"a.b": 3, "c": 1}, default_language="english")
    assert index.scores({"a": [{"b": "tea"}, {"b": "tea milk"}], "c": "tea", "d": "tea"}) == {
        "tea": pytest.approx(3 * 1.1 + 3 * 0.75 + 1.1),
        "milk": pytest.approx(3 * 0.75),
    }
    everything = fields({"$**": 1, "c": 5})
    assert everything.scores({"x": {"y": ["z"]}, "c": "z", "n": 5, "language": "none"}) == {"z": pytest.approx(6 * 1.1)}
    assert fields().scores({"t": "corriendo", "language": "spanish"}).keys() == {"corr"}
    assert fields(language_override="lang").scores({"t": "the", "lang": "none"}).keys() == {"the"}
    for language, code in ((5, 17261), ("klingon", 17262)):
        with pytest.raises(MongoFailure) as refused:
            fields().scores({"t": "x", "language": language})
        assert refused.value.code == code


def test_repeated_terms_count_less_each_time_and_long_texts_less_for_each_term() -> None:
    assert fields().scores({"t": "tea"})["tea"] == pytest.approx(1.1)
    assert fields().scores({"t": "tea milk"})["tea"] == pytest.approx(0.75)
    assert fields().scores({"t": "tea tea tea cup"})["tea"] == pytest.approx(1.75 * (0.5 * 3 / 4 + 0.5))
    assert search("tea cup sugar").score({"t": "tea cup"}) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("operand", "code"),
    [
        ("tea", 2),
        ({}, 4),
        ({"$search": 5}, 14),
        ({"$search": "x", "$language": 5}, 14),
        ({"$search": "x", "$language": "klingon"}, 2),
        ({"$search": "x", "$caseSensitive": 1}, 14),
        ({"$search": "x", "$diacriticSensitive": None}, 14),
        ({"$search": "x", "$more": 1}, 2),
    ],
)
def test_searches_that_cannot_be_are_refused(operand: Any, code: int) -> None:
    with pytest.raises(MongoFailure) as refused:
        compile_filter({"$text": operand}, CONTEXT)
    assert refused.value.code == code


def test_a_search_stands_where_it_can_use_its_index() -> None:
    text: Document = {"$text": {"$search": "x"}}
    wrong: list[Document] = [{"$nor": [text]}, {"$and": [text, text]}, {"a": {"$elemMatch": text}}, {"a": text}]
    for filter in wrong:
        with pytest.raises(MongoFailure) as refused:
            compile_filter(filter, CONTEXT)
        assert refused.value.code == 2
    with pytest.raises(MongoFailure):
        compile_filter(text, CONTEXT, features=VALIDATOR_FEATURES)
    assert compile_filter({"a": 1, **text}, CONTEXT).text is not None


# --- entries ----------------------------------------------------------------------------------------------------------

COLLECTION = CollectionRecord("d", "c", 1, bytes(16))
KEY = {"kind": 1, "_fts": "text", "_ftsx": 1, "year": 1}
INDEX = compile_index(COLLECTION, IndexRecord(1, "t", KEY, {"weights": {"t": 2, "u": 1}}))
WORDS = st.sampled_from(["tea", "teas", "Tea", "cup", "cups", "the", "of", "milk", "café", "cafe", "run", "running"])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
SEARCHES = st.lists(st.tuples(st.sampled_from(["", "-"]), WORDS).map("".join), max_size=4).map(" ".join)


def test_entries_have_the_fields_before_the_term_its_score_and_the_fields_behind() -> None:
    keys, _ = INDEX.keys_of({"kind": "a", "t": "tea", "year": 1990})
    assert keys == [("a", "tea", pytest.approx(2.2), 1990)]
    assert INDEX.keys_of({"kind": "a", "t": 5})[0] == []
    with pytest.raises(MongoFailure) as refused:
        INDEX.keys_of({"kind": [1, 2], "t": "tea"})
    assert refused.value.code == 16675


@given(first=TEXTS, second=TEXTS, wanted=SEARCHES)
def test_entries_lead_to_everything_that_a_search_matches(first: str, second: str, wanted: str) -> None:
    """A search by entries finds what one over all documents finds: those with one of its terms in the index."""
    document = {"kind": 1, "t": first, "u": second}
    index = TextFields({"weights": {"t": 2, "u": 1}})
    found = search(wanted, index)
    entries = {key[1] for key in INDEX.keys_of(document)[0]}
    plain = set(wanted.split())
    refused = {stem for word in plain if word[0] == "-" for stem in terms(word[1:], ENGLISH)}
    naive = {stem for word in plain if word[0] != "-" for stem in terms(word, ENGLISH)}
    in_document = set(terms(f"{first} {second}", ENGLISH))
    assert found.matches(document) == (bool(naive & in_document) and not refused & in_document)
    assert not found.matches(document) or entries & set(found.index_terms)
    assert (found.score(document) > 0) == bool(naive & in_document)
