"""One query over one blob: pieces of the blob go in, data and errors come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from asterism.languages.blob_sql.aggregates import Accumulator
from asterism.languages.blob_sql.compiling import Compiler, NoValue, Record
from asterism.languages.blob_sql.delimited_reader import DelimitedColumns, DelimitedReader
from asterism.languages.blob_sql.errors import FatalFault, RecordFault
from asterism.languages.blob_sql.formats import DelimitedText, Format
from asterism.languages.blob_sql.json_reader import JsonColumns, JsonReader, rows_of
from asterism.languages.blob_sql.record_writers import writer_of
from asterism.languages.blob_sql.tree import Aggregate, Column, Path, Select, Value
from asterism.limits import MIB

# Data are given away in whole records: clients split each piece of data into records by itself.
DATA_BYTES: Final = 1 * MIB
# Errors wait for the data before them, since clients take an error between two records for an end of data.
_WAITING_FAULTS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class ResultData:
    """Whole records in the format of the output."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ResultFault:
    """An error of a record, or of the data from a place on, after which no more results come."""

    is_fatal: bool
    name: str
    description: str
    position: int


Result = ResultData | ResultFault
Projection = Callable[[Record], dict[str, Value | NoValue]]


class QueryRun:
    """The state of a query. The first result is always data, if only of no bytes: clients rely on it.

    `feed` takes time in proportion to the piece; callers choose the length of pieces by the time they may block.
    `is_finished` says that the rest of the blob has no influence on the result.
    """

    def __init__(self, select: Select, *, source: Format, output: Format) -> None:
        self._select = select
        self._reader: Any
        self._columns: DelimitedColumns | JsonColumns
        self._awaits_header = isinstance(source, DelimitedText) and source.has_headers
        if isinstance(source, DelimitedText):
            self._reader, self._columns = DelimitedReader(source), DelimitedColumns(None)
        else:
            self._reader, self._columns = JsonReader(source), JsonColumns()
        self._source = source
        self._writer = writer_of(output)
        self._aggregated: list[Value] = [None] * len(select.aggregates)
        self._accumulators: list[Accumulator] = []
        self._condition: Callable[[Record], bool] = lambda _: True
        self._project: Projection | None = None
        self._data = bytearray()
        self._faults: list[ResultFault] = []
        self._has_given_data = False
        self._has_header = False
        self._records_left = select.limit
        self.is_finished = select.limit == 0 and not select.aggregates

    def feed(self, piece: bytes | memoryview) -> list[Result]:
        """Return the results that are complete; most wait until there are many."""
        self._run(self._reader.feed, piece)
        is_enough = len(self._data) >= DATA_BYTES or len(self._faults) >= _WAITING_FAULTS_MAX
        return self._given() if is_enough or self.is_finished else []

    def finish(self) -> list[Result]:
        """Return the last results, after the whole blob or as soon as `is_finished`."""
        if not self.is_finished:
            self._run(self._reader.finish)
            self._run(self._end)
        return self._given()

    def _run(self, read: Callable[..., Iterator[Record]], *arguments: object) -> None:
        if self.is_finished:
            return
        try:
            for record in read(*arguments):
                self._take(record)
                if self.is_finished:
                    return
        except FatalFault as fault:
            offset = self._reader.offset if fault.offset is None else fault.offset
            self._faults.append(ResultFault(True, fault.name, fault.description, offset))
            self.is_finished = True

    def _given(self) -> list[Result]:
        given: list[Result] = []
        if self._data or (self._faults and not self._has_given_data):
            given.append(ResultData(bytes(self._data)))
            self._has_given_data = True
        given.extend(self._faults)
        self._data.clear()
        self._faults.clear()
        return given

    # --- records ----------------------------------------------------------------------------------------------------

    def _take(self, record: Record) -> None:
        if self._awaits_header:
            self._awaits_header = False
            self._columns = DelimitedColumns(record)
            self._compile()
            return
        if self._project is None:
            self._compile()
        try:
            for row in rows_of(record, self._select.source):
                if self._condition(row):
                    self._select_row(row)
                if self.is_finished:
                    return
        except FatalFault:
            raise
        except RecordFault as fault:
            self._faults.append(ResultFault(False, fault.name, fault.description, self._reader.offset))

    def _select_row(self, row: Record) -> None:
        if self._accumulators:
            values = [accumulator.prepared(row) for accumulator in self._accumulators]
            for accumulator, value in zip(self._accumulators, values, strict=True):
                accumulator.add(value)
        elif self._project is not None:
            self._write(self._project(row))

    def _write(self, result: dict[str, Value | NoValue]) -> None:
        line = self._writer.record(result)
        self._write_header(list(result))
        self._data += line
        if self._records_left is not None:
            self._records_left -= 1
            self.is_finished = self._records_left == 0

    def _write_header(self, names: list[str]) -> None:
        if not self._has_header:
            self._has_header = True
            self._data += self._writer.header(self._known_names() or names)

    def _end(self) -> Iterator[Record]:
        """Write what comes after all records: aggregates, or the header that no record follows."""
        if self._awaits_header and not self._select.aggregates:
            return
        if self._project is None:
            self._compile()
        if self._accumulators:
            self._aggregated[:] = [accumulator.result() for accumulator in self._accumulators]
            if self._project is not None and self._records_left != 0:
                try:
                    self._write(self._project([]))
                except FatalFault:
                    raise
                except RecordFault as fault:
                    raise FatalFault(fault.name, fault.description) from None
        elif names := self._known_names():
            self._write_header(names)
        yield from ()

    # --- compilation ------------------------------------------------------------------------------------------------

    def _compile(self) -> None:
        """Compile the query; the columns of delimited text are known only from its header."""
        select = self._select
        if select.source and isinstance(self._source, DelimitedText):
            raise FatalFault("InvalidTable", "Delimited text has no paths: write FROM BlobStorage.", 0)
        compiler = Compiler(self._columns, self._aggregated)
        if select.condition is not None:
            self._condition = compiler.condition(select.condition)
        self._accumulators = [_accumulator(compiler, aggregate) for aggregate in select.aggregates]
        self._project = self._projection(compiler)

    def _projection(self, compiler: Compiler) -> Projection:
        if self._select.columns is None:
            return self._columns.members
        columns = self._select.columns
        named = list(
            zip(column_names(columns), [compiler.projected(found.expression) for found in columns], strict=True)
        )
        return lambda row: {name: evaluate(row) for name, evaluate in named}

    def _known_names(self) -> list[str]:
        """Return the names of the results as far as they are known without a record."""
        if self._select.columns is not None:
            return column_names(self._select.columns)
        return self._columns.header_names() if isinstance(self._columns, DelimitedColumns) else []


def _accumulator(compiler: Compiler, aggregate: Aggregate) -> Accumulator:
    return Accumulator(aggregate.kind, compiler.compiled(aggregate.operand) if aggregate.operand is not None else None)


def column_names(columns: tuple[Column, ...]) -> list[str]:
    """Return a name for each result: its alias, the end of its path or its number. Equal names get a number."""
    names: list[str] = []
    taken: set[str] = set()
    for number, column in enumerate(columns, start=1):
        name = column.alias or _path_name(column) or f"_{number}"
        if name in taken:
            name = f"_{number}"
        while name in taken:
            name = "_" + name
        taken.add(name)
        names.append(name)
    return names


def _path_name(column: Column) -> str | None:
    path = column.expression
    if not isinstance(path, Path) or not path.steps or not isinstance(path.steps[-1], str):
        return None
    return path.steps[-1]
