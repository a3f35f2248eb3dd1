from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.errors import MalformedRequest
from asterism.languages.cosmos_sql.functions import FUNCTIONS
from asterism.languages.cosmos_sql.functions.arguments import RESULT_CHARACTERS_MAX, RESULT_ELEMENTS_MAX
from asterism.values.undefined import UNDEFINED

RUN: dict[str, Callable[..., Any]] = {name: function.run for name, function in FUNCTIONS.items()}
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)
SHORT = st.text("abAB", max_size=3)
COUNT = st.integers(-5, 40)
LONG = "a" * RESULT_CHARACTERS_MAX


@given(TEXT)
def test_reversing_twice_changes_nothing(text: str) -> None:
    assert RUN["REVERSE"](RUN["REVERSE"](text)) == text


@given(TEXT)
def test_case_keeps_the_length(text: str) -> None:
    assert len(RUN["UPPER"](text)) == len(RUN["LOWER"](text)) == len(text)


@given(TEXT, COUNT)
def test_left_and_the_rest_make_the_whole(text: str, count: int) -> None:
    left = RUN["LEFT"](text, count)
    rest = RUN["SUBSTRING"](text, max(count, 0), len(text))
    assert RUN["CONCAT"](left, rest) == text


@given(TEXT, COUNT)
def test_right_is_the_mirror_of_left(text: str, count: int) -> None:
    mirrored = RUN["REVERSE"](RUN["LEFT"](RUN["REVERSE"](text), count))
    assert RUN["RIGHT"](text, count) == mirrored


@given(st.lists(SHORT, min_size=1), st.sampled_from([",", "::"]))
def test_splitting_undoes_joining(parts: list[str], separator: str) -> None:
    assert RUN["STRINGSPLIT"](RUN["STRINGJOIN"](parts, separator), separator) == parts


@given(SHORT, SHORT)
def test_an_index_is_found_exactly_when_the_text_contains(text: str, sought: str) -> None:
    found = RUN["INDEX_OF"](text, sought)
    assert (found != -1) is RUN["CONTAINS"](text, sought)
    assert (RUN["LASTINDEXOF"](text, sought) != -1) is RUN["CONTAINS"](text, sought)


@given(SHORT, SHORT)
def test_search_that_ignores_case_is_search_in_lower_case(text: str, sought: str) -> None:
    for name in ("CONTAINS", "STARTSWITH", "ENDSWITH", "STRINGEQUALS"):
        assert RUN[name](text, sought, True) is RUN[name](text.lower(), sought.lower())


@given(SHORT, SHORT)
def test_the_parts_around_a_delimiter_make_the_whole(text: str, delimiter: str) -> None:
    whole = f"{text}|{delimiter}|"
    for prefix in ("", "LAST"):
        before, after = RUN[f"{prefix}SUBSTRINGBEFORE"](whole, "|"), RUN[f"{prefix}SUBSTRINGAFTER"](whole, "|")
        assert f"{before}|{after}" == whole


def test_no_function_makes_a_longer_text_than_an_item_can_hold() -> None:
    assert RUN["CONCAT"](LONG, "a") is UNDEFINED
    assert RUN["CONCAT"](LONG, "") == LONG
    assert RUN["STRINGJOIN"]([LONG, ""], ",") is UNDEFINED
    assert RUN["REPLACE"](LONG, "a", "bb") is UNDEFINED
    assert RUN["REPLACE"](LONG, "a", "b") == LONG.replace("a", "b")
    assert RUN["TOSTRING"]([LONG]) is UNDEFINED


def test_no_function_makes_an_array_of_more_elements_than_an_item_can_hold() -> None:
    half = [0] * (RESULT_ELEMENTS_MAX // 2)
    assert RUN["ARRAY_CONCAT"](half, half, [0]) is UNDEFINED
    assert RUN["SETUNION"](half, [*half, 0]) is UNDEFINED


def test_a_value_that_shares_its_parts_is_not_written_for_ever() -> None:
    value: list[object] = []
    for _ in range(60):
        value = [value, value]
    assert RUN["TOSTRING"](value) is UNDEFINED


# --- regular expressions --------------------------------------------------------------------------------------------


@given(TEXT, SHORT)
def test_a_literal_pattern_matches_texts_that_contain_it(text: str, pattern: str) -> None:
    assert RUN["REGEXMATCH"](text, pattern) is (pattern in text)


@given(TEXT)
def test_all_characters_are_found_one_by_one(text: str) -> None:
    assert RUN["REGEXEXTRACTALL"](text, ".", "s") == list(text)


def test_a_pattern_that_would_backtrack_for_ever_answers() -> None:
    assert RUN["REGEXMATCH"]("a" * 100_000 + "!", "^(a+)+$") is False
    assert RUN["REGEXMATCH"]("x" * 50_000, "(x+x+)+y") is False


@pytest.mark.parametrize(
    ("pattern", "modifiers"),
    [
        ("(?=a)", ""),
        (r"(a)\1", ""),
        ("(a", ""),
        ("[", ""),
        ("a{5000}", ""),
        ("\ud800", ""),
        ("a" * 2049, ""),
        ("a", "g"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_an_error(pattern: str, modifiers: str) -> None:
    with pytest.raises(MalformedRequest):
        RUN["REGEXMATCH"]("a", pattern, modifiers)


def test_matching_that_would_take_too_long_is_refused() -> None:
    with pytest.raises(MalformedRequest):
        RUN["REGEXMATCH"]("a" * 1_000_000, "(a{1,30}){1,30}b")
    with pytest.raises(MalformedRequest):
        RUN["REGEXEXTRACTALL"]("a" * 120_000, "a")


def test_a_text_that_is_not_unicode_has_no_matches() -> None:
    assert RUN["REGEXMATCH"]("\ud800", "a") is UNDEFINED
