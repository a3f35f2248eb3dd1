"""The records of a quick query's answer, in an Avro object container."""

from __future__ import annotations

import json
from typing import Any, Final

SYNC_BYTES: Final = 16

_NAMESPACE: Final = "com.microsoft.azure.storage.queryBlobContents"
# The kinds of records, in the order of the schema: a record begins with the number of its kind.
_KINDS: Final[dict[str, dict[str, str]]] = {
    "resultData": {"data": "bytes"},
    "error": {"fatal": "boolean", "name": "string", "description": "string", "position": "long"},
    "progress": {"bytesScanned": "long", "totalBytes": "long"},
    "end": {"totalBytes": "long"},
}
_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}


class AvroContainer:
    """Bytes of one container. `sync` are random bytes, which stand between the blocks."""

    def __init__(self, sync: bytes) -> None:
        if len(sync) != SYNC_BYTES:
            raise ValueError(f"the mark between blocks has {SYNC_BYTES} bytes")
        self._sync = sync

    def header(self) -> bytes:
        metadata = {"avro.codec": b"null", "avro.schema": json.dumps(_schema()).encode()}
        pairs = b"".join(_counted(name.encode()) + _counted(value) for name, value in metadata.items())
        return b"Obj\x01" + _long(len(metadata)) + pairs + _long(0) + self._sync

    def data(self, data: bytes) -> bytes:
        return self._block("resultData", _counted(data))

    def error(self, *, is_fatal: bool, name: str, description: str, position: int) -> bytes:
        texts = b"".join(_counted(text.encode("utf-8", "replace")) for text in (name, description))
        return self._block("error", bytes([is_fatal]) + texts + _long(position))

    def progress(self, *, bytes_scanned: int, total_bytes: int) -> bytes:
        return self._block("progress", _long(bytes_scanned) + _long(total_bytes))

    def end(self, *, total_bytes: int) -> bytes:
        return self._block("end", _long(total_bytes))

    def _block(self, kind: str, fields: bytes) -> bytes:
        """Return a block of one record."""
        number = _long(_NUMBERS[kind])
        return b"".join((_long(1), _long(len(number) + len(fields)), number, fields, self._sync))


def _schema() -> list[dict[str, Any]]:
    return [
        {
            "type": "record",
            "name": f"{_NAMESPACE}.{kind}",
            "fields": [{"name": name, "type": field_type} for name, field_type in fields.items()],
        }
        for kind, fields in _KINDS.items()
    ]


def _counted(data: bytes) -> bytes:
    return _long(len(data)) + data


def _long(number: int) -> bytes:
    """Return a number of 64 bits: its sign goes to the lowest bit, and seven bits to each byte, the lowest first."""
    rest = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
