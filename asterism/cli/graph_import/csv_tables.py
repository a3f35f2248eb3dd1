"""Tables of vertices and edges as CSV files, with plain names of columns or those of bulk loaders (`~id`)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from asterism.cli.graph_import.records import (
    BadElement,
    EdgeRecord,
    EndRecord,
    Record,
    VertexRecord,
    checked_value,
    label_text,
)

# An item has at most 2 MB.
csv.field_size_limit(2 * 1024 * 1024)

# `name:Type`, `name:Type[]` and, as bulk loaders write it, `name:Type(cardinality)`.
_COLUMN: Final = re.compile(
    r"(?P<name>.*?):(?P<type>[A-Za-z]+)(?:\((?:single|set|list)\))?(?P<many>\[\])?\Z", re.DOTALL
)
_MANY_SEPARATOR: Final = ";"
# Names of columns that are no properties, in small letters and without the mark of bulk loaders.
_FIXED: Final = ("id", "label", "from", "to", "frompk", "topk", "fromlabel", "tolabel")
_SOURCE, _TARGET = "from", "to"
_TRUE, _FALSE = ("true", "1"), ("false", "0")


def _boolean(text: str) -> bool:
    if text.lower() in (*_TRUE, *_FALSE):
        return text.lower() in _TRUE
    raise ValueError(text)


_TYPES: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("string", "date", "datetime", "text"), str),
    **dict.fromkeys(("byte", "short", "int", "integer", "long"), int),
    **dict.fromkeys(("float", "double", "number"), float),
    **dict.fromkeys(("bool", "boolean"), _boolean),
}


class Column:
    """A column of properties: its name, and how its cells become values."""

    __slots__ = ("_convert", "_is_many", "_type", "name")

    def __init__(self, header: str) -> None:
        match = _COLUMN.match(header)
        declared = None if match is None else match["type"].lower()
        if match is None or declared is None or declared not in _TYPES:
            # Without a type that is known here, a colon is part of the name.
            self.name, self._type, self._is_many = header, "string", False
        else:
            self.name, self._type, self._is_many = match["name"], declared, match["many"] is not None
        if not self.name:
            raise BadElement("a column has no name")
        self._convert = _TYPES[self._type]

    def values(self, text: str) -> list[Any]:
        """Return the values of a cell that is not empty."""
        texts = [part for part in text.split(_MANY_SEPARATOR) if part] if self._is_many else [text]
        try:
            return [checked_value(self.name, self._convert(part)) for part in texts]
        except ValueError:
            raise BadElement(f"the column {self.name!r} has {text[:60]!r}, which is no {self._type}") from None

    def value(self, text: str) -> Any:
        found = self.values(text)
        return found if self._is_many else found[0]


class Header:
    """The first line of a table: places of the columns that elements need, and of their properties."""

    def __init__(self, names: Sequence[str]) -> None:
        self.places: dict[str, int] = {}
        self.columns: list[tuple[int, Column]] = []
        self.keys: dict[str, Column] = {}
        for place, given in enumerate(names):
            name = given.strip()
            base = name.removeprefix("~").partition(":")[0].lower() if not name.startswith(":") else name[1:].lower()
            if base in _FIXED and (name.startswith("~") or name.lower().partition(":")[0] == base):
                self.places[base] = place
                self.keys[base] = Column(name.removeprefix("~"))
            else:
                self.columns.append((place, Column(name)))

    @property
    def is_of_edges(self) -> bool:
        return _SOURCE in self.places and _TARGET in self.places

    def check(self) -> None:
        if not self.is_of_edges and "id" not in self.places:
            raise BadElement(
                "the first line must name the columns: id and label of vertices, or from and to of edges "
                "(~id, ~from and ~to are accepted too)"
            )


def is_table_of_edges(path: Path) -> bool:
    """Return True if the first line of a file names the ends of edges; BadElement if it names no elements at all."""
    with path.open("rb") as raw:
        for row in _rows(raw):
            header = Header(row)
            try:
                header.check()
            except BadElement as bad:
                raise BadElement(f"line 1: {bad}") from None
            return header.is_of_edges
    raise BadElement("the file is empty")


def _rows(raw: Any) -> Any:
    return csv.reader(io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""))


def read_table(path: Path) -> Iterator[tuple[int, int, Record]]:
    """Yield (line, bytes read so far, element)."""
    with path.open("rb") as raw:
        rows = _rows(raw)
        try:
            header = Header(next(rows, []))
            header.check()
            make = _edge_maker(header) if header.is_of_edges else _vertex_maker(header)
            width = len(header.places) + len(header.columns)
            for row in rows:
                if not row:
                    continue
                if len(row) != width:
                    raise BadElement(f"the line has {len(row)} cells, the first line {width}")
                yield rows.line_num, raw.tell(), make(row)
        except BadElement as bad:
            raise BadElement(f"line {max(rows.line_num, 1)}: {bad}") from None
        except csv.Error as error:
            raise BadElement(f"line {rows.line_num}: {error}") from None
        except UnicodeDecodeError:
            raise BadElement(f"line {rows.line_num + 1}: the text is not UTF-8") from None


def _vertex_maker(header: Header) -> Callable[[list[str]], VertexRecord]:
    id_place, label_place, columns = header.places["id"], header.places.get("label"), header.columns

    def make(row: list[str]) -> VertexRecord:
        if not row[id_place]:
            raise BadElement("the vertex has no id")
        label = label_text(None if label_place is None else row[label_place], noun="vertex", default="vertex")
        properties: dict[str, list[tuple[Any, dict[str, Any]]]] = {
            column.name: [(value, {}) for value in column.values(row[place])] for place, column in columns if row[place]
        }
        return VertexRecord(row[id_place], label, properties)

    return make


def _edge_maker(header: Header) -> Callable[[list[str]], EdgeRecord]:
    places, columns, keys = header.places, header.columns, header.keys
    id_place, label_place = places.get("id"), places.get("label")
    source, target = _end_maker(places, keys, _SOURCE), _end_maker(places, keys, _TARGET)

    def make(row: list[str]) -> EdgeRecord:
        return EdgeRecord(
            (row[id_place] or None) if id_place is not None else None,
            label_text(None if label_place is None else row[label_place], noun="edge", default="edge"),
            source(row),
            target(row),
            {column.name: column.value(row[place]) for place, column in columns if row[place]},
        )

    return make


def _end_maker(places: dict[str, int], keys: dict[str, Column], end: str) -> Callable[[list[str]], EndRecord]:
    id_place, key_place, label_place = places[end], places.get(f"{end}pk"), places.get(f"{end}label")
    key_column = keys.get(f"{end}pk")

    def make(row: list[str]) -> EndRecord:
        if not row[id_place]:
            raise BadElement(f"the edge does not say where it goes {end}")
        key = (
            key_column.value(row[key_place])
            if key_column is not None and key_place is not None and row[key_place]
            else None
        )
        return EndRecord(row[id_place], key, (row[label_place] or None) if label_place is not None else None)

    return make
