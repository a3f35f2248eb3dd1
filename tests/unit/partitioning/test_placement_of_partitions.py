"""Placement of partitions: every plan obeys the rules, ends, and leaves nothing for a second plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.limits import DEFAULT_LIMITS, GIB
from asterism.partitioning.placement import (
    WEIGHT_OF_EMPTY,
    WEIGHT_OF_FULL,
    Move,
    NodeLoad,
    NodeState,
    PlacedPartition,
    Plan,
    RangeName,
    Rules,
    place,
    plan_drain,
    plan_rebalance,
    weight_of,
)
from asterism.values.identifiers import NodeNumber

A, B, C = NodeNumber(1), NodeNumber(2), NodeNumber(3)
EAST = frozenset({"east"})
SPREAD = Rules(spread=True)
IN_EAST = Rules(EAST)


def name(range_id: int, keyspace: bytes = b"orders") -> RangeName:
    return RangeName(keyspace, range_id)


def test_a_new_partition_goes_to_the_lightest_node_and_then_to_the_first() -> None:
    nodes = [NodeLoad(A, weight=30), NodeLoad(B, weight=10), NodeLoad(C, weight=20)]
    assert place([5, 10, 5, 5], nodes) == (B, B, C, B)
    assert place([1], [NodeLoad(B), NodeLoad(A)]) == (A,)


def test_a_container_kept_in_a_region_stays_there_however_full_it_is() -> None:
    nodes = [NodeLoad(A), NodeLoad(B, EAST, weight=10**9)]
    assert place([1, 1], nodes, IN_EAST) == (B, B)


def test_a_node_must_have_all_labels_of_the_rules() -> None:
    rules = Rules(frozenset({"east", "ssd"}))
    assert place([1], [NodeLoad(A, EAST), NodeLoad(B, EAST | {"ssd", "big"})], rules) == (B,)


def test_a_spread_container_goes_where_it_has_the_fewest_partitions() -> None:
    nodes = [NodeLoad(A, weight=0), NodeLoad(B, weight=100)]
    assert place([1, 1, 1], nodes, SPREAD, already_there={A: 2}) == (B, B, A)


@pytest.mark.parametrize("nodes", [[], [NodeLoad(A)], [NodeLoad(A, EAST, NodeState.DRAINING)]])
def test_without_a_node_that_may_take_it_nothing_is_placed(nodes: list[NodeLoad]) -> None:
    with pytest.raises(ValueError, match="no node"):
        place([1], nodes, IN_EAST)


def test_bytes_and_request_units_weigh_alike_and_an_empty_partition_weighs_a_little() -> None:
    full_bytes = weight_of(size_bytes=50 * GIB, ru_per_second=0, limits=DEFAULT_LIMITS)
    full_ru = weight_of(size_bytes=0, ru_per_second=10_000.0, limits=DEFAULT_LIMITS)
    assert full_bytes == full_ru == WEIGHT_OF_FULL + WEIGHT_OF_EMPTY


def test_partitions_of_a_draining_node_go_to_the_lightest_other_nodes() -> None:
    nodes = [NodeLoad(A, state=NodeState.DRAINING), NodeLoad(B), NodeLoad(C)]
    placed = [PlacedPartition(name(0), A, 5), PlacedPartition(name(1), A, 3), PlacedPartition(name(2), B, 1)]
    assert plan_drain(nodes, placed) == Plan((Move(name(0), A, C), Move(name(1), A, B)))


def test_a_partition_that_no_node_may_take_is_named_and_left_where_it_is() -> None:
    nodes = [NodeLoad(A, EAST, NodeState.DRAINING), NodeLoad(B)]
    alone = PlacedPartition(name(0), A, 5)
    assert plan_drain(nodes, [alone], {b"orders": IN_EAST}) == Plan((), (alone,))


def test_a_new_node_gets_its_part() -> None:
    placed = [PlacedPartition(name(n), A, 100) for n in range(4)]
    plan = plan_rebalance([NodeLoad(A), NodeLoad(B)], placed)
    assert [(move.source, move.target) for move in plan.moves] == [(A, B), (A, B)]


def test_loads_that_are_nearly_equal_are_left_alone() -> None:
    placed = [PlacedPartition(name(n), A, 100) for n in range(30)] + [
        PlacedPartition(name(n + 30), B, 99) for n in range(30)
    ]
    assert plan_rebalance([NodeLoad(A), NodeLoad(B)], placed) == Plan(())


# --- properties -----------------------------------------------------------------------------------------------------

LABELS = st.frozensets(st.sampled_from(["east", "west", "ssd"]), max_size=2)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[NodeLoad], list[PlacedPartition], dict[bytes, Rules]]:
    numbers = draw(st.lists(st.integers(0, 9).map(NodeNumber), min_size=1, max_size=5, unique=True))
    states = st.sampled_from([NodeState.ONLINE, NodeState.ONLINE, NodeState.ONLINE, NodeState.DRAINING])
    nodes = [NodeLoad(number, draw(LABELS), draw(states)) for number in numbers]
    keyspaces = [bytes([number]) for number in range(draw(st.integers(1, 4)))]
    rules = {keyspace: Rules(draw(LABELS), draw(st.booleans())) for keyspace in keyspaces}
    owners = draw(st.lists(st.sampled_from(keyspaces), max_size=25))
    placed = [
        PlacedPartition(RangeName(owner, range_id), draw(st.sampled_from(numbers)), draw(st.integers(1, 1000)))
        for range_id, owner in enumerate(owners)
    ]
    return nodes, placed, rules


def after(plan: Plan, placed: list[PlacedPartition]) -> list[PlacedPartition]:
    targets = {move.name: move.target for move in plan.moves}
    assert len(targets) == len(plan.moves), "a partition is moved twice"
    return [replace(partition, node=targets.get(partition.name, partition.node)) for partition in placed]


def may_be_on(nodes: list[NodeLoad], rules: Rules) -> list[NodeNumber]:
    return [load.node for load in nodes if load.may_take(rules)]


@given(fleets())
@settings(deadline=None)
def test_after_a_rebalance_every_partition_is_on_a_node_it_may_be_on_or_named_as_stuck(
    fleet: tuple[list[NodeLoad], list[PlacedPartition], dict[bytes, Rules]],
) -> None:
    nodes, placed, rules = fleet
    plan = plan_rebalance(nodes, placed, rules)
    stuck = {partition.name for partition in plan.stuck}
    for partition in after(plan, placed):
        allowed = may_be_on(nodes, rules[partition.name.keyspace])
        assert partition.node in allowed or (partition.name in stuck and not allowed)


@given(fleets())
@settings(deadline=None)
def test_after_a_rebalance_a_spread_container_has_equally_many_partitions_everywhere_give_or_take_one(
    fleet: tuple[list[NodeLoad], list[PlacedPartition], dict[bytes, Rules]],
) -> None:
    nodes, placed, rules = fleet
    counts = Counter(
        (partition.name.keyspace, partition.node) for partition in after(plan_rebalance(nodes, placed, rules), placed)
    )
    for keyspace in (keyspace for keyspace, asked in rules.items() if asked.spread):
        own = [counts[keyspace, node] for node in may_be_on(nodes, rules[keyspace])]
        assert not own or max(own) - min(own) <= 1


@given(fleets())
@settings(deadline=None)
def test_a_second_rebalance_has_nothing_to_do(
    fleet: tuple[list[NodeLoad], list[PlacedPartition], dict[bytes, Rules]],
) -> None:
    nodes, placed, rules = fleet
    plan = plan_rebalance(nodes, placed, rules)
    assert plan_rebalance(nodes, after(plan, placed), rules).moves == ()
    assert all(move.source != move.target for move in plan.moves)


@given(fleets())
@settings(deadline=None)
def test_evening_out_never_makes_the_heaviest_node_heavier(
    fleet: tuple[list[NodeLoad], list[PlacedPartition], dict[bytes, Rules]],
) -> None:
    nodes, placed, rules = fleet
    forced = after(plan_drain(nodes, placed, rules), placed)

    def heaviest(where: list[PlacedPartition]) -> int:
        loads = Counter({load.node: 0 for load in nodes})
        for partition in where:
            loads[partition.node] += partition.weight
        return max(loads.values())

    without_spread = {keyspace: replace(asked, spread=False) for keyspace, asked in rules.items()}
    assert heaviest(after(plan_rebalance(nodes, forced, without_spread), forced)) <= heaviest(forced)


@given(st.lists(st.integers(1, 100), max_size=30), fleets(), LABELS)
def test_new_partitions_go_only_to_nodes_that_may_take_them_and_spread_evenly(
    weights: list[int], fleet: tuple[list[NodeLoad], list[PlacedPartition], dict[bytes, Rules]], labels: frozenset[str]
) -> None:
    nodes = fleet[0]
    rules = Rules(labels, spread=True)
    allowed = may_be_on(nodes, rules)
    chosen = place(weights, nodes, rules) if allowed else ()
    counts = Counter(chosen)
    assert set(counts) <= set(allowed)
    assert sum(counts.values()) == (len(weights) if allowed else 0)
    assert not allowed or max(counts[node] for node in allowed) - min(counts[node] for node in allowed) <= 1
    assert not allowed or chosen == place(weights, nodes[::-1], rules)
