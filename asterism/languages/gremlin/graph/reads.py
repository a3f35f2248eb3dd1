"""The elements of a stored graph: lookups, the edges of vertices, and the vertices that edges name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from asterism.errors import AsterismError
from asterism.keyspaces.routing.families import id_key
from asterism.languages.gremlin.failure import MemoryExceeded
from asterism.languages.gremlin.graph.contract import Lookup
from asterism.languages.gremlin.graph.documents import read_element
from asterism.languages.gremlin.graph.elements import SINK_ID, SOURCE_ID, Edge, KeyValue, Vertex
from asterism.languages.gremlin.graph.items import Document, ItemReads
from asterism.languages.gremlin.graph.profile import Ledger
from asterism.languages.gremlin.graph.routing import end_spans, index_route, places_of, same_key
from asterism.languages.gremlin.graph.together import together
from asterism.models.documents.container import Container, DocumentServices
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.partition_key import SYSTEM_KEY, PartitionKey
from asterism.partitioning.partition_map import PartitionRange

GET_VERTICES: Final = "GetVertices"
GET_EDGES: Final = "GetEdges"
GET_NEIGHBORS: Final = "GetNeighborVertices"

# A logical partition with no more items than this is read as a whole: its physical partition's index may have many
# entries of others.
_SCANNED_ITEMS_MAX: Final = 500
# Edges of one batch of vertices, at about a kilobyte each.
_EDGES_MAX: Final = 250_000
# Callers that need no more than this ask one partition after the other.
_FEW: Final = 32


class GraphReads:
    """The reads of one traversal, of what is in the store."""

    __slots__ = ("_container", "_definition", "_items", "_ledger", "key_name")

    def __init__(self, container: Container, services: DocumentServices, ledger: Ledger) -> None:
        self._container = container
        self._definition = container.record.definition
        self._ledger = ledger
        self._items = ItemReads(container, services, ledger)
        # None for a graph without partitions.
        self.key_name = self._definition.only_property

    # --- places -----------------------------------------------------------------------------------------------------

    def partition_key(self, key: KeyValue) -> PartitionKey:
        return SYSTEM_KEY if self.key_name is None else (key,)

    def point(self, key: KeyValue) -> bytes:
        return storage_point(self._definition, self.partition_key(key))

    def reference(self, key: KeyValue, element_id: str) -> bytes:
        """Return the place of an element in the store: its point and its id."""
        return self.point(key) + id_key(element_id.encode())

    async def read_places(self, places: Sequence[tuple[KeyValue, str]], kind: str) -> list[Document | None]:
        """Return the documents with these keys and ids; None for one that is not there."""
        references: list[bytes | None] = []
        for key, element_id in places:
            try:
                references.append(self.reference(key, element_id))
            except (AsterismError, UnicodeEncodeError):
                # A key or an id that no element can have.
                references.append(None)
        sound = [reference for reference in references if reference is not None]
        if not sound:
            return [None] * len(places)
        found = iter(await self._items.read_points(sound, kind))
        return [None if reference is None else next(found) for reference in references]

    # --- lookups ----------------------------------------------------------------------------------------------------

    async def documents(self, lookup: Lookup, *, is_edge: bool) -> AsyncIterator[list[Document]]:
        """Yield documents among which all elements of the lookup are, in batches; the caller checks them."""
        kind = GET_EDGES if is_edge else GET_VERTICES
        places = places_of(lookup, self.key_name)
        if places is not None:
            if places:
                found = await self.read_places(places, kind)
                yield [document for document in found if document is not None]
            return
        intervals = [FULL] if lookup.keys is None or self.key_name is None else self._logical_intervals(lookup.keys)
        route = index_route(lookup, self._container.rules, is_edge=is_edge)
        if route is not None and lookup.keys is not None and self.key_name is not None:
            for interval in intervals:
                if await self._items.count_items(interval) <= _SCANNED_ITEMS_MAX:
                    async for batch in self._items.scan(interval, kind):
                        yield batch
                else:
                    async for batch in self._items.look_up(route, [interval], kind):
                        yield batch
        elif route is not None:
            is_few = lookup.limit is not None and lookup.limit <= _FEW
            async for batch in self._items.look_up(route, intervals, kind, one_by_one=is_few):
                yield batch
        else:
            for interval in intervals:
                async for batch in self._items.scan(interval, kind):
                    yield batch

    def _logical_intervals(self, keys: Sequence[KeyValue]) -> list[KeyRange]:
        intervals: dict[bytes, KeyRange] = {}
        for key in keys:
            try:
                interval = self._logical_interval(key)
            except AsterismError:
                # No element can have such a key.
                continue
            intervals[interval.start] = interval
        return list(intervals.values())

    def _logical_interval(self, key: KeyValue) -> KeyRange:
        scope = self._container.logical_scope(self.partition_key(key))
        return KeyRange(scope.start, scope.end)

    # --- edges of vertices ------------------------------------------------------------------------------------------

    async def out_edges(self, vertices: Sequence[Vertex], lookup: Lookup) -> list[list[Edge]]:
        """Return the edges that leave each vertex: they lie in its logical partition."""
        intervals = [[self._logical_interval(vertex.key)] for vertex in vertices]
        found = await self._all_or_few(SOURCE_ID, vertices, intervals, lookup)
        return [
            [edge for edge in edges if edge.out_id == vertex.id and same_key(edge.key, vertex.key)]
            for vertex, edges in zip(vertices, found, strict=True)
        ]

    async def in_edges(self, vertices: Sequence[Vertex], lookup: Lookup) -> list[list[Edge]]:
        """Return the edges that lead to each vertex: they may be in every partition."""
        ranges = [partition.range for partition in self._container.keyspace.record.map.ranges]
        found = await self._all_or_few(SINK_ID, vertices, [ranges] * len(vertices), lookup)
        return [
            [edge for edge in edges if edge.in_id == vertex.id and same_key(edge.in_key, vertex.key)]
            for vertex, edges in zip(vertices, found, strict=True)
        ]

    async def _all_or_few(
        self, end_name: str, vertices: Sequence[Vertex], intervals: Sequence[Sequence[KeyRange]], lookup: Lookup
    ) -> list[list[Edge]]:
        """Read no more index entries than the limit of each vertex; all of them if some do not lead to an edge."""
        limit = lookup.limit
        if limit is None or lookup.labels is not None:
            found, _ = await self._edges(end_name, vertices, intervals, lookup.labels, None)
        else:
            found, were_cut = await self._edges(end_name, vertices, intervals, None, limit)
            if any(cut and len(own) < limit for own, cut in zip(found, were_cut, strict=True)):
                found, _ = await self._edges(end_name, vertices, intervals, None, None)
        return found if limit is None else [own[:limit] for own in found]

    async def _edges(
        self,
        end_name: str,
        vertices: Sequence[Vertex],
        intervals: Sequence[Sequence[KeyRange]],
        labels: Sequence[str] | None,
        limit: int | None,
    ) -> tuple[list[list[Edge]], list[bool]]:
        """Return the edges of each vertex, and whether it may have more than the limit."""
        operation = self._ledger.begin(GET_EDGES, end_name)
        with self._container.keyspace.in_flight:
            rules = self._container.rules
            calls = []
            owners: list[int] = []
            for place, vertex in enumerate(vertices):
                spans = end_spans(end_name, rules, vertex.id, labels)
                if spans is None:
                    found = await self._scan_for_edges(end_name, vertices, intervals, labels)
                    return found, [False] * len(vertices)
                for interval in intervals[place]:
                    calls.append(self._items.references_in(interval, spans, limit=limit))
                    owners.append(place)
            of_vertex: list[list[bytes]] = [[] for _ in vertices]
            lookups: list[PartitionRange] = []
            for place, (references, partitions) in zip(owners, await together(calls), strict=True):
                of_vertex[place] += references
                lookups += partitions
            were_cut = [limit is not None and len(references) >= limit for references in of_vertex]
            of_vertex = [references[:limit] for references in of_vertex]
            wanted = list(dict.fromkeys(reference for references in of_vertex for reference in references))
            if len(wanted) > _EDGES_MAX:
                raise MemoryExceeded(f"The vertices of one step have more than {_EDGES_MAX} edges. Limit them earlier.")
            documents = await self._items.load_looked_up(wanted, lookups, operation)
        operation.end()
        edges = {reference: self.edge(document, labels) for reference, document in documents.items()}
        found = [
            [edge for reference in references if (edge := edges.get(reference)) is not None] for references in of_vertex
        ]
        return found, were_cut

    async def _scan_for_edges(
        self,
        end_name: str,
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
            async for batch in self._items.scan(interval, GET_EDGES):
                for document in batch:
                    edge = self.edge(document, labels)
                    if edge is not None:
                        for place in places.get(document[end_name], ()):
                            found[place].append(edge)
        return found

    def edge(self, document: Document, labels: Sequence[str] | None) -> Edge | None:
        """Return the edge that a document is, if it has one of the labels."""
        element = read_element(document, self.key_name)
        if not isinstance(element, Edge) or (labels is not None and element.label not in labels):
            return None
        return element
