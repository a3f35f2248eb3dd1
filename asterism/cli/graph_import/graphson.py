"""GraphSON files, of the versions 1 to 3: a vertex with its edges on each line, as TinkerPop's own data files are, or
one JSON text with all of them.

The forms of one text are `{"vertices": [...]}`, with the edges in the vertices or in `"edges": [...]`, and a plain list
of elements, such as the results of a traversal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from asterism.cli.graph_import.records import (
    BadElement,
    EdgeRecord,
    EndRecord,
    Record,
    VertexRecord,
    checked_value,
    id_text,
    label_text,
)
from asterism.errors import AsterismError
from asterism.values.json.text import loads

# Far more than a vertex with its edges needs; a file without lines must not fill the memory.
LINE_BYTES_MAX: Final = 256 * 1024 * 1024
_VERTEX_LABEL: Final = "vertex"
_EDGE_LABEL: Final = "edge"
_OLD_TYPES: Final = (
    "the file is GraphSON 1 with the names of Java's classes (@class); write it without types, or as GraphSON 3"
)


def read_graphson(path: Path, *, edges: bool) -> Iterator[tuple[int, int, Record]]:
    """Yield (line, bytes read so far, element): the edges, or else the vertices. A text of several lines counts
    elements instead of lines."""
    with path.open("rb") as file:
        first = file.readline(LINE_BYTES_MAX)
        if _is_line_of_element(first):
            number, bytes_read, line = 1, 0, first
            while line:
                bytes_read += len(line)
                if line.strip():
                    try:
                        parsed = _parsed(line)
                        for record in _records(parsed, edges=edges):
                            yield number, bytes_read, record
                    except BadElement as bad:
                        raise BadElement(f"line {number}: {bad}") from None
                line = file.readline(LINE_BYTES_MAX)
                number += 1
            return
        text = first + file.read()
    for number, element in enumerate(_elements(text), 1):
        try:
            for record in _records(element, edges=edges):
                yield number, len(text), record
        except BadElement as bad:
            raise BadElement(f"element {number}: {bad}") from None


def _is_line_of_element(line: bytes) -> bool:
    try:
        found = loads(line)
    except AsterismError:
        # One JSON text on several lines begins with half of it; so does a line that is broken, which is then reported.
        return line.strip() not in (b"{", b"[") and b'"id"' in line and b'"vertices"' not in line
    return isinstance(found, dict) and "vertices" not in plain(found)


def _elements(text: bytes) -> Iterator[Any]:
    found = _parsed(text)
    if isinstance(found, dict):
        vertices, edges = found.get("vertices", []), found.get("edges", [])
        if not isinstance(vertices, list) or not isinstance(edges, list) or "vertices" not in found:
            raise BadElement("the file has neither elements nor 'vertices'")
        yield from vertices
        yield from edges
    elif isinstance(found, list):
        yield from found
    else:
        raise BadElement("the file is JSON, but no GraphSON")


def _parsed(text: bytes) -> Any:
    if not text.strip():
        raise BadElement("the file is empty")
    try:
        value = loads(text)
    except AsterismError as error:
        raise BadElement(str(getattr(error, "reason", error))) from None
    return plain(value) if b'"@type"' in text else value


# --- values ----------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a value of GraphSON 2 or 3 without its types; of other JSON, the value itself."""
    if type(value) is list:
        return [plain(entry) for entry in value]
    if type(value) is not dict:
        return value
    if "@type" not in value:
        return {name: plain(entry) for name, entry in value.items()}
    return _TYPES.get(value["@type"], plain)(value.get("@value"))


def _map(pairs: Any) -> Any:
    flat = plain(pairs)
    if not isinstance(flat, list):
        return flat
    return {str(name): entry for name, entry in zip(flat[::2], flat[1::2], strict=False)}


def _number(value: Any) -> Any:
    """Return a number; those that JSON does not have come as texts, and are refused with their property."""
    return float(value) if isinstance(value, str) else value


def _moment(milliseconds: Any) -> Any:
    if not isinstance(milliseconds, int | float):
        return milliseconds
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_TYPES: Final[dict[str, Callable[[Any], Any]]] = {
    "g:Map": _map,
    "g:Double": _number,
    "g:Float": _number,
    "g:Date": _moment,
    "g:Timestamp": _moment,
}


# --- elements --------------------------------------------------------------------------------------------------------


def _records(element: Any, *, edges: bool) -> Iterator[Record]:
    if not isinstance(element, dict):
        raise BadElement("it is not the JSON object of an element")
    if "@class" in element:
        raise BadElement(_OLD_TYPES)
    if "inV" in element or element.get("type") == "edge":
        if edges:
            yield _edge(
                element, element.get("label"), source=element.get("outV"), source_label=element.get("outVLabel")
            )
        return
    vertex_id = id_text(element.get("id"), noun="vertex")
    label = label_text(element.get("label"), noun="vertex", default=_VERTEX_LABEL)
    if not edges:
        yield VertexRecord(vertex_id, label, _vertex_properties(element.get("properties") or {}))
        return
    for edge_label, outgoing in _object(element.get("outE") or {}, "outE").items():
        for edge in outgoing if isinstance(outgoing, list) else [outgoing]:
            yield _edge(_object(edge, "outE"), edge_label, source=vertex_id, source_label=label)


def _vertex_properties(properties: Any) -> dict[str, list[tuple[Any, dict[str, Any]]]]:
    found = {}
    for name, values in _object(properties, "properties").items():
        found[name] = [_vertex_property(name, value) for value in (values if isinstance(values, list) else [values])]
    return found


def _vertex_property(name: str, value: Any) -> tuple[Any, dict[str, Any]]:
    if not isinstance(value, dict):
        return checked_value(name, value), {}
    if "value" not in value:
        raise BadElement(f"the property {name!r} has no 'value'")
    return checked_value(name, value["value"]), _plain_properties(value.get("properties") or {})


def _plain_properties(properties: Any) -> dict[str, Any]:
    return {
        name: checked_value(name, value["value"] if isinstance(value, dict) and "value" in value else value)
        for name, value in _object(properties, "properties").items()
    }


def _edge(element: dict[str, Any], label: Any, *, source: Any, source_label: Any) -> EdgeRecord:
    given = element.get("id")
    return EdgeRecord(
        None if given is None else id_text(given, noun="edge"),
        label_text(label, noun="edge", default=_EDGE_LABEL),
        EndRecord(id_text(source, noun="source of the edge"), None, source_label),
        EndRecord(id_text(element.get("inV"), noun="target of the edge"), None, element.get("inVLabel")),
        _plain_properties(element.get("properties") or {}),
    )


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadElement(f"'{name}' is not a JSON object")
    return value
