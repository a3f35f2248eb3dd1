"""The parts of a query besides its filter that an index may answer, as plain data that a language derives from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from asterism.reading.conditions import PropertyPath

# An aggregate's name, one of those in `ANSWERED`, and the path of its argument.
Column: TypeAlias = tuple[str, PropertyPath]

# The state of COUNT is a number; of MIN and MAX, the value, and True if an array or object makes the result undefined.
ANSWERED: Final = frozenset({"MIN", "MAX", "COUNT"})


@dataclass(frozen=True, slots=True)
class CoveredPaths:
    """The paths that determine all that an item adds to a query's results."""

    # Items with equal values here are taken together.
    keys: frozenset[PropertyPath]
    # For each combination of keys only the smallest and the largest value of this path matter, and if it has one.
    extreme: PropertyPath | None = None


@dataclass(frozen=True, slots=True)
class IndexUse:
    # The paths that rows are ordered by, each with True if it descends; None without an order, or if one is not a path.
    order_paths: tuple[tuple[PropertyPath, bool], ...] | None = None
    # The aggregates of a query without a filter, if it asks only for aggregates of paths; None otherwise.
    path_aggregates: tuple[Column, ...] | None = None
    # The counts of a query that only counts the items that pass its filter: for each aggregate the path that must have
    # a value, None for one that counts every item. None for any other query.
    counted_paths: tuple[PropertyPath | None, ...] | None = None
    # For a query of groups or distinct results; None if more than a few paths determine them.
    covered_paths: CoveredPaths | None = None
