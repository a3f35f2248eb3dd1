"""What an index may answer of a query besides its filter, as plain data that a language reads from the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from asterism.reading.conditions import PropertyPath

# An aggregate's name, one of those in `ANSWERED`, and the path of its argument.
Column: TypeAlias = tuple[str, PropertyPath]

# The state of COUNT is a number; of MIN and MAX, the value and whether an array or object spoils it.
ANSWERED: Final = frozenset({"MIN", "MAX", "COUNT"})


@dataclass(frozen=True, slots=True)
class CoveredPaths:
    """The paths that decide all that an item adds to a query's results."""

    # Items with equal values here are taken together.
    keys: frozenset[PropertyPath]
    # Of this one only the smallest and the largest value, and whether there is one, matter for each combination of
    # keys.
    extreme: PropertyPath | None = None


@dataclass(frozen=True, slots=True)
class IndexUse:
    # The paths that rows are ordered by, with whether they descend; None if one is something else, or without an order.
    order_paths: tuple[tuple[PropertyPath, bool], ...] | None = None
    # All that a query without a filter asks of its items, as aggregates of paths; None if it asks something else.
    path_aggregates: tuple[Column, ...] | None = None
    # All that a query counts of the items that pass its filter: for each aggregate the path that must have a value,
    # None for one that counts every item. None if it does more than to count.
    counted_paths: tuple[PropertyPath | None, ...] | None = None
    # Of a query of groups or distinct results; None where more than a few paths decide.
    covered_paths: CoveredPaths | None = None
