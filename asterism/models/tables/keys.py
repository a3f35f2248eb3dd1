"""The two keys of an entity, PartitionKey and RowKey, and the texts that they may be."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from asterism.models.tables.entities import TableKind
from asterism.models.tables.property_types import utf16_units

# 1 KiB of UTF-16 each.
KEY_UTF16_UNITS_MAX: Final = 512
COSMOS_ROW_KEY_BYTES_MAX: Final = 255

_FORBIDDEN: Final = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")


class EntityKeys(NamedTuple):
    partition_key: str
    row_key: str


class KeyFault(StrEnum):
    TOO_LONG = "too long"
    FORBIDDEN_CHARACTER = "forbidden character"
    EMPTY = "empty"
    # Only the RowKey of a `cosmos` table has this shorter limit.
    COSMOS_ROW_KEY_TOO_LONG = "row key too long"


class FaultyKey(NamedTuple):
    fault: KeyFault
    name: str
    value: str


def find_fault(keys: EntityKeys, kind: TableKind) -> FaultyKey | None:
    """Return the first reason for which no entity may have these keys, or None."""
    for name, value in (("PartitionKey", keys.partition_key), ("RowKey", keys.row_key)):
        if len(value) > KEY_UTF16_UNITS_MAX // 2 and utf16_units(value) > KEY_UTF16_UNITS_MAX:
            return FaultyKey(KeyFault.TOO_LONG, name, value)
        if _FORBIDDEN.search(value):
            return FaultyKey(KeyFault.FORBIDDEN_CHARACTER, name, value)
    if kind == "cosmos":
        if not keys.partition_key or not keys.row_key:
            return FaultyKey(KeyFault.EMPTY, "PartitionKey" if keys.row_key else "RowKey", "")
        if len(keys.row_key.encode("utf-8", "replace")) > COSMOS_ROW_KEY_BYTES_MAX:
            return FaultyKey(KeyFault.COSMOS_ROW_KEY_TOO_LONG, "RowKey", keys.row_key)
    return None
