"""Values and messages of AMQP for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from asterism.values.amqp.message import (
    Header,
    Properties,
    encode_annotations,
    encode_application_properties,
    encode_data_body,
    encode_header,
    encode_properties,
    encode_value_body,
)
from asterism.values.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Uuid,
)


def _unsigned(kind: type[int], bits: int) -> st.SearchStrategy[Any]:
    return st.integers(0, 2**bits - 1).map(kind)


def _signed(kind: type[int], bits: int) -> st.SearchStrategy[Any]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).map(kind)


SCALARS_OF_KIND: dict[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    UByte: _unsigned(UByte, 8),
    UShort: _unsigned(UShort, 16),
    UInt: _unsigned(UInt, 32),
    ULong: _unsigned(ULong, 64),
    Byte: _signed(Byte, 8),
    Short: _signed(Short, 16),
    Int: _signed(Int, 32),
    int: _signed(int, 64),
    Timestamp: _signed(Timestamp, 64),
    Float: st.floats(width=32, allow_nan=False).map(Float),
    float: st.floats(allow_nan=False),
    Char: st.characters(exclude_categories=["Cs"]).map(Char),
    Uuid: st.binary(min_size=16, max_size=16).map(Uuid),
    Decimal32: st.binary(min_size=4, max_size=4).map(Decimal32),
    Decimal64: st.binary(min_size=8, max_size=8).map(Decimal64),
    Decimal128: st.binary(min_size=16, max_size=16).map(Decimal128),
    bytes: st.binary(max_size=300),
    str: st.text(max_size=300),
    Symbol: st.text(st.characters(codec="ascii"), max_size=300).map(Symbol),
}
SCALARS = st.none() | st.one_of(*SCALARS_OF_KIND.values())


def _arrays(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    plain = st.sampled_from(list(SCALARS_OF_KIND)).flatmap(
        lambda kind: st.lists(SCALARS_OF_KIND[kind], max_size=6).map(lambda items: Array.of(kind, items))
    )
    lists = st.lists(st.lists(elements, max_size=3), max_size=3).map(lambda items: Array.of(list, items))
    maps = st.lists(st.dictionaries(SCALARS, elements, max_size=3), max_size=3).map(lambda items: Array.of(dict, items))
    described = st.lists(SCALARS_OF_KIND[str], max_size=3).map(
        lambda items: Array(0xB1, [Described(Symbol("d"), item) for item in items], descriptor=Symbol("d"))
    )
    return plain | lists | maps | described


def _compounds(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(children, max_size=5)
        | st.dictionaries(SCALARS, children, max_size=4)
        | st.builds(Described, SCALARS_OF_KIND[ULong] | SCALARS_OF_KIND[Symbol], children)
        | _arrays(children)
    )


VALUES = st.recursive(SCALARS, _compounds, max_leaves=12)

_PROPERTIES = st.fixed_dictionaries(
    {
        "message_id": st.none() | SCALARS_OF_KIND[str] | SCALARS_OF_KIND[Uuid] | SCALARS_OF_KIND[ULong],
        "subject": st.none() | SCALARS_OF_KIND[str],
        "group_id": st.none() | SCALARS_OF_KIND[str],
        "creation_time": st.none() | SCALARS_OF_KIND[Timestamp],
    }
).map(lambda fields: Properties(**fields))
_HEADERS = st.fixed_dictionaries(
    {
        "durable": st.none() | st.booleans(),
        "priority": st.none() | SCALARS_OF_KIND[UByte],
        "ttl": st.none() | SCALARS_OF_KIND[UInt],
        "delivery_count": st.none() | SCALARS_OF_KIND[UInt],
    }
).map(lambda fields: Header(**fields))
_MAPPINGS = st.dictionaries(SCALARS_OF_KIND[Symbol], SCALARS, max_size=3)


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """Encoded messages with any of the sections."""
    sections = [
        _HEADERS.map(encode_header),
        _MAPPINGS.map(encode_annotations),
        _PROPERTIES.map(encode_properties),
        _MAPPINGS.map(encode_application_properties),
        VALUES.map(encode_value_body)
        | st.lists(st.binary(max_size=300).map(encode_data_body), min_size=1, max_size=3).map(b"".join),
    ]
    return b"".join(draw(section | st.just(b"")) for section in sections)
