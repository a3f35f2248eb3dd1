"""Steps that read the graph: elements by id or condition, the edges of vertices, the vertices of edges."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from asterism.languages.gremlin.engine.merging import merged
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import AsyncStep, Step, SyncStep
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.contract import EVERYTHING, Direction, Lookup
from asterism.languages.gremlin.graph.documents import is_key_value
from asterism.languages.gremlin.graph.elements import DEFAULT_LABEL, Edge, KeyValue, Vertex
from asterism.languages.gremlin.graph.staged import fits
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.lookups import limit_of, narrowed, plain
from asterism.languages.gremlin.plan.needs import needs_documents
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.numbers import is_number


class ElementsStep(Step):
    """`V()` and `E()`, at the start or for each traverser."""

    is_stateful = False

    def __init__(self, lookups: Sequence[Lookup], *, are_edges: bool) -> None:
        # Several are asked for one after the other.
        self.lookups = lookups
        self.are_edges = are_edges

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        graph, are_edges = frame.run.graph, self.are_edges
        async for batch in source:
            for lookup in self.lookups:
                read: AsyncIterator[list[Any]] = graph.edges(lookup) if are_edges else graph.vertices(lookup)
                async for elements in read:
                    await frame.run.breathe()
                    for traverser in batch:
                        yield [traverser.to(element) for element in elements]


class AdjacentStep(AsyncStep):
    """`out`, `in` and `both`: the vertices at the other ends of edges."""

    def __init__(
        self,
        name: str,
        direction: Direction,
        lookup: Lookup,
        *,
        wanted: Lookup,
        loads: bool,
        merges: bool,
    ) -> None:
        self.name = name
        self.direction: Direction = direction
        # Of the edges, and of the vertices.
        self.lookup = lookup
        self.wanted = wanted
        self.loads = loads
        self.merges = merges

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        if self.merges:
            batch = merged(batch)
        limit = self.lookup.limit
        found, is_complete = await self._neighbors(batch, frame, self.lookup)
        if not is_complete and limit is not None:
            everything = Lookup(labels=self.lookup.labels)
            found, _ = await self._neighbors(batch, frame, everything)
        return found

    async def _neighbors(self, batch: Batch, frame: Frame, lookup: Lookup) -> tuple[Batch, bool]:
        """Return the neighbors, and False if some edges led nowhere, so that a limit was taken of too many."""
        graph, wanted, direction = frame.run.graph, self.wanted, self.direction
        distinct = list(dict.fromkeys(vertex_of(traverser.value, self.name) for traverser in batch))
        edges = await graph.adjacent_edges(distinct, direction, lookup)
        ends: dict[Vertex, list[Vertex]] = {}
        is_complete = True
        for vertex, own in zip(distinct, edges, strict=True):
            reached = _ends(vertex, own, direction)
            kept = reached if wanted is EVERYTHING else [end for end in reached if may_fit(end, wanted)]
            is_complete = is_complete and len(kept) == len(reached)
            ends[vertex] = kept
        if self.loads:
            every = {(end.id, end.key): end for own in ends.values() for end in own}
            loaded = dict(zip(every, await graph.load(list(every.values())), strict=True))
            is_complete = is_complete and None not in loaded.values()
            results = {
                vertex: [found for end in own if (found := loaded[end.id, end.key]) is not None]
                for vertex, own in ends.items()
            }
        else:
            results = ends
        if self.merges and len(batch) > 1:
            return _reached(batch, results), is_complete
        return [traverser.to(end) for traverser in batch for end in results[traverser.value]], is_complete


def _reached(batch: Batch, ends: Mapping[Vertex, Sequence[Vertex]]) -> Batch:
    """Return the traversers at the ends, one with a bulk for all that nothing tells apart: the neighbors of many
    vertices are often the same."""
    found: list[Traverser] = []
    groups: dict[Any, dict[tuple[str, KeyValue], Traverser]] = {}
    for traverser in batch:
        if traverser.path is not None:
            found += [traverser.to(end) for end in ends[traverser.value]]
            continue
        known = groups.setdefault((traverser.origin, traverser.loop), {})
        for end in ends[traverser.value]:
            place = end.id, end.key
            other = known.get(place)
            if other is None:
                known[place] = reached = traverser.to(end)
                found.append(reached)
            else:
                other.bulk += traverser.bulk
    return found


def _ends(vertex: Vertex, edges: Sequence[Edge], direction: Direction) -> list[Vertex]:
    """Return the other ends of the edges of a vertex. For BOTH a loop comes twice, and each end is the vertex."""
    if direction == "OUT":
        return [edge.in_vertex for edge in edges]
    if direction == "IN":
        return [edge.out_vertex for edge in edges]
    return [
        edge.in_vertex if edge.out_id == vertex.id and edge.out_vertex == vertex else edge.out_vertex for edge in edges
    ]


def may_fit(vertex: Vertex, wanted: Lookup) -> bool:
    """Return whether a vertex, as an edge describes it, may be one of a lookup. Edges that others wrote may lack the
    label of the vertex, which is then the default."""
    return vertex.label == DEFAULT_LABEL or fits(vertex, wanted)


class IncidentStep(AsyncStep):
    """`outE`, `inE` and `bothE`."""

    def __init__(self, name: str, direction: Direction, lookup: Lookup, *, merges: bool) -> None:
        self.name = name
        self.direction: Direction = direction
        self.lookup = lookup
        self.merges = merges

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        if self.merges:
            batch = merged(batch)
        distinct = list(dict.fromkeys(vertex_of(traverser.value, self.name) for traverser in batch))
        edges = await frame.run.graph.adjacent_edges(distinct, self.direction, self.lookup)
        found = dict(zip(distinct, edges, strict=True))
        wanted = self.lookup
        return [traverser.to(edge) for traverser in batch for edge in found[traverser.value] if fits(edge, wanted)]


class EndStep(AsyncStep):
    """`inV`, `outV`, `bothV` and `otherV`: vertices of edges, loaded."""

    def __init__(self, ends: EdgeEnds, wanted: Lookup) -> None:
        self.ends = ends
        self.wanted = wanted

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        reached = self.ends.process(batch, frame)
        if self.wanted is not EVERYTHING:
            reached = [traverser for traverser in reached if may_fit(traverser.value, self.wanted)]
        every = {(traverser.value.id, traverser.value.key): traverser.value for traverser in reached}
        loaded = dict(zip(every, await frame.run.graph.load(list(every.values())), strict=True))
        return [
            traverser.with_value(vertex)
            for traverser in reached
            if (vertex := loaded[traverser.value.id, traverser.value.key]) is not None
        ]


class EdgeEnds(SyncStep):
    """The same without loading the vertices."""

    def __init__(self, name: str, side: str) -> None:
        self.name = name
        self.side = side

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002 - the edge knows its ends
        side = self.side
        found: Batch = []
        for traverser in batch:
            edge = traverser.value
            if not isinstance(edge, Edge):
                raise ExecutionFailure(
                    f"The {self.name}() step can only be applied to edges, not to a {type(edge).__name__}."
                )
            if side == "OTHER":
                found.append(traverser.to(_other_end(traverser, edge)))
                continue
            if side in ("OUT", "BOTH"):
                found.append(traverser.to(edge.out_vertex))
            if side in ("IN", "BOTH"):
                found.append(traverser.to(edge.in_vertex))
        return found


def _other_end(traverser: Traverser, edge: Edge) -> Vertex:
    """Return the end of an edge that the traverser did not come from."""
    places = [] if traverser.path is None else traverser.path.places()
    for place in reversed(places[:-1]):
        if isinstance(place.value, Vertex):
            source = edge.out_vertex
            return edge.in_vertex if place.value == source else source
    raise ExecutionFailure(f"The path history of the traverser does not contain a previous vertex: {edge!r}")


def vertex_of(value: Any, step_name: str) -> Vertex:
    """Return the vertex that a step needs; refuse another value."""
    if isinstance(value, Vertex):
        return value
    raise ExecutionFailure(f"The {step_name}() step can only be applied to vertices, not to a {type(value).__name__}.")


# --- makers ---------------------------------------------------------------------------------------------------------


def _make_elements(call: StepCall, compiler: Compiler) -> ElementsStep:
    are_edges = call.name == "E"
    lookups = [narrowed(compiler, call.following, given) for given in _given(call.arguments, compiler.key_name)]
    return ElementsStep(lookups, are_edges=are_edges)


def _given(arguments: Sequence[Any], key_name: str | None) -> list[Lookup]:
    """Return the lookups of the ids that `V` or `E` was called with; everything for none."""
    if not arguments:
        return [EVERYTHING]
    ids: list[str] = []
    places: list[tuple[KeyValue, str]] = []
    for argument in arguments:
        if key_name is not None and _is_place(argument):
            places.append((plain(argument[0]), id_text(argument[1])))
            continue
        for member in argument if isinstance(argument, list | tuple | set | frozenset) else (argument,):
            if isinstance(member, Vertex | Edge) and (key_name is None or member.key_name is not None):
                places.append((member.key, member.id))
            elif key_name is not None and _is_place(member):
                places.append((plain(member[0]), id_text(member[1])))
            elif member is not None:
                ids.append(id_text(member))
    lookups = [Lookup(places=tuple(places))] if places else []
    if ids or not places:
        lookups.append(Lookup(ids=tuple(ids)))
    return lookups


def _is_place(argument: Any) -> bool:
    """Return whether an argument is a partition key and an id: a list of two scalars."""
    if not isinstance(argument, list | tuple) or len(argument) != 2:
        return False
    key, element_id = argument
    return is_key_value(key) and (isinstance(element_id, str | UUID) or is_number(element_id))


def id_text(value: Any) -> str:
    """Return the id that an argument stands for: ids are texts, and `g.V(1)` is `g.V('1')`."""
    return value.id if isinstance(value, Vertex | Edge) else str(value)


def _make_adjacent(direction: Direction) -> Maker:
    def make(call: StepCall, compiler: Compiler) -> AdjacentStep:
        return _adjacent(call, compiler, direction, call.arguments)

    return make


def _adjacent(call: StepCall, compiler: Compiler, direction: Direction, labels: Sequence[Any]) -> AdjacentStep:
    limit = limit_of(call.following[0]) if call.following else None
    return AdjacentStep(
        call.name,
        direction,
        Lookup(labels=_labels(labels), limit=limit),
        wanted=narrowed(compiler, call.following),
        loads=loads_vertices(call, compiler),
        merges=_may_merge(compiler),
    )


def loads_vertices(call: StepCall, compiler: Compiler) -> bool:
    """Return whether the vertices of a call must be loaded: something behind it may ask for their properties."""
    return needs_documents(call.following, compiler.parents[:-1], materializes=compiler.materializes_properties)


def _may_merge(compiler: Compiler) -> bool:
    return not compiler.settings.has_sack and compiler.settings.is_bulked


def _labels(arguments: Sequence[Any]) -> tuple[str, ...] | None:
    labels = tuple(argument for argument in arguments if isinstance(argument, str))
    return labels if arguments else None


def _make_incident(direction: Direction) -> Maker:
    def make(call: StepCall, compiler: Compiler) -> IncidentStep:
        return _incident(call, compiler, direction, call.arguments)

    return make


def _incident(call: StepCall, compiler: Compiler, direction: Direction, labels: Sequence[Any]) -> IncidentStep:
    lookup = narrowed(compiler, call.following, Lookup(labels=_labels(labels)))
    if lookup.ids is not None or lookup.keys is not None:
        # The limit is of edges that pass these too, which the reads do not know.
        lookup = Lookup(lookup.ids, None, lookup.keys, lookup.labels, lookup.conditions)
    return IncidentStep(call.name, direction, lookup, merges=_may_merge(compiler))


def _make_ends(side: str) -> Maker:
    def make(call: StepCall, compiler: Compiler) -> EndStep | EdgeEnds:
        return _end_step(call, compiler, side)

    return make


def _end_step(call: StepCall, compiler: Compiler, side: str) -> EndStep | EdgeEnds:
    if side == "OTHER":
        compiler.needs_path = True
    ends = EdgeEnds(call.name, side)
    return EndStep(ends, narrowed(compiler, call.following)) if loads_vertices(call, compiler) else ends


def _direction(call: StepCall) -> Direction:
    argument = call.arguments[0] if call.arguments else None
    if isinstance(argument, Token) and argument.kind == "Direction":
        match argument.name:
            case "OUT" | "from":
                return "OUT"
            case "IN" | "to":
                return "IN"
            case "BOTH":
                return "BOTH"
    raise call.refused(f"{call.name}() takes a Direction: OUT, IN or BOTH.")


def _make_to(call: StepCall, compiler: Compiler) -> AdjacentStep:
    return _adjacent(call, compiler, _direction(call), call.arguments[1:])


def _make_to_edges(call: StepCall, compiler: Compiler) -> IncidentStep:
    return _incident(call, compiler, _direction(call), call.arguments[1:])


def _make_to_vertices(call: StepCall, compiler: Compiler) -> EndStep | EdgeEnds:
    return _end_step(call, compiler, _direction(call))


STEPS: Mapping[str, Maker] = {
    "V": _make_elements,
    "E": _make_elements,
    "out": _make_adjacent("OUT"),
    "in": _make_adjacent("IN"),
    "both": _make_adjacent("BOTH"),
    "outE": _make_incident("OUT"),
    "inE": _make_incident("IN"),
    "bothE": _make_incident("BOTH"),
    "outV": _make_ends("OUT"),
    "inV": _make_ends("IN"),
    "bothV": _make_ends("BOTH"),
    "otherV": _make_ends("OTHER"),
    "to": _make_to,
    "toE": _make_to_edges,
    "toV": _make_to_vertices,
}
