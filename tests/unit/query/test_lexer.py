from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.cosmos_sql.syntax.lexer import BAD, END, STRING, tokenize


@given(st.text())
def test_every_text_becomes_tokens_in_the_order_of_the_text(text: str) -> None:
    tokens = list(tokenize(text))
    assert [token.text for token in tokens] == [text[token.start : token.end] for token in tokens]
    assert all(left.end <= right.start for left, right in pairwise(tokens))


@given(st.text())
def test_only_the_last_token_is_the_end_or_bad(text: str) -> None:
    symbols = [token.symbol for token in tokenize(text)]
    assert [symbol in (END, BAD) for symbol in symbols] == [False] * (len(symbols) - 1) + [True]


@given(st.text())
def test_a_json_string_is_its_own_literal(text: str) -> None:
    token = next(tokenize(json.dumps(text)))
    assert (token.symbol, token.value) == (STRING, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("12", 12),
        ("1.5", 1.5),
        ("1.", 1),
        (".5", 0.5),
        ("2e3", 2000),
        ("1E-2", 0.01),
        ("9007199254740993.0", 2.0**53),
        ("9007199254740993", 2**53 + 1),
        ("9223372036854775808", 2**63),
        ("9223372036854775809", 2.0**63),
    ],
)
def test_a_number_is_a_64_bit_integer_or_a_double(text: str, value: float) -> None:
    assert next(tokenize(text)).value == value


@pytest.mark.parametrize("text", ['"', "'a", '"a\nb"', r'"\x"', r'"\u12"', r'"\ud800"', "/* a", "#", "@", "1e400"])
def test_text_that_is_not_a_token_ends_the_list(text: str) -> None:
    assert [token.symbol for token in tokenize(text)] == [BAD]


def test_unclosed_strings_and_comments_are_read_once() -> None:
    for opening in ('"', "/*", '"\\"', "/* *"):
        assert list(tokenize(opening * 100_000))[-1].symbol in (END, BAD)
