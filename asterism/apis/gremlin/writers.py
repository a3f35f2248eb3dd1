"""Tables of writers by the type of a value, as every format has one."""

from __future__ import annotations

from typing import Any, TypeVar

from asterism.apis.gremlin.malformed import ResultRefused

Writer = TypeVar("Writer")


def writer_of(table: dict[type, Writer], value: Any, *, form: str) -> Writer:
    """Return the writer of a value whose own type is not in the table, and enter it there; raises ResultRefused if no
    base of its type has one. `form` is the name of the format."""
    for kind in type(value).__mro__:
        found = table.get(kind)
        if found is not None:
            table[type(value)] = found
            return found
    raise ResultRefused(f"A result of the type {type(value).__name__} has no form in {form}.")
