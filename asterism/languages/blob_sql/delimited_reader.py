"""Records of delimited text, out of pieces of bytes of any length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from asterism.languages.blob_sql.compiling import NoValue, Record
from asterism.languages.blob_sql.errors import FatalFault, RecordFault
from asterism.languages.blob_sql.formats import DelimitedText
from asterism.languages.blob_sql.tree import Path, Value
from asterism.limits import MIB

# The reader keeps one record in memory.
RECORD_BYTES_MAX: Final = 4 * MIB
# The fields of a record and their names, as objects, take a hundred times the space of a record of separators.
FIELDS_MAX: Final = 10_000
_ORDINAL: Final = re.compile(r"_([1-9][0-9]{0,4})")


class DelimitedReader:
    """Splits bytes into records and records into fields; `offset` is where the record that was yielded last begins.

    A quote changes between inside and outside of quotes wherever it stands, so that two of them in a row within quotes
    stand for one, and separators inside are content.
    """

    def __init__(self, text_format: DelimitedText) -> None:
        self._separator = text_format.record_separator.encode()
        self._column_separator = text_format.column_separator.encode()
        quote, escape = text_format.quote.encode(), text_format.escape.encode()
        self._signs = [sign for sign in (quote, escape) if sign]
        special = [b"(?P<escaped>" + re.escape(escape) + b".)"] if escape else []
        special += [b"(?P<quote>" + re.escape(quote) + b")"] if quote else []
        special += [b"(?P<end>" + re.escape(self._separator) + b")"]
        self._boundary = re.compile(b"|".join(special), re.DOTALL)
        # As many bytes at the end of a piece may be the beginning of a sign that the next piece completes.
        self._incomplete_bytes_max = max(len(self._separator) - 1, len(quote) - 1, len(escape))
        self._fields = _field_splitter(text_format)
        self._pending = bytearray()
        self._pending_offset = 0
        self._scanned = 0
        self._is_quoted = False
        self.offset = 0

    def feed(self, piece: bytes | memoryview) -> Iterator[list[str]]:
        """Yield the records that `piece` completes; all must be consumed before the next piece."""
        self._pending += piece
        if self._is_quoted or any(sign in self._pending for sign in self._signs):
            yield from self._records_with_quotes()
        else:
            yield from self._plain_records()
        if len(self._pending) > RECORD_BYTES_MAX:
            raise FatalFault(
                "RecordTooLarge", f"A record has more than {RECORD_BYTES_MAX} bytes.", self._pending_offset
            )

    def _plain_records(self) -> Iterator[list[str]]:
        """Yield the records of bytes without quotes and escapes, as most are."""
        *records, rest = self._pending.split(self._separator)
        self._pending = rest
        self._scanned = max(len(rest) - self._incomplete_bytes_max, 0)
        for record in records:
            self.offset = self._pending_offset
            self._pending_offset += len(record) + len(self._separator)
            if fields := self._record(record):
                yield fields

    def _records_with_quotes(self) -> Iterator[list[str]]:
        pending = self._pending
        start, at = 0, self._scanned
        while (found := self._boundary.search(pending, at)) is not None:
            at = found.end()
            if found.lastgroup == "quote":
                self._is_quoted = not self._is_quoted
            elif found.lastgroup == "end" and not self._is_quoted:
                record = bytes(pending[start : found.start()])
                self.offset = self._pending_offset + start
                start = at
                if fields := self._record(record):
                    yield fields
        self._scanned = max(at, len(pending) - self._incomplete_bytes_max, 0) - start
        del pending[:start]
        self._pending_offset += start

    def finish(self) -> Iterator[list[str]]:
        """Yield the last record, if no separator follows it."""
        self.offset = self._pending_offset
        if self._is_quoted:
            raise FatalFault("ParseError", "The data end within a quoted field.", self.offset)
        if fields := self._record(bytes(self._pending)):
            yield fields

    def _record(self, record: bytes | bytearray) -> list[str] | None:
        """Return the fields of a record, or None of an empty line."""
        if self._separator == b"\n" and record.endswith(b"\r"):
            record = record[:-1]
        if len(record) > FIELDS_MAX and record.count(self._column_separator) >= FIELDS_MAX:
            raise FatalFault("RecordTooLarge", f"A record has more than {FIELDS_MAX} fields.", self.offset)
        # Bytes that are not UTF-8 come out as they went in.
        return self._fields(record.decode("utf-8", "surrogateescape")) if record else None


def _field_splitter(text_format: DelimitedText) -> Callable[[str], list[str]]:
    separator, quote, escape = text_format.column_separator, text_format.quote, text_format.escape
    escaped = [f"{re.escape(escape)}(?P<escaped>.)"] if escape else []
    quoted = [f"(?P<doubled>{re.escape(quote * 2)})", f"(?P<quote>{re.escape(quote)})"] if quote else []
    outside = re.compile("|".join([*escaped, *quoted[1:], f"(?P<separator>{re.escape(separator)})"]), re.DOTALL)
    inside = re.compile("|".join([*escaped, *quoted]) or r"(?!)", re.DOTALL)

    def split(record: str) -> list[str]:
        if not (quote and quote in record) and not (escape and escape in record):
            return record.split(separator)
        return _split_with_quotes(record, outside, inside, quote)

    return split


def _split_with_quotes(record: str, outside: re.Pattern[str], inside: re.Pattern[str], quote: str) -> list[str]:
    fields: list[str] = []
    parts: list[str] = []
    at = 0
    is_quoted = False
    while (found := (inside if is_quoted else outside).search(record, at)) is not None:
        parts.append(record[at : found.start()])
        at = found.end()
        match found.lastgroup:
            case "escaped":
                parts.append(found["escaped"])
            case "doubled":
                parts.append(quote)
            case "quote":
                is_quoted = not is_quoted
            case _:
                fields.append("".join(parts))
                parts = []
    parts.append(record[at:])
    fields.append("".join(parts))
    return fields


class DelimitedColumns:
    """The columns of delimited text: `_1` and following, and the names of a header."""

    def __init__(self, header: list[str] | None) -> None:
        self._header = header
        self._numbers: dict[str, int] = {}
        self._distinct: list[str] = []
        # Of equal names the first counts; a name in other capitals is found if no equal one is.
        for number, name in enumerate(header or []):
            # A second column of the name is known by its number.
            self._distinct.append(f"_{number + 1}" if name in self._distinct else name)
            self._numbers.setdefault(name, number)
        for number, name in enumerate(header or []):
            self._numbers.setdefault(name.lower(), number)

    def at(self, path: Path) -> Callable[[Record], Value | NoValue]:
        number = self._number(path)

        def read(record: list[str]) -> Value:
            if number < len(record):
                return record[number]
            raise RecordFault("InvalidColumnOrdinal", f"The record has no column {number + 1}: it has {len(record)}.")

        return read

    def members(self, record: list[str]) -> dict[str, Value | NoValue]:
        """Return the fields of a record by the names of their columns."""
        return dict(zip(self.names(len(record)), record, strict=True))

    def header_names(self) -> list[str]:
        return list(self._header or [])

    def names(self, count: int) -> list[str]:
        """Return the names of the first columns."""
        header = self._distinct[:count]
        return [*header, *(f"_{number + 1}" for number in range(len(header), count))]

    def _number(self, path: Path) -> int:
        name = path.steps[0]
        if len(path.steps) == 1 and isinstance(name, str):
            number = self._numbers.get(name, self._numbers.get(name.lower()))
            if number is not None:
                return number
            if ordinal := _ORDINAL.fullmatch(name):
                return int(ordinal[1]) - 1
        written = ".".join(map(str, path.steps))
        raise FatalFault("InvalidColumnName", f"There is no column {written[:200]}.", 0)
