"""The order of results: `sort` of find, update, delete and findAndModify."""

from __future__ import annotations

from typing import Any, NamedTuple

from asterism.languages.mongo.expressions.operator import CompileContext
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.ordering import SortRule
from asterism.languages.mongo.stages.sorting import parse_ordering
from asterism.values.bson.kinds import is_number
from asterism.values.bson.numbers import exact_value, is_nan
from asterism.values.bson.types import Document

NATURAL = "$natural"


class SortOrder(NamedTuple):
    """A sort that was read from a command. `natural` is 1 or -1 for the order in which documents are stored."""

    ordering: SortRule | None = None
    # Paths and directions, for the planner.
    paths: tuple[tuple[str, int], ...] = ()
    natural: int = 0
    # True if documents are sorted by what a search knows of them.
    has_metadata: bool = False


NO_ORDER = SortOrder()


def read_sort(specification: Document | None, context: CompileContext) -> SortOrder:
    """Return the order that a sort document asks for; refuse one that is not sound."""
    if not specification:
        return NO_ORDER
    if NATURAL in specification:
        direction = specification[NATURAL]
        if len(specification) > 1 or not is_direction(direction):
            raise MongoFailure(2, "$natural sort must be set to 1 or -1, and stand alone")
        return SortOrder(natural=int(exact_value(direction)))
    ordering = parse_ordering(specification, context)
    paths: list[tuple[str, int]] = []
    for path, field in zip(specification, ordering.fields, strict=True):
        if field.meta is not None:
            # No index has this order.
            return SortOrder(ordering, has_metadata=True)
        paths.append((path, -1 if field.is_descending else 1))
    return SortOrder(ordering, tuple(paths))


def is_direction(value: Any) -> bool:
    """Return whether a value is the number 1 or -1."""
    return is_number(value) and not is_nan(value) and exact_value(value) in (1, -1)
