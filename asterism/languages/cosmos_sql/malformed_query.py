"""The error of a text that does not compile, with the service's own code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from asterism.errors import AsterismError, Category


@dataclass(eq=False)
class MalformedQuery(AsterismError):
    """`code` is the service's SC code; `start` and `end` are offsets in characters of the query text."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The query does not compile."
    code: str
    reason: str
    start: int
    end: int
    # Further faults of the same text.
    more: tuple[MalformedQuery, ...] = ()
