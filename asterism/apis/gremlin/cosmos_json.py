"""Results as the service shows them: plain JSON without types, whatever format the request has.

A step below every result of most requests: vertices are made from their documents directly, without the objects of
their properties.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from asterism.apis.gremlin.graphson.typed import finite_or_name
from asterism.apis.gremlin.key_text import key_text
from asterism.apis.gremlin.times import write_datetime, write_duration
from asterism.apis.gremlin.writers import writer_of
from asterism.languages.gremlin.graph.elements import VERTEX_NAMES, Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.numbers import Byte, Float, Long, Short
from asterism.languages.gremlin.values.results import Metrics, Path, TraversalMetrics, Tree
from asterism.languages.gremlin.values.structures import MapEntry

Shape = Any


class PlainShapes:
    """Makes the shapes of values; without properties of vertices and edges if the request does not want them."""

    __slots__ = ("_table",)

    def __init__(self, *, materializes_properties: bool = True) -> None:
        self._table: dict[type, Callable[[Any], Shape]] = {
            **_SIMPLE,
            list: self._list,
            tuple: self._list,
            set: self._list,
            frozenset: self._list,
            dict: self._map,
            MapEntry: lambda entry: {key_text(entry.key): self.shape(entry.value)},
            Vertex: _vertex if materializes_properties else _vertex_without_properties,
            Edge: _edge if materializes_properties else _edge_without_properties,
            VertexProperty: self._vertex_property,
            Property: lambda value: {"key": value.key, "value": self.shape(value.value)},
            Path: self._path,
            Tree: self._tree,
        }

    def shape(self, value: Any) -> Shape:
        """Return a value in the form that a JSON library writes. Raises ResultRefused."""
        found = self._table.get(type(value))
        return found(value) if found is not None else writer_of(self._table, value, form="JSON")(value)

    def _list(self, value: Any) -> Shape:
        shape = self.shape
        return [shape(member) for member in value]

    def _map(self, value: Mapping[Any, Any]) -> Shape:
        shape = self.shape
        return {key if type(key) is str else key_text(key): shape(held) for key, held in value.items()}

    def _vertex_property(self, value: VertexProperty) -> Shape:
        shape = {"id": value.id, "value": self.shape(value.value), "label": value.label}
        if value.meta:
            shape["properties"] = self._map(value.meta)
        return shape

    def _path(self, value: Path) -> Shape:
        return {"labels": [sorted(names) for names in value.labels], "objects": self._list(value.objects)}

    def _tree(self, value: Tree) -> Shape:
        return {key_text(key): {"key": self.shape(key), "value": self._tree(branch)} for key, branch in value.items()}


def _itself(value: Any) -> Shape:
    return value


def _vertex(vertex: Vertex) -> Shape:
    document, vertex_id = vertex.document, vertex.id
    shape: dict[str, Shape] = {"id": vertex_id, "label": vertex.label, "type": "vertex"}
    if document is None:
        return shape
    properties = {}
    key_name = vertex.key_name
    if key_name is not None and key_name in document:
        properties[key_name] = [{"id": f"{vertex_id}|{key_name}", "value": document[key_name]}]
    for name, stored in document.items():
        if name in VERTEX_NAMES or name == key_name:
            continue
        if type(stored) is list:
            properties[name] = [_stored_value(entry, vertex_id, name) for entry in stored]
        else:
            properties[name] = [_stored_value(stored, vertex_id, name)]
    if properties:
        shape["properties"] = properties
    return shape


def _stored_value(entry: Any, vertex_id: str, name: str) -> Shape:
    if type(entry) is not dict or "_value" not in entry:
        return {"id": f"{vertex_id}|{name}", "value": entry}
    shape = {"id": entry.get("id") or f"{vertex_id}|{name}", "value": entry["_value"]}
    meta = entry.get("_meta")
    if meta:
        shape["properties"] = meta
    return shape


def _edge_without_properties(edge: Edge) -> dict[str, Shape]:
    return {
        "id": edge.id,
        "label": edge.label,
        "type": "edge",
        "inVLabel": edge.in_label,
        "outVLabel": edge.out_label,
        "inV": edge.in_id,
        "outV": edge.out_id,
    }


def _edge(edge: Edge) -> Shape:
    shape = _edge_without_properties(edge)
    properties = edge.properties
    if properties:
        shape["properties"] = properties
    return shape


def _vertex_without_properties(vertex: Vertex) -> Shape:
    return {"id": vertex.id, "label": vertex.label, "type": "vertex"}


_SIMPLE: Mapping[type, Callable[[Any], Shape]] = {
    type(None): _itself,
    bool: _itself,
    str: _itself,
    int: _itself,
    Long: _itself,
    Short: _itself,
    Byte: _itself,
    float: finite_or_name,
    Float: lambda value: finite_or_name(float(value)),
    Decimal: lambda value: finite_or_name(float(value)),
    datetime: write_datetime,
    timedelta: write_duration,
    UUID: str,
    bytes: lambda value: base64.b64encode(value).decode(),
    Token: lambda value: value.name,
    # As text: a program that wants the figures asks for types, or for executionProfile().
    Metrics: lambda value: value.name,
    TraversalMetrics: str,
}
