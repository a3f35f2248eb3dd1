"""Elements as a client sends them: an id and a label, without the partition key that would say where they are.

A reference equals the element with its id. The steps that need more look it up by the id.
"""

from __future__ import annotations

from asterism.languages.gremlin.graph.elements import (
    EDGE_MARK,
    SINK_ID,
    SINK_LABEL,
    SOURCE_ID,
    SOURCE_LABEL,
    Edge,
    Vertex,
)


class VertexReference(Vertex):
    """A vertex by its id."""

    __slots__ = ()

    def __init__(self, vertex_id: str, label: str) -> None:
        super().__init__(vertex_id, label, None, None, key_name=None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vertex) and self.id == other.id

    __hash__ = Vertex.__hash__


class EdgeReference(Edge):
    """An edge by its id."""

    __slots__ = ()

    def __init__(self, edge_id: str, label: str, source: VertexReference, target: VertexReference) -> None:
        document = {
            "id": edge_id,
            "label": label,
            EDGE_MARK: True,
            SOURCE_ID: source.id,
            SOURCE_LABEL: source.label,
            SINK_ID: target.id,
            SINK_LABEL: target.label,
        }
        super().__init__(document, key_name=None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edge) and self.id == other.id

    __hash__ = Edge.__hash__
