"""`mergeV` and `mergeE`: elements that are found by a map, or added from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.step import AsyncStep
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.graph.contract import Cardinality, GraphSession, IndexCondition, Lookup
from asterism.languages.gremlin.graph.documents import is_key_value
from asterism.languages.gremlin.graph.elements import Edge, KeyValue, Vertex
from asterism.languages.gremlin.graph.routing import same_key
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.lookups import plain
from asterism.languages.gremlin.steps.additions import DEFAULT_EDGE_LABEL, edge_draft, vertex_draft
from asterism.languages.gremlin.steps.changes import set_property
from asterism.languages.gremlin.steps.merge_maps import (
    IN,
    OUT,
    MergeMap,
    check_map,
    check_match_map,
    check_no_overrides,
    merged_by,
    property_entries,
    with_tokens,
)
from asterism.languages.gremlin.steps.operands import (
    Operand,
    PropertyValue,
    cardinality_named,
    checked_label,
    find_vertices,
    operand_of,
    removes_null,
)
from asterism.languages.gremlin.tree import T_ID, T_LABEL, CardinalityValue, Token, Traversal
from asterism.languages.gremlin.values.comparison import are_equal


class MergeStep(AsyncStep):
    """The common part of both steps: the maps, and the decision between a match and a new element."""

    name: str

    def __init__(
        self, maps: Mapping[str, Operand], cardinalities: Mapping[str, Cardinality], compiler: Compiler
    ) -> None:
        self._maps = maps
        # Of the values that come without one, by the option whose map they are in.
        self._cardinalities = cardinalities
        self._removes_null = removes_null(compiler)
        self._key = compiler.key
        self.key_name = compiler.key_name

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        run = frame.run
        found: Batch = []
        # One after the other: a traverser may find what the one before it has added.
        for traverser in batch:
            sought = await self.map_of("merge", traverser, run)
            check_map(sought, self.name)
            elements = await self.matches(sought, traverser, run)
            if elements:
                elements = [await self._changed(element, traverser, run) for element in elements]
            else:
                elements = [await self.added(sought, traverser, run)]
            found += [traverser.to(element) for element in elements]
        return found

    async def map_of(self, name: str, traverser: Traverser, run: Run) -> MergeMap:
        """Return the map of an argument or option for a traverser; null is the empty map."""
        operand = self._maps.get(name)
        if operand is None:
            return {}
        (value,) = await operand.values([traverser], run)
        if value is None or value is MISSING:
            return {}
        if not isinstance(value, dict):
            raise ExecutionFailure(f"{self.name}() takes a Map, not a {type(value).__name__}.")
        return with_tokens(value, self._key)

    async def _changed(self, element: Any, traverser: Traverser, run: Run) -> Any:
        if "onMatch" not in self._maps:
            return element
        at_element = traverser.copy()
        at_element.value = element
        changes = await self.map_of("onMatch", at_element, run)
        check_match_map(changes)
        for entry in self._entries(changes, "onMatch"):
            element = await set_property(run.graph, element, entry)
        return element

    def _entries(self, given: MergeMap, option: str) -> list[PropertyValue]:
        return property_entries(given, self._cardinalities.get(option), removes_null=self._removes_null)

    async def created_map(self, sought: MergeMap, traverser: Traverser, run: Run) -> MergeMap:
        """Return the map of a new element: that of the search, and what `onCreate` adds to it."""
        more = await self.map_of("onCreate", traverser, run)
        check_map(more, self.name)
        check_no_overrides(sought, more)
        return {**more, **sought}

    @abstractmethod
    async def matches(self, sought: MergeMap, traverser: Traverser, run: Run) -> list[Any]:
        """Return the elements that the map describes."""

    @abstractmethod
    async def added(self, sought: MergeMap, traverser: Traverser, run: Run) -> Any:
        """Add an element."""

    async def vertices(self, sought: MergeMap, graph: GraphSession) -> list[Vertex]:
        """Return the vertices that a map describes."""
        names = [name for name in sought if isinstance(name, str)]
        return [
            vertex
            async for batch in graph.vertices(self.lookup_of(sought))
            for vertex in batch
            if all(any(are_equal(found, value_in(sought, name)) for found in vertex.values(name)) for name in names)
        ]

    def lookup_of(self, sought: MergeMap) -> Lookup:
        """Return the lookup of the elements that a map describes."""
        label = sought.get(T_LABEL)
        ids, places = None, None
        if T_ID in sought:
            ids, places = _place_or_id(sought[T_ID], self.key_name)
        keys: tuple[KeyValue, ...] | None = None
        if self.key_name is not None and self.key_name in sought and is_key_value(value_in(sought, self.key_name)):
            keys = (plain(value_in(sought, self.key_name)),)
        conditions = tuple(
            IndexCondition(name, "eq", plain(value_in(sought, name)))
            for name in sought
            if isinstance(name, str) and name != self.key_name
        )
        return Lookup(ids, places, keys, None if label is None else (label,), conditions)


def value_in(sought: MergeMap, name: Any) -> Any:
    value = sought[name]
    return value.value if isinstance(value, CardinalityValue) else value


def _place_or_id(
    value: Any, key_name: str | None
) -> tuple[tuple[str, ...] | None, tuple[tuple[KeyValue, str], ...] | None]:
    if key_name is not None and isinstance(value, list | tuple) and len(value) == 2 and is_key_value(value[0]):
        return None, ((plain(value[0]), str(value[1])),)
    return (str(value),), None


class MergeVertexStep(MergeStep):
    """`mergeV()`."""

    name = "mergeV"

    async def matches(self, sought: MergeMap, traverser: Traverser, run: Run) -> list[Any]:  # noqa: ARG002
        return await self.vertices(sought, run.graph)

    async def added(self, sought: MergeMap, traverser: Traverser, run: Run) -> Any:
        created = await self.created_map(sought, traverser, run)
        draft = vertex_draft(None, self._entries(created, "onCreate"))
        draft.merged_by = merged_by(sought)
        return await run.graph.add_vertex(draft)


class MergeEdgeStep(MergeStep):
    """`mergeE()`."""

    name = "mergeE"

    async def matches(self, sought: MergeMap, traverser: Traverser, run: Run) -> list[Any]:
        resolved = await self._resolved(sought, traverser, run)
        # The partition key of an edge is that of its source, and part of the lookup.
        names = [name for name in sought if isinstance(name, str) and name != self.key_name]
        return [
            edge
            for edge in await self._candidates(resolved, run.graph)
            if all(
                name in edge.properties and are_equal(edge.properties[name], value_in(sought, name)) for name in names
            )
        ]

    async def _candidates(self, sought: MergeMap, graph: GraphSession) -> list[Edge]:
        lookup = self.lookup_of({key: value for key, value in sought.items() if key not in (OUT, IN)})
        sources = await find_vertices(graph, sought[OUT]) if OUT in sought else None
        targets = await find_vertices(graph, sought[IN]) if IN in sought else None
        if T_ID not in sought and sources is not None:
            return await _incident(graph, sources, "OUT", lookup, targets)
        if T_ID not in sought and targets is not None:
            return await _incident(graph, targets, "IN", lookup, None)
        if sources is not None and self.key_name is not None and lookup.places is None:
            # The edge lies with its source.
            lookup = Lookup(lookup.ids, None, tuple(vertex.key for vertex in sources), lookup.labels)
        found = [edge async for batch in graph.edges(lookup) for edge in batch]
        return [
            edge
            for edge in found
            if (sources is None or edge.out_vertex in sources) and (targets is None or edge.in_vertex in targets)
        ]

    async def _resolved(self, sought: MergeMap, traverser: Traverser, run: Run) -> MergeMap:
        """Return a map with vertices in place of Merge.outV and Merge.inV."""
        resolved = dict(sought)
        for direction, option in ((OUT, "outV"), (IN, "inV")):
            value = sought.get(direction)
            if not isinstance(value, Token):
                continue
            if option not in self._maps:
                raise ExecutionFailure(f"option({option}) must be specified if it is used for {direction.name}")
            (found,) = await self._maps[option].values([traverser], run)
            resolved[direction] = await self._vertex_of(found, option, run)
        return resolved

    async def _vertex_of(self, found: Any, option: str, run: Run) -> Vertex:
        if isinstance(found, dict):
            found = with_tokens(found, self._key)
            check_map(found, "mergeV")
            for vertex in await self.vertices(found, run.graph):
                return vertex
            raise ExecutionFailure(f"Could not resolve vertex for option({option})")
        if isinstance(found, Vertex):
            return found
        raise ExecutionFailure(f"Vertex could not be resolved from mergeE: {found}")

    async def added(self, sought: MergeMap, traverser: Traverser, run: Run) -> Any:
        created = await self._resolved(await self.created_map(sought, traverser, run), traverser, run)
        ends: list[Vertex] = []
        for direction, name in ((OUT, "Out"), (IN, "In")):
            if direction not in created:
                raise ExecutionFailure(f"{name} Vertex not specified in onCreate - edge cannot be created")
            vertices = await find_vertices(run.graph, created[direction])
            if not vertices:
                raise ExecutionFailure(f"Vertex id could not be resolved from mergeE: {created[direction]}")
            ends.append(vertices[0])
        source, target = ends
        properties = self._entries({key: value for key, value in created.items() if key not in (OUT, IN)}, "onCreate")
        label = checked_label(created.get(T_LABEL), DEFAULT_EDGE_LABEL)
        draft = edge_draft(label, source, target, properties)
        draft.merged_by = merged_by(sought, *((end.key, end.id) for end in ends))
        return await run.graph.add_edge(draft)


async def _incident(
    graph: GraphSession, vertices: Sequence[Vertex], direction: Any, lookup: Lookup, others: Sequence[Vertex] | None
) -> list[Edge]:
    edges = await graph.adjacent_edges(vertices, direction, Lookup(labels=lookup.labels))
    return [
        edge
        for own in edges
        for edge in own
        if others is None or any(edge.in_id == other.id and same_key(edge.in_key, other.key) for other in others)
    ]


# --- makers ---------------------------------------------------------------------------------------------------------


def _maps_of(call: StepCall, compiler: Compiler) -> tuple[dict[str, Operand], dict[str, Cardinality]]:
    """Return the maps of a call, and the cardinalities of those that come with one."""
    if len(call.arguments) > 1:
        raise call.refused(f"{call.name}() takes a map or a traversal that gives one")
    compiler.writes = True
    maps: dict[str, Operand] = {}
    cardinalities: dict[str, Cardinality] = {}
    if call.arguments:
        maps["merge"] = operand_of(call.arguments[0], compiler)
    else:
        maps["merge"] = Operand(child=compiler.pipeline(Traversal()))
    for option in call.modulators_named("option"):
        match option.arguments:
            case [Token("Merge", name), value]:
                maps[name] = operand_of(value, compiler)
            case [Token("Merge", name), value, Token("Cardinality", cardinality)]:
                maps[name] = operand_of(value, compiler)
                cardinalities[name] = cardinality_named(cardinality)
            case _:
                raise call.refused(f"option() of {call.name}() takes onCreate, onMatch, outV or inV, and a map")
    _check_constants(call, compiler, maps)
    return maps, cardinalities


def _check_constants(call: StepCall, compiler: Compiler, maps: Mapping[str, Operand]) -> None:
    """Refuse maps of constants that cannot be right, before anything is read."""
    constants = {
        name: with_tokens(operand.constant, compiler.key)
        for name, operand in maps.items()
        if operand.child is None and isinstance(operand.constant, dict)
    }
    sought, created = constants.get("merge"), constants.get("onCreate")
    if sought is not None:
        check_map(sought, call.name)
    if sought is not None and created is not None:
        check_map(created, call.name)
        check_no_overrides(sought, created)
    if "onMatch" in constants:
        check_match_map(constants["onMatch"])


def _make_merge_vertex(call: StepCall, compiler: Compiler) -> MergeVertexStep:
    return MergeVertexStep(*_maps_of(call, compiler), compiler)


def _make_merge_edge(call: StepCall, compiler: Compiler) -> MergeEdgeStep:
    return MergeEdgeStep(*_maps_of(call, compiler), compiler)


STEPS: Mapping[str, Maker] = {"mergeV": _make_merge_vertex, "mergeE": _make_merge_edge}
