"""Collations: the order and the equality of texts in a language."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.values.bson.collation import CollationProblem, make_collation

pytestmark = pytest.mark.pure


def ordered(texts: list[str], **options: Any) -> list[str]:
    key = make_collation({"locale": "en", **options}).key
    assert key is not None
    return sorted(texts, key=key)


def are_equal(left: str, right: str, **options: Any) -> bool:
    key = make_collation({"locale": "en", **options}).key
    assert key is not None
    return key(left) == key(right)


def test_letters_come_before_accents_and_accents_before_case() -> None:
    assert ordered(["b", "B", "á", "a", "A", "_", "1", " "]) == [" ", "_", "1", "a", "A", "á", "b", "B"]
    assert ordered(["a", "A"], caseFirst="upper") == ["A", "a"]
    assert ordered(["côté", "côte", "coté", "cote"]) == ["cote", "coté", "côte", "côté"]
    assert ordered(["côté", "côte", "coté", "cote"], locale="fr_CA") == ["cote", "côte", "coté", "côté"]


@pytest.mark.parametrize(
    ("left", "right", "least_strength_that_differs"),
    [
        ("a", "A", 3),
        ("a", "á", 2),
        ("a", "b", 1),
        ("straße", "strasse", 2),
        ("\ufb01", "fi", 3),
        ("a\u200bb", "ab", 5),
        ("e\u0301", "é", 6),
    ],
)
def test_strength_decides_which_differences_count(left: str, right: str, least_strength_that_differs: int) -> None:
    found = [strength for strength in range(1, 6) if not are_equal(left, right, strength=strength)]
    assert found == list(range(least_strength_that_differs, 6))


def test_languages_have_letters_of_their_own() -> None:
    assert ordered(["ö", "z", "å", "a", "ä"], locale="sv") == ["a", "z", "å", "ä", "ö"]
    assert ordered(["ø", "å", "æ", "z"], locale="da") == ["z", "æ", "ø", "å"]
    assert ordered(["o", "ñ", "n", "nz"], locale="es") == ["n", "nz", "ñ", "o"]
    assert are_equal("I", "\u0131", locale="tr", strength=1)
    assert not are_equal("I", "i", locale="tr", strength=1)
    assert are_equal("ア", "あ", locale="ja", strength=3)
    assert not are_equal("ア", "あ", locale="ja", strength=4)


def test_shifted_punctuation_counts_only_at_the_fourth_level() -> None:
    assert are_equal("a-b", "ab", alternate="shifted", strength=3)
    assert ordered(["ab", "a-b", "a_b"], alternate="shifted", strength=4) == ["a_b", "a-b", "ab"]
    assert not are_equal("a-b", "ab", alternate="shifted", maxVariable="space", strength=3)


@given(st.lists(st.integers(0, 10**9), max_size=10))
def test_numbers_in_texts_can_be_ordered_by_value(numbers: list[int]) -> None:
    texts = [f"a{number}b" for number in numbers]
    assert ordered(texts, numericOrdering=True) == [f"a{number}b" for number in sorted(numbers)]


@given(st.text(max_size=8), st.text(max_size=8), st.integers(1, 5))
def test_a_higher_strength_never_merges_and_never_reorders(left: str, right: str, strength: int) -> None:
    weak = make_collation({"locale": "en", "strength": strength}).key
    strong = make_collation({"locale": "en", "strength": 5}).key
    assert weak is not None
    assert strong is not None
    if weak(left) < weak(right):
        assert strong(left) < strong(right)


@pytest.mark.parametrize(
    ("specification", "code"),
    [
        ({"locale": "xx"}, 2),
        ({"locale": "de@collation=nothing"}, 2),
        ({}, 40414),
        ({"locale": "en", "strength": 6}, 2),
        ({"locale": "en", "other": 1}, 40415),
        ({"locale": "en", "caseLevel": 1}, 14),
    ],
)
def test_wrong_collations_are_refused(specification: dict[str, Any], code: int) -> None:
    with pytest.raises(CollationProblem) as refused:
        make_collation(specification)
    assert refused.value.code == code
