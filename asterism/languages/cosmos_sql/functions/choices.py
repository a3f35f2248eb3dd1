"""Functions that return one of their arguments, and DOCUMENTID."""

from __future__ import annotations

from typing import Final

from asterism.languages.cosmos_sql.functions.arguments import integer_of
from asterism.languages.cosmos_sql.functions.function import ANY_NUMBER, Function
from asterism.values.resource_ids import ChildKind, child_kind, child_number, from_text
from asterism.values.undefined import UNDEFINED

# The low 36 bits of an item's number count the items since the start of the server.
_COUNTER_MASK: Final = 2**36 - 1


def _choose(position: object, *values: object) -> object:
    """Return the value at a position that counts from one."""
    place = integer_of(position)
    return values[place - 1] if place is not None and 1 <= place <= len(values) else UNDEFINED


def _document_id(item: object) -> object:
    """Return the item's number among those made since the same start of the server.

    The service counts in each physical partition. Here the number in a resource id begins with the number of the
    server's start, which would make it large; without it, items of different starts may have the same number.
    """
    rid_text = item.get("_rid") if isinstance(item, dict) else None
    rid = from_text(rid_text) if isinstance(rid_text, str) else None
    if rid is None or child_kind(rid) is not ChildKind.DOCUMENT:
        return UNDEFINED
    return child_number(rid) & _COUNTER_MASK


CHOICE_FUNCTIONS: Final[dict[str, Function]] = {
    "CHOOSE": Function(2, ANY_NUMBER, _choose),
    "DOCUMENTID": Function(1, 1, _document_id),
    "IIF": Function(3, 3, lambda condition, yes, no: yes if condition is True else no),
}
