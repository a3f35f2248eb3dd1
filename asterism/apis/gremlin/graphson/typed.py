"""Values as typed GraphSON of version 2 or 3, in the form that a JSON library writes."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import UUID

from asterism.apis.gremlin.key_text import key_text
from asterism.apis.gremlin.malformed import ResultRefused
from asterism.apis.gremlin.times import write_datetime, write_duration
from asterism.apis.gremlin.writers import writer_of
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.numbers import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    BigInteger,
    Byte,
    Float,
    Long,
    Short,
)
from asterism.languages.gremlin.values.results import Metrics, Path, TraversalMetrics, Tree
from asterism.languages.gremlin.values.structures import MapEntry

Version = Literal[2, 3]
Shape = Any


class TypedShapes:
    """Makes the shapes of values. Version 2 has plain arrays and objects; version 3 has types for them too."""

    __slots__ = ("_is_3", "_materializes", "_table")

    def __init__(self, version: Version, *, materializes_properties: bool = True) -> None:
        self._is_3 = version == 3
        self._materializes = materializes_properties
        self._table: dict[type, Callable[[Any], Shape]] = {
            type(None): _plain,
            bool: _plain,
            str: _plain,
            int: _integer,
            Long: lambda value: _typed("g:Int64", int(value)),
            Short: lambda value: _typed("gx:Int16", int(value)),
            Byte: lambda value: _typed("gx:Byte", int(value)),
            BigInteger: lambda value: _typed("gx:BigInteger", _digits(value)),
            float: lambda value: _typed("g:Double", finite_or_name(value)),
            Float: lambda value: _typed("g:Float", finite_or_name(float(value))),
            Decimal: lambda value: _typed("gx:BigDecimal", str(value)),
            datetime: lambda value: _typed("gx:OffsetDateTime", write_datetime(value)),
            timedelta: lambda value: _typed("gx:Duration", write_duration(value)),
            UUID: lambda value: _typed("g:UUID", str(value)),
            bytes: lambda value: _typed("gx:ByteBuffer", base64.b64encode(value).decode()),
            Token: lambda value: _typed(f"g:{value.kind}", value.name),
            list: self._list,
            tuple: self._list,
            set: self._set,
            frozenset: self._set,
            dict: self._map,
            MapEntry: lambda value: self._map({value.key: value.value}),
            Vertex: self._vertex,
            Edge: self._edge,
            VertexProperty: self._vertex_property,
            Property: self._property,
            Path: self._path,
            Tree: self._tree,
            Metrics: self._metrics,
            TraversalMetrics: self._traversal_metrics,
        }

    def shape(self, value: Any) -> Shape:
        """Return a value's shape. Raises ResultRefused for one that the format does not have."""
        found = self._table.get(type(value))
        return found(value) if found is not None else writer_of(self._table, value, form="GraphSON")(value)

    def traverser(self, value: Any, bulk: int) -> Shape:
        return _typed("g:Traverser", {"bulk": _typed("g:Int64", bulk), "value": self.shape(value)})

    def map(self, entries: dict[str, Any]) -> Shape:
        """Return the shape of a map of plain values, as responses have them."""
        return self._map(entries)

    def _list(self, value: Any) -> Shape:
        shapes = [self.shape(member) for member in value]
        return _typed("g:List", shapes) if self._is_3 else shapes

    def _set(self, value: Any) -> Shape:
        shapes = [self.shape(member) for member in value]
        return _typed("g:Set", shapes) if self._is_3 else shapes

    def _map(self, value: dict[Any, Any]) -> Shape:
        shape = self.shape
        if not self._is_3:
            return {key_text(key): shape(held) for key, held in value.items()}
        flat = []
        for key, held in value.items():
            flat.append(shape(key))
            flat.append(shape(held))
        return _typed("g:Map", flat)

    def _vertex(self, value: Vertex) -> Shape:
        fields: dict[str, Shape] = {"id": value.id, "label": value.label}
        if self._materializes and value.is_loaded:
            properties = value.properties
            if properties:
                fields["properties"] = {
                    name: [self._vertex_property(each) for each in held] for name, held in properties.items()
                }
        return _typed("g:Vertex", fields)

    def _vertex_property(self, value: VertexProperty) -> Shape:
        fields = {"id": value.id, "value": self.shape(value.value), "label": value.label}
        if value.meta and self._materializes:
            fields["properties"] = {name: self.shape(held) for name, held in value.meta.items()}
        return _typed("g:VertexProperty", fields)

    def _edge(self, value: Edge) -> Shape:
        fields: dict[str, Shape] = {
            "id": value.id,
            "label": value.label,
            "inVLabel": value.in_label,
            "outVLabel": value.out_label,
            "inV": value.in_id,
            "outV": value.out_id,
        }
        if self._materializes:
            properties = value.properties
            if properties:
                fields["properties"] = {
                    name: _typed("g:Property", {"key": name, "value": self.shape(held)})
                    for name, held in properties.items()
                }
        return _typed("g:Edge", fields)

    def _property(self, value: Property) -> Shape:
        return _typed("g:Property", {"key": value.key, "value": self.shape(value.value)})

    def _path(self, value: Path) -> Shape:
        labels = self._list([sorted(names) if not self._is_3 else set(names) for names in value.labels])
        return _typed("g:Path", {"labels": labels, "objects": self._list(value.objects)})

    def _tree(self, value: Tree) -> Shape:
        branches = [{"key": self.shape(key), "value": self._tree(branch)} for key, branch in value.items()]
        return _typed("g:Tree", branches)

    def _metrics(self, value: Metrics) -> Shape:
        fields: dict[str, Any] = {
            "dur": value.duration_nanoseconds / 1e6,
            "counts": {name: Long(count) for name, count in value.counts.items()},
            "name": value.name,
            "annotations": dict(value.annotations),
            "id": value.id,
        }
        if value.nested:
            fields["metrics"] = list(value.nested)
        return _typed("g:Metrics", self._map(fields))

    def _traversal_metrics(self, value: TraversalMetrics) -> Shape:
        fields = {"dur": value.duration_nanoseconds / 1e6, "metrics": list(value.metrics)}
        return _typed("g:TraversalMetrics", self._map(fields))


def _typed(name: str, value: Shape) -> Shape:
    return {"@type": name, "@value": value}


def _plain(value: Any) -> Shape:
    return value


def _integer(value: int) -> Shape:
    if INT_MIN <= value <= INT_MAX:
        return {"@type": "g:Int32", "@value": value}
    if LONG_MIN <= value <= LONG_MAX:
        return {"@type": "g:Int64", "@value": value}
    return {"@type": "gx:BigInteger", "@value": _digits(value)}


def _digits(value: int) -> str:
    try:
        return str(int(value))
    except ValueError:
        raise ResultRefused("A number among the results has too many digits for a text.") from None


_NAMES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def finite_or_name(value: float) -> float | str:
    """Return a number as JSON can write it: those that are not finite by their names."""
    return value if math.isfinite(value) else _NAMES.get(value, "NaN")
