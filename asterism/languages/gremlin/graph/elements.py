"""Vertices, edges and their properties: views of the documents that the service stores for a graph.

A vertex keeps its properties as lists of values, `{"name": [{"id": "...", "_value": "x", "_meta": {...}}]}`; its
partition key and `ttl` stand there plainly. An edge keeps them plainly, and names both ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# The value of a partition key: a text, a number, a boolean, null; or a number in a graph without partitions.
KeyValue = str | int | float | bool | None

EDGE_MARK = "_isEdge"
SOURCE_ID = "_vertexId"
SOURCE_LABEL = "_vertexLabel"
SINK_ID = "_sink"
SINK_LABEL = "_sinkLabel"
SINK_KEY = "_sinkPartition"
# The id of an edge whose document has another: that of a vertex of its logical partition was taken.
EDGE_ID = "_edgeId"

# The label of a vertex that was given none.
DEFAULT_LABEL = "vertex"

# Properties that the store adds to documents, which a traversal does not see.
VERSION = "_etag"
STORE_NAMES = frozenset({"_rid", "_self", VERSION, "_ts", "_attachments", "_lsn"})
VERTEX_NAMES = STORE_NAMES | {"id", "label"}
EDGE_NAMES = VERTEX_NAMES | {EDGE_MARK, SOURCE_ID, SOURCE_LABEL, SINK_ID, SINK_LABEL, SINK_KEY, EDGE_ID}


def twin_id(edge_id: str) -> str:
    """Return the id of the document of an edge that has the id of a vertex of its logical partition: TinkerPop's graphs
    count vertices and edges apart, documents have one id for each."""
    return f"{edge_id}|edge"


class Vertex:
    """A vertex: its place (partition key, id) and label, and its document if it was loaded.

    A vertex that comes from an edge has no document until a step needs its properties (`GraphSession.load`).
    """

    __slots__ = ("_properties", "document", "id", "key", "key_name", "label")

    def __init__(
        self,
        vertex_id: str,
        label: str,
        key: KeyValue,
        document: Mapping[str, Any] | None,
        *,
        key_name: str | None,
    ) -> None:
        self.id = vertex_id
        self.label = label
        self.key = key
        self.document = document
        # The name of the property that is the graph's partition key; None in a graph without partitions.
        self.key_name = key_name
        self._properties: dict[str, list[VertexProperty]] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vertex) and self.id == other.id and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"v[{self.id}]"

    @property
    def item_id(self) -> str:
        """The id of its document."""
        return self.id

    @property
    def is_loaded(self) -> bool:
        return self.document is not None

    @property
    def properties(self) -> Mapping[str, list[VertexProperty]]:
        """The properties by name, the partition key first; the document must be loaded."""
        found = self._properties
        if found is None:
            found = self._properties = self._read_properties()
        return found

    def values(self, name: str) -> list[Any]:
        """Return the values of one property, without making objects of the others."""
        document = self.document
        assert document is not None, "load a vertex before its properties are asked for"
        if name in VERTEX_NAMES or name not in document:
            return []
        stored = document[name]
        if type(stored) is list:
            return [entry["_value"] if type(entry) is dict else entry for entry in stored]
        return [stored]

    def _read_properties(self) -> dict[str, list[VertexProperty]]:
        document, found = self.document, {}
        assert document is not None, "load a vertex before its properties are asked for"
        key_name = self.key_name
        if key_name is not None and key_name in document:
            found[key_name] = [VertexProperty(f"{self.id}|{key_name}", key_name, document[key_name], self, {})]
        for name, stored in document.items():
            if name not in VERTEX_NAMES and name != key_name:
                found[name] = list(self._values_of(name, stored))
        return found

    def _values_of(self, name: str, stored: Any) -> Iterator[VertexProperty]:
        entries = stored if type(stored) is list else [stored]
        for entry in entries:
            if type(entry) is dict and "_value" in entry:
                yield VertexProperty(
                    entry.get("id", f"{self.id}|{name}"), name, entry["_value"], self, entry.get("_meta") or {}
                )
            else:
                yield VertexProperty(f"{self.id}|{name}", name, entry, self, {})


class VertexProperty:
    """One value of a property of a vertex, with an id and properties of its own."""

    __slots__ = ("id", "label", "meta", "value", "vertex")

    def __init__(self, property_id: str, label: str, value: Any, vertex: Vertex, meta: Mapping[str, Any]) -> None:
        self.id = property_id
        self.label = label
        self.value = value
        self.vertex = vertex
        self.meta = meta

    @property
    def key(self) -> str:
        return self.label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VertexProperty) and self.id == other.id and self.vertex == other.vertex

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"vp[{self.label}->{self.value}]"


class Edge:
    """An edge, which lies with its source vertex and knows where its target is."""

    __slots__ = (
        "document",
        "id",
        "in_id",
        "in_key",
        "in_label",
        "item_id",
        "key",
        "key_name",
        "label",
        "out_id",
        "out_label",
    )

    def __init__(self, document: Mapping[str, Any], *, key_name: str | None) -> None:
        self.document = document
        self.key_name = key_name
        # The id of its document; nearly always the edge's own.
        self.item_id: str = document["id"]
        self.id: str = document.get(EDGE_ID) or self.item_id
        self.label: str = document["label"]
        # The partition key of the edge, which is that of its source.
        self.key: KeyValue = None if key_name is None else document.get(key_name)
        self.out_id: str = document[SOURCE_ID]
        self.out_label: str = document.get(SOURCE_LABEL, DEFAULT_LABEL)
        self.in_id: str = document[SINK_ID]
        self.in_label: str = document.get(SINK_LABEL, DEFAULT_LABEL)
        self.in_key: KeyValue = None if key_name is None else document.get(SINK_KEY)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edge) and self.id == other.id and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"e[{self.id}][{self.out_id}-{self.label}->{self.in_id}]"

    @property
    def out_vertex(self) -> Vertex:
        """The source, not loaded."""
        return Vertex(self.out_id, self.out_label, self.key, None, key_name=self.key_name)

    @property
    def in_vertex(self) -> Vertex:
        """The target, not loaded."""
        return Vertex(self.in_id, self.in_label, self.in_key, None, key_name=self.key_name)

    @property
    def properties(self) -> Mapping[str, Any]:
        key_name = self.key_name
        return {name: value for name, value in self.document.items() if name not in EDGE_NAMES and name != key_name}


class Property:
    """A property of an edge, or of a property of a vertex."""

    __slots__ = ("element", "key", "value")

    def __init__(self, key: str, value: Any, element: Edge | VertexProperty) -> None:
        self.key = key
        self.value = value
        self.element = element

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Property) and self.key == other.key and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"p[{self.key}->{self.value}]"


Element = Vertex | Edge | VertexProperty
