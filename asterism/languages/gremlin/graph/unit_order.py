"""The order in which the logical partitions of a traversal are written, so that no edge is there before its ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from asterism.languages.gremlin.graph.elements import SINK_KEY, KeyValue
from asterism.languages.gremlin.graph.staged import StagedItem


def ordered_points(groups: Mapping[bytes, Sequence[StagedItem]], point_of: Callable[[KeyValue], bytes]) -> list[bytes]:
    """Return the points of logical partitions in the order to write them: new vertices before edges to them, edges
    removed before the vertices that they lead to. Edges in a circle of partitions have no such order, and come in that
    of their addition."""
    with_new_vertices = {
        point for point, items in groups.items() if any(item.is_new and not item.is_edge for item in items)
    }
    found: dict[bytes, None] = {}
    visited: set[bytes] = set()

    def visit(first: bytes) -> None:
        # Without recursion: a chain may lead through thousands of partitions.
        waiting = [(first, iter(_targets(groups[first], point_of)))]
        visited.add(first)
        while waiting:
            point, targets = waiting[-1]
            target = next((target for target in targets if target in with_new_vertices and target not in visited), None)
            if target is None:
                found[point] = None
                waiting.pop()
            else:
                visited.add(target)
                waiting.append((target, iter(_targets(groups[target], point_of))))

    for point in sorted(groups, key=lambda point: _rank(groups[point])):
        if point not in visited:
            visit(point)
    # Partitions that lose a vertex come last even if an edge leads to them.
    return sorted(found, key=lambda point: _loses_vertex(groups[point]))


def _targets(items: Sequence[StagedItem], point_of: Callable[[KeyValue], bytes]) -> list[bytes]:
    """Return the partitions that new edges lead to."""
    return [
        point_of(item.document.get(SINK_KEY))
        for item in items
        if item.is_edge and item.is_new and item.document is not None
    ]


def _loses_vertex(items: Sequence[StagedItem]) -> bool:
    return any(item.document is None and not item.is_edge for item in items)


def _rank(items: Sequence[StagedItem]) -> int:
    if _loses_vertex(items):
        return 2
    return 1 if any(item.is_edge for item in items) else 0
