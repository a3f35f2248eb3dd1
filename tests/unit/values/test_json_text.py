from __future__ import annotations

import math

import pytest

from asterism.errors import MalformedRequest
from asterism.values.json.text import dumps, loads


def test_text_and_value_are_each_other_s_inverse() -> None:
    value = {"a": [1, 2.5, None, True, "é\u0000"], "b": {}}
    assert loads(dumps(value)) == value


def test_of_two_equal_keys_the_last_counts() -> None:
    assert loads(b'{"a": 1, "a": 2}') == {"a": 2}


@pytest.mark.parametrize(
    "text", [b"", b"{", b"NaN", b"[Infinity]", b"1e999", b'"\\ud800"', b"\xff", b"{'a': 1}", b"[1,]", b"[" * 5000]
)
def test_invalid_json_is_refused_with_the_position_of_the_error(text: bytes) -> None:
    with pytest.raises(MalformedRequest, match=r"not valid JSON.*line 1 column"):
        loads(text)


def test_a_str_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(MalformedRequest):
        loads('"\ud800"')


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": {"b": -math.inf}}, "\ud800", {"\udfff": 1}, object()])
def test_a_value_that_json_cannot_represent_is_not_written(value: object) -> None:
    with pytest.raises(MalformedRequest):
        dumps(value)


def test_null_is_written_beside_finite_numbers() -> None:
    assert dumps({"a": None, "b": 1.5}) == b'{"a":null,"b":1.5}'


def test_whole_numbers_beyond_64_bits_are_written_as_doubles() -> None:
    assert dumps({"a": [2**70, True]}) == b'{"a":[1.1805916207174113e+21,true]}'


def test_a_whole_number_beyond_all_doubles_is_refused() -> None:
    with pytest.raises(MalformedRequest):
        dumps(10**400)


def test_a_kind_of_integer_above_64_bits_is_a_double() -> None:
    class Count(int):
        pass

    assert dumps({"n": Count(2**70)}) == b'{"n":1.1805916207174113e+21}'
