"""Loops: repeat with until, times and emit on either side, their limits, and their laziness."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.languages.gremlin.engine.run import RunLimits
from asterism.languages.gremlin.failure import CompileFailure, LimitExceeded, MemoryExceeded, TimeExceeded
from asterism.languages.gremlin.graph.contract import Direction, Lookup
from asterism.languages.gremlin.graph.elements import Edge, Vertex
from asterism.languages.gremlin.tree import Predicate
from tests.unit.gremlin.chains import Chain, chain, names, run_chain
from tests.unit.gremlin.memory_graph import MemoryGraph, modern


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        (chain.repeat(chain.out()).times(2), ["lop", "ripple"]),
        (chain.times(2).repeat(chain.out()), ["lop", "ripple"]),
        (chain.repeat(chain.out()).times(0), ["josh", "lop", "vadas"]),
        (chain.times(0).repeat(chain.out()), ["marko"]),
        (chain.repeat(chain.out()).until(chain.has("lang")), ["lop", "lop", "ripple"]),
        (chain.until(chain.has("name", "marko")).repeat(chain.out()), ["marko"]),
        (chain.repeat(chain.out()).emit(), ["josh", "lop", "lop", "ripple", "vadas"]),
        (chain.emit().repeat(chain.out()), ["josh", "lop", "lop", "marko", "ripple", "vadas"]),
        (chain.emit(chain.has("age")).repeat(chain.out()), ["josh", "marko", "vadas"]),
        (chain.repeat(chain.out()).emit(chain.has("age")), ["josh", "vadas"]),
        (chain.repeat(chain.out()).times(1).emit(), ["josh", "lop", "vadas"]),
        (chain.repeat(chain.out()).until(chain.loops().is_(2)), ["lop", "ripple"]),
        # Asked before and given out behind the body: what leaves in the next round comes twice.
        (
            chain.until(chain.loops().is_(1)).repeat(chain.out()).emit(),
            ["josh", "josh", "lop", "lop", "vadas", "vadas"],
        ),
        (chain.repeat(chain.out()), []),
        (chain.repeat(chain.out()).times(1).repeat(chain.in_()).times(1), ["josh", "marko", "marko", "marko", "peter"]),
        (chain.repeat(chain.repeat(chain.out()).times(1)).times(2), ["lop", "ripple"]),
        (
            chain.repeat("a", chain.out().repeat("b", chain.out()).times(1)).until(chain.loops("a").is_(1)),
            ["lop", "ripple"],
        ),
        (chain.repeat("a", chain.out().filter(chain.loops("a").is_(0))).emit(), ["josh", "lop", "vadas"]),
    ],
)
async def test_a_loop_gives_out_what_leaves_it(loop: Chain, expected: list[str]) -> None:
    assert await names(modern(), Chain((*chain.V("1").steps, *loop.steps))) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (chain.limit(1).in_(), ["marko"]),
        (chain.in_().limit(1), ["marko"]),
        (chain.range(0, 1).in_(), ["marko"]),
        (chain.in_().tail(1), ["marko"]),
    ],
)
async def test_a_range_in_a_loop_begins_anew_in_each_round(body: Chain, expected: list[str]) -> None:
    assert await names(modern(), chain.V("5").repeat(body).times(2)) == expected


async def test_dedup_in_a_loop_remembers_earlier_rounds() -> None:
    assert await run_chain(modern(), chain.V().repeat(chain.dedup()).times(2).count()) == [0]
    reached = chain.repeat(chain.both().dedup()).emit()
    assert len(await run_chain(modern(), Chain((*chain.V("1").steps, *reached.steps)))) == 6
    # For each parent of a child apart.
    assert len(await run_chain(modern(), chain.V("1", "2", "6").local(reached))) == 18


@pytest.mark.parametrize(
    "traversal",
    [
        chain.V().emit(),
        chain.V().until(chain.identity()),
        chain.V().times(5),
        chain.V().repeat(chain.out()).times(1).until(chain.out()),
        chain.V().repeat(),
    ],
)
async def test_loops_that_make_no_sense_are_refused(traversal: Chain) -> None:
    with pytest.raises(CompileFailure):
        await run_chain(modern(), traversal)


async def test_the_dialect_of_the_service_limits_rounds() -> None:
    endless = chain.V("1").repeat(chain.identity()).times(33)
    with pytest.raises(LimitExceeded, match="more than 32 times"):
        await run_chain(modern(), endless, dialect="cosmos")
    assert len(await run_chain(modern(), endless)) == 1
    assert len(await run_chain(modern(), chain.V("1").repeat(chain.identity()).times(32), dialect="cosmos")) == 1


async def test_an_endless_loop_is_stopped_by_time_or_memory() -> None:
    with pytest.raises(TimeExceeded):
        await run_chain(modern(), chain.V().repeat(chain.both()), limits=RunLimits(seconds=0.001))
    with pytest.raises(MemoryExceeded):
        await run_chain(modern(), chain.V().repeat(chain.both()).path(), limits=RunLimits(values=10_000))


@pytest.mark.parametrize(
    "traversal",
    [
        chain.V("1").repeat(chain.both()).emit().limit(20),
        chain.V("1").local(chain.repeat(chain.both()).emit().limit(20)),
        chain.V("1").repeat(chain.both()).emit().limit(20).path(),
        chain.V("1").union(chain.repeat(chain.both()).emit()).limit(20),
    ],
)
async def test_a_limit_behind_stops_an_endless_loop(traversal: Chain) -> None:
    assert len(await run_chain(modern(), traversal)) == 20


async def test_a_condition_stops_an_endless_loop_at_its_first_result() -> None:
    found = chain.V().where(chain.repeat(chain.both()).until(chain.has("name", "ripple")))
    assert len(await run_chain(modern(), found)) == 6
    mapped = chain.V().map(chain.repeat(chain.both()).emit(chain.hasLabel("software")))
    assert len(await run_chain(modern(), mapped)) == 6


async def test_frontiers_merge_so_that_deep_loops_stay_small() -> None:
    assert len(str((await run_chain(modern(), chain.V().repeat(chain.both()).times(60).count()))[0])) > 15


class _CountingGraph(MemoryGraph):
    """A graph of many vertices in small batches that counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read = 0
        self.adjacent_reads = 0
        for number in range(400):
            self.vertex_documents[str(number)] = {"id": str(number), "label": "node"}
            self.edge_documents[f"e{number}"] = {
                "id": f"e{number}",
                "label": "next",
                "_isEdge": True,
                "_vertexId": str(number),
                "_sink": str((number + 1) % 400),
            }

    async def vertices(self, lookup: Lookup) -> AsyncIterator[list[Vertex]]:
        async for batch in super().vertices(lookup):
            for start in range(0, len(batch), 8):
                self.read += 8
                yield batch[start : start + 8]

    async def adjacent_edges(
        self, vertices: Sequence[Vertex], direction: Direction, lookup: Lookup
    ) -> list[list[Edge]]:
        self.adjacent_reads += len(vertices)
        return await super().adjacent_edges(vertices, direction, lookup)


