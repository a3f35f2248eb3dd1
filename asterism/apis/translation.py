"""A door's table from errors to its protocol's own codes: a row for each category, and for single errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from asterism.errors import AsterismError, Category

Row = TypeVar("Row")


class Translation(Generic[Row]):
    """Finds the row of an error: its own, that of a root it shares with others, or that of its category.

    Complete by construction: every error has a category, and a table without a row for one cannot be made.
    """

    __slots__ = ("_by_category", "_own")

    def __init__(self, by_category: Mapping[Category, Row], own: Mapping[type[AsterismError], Row]) -> None:
        """`own`: the errors for which the protocol has its own words or codes."""
        missing = [category.name for category in Category if category not in by_category]
        if missing:
            raise ValueError(f"the table has no row for the categories {', '.join(missing)}")
        self._by_category = by_category
        self._own = own

    def row(self, error: AsterismError) -> Row:
        for kind in type(error).__mro__:
            own = self._own.get(kind)
            if own is not None:
                return own
        return self._by_category[error.category]
