from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.partitioning.placement import NodeLoad, place

EAST = frozenset({"east"})


def test_new_partitions_go_to_the_least_loaded_nodes() -> None:
    nodes = [NodeLoad("a", 3, 0), NodeLoad("b", 1, 0), NodeLoad("c", 2, 0)]
    assert place(4, nodes) == ("b", "b", "c", "a")


def test_of_equally_many_partitions_the_fewer_bytes_win_and_then_the_name() -> None:
    assert place(1, [NodeLoad("a", 1, 9), NodeLoad("b", 1, 5)]) == ("b",)
    assert place(1, [NodeLoad("b", 1, 5), NodeLoad("a", 1, 5)]) == ("a",)


def test_a_required_region_is_kept() -> None:
    nodes = [NodeLoad("a", 0, 0), NodeLoad("b", 50, 0, EAST)]
    assert place(2, nodes, required_region="east") == ("b", "b")


@pytest.mark.parametrize("nodes", [[], [NodeLoad("a", 0, 0)]])
def test_without_a_fitting_node_nothing_is_placed(nodes: list[NodeLoad]) -> None:
    with pytest.raises(ValueError, match="no node"):
        place(1, nodes, required_region="east")


@given(st.integers(0, 40), st.integers(1, 6))
def test_empty_nodes_fill_evenly_in_any_order(count: int, nodes: int) -> None:
    loads = [NodeLoad(str(index), 0, 0) for index in range(nodes)]
    placed = place(count, loads)
    assert placed == place(count, loads[::-1])
    counts = [Counter(placed)[load.node] for load in loads]
    assert max(counts) - min(counts) <= 1
    assert sum(counts) == count
