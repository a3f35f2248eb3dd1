"""`$top` and `$select`."""

from __future__ import annotations

from typing import Final

from asterism.apis.storage.refusals import invalid_input
from asterism.apis.table.entities.entity_json import Selection
from asterism.values.whole_numbers import whole_number

# The service's limit.
PAGE_ENTITIES_MAX: Final = 1000


def read_top(query: dict[str, str]) -> int | None:
    """Return the number of entries that the client wants in a page, or None if it leaves that to the server."""
    top = query.get("$top")
    if top is None:
        return None
    count = whole_number(top, maximum=PAGE_ENTITIES_MAX)
    if not count:
        raise invalid_input("The value of $top is not a number from 1 to 1000.")
    return count


def read_select(query: dict[str, str]) -> Selection | None:
    """Return the names of the selected properties; None for all."""
    select = query.get("$select")
    if not select:
        return None
    names = [name.strip() for name in select.split(",")]
    return None if "*" in names else dict.fromkeys(name for name in names if name)
