"""The error for a query text that does not compile, with the service's own code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from asterism.errors import AsterismError, Category


@dataclass(eq=False)
class MalformedQuery(AsterismError):
    """An error in a query. `code` is the service's SC code; `start` and `end` are character offsets in the text."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The query does not compile."
    code: str
    reason: str
    start: int
    end: int
    # Further errors of the same text.
    more: tuple[MalformedQuery, ...] = ()
