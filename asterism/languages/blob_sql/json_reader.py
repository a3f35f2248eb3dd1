"""Records of JSON, one value after the other, out of pieces of bytes of any length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from asterism.errors import MalformedRequest
from asterism.languages.blob_sql.compiling import MISSING, NoValue, Record
from asterism.languages.blob_sql.delimited_reader import RECORD_BYTES_MAX
from asterism.languages.blob_sql.errors import FatalFault
from asterism.languages.blob_sql.formats import JsonText
from asterism.languages.blob_sql.tree import EveryElement, Path, Step, Value
from asterism.values.json.text import loads

_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_IN_STRING: Final = re.compile(rb'\\.|"', re.DOTALL)


class JsonReader:
    """Splits bytes where brackets are balanced; `offset` is where the record that was yielded last begins."""

    def __init__(self, json_format: JsonText) -> None:
        # Between records stand blanks or the separator, or nothing.
        between = re.escape(json_format.record_separator.encode())
        self._between = re.compile(rb"(?:[\s,]|" + between + rb")*" if between else rb"[\s,]*")
        self._pending = bytearray()
        self._pending_offset = 0
        self._scanned = 0
        self._depth = 0
        self._is_string = False
        self.offset = 0

    def feed(self, piece: bytes | memoryview) -> Iterator[Value]:
        """Yield the records that `piece` completes; all must be consumed before the next piece."""
        pending = self._pending
        pending += piece
        start, at = self._skip_between(0), self._scanned
        while (at := self._next_end(max(at, start))) >= 0:
            text = bytes(pending[start:at])
            self.offset = self._pending_offset + start
            start = self._skip_between(at)
            yield from self._records(text)
        del pending[:start]
        self._pending_offset += start
        # An escape at the end needs the byte after it.
        is_escaping = self._is_string and (len(pending) - len(pending.rstrip(b"\\"))) % 2 == 1
        self._scanned = len(pending) - is_escaping
        if len(pending) > RECORD_BYTES_MAX:
            raise FatalFault(
                "RecordTooLarge", f"A record has more than {RECORD_BYTES_MAX} bytes.", self._pending_offset
            )

    def finish(self) -> Iterator[Value]:
        """Check that no record is cut off."""
        if self._pending:
            raise FatalFault("ParseError", "The data end within a record.", self._pending_offset)
        yield from ()

    def _skip_between(self, at: int) -> int:
        """Return the place where a record begins; within a record it is where that began."""
        if self._depth or self._is_string:
            return at
        pending = self._pending
        found = self._between.match(pending, at)
        at = at if found is None else found.end()
        if at < len(pending) and pending[at] not in b"{[":
            raise FatalFault(
                "ParseError",
                f"Unexpected token {chr(pending[at])!r} at [byte: {self._pending_offset + at}]. Expecting tokens '{{'.",
                self._pending_offset + at,
            )
        return at

    def _next_end(self, at: int) -> int:
        """Return the end of the record that is open at `at`, or -1 if it is not complete."""
        pending = self._pending
        while (found := (_IN_STRING if self._is_string else _OUTSIDE).search(pending, at)) is not None:
            at = found.end()
            sign = found.group()
            if sign == b'"':
                self._is_string = not self._is_string
            elif sign in (b"{", b"["):
                self._depth += 1
            elif sign in (b"}", b"]"):
                self._depth -= 1
                if self._depth <= 0:
                    return at
        return -1

    def _records(self, text: bytes) -> Iterator[Value]:
        """Yield the record, or the elements of a list, which are records too."""
        try:
            value = loads(text)
        except MalformedRequest as error:
            raise FatalFault("ParseError", error.reason, self.offset) from None
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict):
            yield value


class JsonColumns:
    """The members of a record. `_1` is the record itself, unless it has a member of that name."""

    def at(self, path: Path) -> Callable[[Record], Value | NoValue]:
        first, *rest = path.steps or ("_1",)

        def read(record: Record) -> Value | NoValue:
            value = _step(record, first)
            if value is MISSING and first == "_1":
                value = record
            for step in rest:
                value = _step(value, step)
            return value

        return read

    def members(self, record: Record) -> dict[str, Value | NoValue]:
        return record if isinstance(record, dict) else {"_1": record}


def _step(value: Record, step: str | int) -> Value | NoValue:
    if isinstance(value, dict):
        found: Value | NoValue = value.get(step, MISSING)
        return found
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        element: Value = value[step]
        return element
    return MISSING


def rows_of(record: Record, source: tuple[Step, ...]) -> Iterator[Record]:
    """Yield what the path of FROM selects of a record: it, a part of it, or the elements of lists in it."""
    if not source:
        yield record
        return
    step, rest = source[0], source[1:]
    if isinstance(step, EveryElement):
        for element in record if isinstance(record, list) else ():
            yield from rows_of(element, rest)
    else:
        value = _step(record, step)
        if value is not MISSING:
            yield from rows_of(value, rest)
