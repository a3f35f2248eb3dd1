"""The promise of a graph to the steps of a traversal: reads in bulk, and writes that are one unit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from asterism.languages.gremlin.graph.elements import Edge, KeyValue, Property, Vertex, VertexProperty

Direction = Literal["OUT", "IN", "BOTH"]
Cardinality = Literal["single", "list", "set"]


@dataclass(frozen=True, slots=True)
class IndexCondition:
    """A condition on a property that an index may answer: the values it may have, or a span of them."""

    name: str
    # One of eq, neq, gt, gte, lt, lte, within, without, exists; other predicates are not conditions.
    operator: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """The elements that a step asks for. All that is given must hold.

    The answer has exactly the elements with these ids, places, keys and labels. `conditions` help to find them: the
    answer may have others too, which the caller sorts out.
    """

    ids: tuple[str, ...] | None = None
    # Pairs of partition key and id.
    places: tuple[tuple[KeyValue, str], ...] | None = None
    keys: tuple[KeyValue, ...] | None = None
    labels: tuple[str, ...] | None = None
    conditions: tuple[IndexCondition, ...] = ()
    # No more results than this are needed; None for all.
    limit: int | None = None


EVERYTHING = Lookup()


@dataclass(slots=True)
class VertexDraft:
    """A vertex to be added; `properties` has name, value, cardinality and meta-properties in the order given."""

    label: str
    vertex_id: str | None = None
    properties: list[tuple[str, Any, Cardinality, Mapping[str, Any]]] = field(default_factory=list)
    # Stands for all that the element is merged by, if it has no id: writers that merge the same choose the same id, so
    # that only the first of them adds it.
    merged_by: str | None = None


@dataclass(slots=True)
class EdgeDraft:
    """An edge to be added between two vertices, each of which must exist when it is."""

    label: str
    source: Vertex
    target: Vertex
    edge_id: str | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    # See `VertexDraft`.
    merged_by: str | None = None


class GraphSession(Protocol):
    """One traversal's view of its graph, its own writes included. Raises errors of `asterism.errors`."""

    # The property that is the partition key; None for a graph without partitions.
    @property
    def key_name(self) -> str | None: ...

    def vertices(self, lookup: Lookup, /) -> AsyncIterator[list[Vertex]]:
        """Yield the vertices in batches, which begin small and grow."""
        ...

    def edges(self, lookup: Lookup, /) -> AsyncIterator[list[Edge]]: ...

    async def adjacent_edges(
        self, vertices: Sequence[Vertex], direction: Direction, lookup: Lookup, /
    ) -> list[list[Edge]]:
        """Return the edges of each vertex, in the order of `vertices`. An edge from a vertex to itself comes twice for
        BOTH. `lookup.labels` and `lookup.conditions` are of the edges; `lookup.limit` is for each vertex."""
        ...

    async def load(self, vertices: Sequence[Vertex], /) -> list[Vertex | None]:
        """Return the vertices with their documents, in their order; None for one that does not exist."""
        ...

    async def add_vertex(self, draft: VertexDraft, /) -> Vertex: ...

    async def add_edge(self, draft: EdgeDraft, /) -> Edge: ...

    async def set_vertex_property(
        self, vertex: Vertex, name: str, value: Any, cardinality: Cardinality, meta: Mapping[str, Any], /
    ) -> Vertex:
        """Return the vertex as it is then."""
        ...

    async def set_edge_property(self, edge: Edge, name: str, value: Any, /) -> Edge: ...

    async def set_meta_property(self, owner: VertexProperty, name: str, value: Any, /) -> VertexProperty: ...

    async def remove(self, elements: Sequence[Vertex | Edge | VertexProperty | Property], /) -> None:
        """Remove elements and properties that exist; a vertex goes with the edges of both directions."""
        ...

    async def commit(self) -> None:
        """Write what was staged. Within one logical partition all of it is written, or nothing."""
        ...
