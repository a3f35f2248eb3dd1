"""SubgraphStrategy: a traversal sees only the vertices, edges and properties that criteria yield something for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.failure import CompileFailure
from asterism.languages.gremlin.plan.strategies import names
from asterism.languages.gremlin.plan.strategies.rewriting import (
    ADJACENT,
    Steps,
    as_filter,
    end_of_call,
    is_direction_step,
    returns_edges,
    returns_vertices,
    rewritten,
)
from asterism.languages.gremlin.plan.strategies.vertex_properties import with_visible_properties
from asterism.languages.gremlin.tree import Instruction, Traversal


@dataclass(frozen=True, slots=True)
class _Criteria:
    vertices: Traversal | None
    edges: Traversal | None
    properties: Traversal | None
    checks_adjacent_vertices: bool


def subgraph(traversal: Traversal, settings: Mapping[str, Any]) -> Traversal:
    """Return the traversal as it runs on the part of the graph that the settings describe."""
    criteria = _Criteria(
        names.criterion(settings, "vertices"),
        names.criterion(settings, "edges"),
        names.criterion(settings, "vertexProperties"),
        names.flag(settings, "checkAdjacentVertices", default=True),
    )
    if criteria.vertices is None and criteria.edges is None and criteria.properties is None:
        raise CompileFailure("A subgraph must be filtered by a vertex, edge, or vertex property criterion")
    return rewritten(traversal, lambda steps: _rewrite(steps, criteria))


def _rewrite(steps: Steps, criteria: _Criteria) -> Steps:
    if criteria.properties is not None:
        steps = with_visible_properties(steps, criteria.properties)
    found: list[Instruction] = []
    place = 0
    while place < len(steps):
        step = steps[place]
        end = end_of_call(steps, place)
        behind = steps[place + 1 : end]
        if returns_vertices(step) or step.name == "addV":
            found += _read(step, criteria)
            found += behind
            if criteria.vertices is not None:
                found += as_filter(criteria.vertices)
            place = end
        elif returns_edges(step) or step.name == "addE":
            found.append(step)
            found += behind
            found += _edge_filter(step, criteria)
            place = end
        else:
            found.append(step)
            place += 1
    return tuple(found)


def _read(step: Instruction, criteria: _Criteria) -> Steps:
    """Return the steps that read vertices: where edges are filtered, neighbors are reached through them."""
    if criteria.edges is None or not (step.name in ADJACENT or is_direction_step(step)):
        return (step,)
    if step.name in ADJACENT:
        direction, labels = step.name.upper(), step.arguments
    else:
        direction, labels = step.arguments[0].name, step.arguments[1:]
    edge_step, end_step = {"OUT": ("outE", "inV"), "IN": ("inE", "outV"), "BOTH": ("bothE", "otherV")}[direction]
    return (
        Instruction(edge_step, labels, step.line, step.column),
        *as_filter(criteria.edges),
        Instruction(end_step),
    )


def _edge_filter(step: Instruction, criteria: _Criteria) -> Steps:
    found: Steps = () if criteria.edges is None else as_filter(criteria.edges)
    if criteria.vertices is None or not criteria.checks_adjacent_vertices or step.name == "addE":
        return found
    # Edges are seen with both ends: the end they were reached from was filtered already.
    ends = {"outE": ("inV",), "inE": ("outV",), "bothE": ("otherV",), "toE": ("otherV",)}.get(
        step.name, ("inV", "outV")
    )
    for end in ends:
        reached = Traversal((Instruction(end), *as_filter(criteria.vertices)))
        found += (Instruction("filter", (reached,)),)
    return found
