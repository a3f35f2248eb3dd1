"""Values as GraphBinary 1."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from asterism.apis.gremlin.exact_numbers import big_integer_bytes, decimal_parts
from asterism.apis.gremlin.graphbinary.types import TOKEN_CODES
from asterism.apis.gremlin.malformed import ResultRefused
from asterism.apis.gremlin.times import duration_parts, nanoseconds_of_day, offset_seconds_of
from asterism.apis.gremlin.writers import writer_of
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.numbers import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    BigInteger,
    Byte,
    Float,
    Long,
    Short,
)
from asterism.languages.gremlin.values.results import Metrics, Path, TraversalMetrics, Tree
from asterism.languages.gremlin.values.structures import MapEntry

NULL: Final = b"\xfe\x01"
_TRUE, _FALSE = b"\x27\x00\x01", b"\x27\x00\x00"
_TYPED_INT = struct.Struct(">BBi")
_TYPED_LONG = struct.Struct(">BBq")
_TYPED_SHORT = struct.Struct(">BBh")
_TYPED_BYTE = struct.Struct(">BBb")
_TYPED_DOUBLE = struct.Struct(">BBd")
_TYPED_FLOAT = struct.Struct(">BBf")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
# Year, month, day, nanoseconds of the day, offset from UTC in seconds.
_OFFSET_DATETIME = struct.Struct(">BBibbqi")
_DURATION = struct.Struct(">BBqi")
_CODE_BY_TOKEN_KIND = {kind: code for code, kind in TOKEN_CODES.items()}

Writer = Callable[[bytearray, Any], None]


class BinaryShapes:
    """Writes values behind each other. A value that the format does not have raises ResultRefused."""

    __slots__ = ("_materializes", "_table")

    def __init__(self, *, materializes_properties: bool = True) -> None:
        self._materializes = materializes_properties
        self._table: dict[type, Writer] = {
            **_SIMPLE,
            list: self._list,
            tuple: self._list,
            set: self._set,
            frozenset: self._set,
            dict: self._map,
            MapEntry: lambda out, value: self._map(out, {value.key: value.value}),
            Vertex: self._vertex,
            Edge: self._edge,
            VertexProperty: self._vertex_property,
            Property: lambda out, value: self._property(out, value.key, value.value),
            Path: self._path,
            Tree: self._tree,
            Metrics: self._metrics,
            TraversalMetrics: self._traversal_metrics,
        }

    def write(self, out: bytearray, value: Any) -> None:
        """Write a value with its type code and flag."""
        found = self._table.get(type(value))
        if found is None:
            found = writer_of(self._table, value, form="GraphBinary")
        found(out, value)

    def write_traverser(self, out: bytearray, value: Any, bulk: int) -> None:
        out += _TYPED_LONG.pack(0x21, 0, bulk)
        self.write(out, value)

    def write_bare_map(self, out: bytearray, value: Mapping[Any, Any]) -> None:
        """Write a map without type code and flag."""
        out += _INT.pack(len(value))
        for key, held in value.items():
            self.write(out, key)
            self.write(out, held)

    def _members(self, out: bytearray, code: int, members: Iterable[Any], count: int) -> None:
        out += _TYPED_INT.pack(code, 0, count)
        for member in members:
            self.write(out, member)

    def _list(self, out: bytearray, value: Any) -> None:
        self._members(out, 0x09, value, len(value))

    def _set(self, out: bytearray, value: Any) -> None:
        self._members(out, 0x0B, value, len(value))

    def _map(self, out: bytearray, value: Mapping[Any, Any]) -> None:
        out += b"\x0a\x00"
        self.write_bare_map(out, value)

    def _vertex(self, out: bytearray, value: Vertex) -> None:
        out += b"\x11\x00"
        _text(out, value.id)
        write_bare_text(out, value.label)
        if not self._materializes or not value.is_loaded:
            out += NULL
            return
        properties = [each for held in value.properties.values() for each in held]
        self._list(out, properties) if properties else out.extend(NULL)

    def _vertex_property(self, out: bytearray, value: VertexProperty) -> None:
        out += b"\x12\x00"
        _text(out, value.id)
        write_bare_text(out, value.label)
        self.write(out, value.value)
        out += NULL
        self._properties(out, value.meta)

    def _edge(self, out: bytearray, value: Edge) -> None:
        out += b"\x0d\x00"
        _text(out, value.id)
        write_bare_text(out, value.label)
        _text(out, value.in_id)
        write_bare_text(out, value.in_label)
        _text(out, value.out_id)
        write_bare_text(out, value.out_label)
        out += NULL
        self._properties(out, value.properties)

    def _properties(self, out: bytearray, properties: Mapping[str, Any]) -> None:
        if not properties or not self._materializes:
            out += NULL
            return
        out += _TYPED_INT.pack(0x09, 0, len(properties))
        for name, held in properties.items():
            self._property(out, name, held)

    def _property(self, out: bytearray, key: str, value: Any) -> None:
        out += b"\x0f\x00"
        write_bare_text(out, key)
        self.write(out, value)
        out += NULL

    def _path(self, out: bytearray, value: Path) -> None:
        out += b"\x0e\x00"
        self._list(out, [set(names) for names in value.labels])
        self._list(out, value.objects)

    def _tree(self, out: bytearray, value: Tree) -> None:
        out += b"\x2b\x00"
        self._bare_tree(out, value)

    def _bare_tree(self, out: bytearray, value: Tree) -> None:
        out += _INT.pack(len(value))
        for key, branch in value.items():
            self.write(out, key)
            self._bare_tree(out, branch)

    def _metrics(self, out: bytearray, value: Metrics) -> None:
        out += b"\x2c\x00"
        write_bare_text(out, value.id)
        write_bare_text(out, value.name)
        out += _LONG.pack(value.duration_nanoseconds)
        self.write_bare_map(out, {name: Long(count) for name, count in value.counts.items()})
        self.write_bare_map(out, value.annotations)
        self._bare_list(out, value.nested)

    def _traversal_metrics(self, out: bytearray, value: TraversalMetrics) -> None:
        out += b"\x2d\x00"
        out += _LONG.pack(value.duration_nanoseconds)
        self._bare_list(out, value.metrics)

    def _bare_list(self, out: bytearray, value: Any) -> None:
        out += _INT.pack(len(value))
        for member in value:
            self.write(out, member)


def write_bare_text(out: bytearray, text: str) -> None:
    """Write a text without type code and flag."""
    encoded = text.encode("utf-8", "replace")
    out += _INT.pack(len(encoded))
    out += encoded


def write_int(out: bytearray, number: int) -> None:
    """Write an integer without type code and flag."""
    out += _INT.pack(number)


def _text(out: bytearray, value: str) -> None:
    encoded = value.encode("utf-8", "replace")
    out += _TYPED_INT.pack(0x03, 0, len(encoded))
    out += encoded


def _integer(out: bytearray, value: int) -> None:
    if INT_MIN <= value <= INT_MAX:
        out += _TYPED_INT.pack(0x01, 0, value)
    elif LONG_MIN <= value <= LONG_MAX:
        out += _TYPED_LONG.pack(0x02, 0, value)
    else:
        _big_integer(out, value)


def _big_integer(out: bytearray, value: int) -> None:
    out += b"\x23\x00"
    _bare_big_integer(out, value)


def _bare_big_integer(out: bytearray, value: int) -> None:
    encoded = big_integer_bytes(value)
    out += _INT.pack(len(encoded))
    out += encoded


def _decimal(out: bytearray, value: Decimal) -> None:
    if not value.is_finite():
        raise ResultRefused("A decimal number that is not finite has no form in GraphBinary.")
    scale, unscaled = decimal_parts(value)
    out += _TYPED_INT.pack(0x22, 0, scale)
    _bare_big_integer(out, unscaled)


def _datetime(out: bytearray, value: datetime) -> None:
    nanoseconds, offset = nanoseconds_of_day(value), offset_seconds_of(value)
    out += _OFFSET_DATETIME.pack(0x88, 0, value.year, value.month, value.day, nanoseconds, offset)


def _duration(out: bytearray, value: timedelta) -> None:
    out += _DURATION.pack(0x81, 0, *duration_parts(value))


def _bytes(out: bytearray, value: bytes) -> None:
    out += _TYPED_INT.pack(0x25, 0, len(value))
    out += value


def _token(out: bytearray, value: Token) -> None:
    code = _CODE_BY_TOKEN_KIND.get(value.kind)
    if code is None:
        raise ResultRefused(f"A constant of {value.kind} has no form in GraphBinary.")
    out.append(code)
    out.append(0)
    _text(out, value.name)


_SIMPLE: Mapping[type, Writer] = {
    type(None): lambda out, _: out.extend(NULL),
    bool: lambda out, value: out.extend(_TRUE if value else _FALSE),
    str: _text,
    int: _integer,
    Long: lambda out, value: out.extend(_TYPED_LONG.pack(0x02, 0, value)),
    Short: lambda out, value: out.extend(_TYPED_SHORT.pack(0x26, 0, value)),
    Byte: lambda out, value: out.extend(_TYPED_BYTE.pack(0x24, 0, value)),
    BigInteger: _big_integer,
    float: lambda out, value: out.extend(_TYPED_DOUBLE.pack(0x07, 0, value)),
    Float: lambda out, value: out.extend(_TYPED_FLOAT.pack(0x08, 0, value)),
    Decimal: _decimal,
    datetime: _datetime,
    timedelta: _duration,
    UUID: lambda out, value: out.extend(b"\x0c\x00" + value.bytes),
    bytes: _bytes,
    Token: _token,
}
