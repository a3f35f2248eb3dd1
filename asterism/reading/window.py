"""The window of a query: the number of results that are wanted, and the first of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True)
class Window:
    """`top` counts first, then `offset` and `limit`."""

    top: int | None = None
    offset: int = 0
    limit: int | None = None

    @property
    def is_open(self) -> bool:
        """True if all results are wanted."""
        return self.top is None and self.limit is None and self.offset == 0

    @property
    def results_max(self) -> int | None:
        """The number of results that are enough, including those that the offset skips; None if all are wanted."""
        to_limit = None if self.limit is None else self.offset + self.limit
        given = [count for count in (self.top, to_limit) if count is not None]
        return min(given, default=None)

    def cut(self, results: Iterable[object]) -> Iterator[object]:
        """Return the results within the window."""
        return islice(results, self.offset, self.results_max)
