"""Results as bytes, in the format of the output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from asterism.errors import MalformedRequest
from asterism.languages.blob_sql.compiling import MISSING, NoValue
from asterism.languages.blob_sql.conversion import to_text
from asterism.languages.blob_sql.errors import RecordFault
from asterism.languages.blob_sql.formats import DelimitedText, Format
from asterism.languages.blob_sql.tree import Value
from asterism.values.json.text import dumps

Result = Mapping[str, Value | NoValue]


class RecordWriter(Protocol):
    def header(self, names: Iterable[str], /) -> bytes:
        """Return what goes before the first record."""

    def record(self, result: Result) -> bytes:
        """Return one record; RecordFault if the format cannot hold it."""


def writer_of(output: Format) -> RecordWriter:
    return DelimitedWriter(output) if isinstance(output, DelimitedText) else JsonWriter(output.record_separator)


class DelimitedWriter:
    """Quotes a field only if it has a sign of the format in it. NoValue values are empty fields."""

    def __init__(self, text_format: DelimitedText) -> None:
        self._format = text_format
        signs = (text_format.column_separator, text_format.record_separator, text_format.quote, text_format.escape)
        self._special = re.compile("|".join(re.escape(sign) for sign in signs if sign) + "|\r|\n")
        # Nearly no record has one of these; it is then enough to count the separators of columns.
        self._rare = re.compile("|".join(re.escape(sign) for sign in signs[1:] if sign) + "|\r|\n")

    def header(self, names: Iterable[str]) -> bytes:
        return self._line(names) if self._format.has_headers else b""

    def record(self, result: Result) -> bytes:
        return self._line("" if value is MISSING else to_text(value) for value in result.values())

    def _line(self, fields: Iterable[str]) -> bytes:
        separator = self._format.column_separator
        texts = list(fields)
        line = separator.join(texts)
        if line.count(separator) != len(texts) - 1 or self._rare.search(line) is not None:
            line = separator.join(map(self._field, texts))
        return (line + self._format.record_separator).encode("utf-8", "surrogateescape")

    def _field(self, field: str) -> str:
        if self._special.search(field) is None:
            return field
        quote, escape = self._format.quote, self._format.escape
        if quote:
            if escape:
                field = field.replace(escape, escape * 2)
            return quote + field.replace(quote, (escape or quote) + quote) + quote
        return self._special.sub(lambda found: escape + found.group(), field)


class JsonWriter:
    """Writes an object for each record. NoValue values are left out."""

    def __init__(self, record_separator: str) -> None:
        self._separator = record_separator.encode()

    def header(self, _: Iterable[str], /) -> bytes:
        return b""

    def record(self, result: Result) -> bytes:
        members = {
            name: to_text(value) if isinstance(value, datetime) else value
            for name, value in result.items()
            if value is not MISSING
        }
        try:
            return dumps(members) + self._separator
        except MalformedRequest as error:
            raise RecordFault(
                "InvalidTypeConversion", f"The record cannot be written as JSON. {error.reason}"
            ) from None
