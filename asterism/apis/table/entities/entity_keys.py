"""PartitionKey and RowKey in URLs, and the refusals of texts that they may not be."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from asterism.apis.storage.refusals import Refusal, invalid_input
from asterism.apis.table.errors import bad_query_syntax, out_of_range, value_too_large
from asterism.models.tables.entities import TableKind
from asterism.models.tables.keys import EntityKeys, FaultyKey, KeyFault, find_fault

# Needs no encoding in a URL.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.~-]+\Z", re.ASCII)
_FORBIDDEN_IN_URL: Final = re.compile(r"[/\\]")
_QUOTED: Final = r"'((?:[^']|'')*)'"
_KEYS: Final = re.compile(rf"\s*PartitionKey\s*=\s*{_QUOTED}\s*,\s*RowKey\s*=\s*{_QUOTED}\s*\Z", re.DOTALL)
_KEYS_SWAPPED: Final = re.compile(rf"\s*RowKey\s*=\s*{_QUOTED}\s*,\s*PartitionKey\s*=\s*{_QUOTED}\s*\Z", re.DOTALL)


def read_keys(text: str) -> EntityKeys:
    """Read the keys between the parentheses of a URL (percent-decoded). Keys contain parentheses, commas, equal signs
    and doubled quotes, so the pattern searches for quoted texts."""
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


# Each fault of a key -> the refusal of its request.
_REFUSALS: Final[dict[KeyFault, Callable[[FaultyKey], Refusal]]] = {
    KeyFault.TOO_LONG: lambda _: value_too_large(),
    KeyFault.FORBIDDEN_CHARACTER: lambda key: out_of_range(key.name, key.value),
    KeyFault.EMPTY: lambda _: invalid_input("PartitionKey/RowKey cannot be empty"),
    KeyFault.COSMOS_ROW_KEY_TOO_LONG: lambda _: Refusal(
        400, "KeyValueTooLarge", "The value of a key is larger than the maximum allowed size."
    ),
}


def check_keys(keys: EntityKeys, kind: TableKind) -> None:
    """Refuse keys that no entity may have."""
    faulty = find_fault(keys, kind)
    if faulty is not None:
        raise _REFUSALS[faulty.fault](faulty)


def entity_reference(table: str, keys: EntityKeys) -> str:
    """Return the percent-encoded reference to an entity, as it stands in a URL."""
    partition_key, row_key = (key if _PLAIN.match(key) else quote(key.replace("'", "''"), safe="~") for key in keys)
    return f"{table if table.isascii() else quote(table)}(PartitionKey='{partition_key}',RowKey='{row_key}')"
