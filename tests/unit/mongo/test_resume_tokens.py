"""Resume tokens: what comes back is the same place, and what was not issued is refused with the server's codes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.resume_tokens import ResumeToken, TokenKind, read_token
from asterism.values.bson.types import Binary

TOKEN = ResumeToken(TokenKind.EVENT, 7 << 32 | 3, b"position", "shop", "users", is_expanded_only=True, fragments=2)


@given(
    st.builds(
        ResumeToken,
        st.sampled_from(TokenKind),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=100),
        st.text(max_size=20),
        st.text(max_size=20),
        st.booleans(),
        st.integers(0, 1000),
    )
)
def test_a_token_comes_back_as_it_was(token: ResumeToken) -> None:
    assert read_token(token.document) == token
    assert read_token({"_data": token.to_text().lower(), "more": 1}) == token
    assert read_token({"_data": Binary(token.to_bytes(), 0), "_kind": 1}) == token


def test_tokens_sort_by_time() -> None:
    early = ResumeToken(TokenKind.INVALIDATE, 5, b"z")
    late = ResumeToken(TokenKind.HIGH_WATER_MARK, 6, b"a")
    assert early.to_text() < late.to_text()


@pytest.mark.parametrize("suffix", ["FF", "00", "0102"])
def test_bytes_behind_the_end_are_passed_over(suffix: str) -> None:
    assert read_token({"_data": TOKEN.to_text() + suffix}) == TOKEN


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({}, 40647),
        ({"_data": 1}, 40647),
        ({"_data": Binary(TOKEN.to_bytes(), 0)}, 40647),
        ({"_data": TOKEN.to_text(), "_typeBits": "x"}, 40648),
        ({"_data": ""}, 40649),
        ({"_data": "xyz"}, 9),
        ({"_data": "82 0"}, 9),
        ({"_data": "820"}, 9),
        ({"_data": "00"}, 50811),
        ({"_data": "82"}, 15),
        ({"_data": TOKEN.to_text()[:-4]}, 15),
        ({"_data": TOKEN.to_text()[:-6] + "000004"}, 260),
    ],
)
def test_a_text_that_is_no_token_is_refused(document: dict[str, Any], code: int) -> None:
    with pytest.raises(MongoFailure) as refused:
        read_token(document)
    assert refused.value.code == code
