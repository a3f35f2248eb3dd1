"""A graph in a dictionary, to try steps on without a store, and to compare a stored graph with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.evaluate import evaluate
from asterism.languages.gremlin.engine.run import DEFAULT_LIMITS, Run, RunLimits
from asterism.languages.gremlin.graph.contract import Cardinality, Direction, EdgeDraft, Lookup, VertexDraft
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.source import read_source
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.tree import Instruction, Traversal


class MemoryGraph:
    """Documents of vertices and edges by id, in a graph without partitions."""

    key_name = None

    def __init__(self) -> None:
        self.vertex_documents: dict[str, dict[str, Any]] = {}
        self.edge_documents: dict[str, dict[str, Any]] = {}
        self._next_number = 0

    def _new_id(self) -> str:
        self._next_number += 1
        return f"new-{self._next_number}"

    def _vertex(self, vertex_id: str) -> Vertex:
        document = self.vertex_documents[vertex_id]
        return Vertex(vertex_id, document["label"], None, document, key_name=None)

    async def vertices(self, lookup: Lookup) -> AsyncIterator[list[Vertex]]:
        yield [
            self._vertex(found) for found in list(self.vertex_documents) if _fits(self.vertex_documents[found], lookup)
        ]

    async def edges(self, lookup: Lookup) -> AsyncIterator[list[Edge]]:
        yield [
            Edge(document, key_name=None) for document in list(self.edge_documents.values()) if _fits(document, lookup)
        ]

    async def adjacent_edges(
        self, vertices: Sequence[Vertex], direction: Direction, lookup: Lookup
    ) -> list[list[Edge]]:
        found: list[list[Edge]] = []
        for vertex in vertices:
            edges: list[Edge] = []
            for way, end in (("OUT", "_vertexId"), ("IN", "_sink")):
                if direction in (way, "BOTH"):
                    edges += [
                        Edge(document, key_name=None)
                        for document in self.edge_documents.values()
                        if document[end] == vertex.id and _fits(document, lookup)
                    ]
            found.append(edges[: lookup.limit])
        return found

    async def load(self, vertices: Sequence[Vertex]) -> list[Vertex | None]:
        return [self._vertex(vertex.id) if vertex.id in self.vertex_documents else None for vertex in vertices]

    async def add_vertex(self, draft: VertexDraft) -> Vertex:
        vertex_id = draft.vertex_id or self._new_id()
        document: dict[str, Any] = {"id": vertex_id, "label": draft.label}
        self.vertex_documents[vertex_id] = document
        for name, value, cardinality, meta in draft.properties:
            self._set(document, name, value, cardinality, meta)
        return self._vertex(vertex_id)

    async def add_edge(self, draft: EdgeDraft) -> Edge:
        document = {
            "id": draft.edge_id or self._new_id(),
            "label": draft.label,
            "_isEdge": True,
            "_vertexId": draft.source.id,
            "_vertexLabel": draft.source.label,
            "_sink": draft.target.id,
            "_sinkLabel": draft.target.label,
            **draft.properties,
        }
        self.edge_documents[document["id"]] = document
        return Edge(document, key_name=None)

    def _set(
        self, document: dict[str, Any], name: str, value: Any, cardinality: Cardinality, meta: Mapping[str, Any]
    ) -> None:
        entry = {"id": self._new_id(), "_value": value, "_meta": dict(meta)}
        kept = [] if cardinality == "single" else document.get(name, [])
        if cardinality == "set" and any(old["_value"] == value for old in kept):
            return
        document[name] = [*kept, entry]

    async def set_vertex_property(
        self, vertex: Vertex, name: str, value: Any, cardinality: Cardinality, meta: Mapping[str, Any]
    ) -> Vertex:
        self._set(self.vertex_documents[vertex.id], name, value, cardinality, meta)
        return self._vertex(vertex.id)

    async def set_edge_property(self, edge: Edge, name: str, value: Any) -> Edge:
        self.edge_documents[edge.id][name] = value
        return Edge(self.edge_documents[edge.id], key_name=None)

    async def set_meta_property(self, owner: VertexProperty, name: str, value: Any) -> VertexProperty:
        for entry in self.vertex_documents[owner.vertex.id][owner.label]:
            if entry["id"] == owner.id:
                entry["_meta"][name] = value
        return VertexProperty(owner.id, owner.label, owner.value, owner.vertex, {**owner.meta, name: value})

    async def remove(self, elements: Sequence[Vertex | Edge | VertexProperty | Property]) -> None:
        for element in elements:
            if isinstance(element, Vertex):
                self.vertex_documents.pop(element.id, None)
                for edge in list(self.edge_documents.values()):
                    if element.id in (edge["_vertexId"], edge["_sink"]):
                        del self.edge_documents[edge["id"]]
            elif isinstance(element, Edge):
                self.edge_documents.pop(element.id, None)
            elif isinstance(element, VertexProperty):
                document = self.vertex_documents[element.vertex.id]
                document[element.label] = [entry for entry in document[element.label] if entry["id"] != element.id]
                if not document[element.label]:
                    del document[element.label]
            elif isinstance(element.element, Edge):
                self.edge_documents[element.element.id].pop(element.key, None)

    async def commit(self) -> None:
        return None


def _fits(document: Mapping[str, Any], lookup: Lookup) -> bool:
    if lookup.ids is not None and document["id"] not in lookup.ids:
        return False
    return lookup.labels is None or document["label"] in lookup.labels


_PEOPLE = (("1", "person", "marko", 29), ("2", "person", "vadas", 27), ("4", "person", "josh", 32))
_OTHERS = (("3", "software", "lop", "java"), ("5", "software", "ripple", "java"))
_EDGES = (
    ("7", "knows", "1", "2", 0.5),
    ("8", "knows", "1", "4", 1.0),
    ("9", "created", "1", "3", 0.4),
    ("10", "created", "4", "5", 1.0),
    ("11", "created", "4", "3", 0.4),
    ("12", "created", "6", "3", 0.2),
)


def modern() -> MemoryGraph:
    """Return the small graph of people and software that Gremlin is usually explained with."""
    graph = MemoryGraph()
    for vertex_id, label, name, age in (*_PEOPLE, ("6", "person", "peter", 35)):
        graph.vertex_documents[vertex_id] = _document(vertex_id, label, name=name, age=age)
    for vertex_id, label, name, language in _OTHERS:
        graph.vertex_documents[vertex_id] = _document(vertex_id, label, name=name, lang=language)
    for edge_id, label, source, target, weight in _EDGES:
        graph.edge_documents[edge_id] = {
            "id": edge_id,
            "label": label,
            "_isEdge": True,
            "_vertexId": source,
            "_vertexLabel": graph.vertex_documents[source]["label"],
            "_sink": target,
            "_sinkLabel": graph.vertex_documents[target]["label"],
            "weight": weight,
        }
    return graph


def _document(vertex_id: str, label: str, **properties: Any) -> dict[str, Any]:
    values = {name: [{"id": f"{vertex_id}-{name}", "_value": value}] for name, value in properties.items()}
    return {"id": vertex_id, "label": label, **values}


async def results(graph: MemoryGraph, *steps: Instruction) -> list[Any]:
    """Run a traversal and return its results, each as often as its bulk says."""
    return await results_of(graph, Traversal(steps))


async def results_of(graph: MemoryGraph, traversal: Traversal, *, limits: RunLimits = DEFAULT_LIMITS) -> list[Any]:
    """Run a traversal with its source, as a request does."""
    traversal, settings = read_source(traversal, key_name=None)
    compiler = Compiler(STEPS, settings=settings)
    pipeline = compiler.root(traversal)
    run = Run(graph, monotonic=lambda: 0.0, tracks_path=compiler.needs_path, limits=limits)
    settings.prepare(run)
    return [
        traverser.value async for batch in evaluate(pipeline, run) for traverser in batch for _ in range(traverser.bulk)
    ]