@pytest.mark.parametrize(
    "traversal",
    [
        chain.V().limit(1),
        chain.V().or_(chain.has("nothing"), chain.hasLabel("node")).limit(1),
        chain.V().repeat(chain.out()).times(3).limit(1),
        chain.V().union(chain.out(), chain.in_()).limit(1),
        chain.V().choose(chain.out(), chain.out()).limit(1),
        chain.V().local(chain.out()).limit(1),
        chain.V().coalesce(chain.out(), chain.identity()).limit(1),
        chain.V().dedup().limit(1),
        chain.union(chain.V(), chain.V()).limit(1),
    ],
)
async def test_a_limit_reads_no_more_than_it_needs(traversal: Chain) -> None:
    graph = _CountingGraph()
    assert len(await run_chain(graph, traversal)) == 1
    assert graph.read <= 16
    assert graph.adjacent_reads <= 64


_BODIES = st.sampled_from(
    [chain.out(), chain.in_(), chain.both(), chain.both().has("age"), chain.union(chain.out(), chain.in_())]
)
_ENDS = st.sampled_from(
    [
        lambda loop: loop.times(3),
        lambda loop: loop.times(2).emit(),
        lambda loop: loop.until(chain.loops().is_(Predicate("gte", 2))).emit(chain.has("age")),
    ]
)


@settings(max_examples=30, deadline=None)
@given(body=_BODIES, end=_ENDS)
async def test_merging_changes_no_result(body: Chain, end: Any) -> None:
    loop = end(chain.V().repeat(body))
    merged = await names(modern(), loop)
    # A label keeps every path apart, so that nothing merges.
    kept_apart = await names(modern(), end(chain.V().as_("a").repeat(body)))
    assert merged == kept_apart


async def test_a_search_with_paths_takes_less_memory_than_its_results() -> None:
    paths = chain.V().repeat(chain.both()).times(9).path()
    (count,) = await run_chain(modern(), paths.count(), limits=RunLimits(values=4_000))
    assert count > 8_000
