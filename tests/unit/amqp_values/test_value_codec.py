"""AMQP values: every type, both forms, and bytes that lie."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.values.amqp.constructors import skip_value
from asterism.values.amqp.types import (
    Array,
    Char,
    Described,
    Int,
    InvalidAmqp,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Uuid,
)
from asterism.values.amqp.value_codec import DEPTH_MAX, decode_value, encode_value
from tests.unit.amqp_values.strategies import VALUES


def typed(value: Any) -> Any:
    """Spell a value out with its types, which plain equality overlooks: 1, 1.0 and True are equal, and 0.0 is -0.0."""
    if isinstance(value, Described):
        return "described", typed(value.descriptor), typed(value.value)
    if isinstance(value, Array):
        return "array", value.code, typed(value.descriptor), [typed(item) for item in value]
    if isinstance(value, list):
        return "list", [typed(item) for item in value]
    if isinstance(value, dict):
        return "map", [(typed(key), typed(item)) for key, item in value.items()]
    return type(value), repr(value)


@given(VALUES)
def test_every_value_keeps_its_type_and_content(value: Any) -> None:
    encoded = encode_value(value)
    decoded, end = decode_value(encoded)
    assert typed(decoded) == typed(value)
    assert end == len(encoded)


@given(VALUES, st.binary(max_size=20), st.binary(max_size=20))
def test_a_value_ends_where_skipping_it_ends(value: Any, before: bytes, behind: bytes) -> None:
    data = before + encode_value(value) + behind
    assert decode_value(data, len(before))[1] == len(data) - len(behind)
    assert skip_value(data, len(before)) == len(data) - len(behind)


@given(VALUES, st.data())
def test_a_value_that_is_cut_is_invalid(value: Any, data: st.DataObject) -> None:
    encoded = encode_value(value)
    cut = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    with pytest.raises(InvalidAmqp):
        decode_value(cut)
    with pytest.raises(InvalidAmqp):
        skip_value(cut, 0)


@given(VALUES, st.data())
def test_flipped_bytes_are_another_value_or_invalid(value: Any, data: st.DataObject) -> None:
    encoded = bytearray(encode_value(value))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(InvalidAmqp):
        assert decode_value(bytes(encoded))[1] <= len(encoded)
    with contextlib.suppress(InvalidAmqp):
        assert skip_value(bytes(encoded), 0) <= len(encoded)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_invalid(data: bytes) -> None:
    with contextlib.suppress(InvalidAmqp):
        assert decode_value(data)[1] <= len(data)
    with contextlib.suppress(InvalidAmqp):
        assert skip_value(data, 0) <= len(data)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, "40"),
        (True, "41"),
        (False, "42"),
        (UByte(7), "5007"),
        (UShort(258), "600102"),
        (UInt(0), "43"),
        (UInt(255), "52ff"),
        (UInt(256), "7000000100"),
        (ULong(0), "44"),
        (ULong(0x70), "5370"),
        (ULong(256), "800000000000000100"),
        (Int(-1), "54ff"),
        (-128, "5580"),
        (-129, "81ffffffffffffff7f"),
        (Char("A"), "7300000041"),
        (Timestamp(1), "830000000000000001"),
        (Uuid(range(16)), "98000102030405060708090a0b0c0d0e0f"),
        (b"\1\2", "a0020102"),
        ("é", "a102c3a9"),
        (Symbol("ab"), "a3026162"),
        ([], "45"),
        ([UInt(1), None], "c00402520140"),
        ({}, "c10100"),
        ({"a": True}, "c10502a1016141"),
        (Described(ULong(0x24), []), "00532445"),
        (Array.of(UInt, [1, 2]), "e00a02700000000100000002"),
    ],
)
def test_values_have_the_shortest_bytes_of_the_standard(value: Any, encoded: str) -> None:
    assert encode_value(value).hex() == encoded


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("5600", False),
        ("5601", True),
        ("7000000001", UInt(1)),
        ("800000000000000001", ULong(1)),
        ("7100000001", Int(1)),
        ("810000000000000001", 1),
        ("b00000000101", b"\1"),
        ("b10000000161", "a"),
        ("b30000000161", Symbol("a")),
        ("d00000000500000001" + "40", [None]),
        ("d10000000600000002" + "4041", {None: True}),
        ("e00402520102", Array.of(UInt, [1, 2])),
        ("f00000000700000002520102", Array.of(UInt, [1, 2])),
    ],
)
def test_long_forms_are_read_too(encoded: str, value: Any) -> None:
    decoded, _ = decode_value(bytes.fromhex(encoded))
    assert typed(decoded) == typed(value)


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param("", id="nothing"),
        pytest.param("57", id="an unknown constructor"),
        pytest.param("5602", id="a boolean of 2"),
        pytest.param("a101ff", id="a string that is not UTF-8"),
        pytest.param("a301c3", id="a symbol that is not ASCII"),
        pytest.param("730000d800", id="half a surrogate pair"),
        pytest.param("7300110000", id="a char behind the last code point"),
        pytest.param("c00101", id="an item without bytes"),
        pytest.param("c0030140" + "40", id="a list that is longer than its items"),
        pytest.param("c0020240", id="a list whose items end behind it"),
        pytest.param("d0ffffffff00000001" + "40", id="a list of 4 GiB"),
        pytest.param("d0000000ff7fffffff" + "40" * 251, id="a list of 2 billion items"),
        pytest.param("c1020140", id="a key without a value"),
        pytest.param("c10402c0010040", id="a list as a key"),
        pytest.param("f000000005ffffffff40", id="4 billion elements without bytes"),
        pytest.param("f0000000050000ffff45", id="thousands of empty lists"),
        pytest.param("e0020157", id="elements of an unknown type"),
        pytest.param("e00401004043", id="elements with a null descriptor"),
        pytest.param("00" * 200, id="descriptors of descriptors"),
    ],
)
def test_bytes_that_lie_are_invalid(encoded: str) -> None:
    with pytest.raises(InvalidAmqp):
        decode_value(bytes.fromhex(encoded))


def test_values_nest_only_so_deep() -> None:
    value: Any = None
    for _ in range(DEPTH_MAX):
        value = [value]
    assert typed(decode_value(encode_value(value))[0]) == typed(value)
    with pytest.raises(InvalidAmqp):
        decode_value(encode_value([value]))


@pytest.mark.parametrize(
    "value",
    [
        UByte(256),
        UInt(-1),
        ULong(2**64),
        2**63,
        Int(2**31),
        Symbol("é"),
        "\ud800",
        Uuid(b"short"),
        object(),
        {1: object()},
    ],
)
def test_a_value_without_a_form_is_refused(value: Any) -> None:
    with pytest.raises(InvalidAmqp):
        encode_value(value)


def test_long_lists_have_four_bytes_of_length() -> None:
    value = [UInt(number) for number in range(1000)]
    encoded = encode_value(value)
    assert encoded[:1] == b"\xd0"
    assert struct.unpack(">I", encoded[5:9]) == (1000,)
    assert decode_value(encoded) == (value, len(encoded))
