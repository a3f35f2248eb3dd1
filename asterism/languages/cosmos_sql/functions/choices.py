"""Functions that return one of their arguments, and the one that tells an item's number."""

from __future__ import annotations

from typing import Final

from asterism.languages.cosmos_sql.functions.arguments import integer_of
from asterism.languages.cosmos_sql.functions.function import ANY_NUMBER, Function
from asterism.values.resource_ids import ChildKind, child_kind, child_number, from_text
from asterism.values.undefined import UNDEFINED

# An item's number has 36 bits for its place among those given since the server was started.
_COUNTER_MASK: Final = 2**36 - 1


def _choose(position: object, *values: object) -> object:
    """The value at a position that counts from one."""
    place = integer_of(position)
    return values[place - 1] if place is not None and 1 <= place <= len(values) else UNDEFINED


def _document_id(item: object) -> object:
    """The item's place among those that one start of the server has made.

    The service counts in each physical partition. Here the number in a resource id begins with that of the server's
    start, which would make it large; without that, items of different starts may have the same.
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
