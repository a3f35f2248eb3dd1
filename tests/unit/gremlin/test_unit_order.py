"""The order in which logical partitions are written."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from asterism.languages.gremlin.graph.staged import StagedItem
from asterism.languages.gremlin.graph.unit_order import ordered_points


def point_of(key: Any) -> bytes:
    return str(key).encode()


def new_vertex(key: str) -> StagedItem:
    return StagedItem(key, "v", {"id": "v"}, True, False)


def new_edge(key: str, target: str) -> StagedItem:
    return StagedItem(key, f"to {target}", {"_isEdge": True, "_sinkPartition": target}, True, True)


def order(groups: dict[str, list[StagedItem]]) -> list[str]:
    return [point.decode() for point in ordered_points({point_of(key): own for key, own in groups.items()}, point_of)]


def test_vertices_are_written_before_edges_to_them_along_a_chain() -> None:
    chain = {key: [new_vertex(key), new_edge(key, target)] for key, target in ("ab", "bc", "cd")}
    assert order({**chain, "d": [new_vertex("d")]}) == ["d", "c", "b", "a"]


def test_a_long_chain_and_a_circle_are_ordered_too() -> None:
    circle = {str(n): [new_vertex(str(n)), new_edge(str(n), str((n + 1) % 3000))] for n in range(3000)}
    assert sorted(order(circle)) == sorted(circle)


def test_edges_are_removed_before_the_vertices_that_they_lead_to() -> None:
    removed_vertex = StagedItem("a", "v", None, False, False)
    removed_edge = StagedItem("b", "e", None, False, True)
    assert order({"a": [removed_vertex], "b": [removed_edge]}) == ["b", "a"]


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] < pair[1])))
def test_without_circles_no_edge_comes_before_a_new_end(edges: set[tuple[int, int]]) -> None:
    groups = {
        str(n): [new_vertex(str(n)), *(new_edge(str(n), str(target)) for source, target in edges if source == n)]
        for n in range(9)
    }
    place = {key: at for at, key in enumerate(order(groups))}
    assert len(place) == 9
    assert all(place[str(target)] < place[str(source)] for source, target in edges)
