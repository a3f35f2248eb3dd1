"""The error of a filter that cannot be parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from asterism.errors import AsterismError, Category


@dataclass(eq=False)
class MalformedFilter(AsterismError):
    """`reason` is a sentence about the text at `position`, an offset in characters."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The filter cannot be parsed."
    reason: str
    position: int
