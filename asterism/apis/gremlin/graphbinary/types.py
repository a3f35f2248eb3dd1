"""The types of GraphBinary 1, a row each: code and reader."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

from asterism.apis.gremlin.exact_numbers import big_integer_from, decimal_from
from asterism.apis.gremlin.graphbinary.reading import BinaryReader, ValueReader
from asterism.apis.gremlin.malformed import MalformedMessage
from asterism.apis.gremlin.nodes import (
    BULK_MAX,
    hashable,
    id_text,
    make_class,
    make_edge,
    make_predicate,
    make_strategy,
    make_token,
    make_traversal,
    make_vertex,
)
from asterism.apis.gremlin.times import (
    duration_from,
    from_milliseconds,
    from_parts,
    from_seconds,
    write_date,
    write_time,
)
from asterism.languages.gremlin.graph.elements import Property, VertexProperty
from asterism.languages.gremlin.tree import CardinalityValue, Lambda, Predicate, Traversal
from asterism.languages.gremlin.values.numbers import Byte, Float, Long, Short
from asterism.languages.gremlin.values.results import Path, Tree

# The enumerations, whose value is a text with its type code.
TOKEN_CODES: Final = {
    0x13: "Barrier", 0x16: "Cardinality", 0x17: "Column", 0x18: "Direction", 0x19: "Operator", 0x1A: "Order",
    0x1B: "Pick", 0x1C: "Pop", 0x1F: "Scope", 0x20: "T", 0x2E: "Merge", 0x2F: "DT", 0x30: "GType",
}  # fmt: skip


def _token_reader(kind: str) -> ValueReader:
    return lambda reader: make_token(kind, reader.value())


def _list(reader: BinaryReader) -> list[Any]:
    return [reader.value() for _ in range(reader.count())]


def _set(reader: BinaryReader) -> set[Any]:
    return {hashable(reader.value()) for _ in range(reader.count())}


def read_map(reader: BinaryReader) -> dict[Any, Any]:
    """Read a map without type code and flag."""
    found = {}
    for _ in range(reader.count(bytes_each=4)):
        key = hashable(reader.value())
        found[key] = reader.value()
    return found


def _bulk_set(reader: BinaryReader) -> list[Any]:
    found: list[Any] = []
    for _ in range(reader.count(bytes_each=10)):
        member, bulk = reader.value(), reader.int64()
        if bulk < 0 or len(found) + bulk > BULK_MAX:
            raise MalformedMessage(f"A bulk set in a request can have {BULK_MAX} members.")
        found.extend([member] * bulk)
    return found


def _tree(reader: BinaryReader) -> Tree:
    found = Tree()
    for _ in range(reader.count(bytes_each=6)):
        key = hashable(reader.value())
        found[key] = reader.nested(_tree)
    return found


def _vertex(reader: BinaryReader) -> Any:
    found = make_vertex(reader.value(), reader.text())
    reader.value()
    return found


def _edge(reader: BinaryReader) -> Any:
    edge_id, label = reader.value(), reader.text()
    target = make_vertex(reader.value(), reader.text())
    source = make_vertex(reader.value(), reader.text())
    # The parent, and the properties.
    reader.value()
    reader.value()
    return make_edge(edge_id, label, out_vertex=source, in_vertex=target)


def _vertex_property(reader: BinaryReader) -> VertexProperty:
    property_id, label, value = id_text(reader.value()), reader.text(), reader.value()
    parent = reader.value()
    reader.value()
    owner = parent if type(parent) is type(_NOWHERE) else _NOWHERE
    return VertexProperty(property_id, label, value, owner, {})


def _property(reader: BinaryReader) -> Property:
    key, value = reader.text(), reader.value()
    reader.value()
    return Property(key, value, make_edge("", None, out_vertex=_NOWHERE, in_vertex=_NOWHERE))


_NOWHERE = make_vertex("", None)


def _path(reader: BinaryReader) -> Path:
    labels, objects = reader.value(), reader.value()
    if not isinstance(labels, list) or not isinstance(objects, list):
        raise MalformedMessage("A path needs lists of labels and objects.")
    return Path([{str(name) for name in each} if isinstance(each, list | set) else set() for each in labels], objects)


def _binding(reader: BinaryReader) -> Any:
    reader.text()
    return reader.value()


def _bytecode(reader: BinaryReader) -> Traversal | CardinalityValue:
    steps = [_instruction(reader) for _ in range(reader.count(bytes_each=8))]
    source = [_instruction(reader) for _ in range(reader.count(bytes_each=8))]
    return make_traversal(steps, source)


def _instruction(reader: BinaryReader) -> list[Any]:
    name = reader.text()
    return [name, *(reader.value() for _ in range(reader.count()))]


def _lambda(reader: BinaryReader) -> Lambda:
    reader.text()
    script = reader.text()
    reader.int32()
    return Lambda(script)


def _predicate(reader: BinaryReader) -> Predicate:
    operator = reader.text()
    return make_predicate(operator, [reader.value() for _ in range(reader.count())])


def _strategy(reader: BinaryReader) -> Any:
    return make_strategy(reader.text(), read_map(reader))


def _traverser(reader: BinaryReader) -> Any:
    reader.int64()
    return reader.value()


def _decimal(reader: BinaryReader) -> Any:
    scale = reader.int32()
    return decimal_from(scale, big_integer_from(reader.sized_bytes()))


def _char(reader: BinaryReader) -> str:
    first = reader.unsigned_byte()
    # The first byte of a character in UTF-8 tells how many follow.
    more = 0 if first < 0x80 else 1 if first < 0xE0 else 2 if first < 0xF0 else 3
    try:
        return (bytes([first]) + reader.take(more)).decode()
    except UnicodeDecodeError:
        raise MalformedMessage("A character in the message is not UTF-8.") from None


def _address(reader: BinaryReader) -> str:
    try:
        return str(ip_address(reader.sized_bytes()))
    except ValueError:
        raise MalformedMessage("An address in the message has neither 4 nor 16 bytes.") from None


def _date_parts(reader: BinaryReader) -> tuple[int, int, int]:
    return reader.int32(), reader.int8(), reader.int8()


def _local_datetime(reader: BinaryReader) -> Any:
    return from_parts(*_date_parts(reader), reader.int64(), 0)


def _offset_datetime(reader: BinaryReader) -> Any:
    return from_parts(*_date_parts(reader), reader.int64(), reader.int32())


def _offset_text(seconds: int) -> str:
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if seconds else "Z"


def _offset_time(reader: BinaryReader) -> str:
    return write_time(reader.int64()) + _offset_text(reader.int32())


READERS: Final[dict[int, ValueReader]] = {
    0x01: BinaryReader.int32,
    0x02: lambda reader: Long(reader.int64()),
    0x03: BinaryReader.text,
    0x04: lambda reader: from_milliseconds(reader.int64()),
    0x05: lambda reader: from_milliseconds(reader.int64()),
    0x06: lambda reader: make_class(reader.text()),
    0x07: BinaryReader.float64,
    0x08: lambda reader: Float(reader.float32()),
    0x09: _list,
    0x0A: read_map,
    0x0B: _set,
    0x0C: BinaryReader.uuid,
    0x0D: _edge,
    0x0E: _path,
    0x0F: _property,
    0x11: _vertex,
    0x12: _vertex_property,
    0x14: _binding,
    0x15: _bytecode,
    0x1D: _lambda,
    0x1E: _predicate,
    0x21: _traverser,
    0x22: _decimal,
    0x23: lambda reader: big_integer_from(reader.sized_bytes()),
    0x24: lambda reader: Byte(reader.int8()),
    0x25: BinaryReader.sized_bytes,
    0x26: lambda reader: Short(reader.int16()),
    0x27: lambda reader: reader.unsigned_byte() != 0,
    0x28: _predicate,
    0x29: _strategy,
    0x2A: _bulk_set,
    0x2B: _tree,
    0x80: _char,
    0x81: lambda reader: duration_from(reader.int64(), reader.int32()),
    0x82: _address,
    0x83: lambda reader: from_seconds(reader.int64(), reader.int32()),
    0x84: lambda reader: from_parts(*_date_parts(reader), 0, 0),
    0x85: _local_datetime,
    # Types of Java without a type of Gremlin: their texts, and a year as a number.
    0x86: lambda reader: write_time(reader.int64()),
    0x87: lambda reader: "-" + write_date(2000, reader.int8(), reader.int8())[4:],
    0x88: _offset_datetime,
    0x89: _offset_time,
    0x8A: lambda reader: f"P{reader.int32()}Y{reader.int32()}M{reader.int32()}D",
    0x8B: BinaryReader.int32,
    0x8C: lambda reader: write_date(reader.int32(), reader.int8(), 1)[:-3],
    0x8D: _offset_datetime,
    0x8E: lambda reader: _offset_text(reader.int32()),
} | {code: _token_reader(kind) for code, kind in TOKEN_CODES.items()}


def open_reader(data: bytes) -> BinaryReader:
    return BinaryReader(data, READERS)
