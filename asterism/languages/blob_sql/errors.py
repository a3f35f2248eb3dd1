"""The errors of quick query: of a text, and of a single record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from asterism.errors import AsterismError, Category


@dataclass(eq=False)
class MalformedBlobQuery(AsterismError):
    """`reason` is a sentence about the text at `position`, an offset in characters."""

    category: ClassVar[Category] = Category.MALFORMED
    text: ClassVar[str] = "The query cannot be parsed."
    reason: str
    position: int


class RecordFault(Exception):
    """A record for which an expression has no value; the query goes on with the next. The name is the service's."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(name)
        self.name = name
        self.description = description


class FatalFault(RecordFault):
    """Data after which no record can be read. `offset` counts bytes from the beginning of the blob."""

    def __init__(self, name: str, description: str, offset: int | None = None) -> None:
        super().__init__(name, description)
        self.offset = offset


def invalid_conversion(description: str = "Invalid type conversion.") -> RecordFault:
    return RecordFault("InvalidTypeConversion", description)
