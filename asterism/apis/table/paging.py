"""`$top` and `$select`."""

from __future__ import annotations

from typing import Final

from asterism.apis.table.entity_json import Selection
from asterism.apis.table.errors import invalid_input
from asterism.values.whole_numbers import whole_number

# The service's limit.
PAGE_ENTITIES_MAX: Final = 1000


def read_top(query: dict[str, str]) -> int | None:
    """How many the client wants in a page; None when it leaves that to the server."""
    told = query.get("$top")
    if told is None:
        return None
    count = whole_number(told, maximum=PAGE_ENTITIES_MAX)
    if not count:
        raise invalid_input("The value of $top is not a number from 1 to 1000.")
    return count


def read_select(query: dict[str, str]) -> Selection | None:
    """The names of the properties wanted; None for all."""
    told = query.get("$select")
    if not told:
        return None
    names = [name.strip() for name in told.split(",")]
    return None if "*" in names else dict.fromkeys(name for name in names if name)
