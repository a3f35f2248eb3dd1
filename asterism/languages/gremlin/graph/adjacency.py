"""The edges of vertices: those that leave them, where the vertices are, and those that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from asterism.languages.gremlin.failure import MemoryExceeded
from asterism.languages.gremlin.graph.contract import Lookup
from asterism.languages.gremlin.graph.documents import read_element
from asterism.languages.gremlin.graph.elements import SINK_ID, SOURCE_ID, Edge, Vertex
from asterism.languages.gremlin.graph.items import Document
from asterism.languages.gremlin.graph.profile import Ledger, RunningOperation
from asterism.languages.gremlin.graph.reads import GET_EDGES, GraphReads
from asterism.languages.gremlin.graph.routing import end_spans, same_key
from asterism.languages.gremlin.graph.together import together
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.cosmos.edges import label_bytes
from asterism.models.documents.incoming.reads import entries_for
from asterism.partitioning.key_range import KeyRange
from asterism.partitioning.partition_map import PartitionRange

# Edges of one batch of vertices, at about a kilobyte each.
_EDGES_MAX: Final = 250_000


@dataclass(frozen=True, slots=True)
class _Side:
    """One end of edges: the property that names it, and the test whether a vertex is there."""

    name: str
    is_at: Callable[[Edge, Vertex], bool]


_SOURCE = _Side(SOURCE_ID, lambda edge, vertex: edge.out_id == vertex.id and same_key(edge.key, vertex.key))
_SINK = _Side(SINK_ID, lambda edge, vertex: edge.in_id == vertex.id and same_key(edge.in_key, vertex.key))

# The edges of each vertex, and whether it may have more than a limit let be read.
_Found = tuple[list[list[Edge]], list[bool]]


class EdgeReads:
    """Reads of the edges of many vertices at once, of what is in the store."""

    __slots__ = ("_container", "_ledger", "_reads", "_router")

    def __init__(self, container: Container, services: DocumentServices, reads: GraphReads, ledger: Ledger) -> None:
        self._container = container
        self._router = services.router
        self._reads = reads
        self._ledger = ledger

    async def out_edges(self, vertices: Sequence[Vertex], lookup: Lookup) -> list[list[Edge]]:
        """Return the edges that leave each vertex: they lie in its logical partition."""
        intervals = [[self._reads.logical_interval(vertex.key)] for vertex in vertices]
        return await self._within_limit(_SOURCE, vertices, intervals, lookup)

    async def in_edges(self, vertices: Sequence[Vertex], lookup: Lookup) -> list[list[Edge]]:
        """Return the edges that lead to each vertex: by the entries that the graph keeps where the vertices are, or
        else from every partition."""
        if self._container.has_all_incoming_edges:
            found = await self._incoming(vertices, lookup)
            if found is not None:
                return found
        ranges = [partition.range for partition in self._container.keyspace.record.map.ranges]
        return await self._within_limit(_SINK, vertices, [ranges] * len(vertices), lookup)

    async def _incoming(self, vertices: Sequence[Vertex], lookup: Lookup) -> list[list[Edge]] | None:
        operation = self._ledger.begin(GET_EDGES, "incoming")
        sinks = [(self._reads.point(vertex.key), vertex.id.encode()) for vertex in vertices]
        labels = None if lookup.labels is None else [label_bytes(label) for label in lookup.labels]
        of_vertex = await entries_for(self._container, sinks, labels, reads=self._router)
        if of_vertex is None:
            return None
        ranges = self._container.keyspace.record.map
        lookups = [ranges.find(point) for point, _ in sinks]
        found = await self._loaded(_SINK, vertices, of_vertex, lookups, lookup.labels, operation)
        return [own[: lookup.limit] for own in found]

    async def _within_limit(
        self, side: _Side, vertices: Sequence[Vertex], intervals: Sequence[Sequence[KeyRange]], lookup: Lookup
    ) -> list[list[Edge]]:
        """Read no more index entries than the limit of each vertex; all of them if some do not lead to an edge."""
        limit = lookup.limit
        if limit is None or lookup.labels is not None:
            found, _ = await self._edges(side, vertices, intervals, lookup.labels, None)
        else:
            found, were_cut = await self._edges(side, vertices, intervals, None, limit)
            if any(cut and len(own) < limit for own, cut in zip(found, were_cut, strict=True)):
                found, _ = await self._edges(side, vertices, intervals, None, None)
        return found if limit is None else [own[:limit] for own in found]

    async def _edges(
        self,
        side: _Side,
        vertices: Sequence[Vertex],
        intervals: Sequence[Sequence[KeyRange]],
        labels: Sequence[str] | None,
        limit: int | None,
    ) -> _Found:
        operation = self._ledger.begin(GET_EDGES, side.name)
        with self._container.keyspace.in_flight:
            rules = self._container.rules
            calls = []
            owners: list[int] = []
            for place, vertex in enumerate(vertices):
                spans = end_spans(side.name, rules, vertex.id, labels)
                if spans is None:
                    found = await self._scan_for_edges(side, vertices, intervals, labels)
                    return found, [False] * len(vertices)
                for interval in intervals[place]:
                    calls.append(self._reads.items.references_in(interval, spans, limit=limit))
                    owners.append(place)
            of_vertex: list[list[bytes]] = [[] for _ in vertices]
            lookups: list[PartitionRange] = []
            for place, (references, partitions) in zip(owners, await together(calls), strict=True):
                of_vertex[place] += references
                lookups += partitions
            were_cut = [limit is not None and len(references) >= limit for references in of_vertex]
            of_vertex = [references[:limit] for references in of_vertex]
            return await self._loaded(side, vertices, of_vertex, lookups, labels, operation), were_cut

    async def _loaded(
        self,
        side: _Side,
        vertices: Sequence[Vertex],
        of_vertex: Sequence[Sequence[bytes]],
        lookups: Sequence[PartitionRange],
        labels: Sequence[str] | None,
        operation: RunningOperation,
    ) -> list[list[Edge]]:
        """Return the edges with these references that are at the vertices, and have one of the labels."""
        wanted = list(dict.fromkeys(reference for references in of_vertex for reference in references))
        if len(wanted) > _EDGES_MAX:
            raise MemoryExceeded(f"The vertices of one step have more than {_EDGES_MAX} edges. Limit them earlier.")
        documents = await self._reads.items.load_looked_up(wanted, lookups, operation)
        operation.end()
        edges = {reference: self._edge(document, labels) for reference, document in documents.items()}
        return [
            [
                edge
                for reference in references
                if (edge := edges.get(reference)) is not None and side.is_at(edge, vertex)
            ]
            for vertex, references in zip(vertices, of_vertex, strict=True)
        ]

    async def _scan_for_edges(
        self,
        side: _Side,
        vertices: Sequence[Vertex],
        intervals: Sequence[Sequence[KeyRange]],
        labels: Sequence[str] | None,
    ) -> list[list[Edge]]:
        """Find the edges of vertices where the policy of the container has no index for them."""
        places: dict[str, list[int]] = {}
        for place, vertex in enumerate(vertices):
            places.setdefault(vertex.id, []).append(place)
        found: list[list[Edge]] = [[] for _ in vertices]
        distinct = {interval.start: interval for own in intervals for interval in own}
        for interval in distinct.values():
            async for batch in self._reads.items.scan(interval, GET_EDGES):
                for document in batch:
                    edge = self._edge(document, labels)
                    if edge is not None:
                        for place in places.get(document[side.name], ()):
                            if side.is_at(edge, vertices[place]):
                                found[place].append(edge)
        return found

    def _edge(self, document: Document, labels: Sequence[str] | None) -> Edge | None:
        """Return the edge that a document is, if it has one of the labels."""
        element = read_element(document, self._reads.key_name)
        if not isinstance(element, Edge) or (labels is not None and element.label not in labels):
            return None
        return element
