"""The formats of inputs and outputs, with the defaults of the service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DelimitedText:
    """Records of fields. There are no quotes if `quote` is empty, and no escapes if `escape` is.

    A carriage return before a line feed is a part of it.
    """

    column_separator: str = ","
    quote: str = '"'
    record_separator: str = "\n"
    escape: str = ""
    has_headers: bool = False


@dataclass(frozen=True, slots=True)
class JsonText:
    """One JSON value after the other. The separator is written after each; inputs may have any blanks between them."""

    record_separator: str = "\n"


Format = DelimitedText | JsonText
