"""The session of one traversal on a graph: what it reads, with its own changes, and what it writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast

from asterism.errors import ItemNotFound, MalformedRequest
from asterism.languages.gremlin.graph.adjacency import EdgeReads
from asterism.languages.gremlin.graph.contract import (
    EVERYTHING,
    Cardinality,
    Direction,
    EdgeDraft,
    Lookup,
    VertexDraft,
)
from asterism.languages.gremlin.graph.documents import read_element
from asterism.languages.gremlin.graph.elements import EDGE_MARK, Edge, Property, Vertex, VertexProperty, twin_id
from asterism.languages.gremlin.graph.profile import Ledger
from asterism.languages.gremlin.graph.reads import GET_NEIGHBORS, GraphReads
from asterism.languages.gremlin.graph.staged import StagedItems, fits
from asterism.languages.gremlin.graph.writes import GraphWrites, PartlyWritten
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.transaction import Overtaken


def check_graph(container: Container) -> None:
    """Refuse a container that cannot be a graph: its partition key must be one property that vertices have."""
    definition = container.record.definition
    if definition.system_key:
        return
    if container.computed_key is not None:
        raise MalformedRequest(
            reason="A graph cannot have a synthetic partition key: edges lie with their source by its own property. "
            "Read and write this container through the NoSQL interface."
        )
    if definition.only_property is None:
        raise MalformedRequest(reason="A graph needs a partition key with one path of one segment, such as /pk.")
    if definition.only_property in ("id", "label"):
        raise MalformedRequest(
            reason=f"The partition key of a graph cannot be /{definition.only_property}. Choose another property."
        )


# Elements of the second batch and of the largest.
_BATCH_MIN: Final = 32
_BATCH_MAX: Final = 2_048
_REMOVAL_ATTEMPTS_MAX: Final = 16


class StoredGraph:
    """A traversal's view of a stored graph (`contract.GraphSession`). Cheap to make: there is one for each request."""

    __slots__ = ("_dropped", "_edges", "_reads", "_writes", "ledger")

    def __init__(
        self, container: Container, services: DocumentServices, *, may_write: bool, looks_first: bool = False
    ) -> None:
        self.ledger = Ledger(container.keyspace, services.clock.monotonic_seconds)
        self._reads = GraphReads(container, services, self.ledger)
        self._edges = EdgeReads(container, services, self._reads, self.ledger)
        self._writes = GraphWrites(
            container, services, self._reads, self.ledger, may_write=may_write, looks_first=looks_first
        )
        self._dropped: list[Vertex] = []

    @property
    def key_name(self) -> str | None:
        return self._reads.key_name

    @property
    def _staged(self) -> StagedItems:
        return self._writes.staged

    @property
    def charge(self) -> float:
        """The request units of everything so far."""
        return self.ledger.charge

    # --- reading ----------------------------------------------------------------------------------------------------

    def vertices(self, lookup: Lookup) -> AsyncIterator[list[Vertex]]:
        """Yield the vertices of a lookup in batches."""
        # Without a generator of its own, which every point read would pay for.
        return cast("AsyncIterator[list[Vertex]]", self._elements(lookup, lookup, is_edge=False))

    async def edges(self, lookup: Lookup) -> AsyncIterator[list[Edge]]:
        """Yield the edges of a lookup in batches."""
        missing = _names(lookup)
        sought: Lookup | None = lookup
        while sought is not None:
            async for batch in self._elements(lookup, sought, is_edge=True):
                found = [element for element in batch if isinstance(element, Edge)]
                missing.difference_update(edge.id for edge in found)
                if found:
                    yield found
            # Ids without an edge may be those of vertices, whose edges have other documents.
            sought = _twins(lookup, missing) if sought is lookup else None

    async def _elements(self, lookup: Lookup, sought: Lookup, *, is_edge: bool) -> AsyncIterator[list[Vertex | Edge]]:
        """Yield the elements that fit a lookup, among the documents of another that names the same elements."""
        key_name, kind = self.key_name, Edge if is_edge else Vertex
        left = lookup.limit
        if left == 0:
            return
        # Elements that a later step of this traversal changes meanwhile must not come again.
        changed_before = self._staged.references() if self._staged else frozenset()
        if changed_before and sought is lookup:
            staged = [
                element
                for document in self._staged.documents(are_edges=is_edge)
                if (element := read_element(document, key_name)) is not None and fits(element, lookup)
            ]
            if staged:
                yield staged[:left]
                left = None if left is None else max(0, left - len(staged))
        if left == 0:
            return
        found: list[Vertex | Edge] = []
        named = await self._reads.named_documents(sought, is_edge=is_edge)
        if named is not None:
            self._collect(found, named, lookup, kind, changed_before)
        else:
            # The first batch is given on at once; later ones are larger, because steps merge what is equal in a batch.
            enough = 1
            async for documents in self._reads.documents(sought, is_edge=is_edge):
                self._collect(found, documents, lookup, kind, changed_before)
                if left is not None and len(found) >= left:
                    break
                if len(found) >= enough:
                    yield found
                    left = None if left is None else left - len(found)
                    found = []
                    enough = min(max(_BATCH_MIN, 4 * enough), _BATCH_MAX)
        if found:
            yield found[:left]

    def _collect(
        self,
        found: list[Vertex | Edge],
        documents: Sequence[Mapping[str, Any]],
        lookup: Lookup,
        kind: type[Vertex] | type[Edge],
        changed_before: frozenset[bytes],
    ) -> None:
        """Add the elements among documents that fit a lookup, as this traversal has changed them."""
        key_name = self.key_name
        for document in documents:
            element = read_element(document, key_name)
            if isinstance(element, kind) and fits(element, lookup):
                newest = self._newest(element, changed_before) if self._staged else element
                if newest is not None:
                    found.append(newest)

    def _newest(self, element: Vertex | Edge, left_out: frozenset[bytes]) -> Vertex | Edge | None:
        """Return an element as this traversal has changed it; None if it was removed, or is to be left out."""
        reference = self._reads.reference(element.key, element.item_id)
        if reference in left_out:
            return None
        staged = self._staged.get(reference)
        if staged is None:
            return element
        return None if staged.document is None else read_element(staged.document, self.key_name)

    def _is_staged(self, element: Vertex | Edge) -> bool:
        return self._reads.reference(element.key, element.item_id) in self._staged

    async def adjacent_edges(
        self, vertices: Sequence[Vertex], direction: Direction, lookup: Lookup
    ) -> list[list[Edge]]:
        """Return the edges of each vertex, in the order of `vertices`."""
        found: list[list[Edge]] = [[] for _ in vertices]
        if lookup.limit == 0:
            return found
        for way in ("OUT", "IN"):
            if direction in (way, "BOTH"):
                stored = await (self._edges.out_edges if way == "OUT" else self._edges.in_edges)(vertices, lookup)
                if self._staged:
                    stored = self._with_staged(stored, vertices, way, lookup)
                for own, edges in zip(found, stored, strict=True):
                    own += edges
        return found if lookup.limit is None else [own[: lookup.limit] for own in found]

    def _with_staged(
        self, stored: Sequence[Sequence[Edge]], vertices: Sequence[Vertex], way: str, lookup: Lookup
    ) -> list[list[Edge]]:
        """Replace edges that this traversal has changed, and add those that it has added."""
        staged: dict[Vertex, list[Edge]] = {}
        for document in self._staged.documents(are_edges=True):
            edge = Edge(document, key_name=self.key_name)
            if lookup.labels is None or edge.label in lookup.labels:
                staged.setdefault(edge.out_vertex if way == "OUT" else edge.in_vertex, []).append(edge)
        return [
            [*(edge for edge in edges if not self._is_staged(edge)), *staged.get(vertex, ())]
            for vertex, edges in zip(vertices, stored, strict=True)
        ]

    async def load(self, vertices: Sequence[Vertex]) -> list[Vertex | None]:
        """Return the vertices with their documents, in their order; None for one that does not exist."""
        if self._staged:
            return await self._load_with_staged(vertices)
        if not vertices:
            return []
        documents = await self._reads.read_places([(vertex.key, vertex.id) for vertex in vertices], GET_NEIGHBORS)
        return [
            None if document is None else self._loaded(vertex, document)
            for vertex, document in zip(vertices, documents, strict=True)
        ]

    async def _load_with_staged(self, vertices: Sequence[Vertex]) -> list[Vertex | None]:
        staged = [self._staged.get(self._reads.reference(vertex.key, vertex.id)) for vertex in vertices]
        unread = [(vertex.key, vertex.id) for vertex, item in zip(vertices, staged, strict=True) if item is None]
        read = iter(await self._reads.read_places(unread, GET_NEIGHBORS) if unread else ())
        documents = [next(read) if item is None else item.document for item in staged]
        return [
            None if document is None else self._loaded(vertex, document)
            for vertex, document in zip(vertices, documents, strict=True)
        ]

    def _loaded(self, vertex: Vertex, document: Mapping[str, Any]) -> Vertex | None:
        """Return a vertex with the document at its place; None if that is no vertex."""
        label = document.get("label")
        if type(label) is not str or document.get(EDGE_MARK) is True:
            return None
        return Vertex(vertex.id, label, vertex.key, document, key_name=vertex.key_name)

    # --- writing ----------------------------------------------------------------------------------------------------

    async def add_vertex(self, draft: VertexDraft) -> Vertex:
        return await self._writes.add_vertex(draft)

    async def add_edge(self, draft: EdgeDraft) -> Edge:
        return await self._writes.add_edge(draft)

    async def set_vertex_property(
        self, vertex: Vertex, name: str, value: Any, cardinality: Cardinality, meta: Mapping[str, Any]
    ) -> Vertex:
        return await self._writes.set_vertex_property(vertex, name, value, cardinality, meta)

    async def set_edge_property(self, edge: Edge, name: str, value: Any) -> Edge:
        return await self._writes.set_edge_property(edge, name, value)

    async def set_meta_property(self, owner: VertexProperty, name: str, value: Any) -> VertexProperty:
        return await self._writes.set_meta_property(owner, name, value)

    async def remove(self, elements: Sequence[Vertex | Edge | VertexProperty | Property]) -> None:
        """Stage the removal of elements and properties; the edges of vertices are looked for in both directions."""
        vertices = [element for element in dict.fromkeys(elements) if isinstance(element, Vertex)]
        for edges in await self.adjacent_edges(vertices, "BOTH", EVERYTHING) if vertices else ():
            for edge in edges:
                self._writes.remove_element(edge)
        self._dropped += vertices
        for element in elements:
            if isinstance(element, Vertex | Edge):
                self._writes.remove_element(element)
            else:
                await self._writes.remove_property(element)

    async def commit(self) -> None:
        """Write what was staged; see `GraphWrites.commit`.

        Edges and their ends may lie in different partitions, which are not written at one moment. So who removes a
        vertex looks for edges again afterwards, and who adds an edge looks for its end again: of two that race, the
        later one sees what the other did, and no edge is left without an end.
        """
        dropped = [vertex for vertex in self._dropped if self._is_gone(vertex)]
        distant = [edge for edge in self._writes.distant if self._is_staged(edge) and not self._is_gone(edge)]
        staged_count = len(self._staged.references())
        await self._writes.commit()
        self._dropped = []
        if dropped:
            await self._sweep(dropped)
        if distant:
            await self._check_targets(distant, staged_count)

    def _is_gone(self, element: Vertex | Edge) -> bool:
        staged = self._staged.get(self._reads.reference(element.key, element.item_id))
        return staged is not None and staged.document is None

    async def _remove_edges(self, edges: Sequence[Edge]) -> None:
        for edge in edges:
            self._writes.remove_element(edge)
        for _ in range(_REMOVAL_ATTEMPTS_MAX):
            # Other writers may change or remove the same edges.
            with suppress(Overtaken, PartlyWritten):
                await self._writes.commit()
                return

    async def _sweep(self, dropped: Sequence[Vertex]) -> None:
        """Remove edges that were added to vertices while those were removed."""
        edges = await self.adjacent_edges(dropped, "BOTH", EVERYTHING)
        if not any(edges):
            return
        # A vertex that is there again may have them.
        vertices = await self.load(dropped)
        await self._remove_edges(
            [edge for own, vertex in zip(edges, vertices, strict=True) if vertex is None for edge in own]
        )

    async def _check_targets(self, added: Sequence[Edge], staged_count: int) -> None:
        """Take back edges whose targets were removed while they were added."""
        targets = await self.load([edge.in_vertex for edge in added])
        lost = [edge for edge, target in zip(added, targets, strict=True) if target is None]
        if not lost:
            return
        await self._remove_edges(lost)
        problem = ItemNotFound(item_id=lost[0].in_id)
        if len(lost) == staged_count:
            raise problem
        raise PartlyWritten(
            written=1, planned=2, reason=f"The vertex '{lost[0].in_id}' that an edge leads to was removed meanwhile."
        ) from problem


def _names(lookup: Lookup) -> set[str]:
    """Return the ids that a lookup asks for."""
    return {*(lookup.ids or ()), *(element_id for _, element_id in lookup.places or ())}


def _twins(lookup: Lookup, missing: Collection[str]) -> Lookup | None:
    """Return the lookup of the documents that edges have whose ids are those of vertices; None if no id is missing."""
    if not missing:
        return None
    ids = None if lookup.ids is None else tuple(twin_id(name) for name in lookup.ids if name in missing)
    places = lookup.places and tuple((key, twin_id(name)) for key, name in lookup.places if name in missing)
    return replace(lookup, ids=ids, places=places)


def open_session(
    container: Container, services: DocumentServices, *, may_write: bool, looks_first: bool = False
) -> StoredGraph:
    """Return a session for one traversal on a container. Raises MalformedRequest if the container is no graph.

    A traversal that ends with Overtaken has written nothing, and runs again in a new session that `looks_first`.
    """
    check_graph(container)
    return StoredGraph(container, services, may_write=may_write, looks_first=looks_first)
