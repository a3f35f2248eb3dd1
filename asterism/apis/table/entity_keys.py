"""PartitionKey and RowKey: which texts they may be, and how a URL names an entity by them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote

from asterism.apis.table.edm import utf16_units
from asterism.apis.table.errors import Refusal, bad_query_syntax, invalid_input, out_of_range, value_too_large

# 1 KiB of UTF-16 each.
KEY_UTF16_UNITS_MAX: Final = 512
COSMOS_ROW_KEY_BYTES_MAX: Final = 255

# Stands in a URL as it is.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.~-]+\Z", re.ASCII)
_FORBIDDEN: Final = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")
_FORBIDDEN_IN_URL: Final = re.compile(r"[/\\]")
_QUOTED: Final = r"'((?:[^']|'')*)'"
_KEYS: Final = re.compile(rf"\s*PartitionKey\s*=\s*{_QUOTED}\s*,\s*RowKey\s*=\s*{_QUOTED}\s*\Z", re.DOTALL)
_KEYS_SWAPPED: Final = re.compile(rf"\s*RowKey\s*=\s*{_QUOTED}\s*,\s*PartitionKey\s*=\s*{_QUOTED}\s*\Z", re.DOTALL)


class EntityKeys(NamedTuple):
    partition_key: str
    row_key: str


def read_keys(text: str) -> EntityKeys:
    """The keys between the parentheses of a URL (percent-decoded). Keys hold parentheses, commas and equal signs, and
    quotes twice, so they are looked for as quoted texts."""
    found = _KEYS.match(text)
    if found is not None:
        partition_key, row_key = found[1], found[2]
    else:
        found = _KEYS_SWAPPED.match(text)
        if found is None:
            raise bad_query_syntax()
        row_key, partition_key = found[1], found[2]
    if "'" in text and "''" in text:
        partition_key, row_key = partition_key.replace("''", "'"), row_key.replace("''", "'")
    if _FORBIDDEN_IN_URL.search(partition_key) or _FORBIDDEN_IN_URL.search(row_key):
        raise bad_query_syntax()
    return EntityKeys(partition_key, row_key)


def check_keys(keys: EntityKeys, *, is_cosmos: bool) -> None:
    """Refuses keys that no entity may have."""
    for name, value in (("PartitionKey", keys.partition_key), ("RowKey", keys.row_key)):
        if len(value) > KEY_UTF16_UNITS_MAX // 2 and utf16_units(value) > KEY_UTF16_UNITS_MAX:
            raise value_too_large()
        if _FORBIDDEN.search(value):
            raise out_of_range(name, value)
    if is_cosmos:
        if not keys.partition_key or not keys.row_key:
            raise invalid_input("PartitionKey/RowKey cannot be empty")
        if len(keys.row_key.encode("utf-8", "replace")) > COSMOS_ROW_KEY_BYTES_MAX:
            raise key_too_large()


def key_too_large() -> Refusal:
    return Refusal(400, "KeyValueTooLarge", "The value of a key is larger than the maximum allowed size.")


def entity_reference(table: str, keys: EntityKeys) -> str:
    """How a URL names the entity, percent-encoded."""
    partition_key, row_key = (one if _PLAIN.match(one) else quote(one.replace("'", "''"), safe="~") for one in keys)
    return f"{table if table.isascii() else quote(table)}(PartitionKey='{partition_key}',RowKey='{row_key}')"
