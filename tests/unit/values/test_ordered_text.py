from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.values.ordered_text import (
    DIGEST_BYTES,
    PART_BYTES_MAX,
    cut_part,
    end_of_leading_part,
    last_part,
    leading_part,
    ordered_text,
    text_of,
    text_of_leading_part,
)

# Characters around every border that matters: NUL, the escapes, surrogates, U+E000 to U+FFFF, and beyond.
_NOTABLE = "\x00\x01\x02/~\x7fé\ud7ff\ud800\udbff\udc00\udfff\ue000\uffff\U00010000\U0001f600\U0010ffff"
texts = st.text(st.one_of(st.sampled_from(_NOTABLE), st.characters(exclude_categories=())), max_size=12)
# Long enough to be cut, with beginnings in common.
long_texts = st.builds(lambda start, count, end: start + "x" * count + end, texts, st.integers(200, 260), texts)


def utf16(text: str) -> bytes:
    """Return bytes that compare as .NET's ordinal comparison does, which is the service's."""
    return text.encode("utf-16-be", "surrogatepass")


@given(texts, texts)
def test_bytes_sort_as_utf_16_code_units_do(left: str, right: str) -> None:
    assert (ordered_text(left) < ordered_text(right)) == (utf16(left) < utf16(right))
    assert (ordered_text(left) == ordered_text(right)) == (utf16(left) == utf16(right))


def test_a_character_beyond_the_basic_plane_sorts_before_u_e000_unlike_its_code_point() -> None:
    assert ordered_text("\U0001f600") < ordered_text("\ue000")


@given(texts)
def test_a_text_comes_back(text: str) -> None:
    assert utf16(text_of(ordered_text(text))) == utf16(text)
    text_read, is_whole = text_of_leading_part(leading_part(text))
    assert utf16(text_read) == utf16(text)
    assert is_whole


@given(st.tuples(texts, texts), st.tuples(texts, texts))
def test_two_parts_sort_as_the_pair_of_their_texts(left: tuple[str, str], right: tuple[str, str]) -> None:
    def key(pair: tuple[str, str]) -> bytes:
        return leading_part(pair[0]) + last_part(pair[1])

    def wanted(pair: tuple[str, str]) -> tuple[bytes, bytes]:
        return utf16(pair[0]), utf16(pair[1])

    assert (key(left) < key(right)) == (wanted(left) < wanted(right))
    assert (key(left) == key(right)) == (wanted(left) == wanted(right))


@given(st.one_of(texts, long_texts), st.one_of(texts, long_texts))
def test_cut_parts_keep_the_order_of_their_beginnings_and_stay_distinct(left: str, right: str) -> None:
    left_part, right_part = leading_part(left), leading_part(right)
    assert (left_part == right_part) == (utf16(left) == utf16(right))
    if left_part[:PART_BYTES_MAX] != right_part[:PART_BYTES_MAX]:
        assert (left_part < right_part) == (utf16(left) < utf16(right))
    for part in (left_part, right_part):
        assert len(part) <= PART_BYTES_MAX + DIGEST_BYTES
        assert (end_of_leading_part(part) is None) == (len(part) > PART_BYTES_MAX)


@given(long_texts)
def test_a_cut_text_keeps_its_first_characters(text: str) -> None:
    text_read, is_whole = text_of_leading_part(leading_part(text))
    assert utf16(text).startswith(utf16(text_read)[:-2])
    assert len(text_read) > 70
    assert not is_whole or utf16(text_read) == utf16(text)


@pytest.mark.parametrize("length", [PART_BYTES_MAX - 1, PART_BYTES_MAX, PART_BYTES_MAX + 1, 1536])
def test_only_parts_that_are_too_long_are_cut(length: int) -> None:
    part = b"a" * length
    assert (cut_part(part) == part) == (length <= PART_BYTES_MAX)


def test_two_parts_and_a_family_byte_fit_into_a_key() -> None:
    longest = "\uffff" * 512
    assert 1 + len(leading_part(longest)) + len(last_part(longest)) <= 500
