"""The simulation is arithmetic with the server's own rules; tests/unit/keyspaces compares it with the server."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from asterism.advisor.simulation import Workload, make_keys, simulate
from asterism.cli.main import app
from asterism.limits import DEFAULT_LIMITS, GIB
from asterism.partitioning.key_range import FULL
from asterism.partitioning.placement import NodeLoad, Rules
from asterism.values.identifiers import NodeNumber

WORKLOADS = st.builds(
    Workload,
    data_bytes=st.integers(1, 2000 * GIB),
    ru_per_second=st.integers(400, 200_000),
    keys=st.integers(1, 100_000),
    skew=st.floats(0, 1.5),
    autoscale=st.booleans(),
    created_with=st.none() | st.integers(400, 20_000),
)


def nodes(count: int) -> list[NodeLoad]:
    return [NodeLoad(NodeNumber(number + 1)) for number in range(count)]


@given(WORKLOADS, st.integers(1, 6), st.booleans())
@settings(max_examples=25, deadline=None)
def test_partitions_cover_the_line_and_hold_everything(workload: Workload, node_count: int, spread: bool) -> None:
    outcome = simulate(workload, nodes(node_count), DEFAULT_LIMITS, rules=Rules(spread=spread))
    ranges = [partition.range for partition in outcome.partitions]
    assert [key_range.start for key_range in ranges] == [FULL.start, *(key_range.end for key_range in ranges[:-1])]
    assert ranges[-1].end == FULL.end
    kept = sum(key.size_bytes for key in make_keys(workload, DEFAULT_LIMITS))
    assert sum(node.size_bytes for node in outcome.nodes) == kept
    assert kept == pytest.approx(workload.data_bytes, abs=workload.keys + 1)
    assert sum(node.partitions for node in outcome.nodes) == len(outcome.partitions)
    assert sum(node.ru_demand for node in outcome.nodes) == pytest.approx(workload.ru_per_second)


@given(WORKLOADS)
@settings(max_examples=25, deadline=None)
def test_a_partition_is_overfull_only_if_it_cannot_be_divided(workload: Workload) -> None:
    outcome = simulate(workload, nodes(2), DEFAULT_LIMITS)
    limit = DEFAULT_LIMITS.physical_partition_bytes_max * 0.8
    assert all(partition.size_bytes < limit or partition.is_stuck for partition in outcome.partitions)
    assert outcome.after_throughput >= workload.ru_per_second / DEFAULT_LIMITS.physical_partition_ru_per_second_max


def test_a_spread_container_has_equally_many_partitions_on_every_node() -> None:
    outcome = simulate(Workload(4000 * GIB, 50_000, 10_000, 0.7), nodes(7), DEFAULT_LIMITS, rules=Rules(spread=True))
    counts = [node.partitions for node in outcome.nodes]
    assert max(counts) - min(counts) <= 1


def test_even_keys_make_even_nodes_and_nothing_is_hot() -> None:
    outcome = simulate(Workload(10_000 * GIB, 100_000, 1_000_000), nodes(4), DEFAULT_LIMITS)
    sizes = [node.size_bytes for node in outcome.nodes]
    assert min(sizes) > 0.9 * max(sizes)
    assert outcome.hottest < 2.5
    assert outcome.keys_too_large == 0


def test_one_large_key_is_hot_and_said_to_be_too_large() -> None:
    outcome = simulate(Workload(1000 * GIB, 100_000, 1000, 1.2), nodes(2), DEFAULT_LIMITS)
    assert outcome.keys_too_large >= 1
    assert outcome.hottest > 3


def test_raised_throughput_splits_and_created_throughput_does_not() -> None:
    raised = simulate(Workload(GIB, 30_000, 1000, created_with=6000), nodes(1), DEFAULT_LIMITS)
    assert (raised.at_creation, raised.after_throughput) == (1, 3)
    created = simulate(Workload(GIB, 30_000, 1000), nodes(1), DEFAULT_LIMITS)
    assert (created.at_creation, created.after_throughput) == (5, 5)
    assert simulate(replace(raised_workload(), autoscale=True), nodes(1), DEFAULT_LIMITS).at_creation == 3


def raised_workload() -> Workload:
    return Workload(GIB, 30_000, 1000)


def test_the_command_shows_nodes_and_speaks_json() -> None:
    arguments = ["simulate", "--data", "2TB", "--ru", "60000", "--nodes", "3", "--keys", "10K"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "10 at creation" in shown.output
    reply = json.loads(CliRunner().invoke(app, [*arguments, "--format", "json"]).output)
    assert reply["partitions_at_creation"] == 10
    assert [node["node"] for node in reply["nodes"]] == [1, 2, 3]
