"""GraphBinary 1 into values and nodes of traversals. Every length is checked against the bytes that there are."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from asterism.apis.gremlin.malformed import MalformedMessage
from asterism.apis.gremlin.nodes import DEPTH_MAX, refuse_depth

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_SHORT = struct.Struct(">h")
_BYTE = struct.Struct(">b")
_DOUBLE = struct.Struct(">d")
_FLOAT = struct.Struct(">f")

NULL_CODE: Final = 0xFE
_IS_NULL: Final = 1

# The readers of values by type code; `graphbinary/types.py` fills the table.
ValueReader = Callable[["BinaryReader"], Any]


class BinaryReader:
    """A place in bytes. All methods raise MalformedMessage where the bytes end early or make no sense."""

    __slots__ = ("_data", "_depth", "_place", "_table")

    def __init__(self, data: bytes, table: dict[int, ValueReader]) -> None:
        self._data = data
        self._place = 0
        self._depth = 0
        self._table = table

    @property
    def left(self) -> int:
        return len(self._data) - self._place

    def value(self) -> Any:
        """Read a value with its type code and flag."""
        code = self.unsigned_byte()
        flag = self.unsigned_byte()
        if code == 0:
            raise MalformedMessage("Custom types of GraphBinary are not known here.")
        reader = self._table.get(code)
        if reader is None and code != NULL_CODE:
            raise MalformedMessage(f"The GraphBinary type 0x{code:02x} is not known.")
        if flag == _IS_NULL:
            return None
        if reader is None:
            raise MalformedMessage("The unspecified null object of GraphBinary has the flag 0x01.")
        return self.nested(reader)

    def nested(self, reader: Callable[[BinaryReader], Any]) -> Any:
        """Read a part of a value that may have parts of its own kind, as a tree has."""
        if self._depth >= DEPTH_MAX:
            raise refuse_depth()
        self._depth += 1
        found = reader(self)
        self._depth -= 1
        return found

    def count(self, bytes_each: int = 2) -> int:
        """Read the length of a collection, whose members have at least so many bytes."""
        found = self.int32()
        if found < 0 or found * bytes_each > self.left:
            raise MalformedMessage("A collection in the message is longer than the message.")
        return found

    def take(self, size: int) -> bytes:
        begin = self._place
        end = begin + size
        if size < 0 or end > len(self._data):
            raise MalformedMessage("The message ends within a value.")
        self._place = end
        return self._data[begin:end]

    def sized_bytes(self) -> bytes:
        return self.take(self.int32())

    def text(self) -> str:
        try:
            return self.sized_bytes().decode()
        except UnicodeDecodeError:
            raise MalformedMessage("A text in the message is not UTF-8.") from None

    def unsigned_byte(self) -> int:
        place = self._place
        if place >= len(self._data):
            raise MalformedMessage("The message ends within a value.")
        self._place = place + 1
        return self._data[place]

    def int32(self) -> int:
        return int(_INT.unpack(self.take(4))[0])

    def int64(self) -> int:
        return int(_LONG.unpack(self.take(8))[0])

    def int16(self) -> int:
        return int(_SHORT.unpack(self.take(2))[0])

    def int8(self) -> int:
        return int(_BYTE.unpack(self.take(1))[0])

    def float64(self) -> float:
        return float(_DOUBLE.unpack(self.take(8))[0])

    def float32(self) -> float:
        return float(_FLOAT.unpack(self.take(4))[0])

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))
