"""Traversals written as Python chains, and the few steps that tests of other families stand on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

from asterism.languages.gremlin.engine.evaluate import evaluate
from asterism.languages.gremlin.engine.run import DEFAULT_LIMITS, Frame, Run, RunLimits
from asterism.languages.gremlin.engine.step import AsyncStep, BarrierStep, Step, by_origin
from asterism.languages.gremlin.engine.traverser import ROOT, Batch, Traverser
from asterism.languages.gremlin.graph.contract import Direction, Lookup
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler, Dialect
from asterism.languages.gremlin.plan.table import STEPS
from asterism.languages.gremlin.steps.basic import FlatMapStep
from asterism.languages.gremlin.tree import Instruction, Token, Traversal
from asterism.languages.gremlin.values.results import Path
from tests.unit.gremlin.memory_graph import MemoryGraph

LOCAL = Token("Scope", "local")


class Chain:
    """A traversal under construction: `chain.V().out('knows')`; names that Python keeps end with an underscore."""

    def __init__(self, steps: tuple[Instruction, ...] = ()) -> None:
        self.steps = steps

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Chain:
            plain = tuple(Traversal(entry.steps) if isinstance(entry, Chain) else entry for entry in arguments)
            return Chain((*self.steps, Instruction(name.rstrip("_"), plain)))

        return call


chain = Chain()


class VerticesStep(Step):
    """`V` as a stream."""

    is_stateful = False

    def __init__(self, ids: Sequence[str]) -> None:
        self._lookup = Lookup(ids=tuple(ids) or None)

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        async for batch in source:
            for traverser in batch:
                async for vertices in frame.run.graph.vertices(self._lookup):
                    yield [traverser.to(vertex) for vertex in vertices]


class NeighborsStep(AsyncStep):
    def __init__(self, direction: Direction, labels: Sequence[str]) -> None:
        self._direction: Direction = direction
        self._lookup = Lookup(labels=tuple(labels) or None)

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        graph = frame.run.graph
        found: Batch = []
        for traverser in batch:
            ways: list[Direction] = ["OUT", "IN"] if self._direction == "BOTH" else [self._direction]
            for way in ways:
                (edges,) = await graph.adjacent_edges([traverser.value], way, self._lookup)
                ends = await graph.load([edge.in_vertex if way == "OUT" else edge.out_vertex for edge in edges])
                found += [traverser.to(vertex) for vertex in ends]
        return found


class CountStep(BarrierStep):
    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        return [
            _reduced(sum(traverser.bulk for traverser in group), origin, frame)
            for origin, group in enumerate(by_origin(batch, frame.segments))
        ]


class FoldStep(BarrierStep):
    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        return [
            _reduced([traverser.value for traverser in group for _ in range(traverser.bulk)], origin, frame)
            for origin, group in enumerate(by_origin(batch, frame.segments))
        ]


class PathStep(AsyncStep):
    async def process(self, batch: Batch, frame: Frame) -> Batch:
        return [traverser.to(_path(traverser)) for traverser in batch]


def _path(traverser: Traverser) -> Path:
    assert traverser.path is not None
    places = traverser.path.places()
    return Path([place.labels for place in places], [place.value for place in places])


def _reduced(value: Any, origin: int, frame: Frame) -> Traverser:
    return Traverser(value, path=ROOT if frame.run.tracks_path else None, origin=origin)


def _neighbors(direction: Direction) -> Maker:
    return lambda call, _: NeighborsStep(direction, call.arguments)


def _make_path(call: StepCall, compiler: Compiler) -> PathStep:
    compiler.needs_path = True
    return PathStep()


# Steps of other families in their plainest form; the real ones take their place.
PLAIN_STEPS: Mapping[str, Maker] = {
    "V": lambda call, _: VerticesStep(call.arguments),
    "both": _neighbors("BOTH"),
    "count": lambda _call, _compiler: CountStep(),
    "fold": lambda _call, _compiler: FoldStep(),
    "in": _neighbors("IN"),
    "inject": lambda call, _: FlatMapStep(lambda _value: list(call.arguments)),
    "out": _neighbors("OUT"),
    "path": _make_path,
    "unfold": lambda _call, _compiler: FlatMapStep(
        lambda value: list(value) if isinstance(value, list | set) else [value]
    ),
}


async def run_chain(
    graph: MemoryGraph,
    traversal: Chain,
    *,
    dialect: Dialect = "tinkerpop",
    limits: RunLimits = DEFAULT_LIMITS,
    seed: int | None = None,
) -> list[Any]:
    """Run a traversal and return its results, each as often as its bulk says."""
    compiler = Compiler({**PLAIN_STEPS, **STEPS}, dialect=dialect)
    pipeline = compiler.root(Traversal(traversal.steps))
    clock = iter(range(1_000_000_000))
    run = Run(
        cast(Any, graph),
        monotonic=lambda: next(clock) / 1_000_000,
        limits=limits,
        tracks_path=compiler.needs_path,
        seed=seed,
    )
    found: list[Any] = []
    async for batch in evaluate(pipeline, run):
        for traverser in batch:
            found += [traverser.value] * traverser.bulk
    return found


async def names(graph: MemoryGraph, traversal: Chain, **options: Any) -> list[str]:
    """Run a traversal to vertices and return their names, in order of the alphabet."""
    return sorted(vertex.values("name")[0] for vertex in await run_chain(graph, traversal, **options))
