"""`$top` and `$select`."""

from __future__ import annotations

from typing import Final

from asterism.apis.table.entity_json import Selection
from asterism.apis.table.errors import invalid_input

# The service's limit.
PAGE_ENTITIES_MAX: Final = 1000


def read_top(query: dict[str, str]) -> int | None:
    """How many the client wants in a page; None when it leaves that to the server."""
    told = query.get("$top")
    if told is None:
        return None
    if not told.isascii() or not told.isdigit() or not 0 < int(told[:10]) <= PAGE_ENTITIES_MAX:
        raise invalid_input("The value of $top is not a number from 1 to 1000.")
    return int(told)


def read_select(query: dict[str, str]) -> Selection | None:
    """The names of the properties wanted; None for all."""
    told = query.get("$select")
    if not told:
        return None
    names = [name.strip() for name in told.split(",")]
    return None if "*" in names else dict.fromkeys(name for name in names if name)
