"""Steps of our own that strategies put into traversals; no text can name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, property_reader, token_reader
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.step import AsyncStep
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.graph.elements import Vertex, VertexProperty
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.strategies.partition import ENTRY_STEP
from asterism.languages.gremlin.plan.strategies.vertex_properties import FILTER_STEP, VALUE_STEP
from asterism.languages.gremlin.steps.basic import MapStep
from asterism.languages.gremlin.tree import Token


async def visible_properties(properties: list[VertexProperty], criterion: Pipeline, run: Run) -> list[VertexProperty]:
    """Return the properties that a criterion yields something for."""
    passed = await criterion.succeeds([Traverser(entry) for entry in properties], run)
    return [entry for entry, passes in zip(properties, passed, strict=True) if passes]


class VertexPropertyFilterStep(AsyncStep):
    """Lets properties of vertices pass that a criterion yields something for, and everything else."""

    def __init__(self, criterion: Pipeline) -> None:
        self.criterion = criterion

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        tested = [traverser for traverser in batch if isinstance(traverser.value, VertexProperty)]
        passed = iter(await self.criterion.succeeds(tested, frame.run))
        return [traverser for traverser in batch if not isinstance(traverser.value, VertexProperty) or next(passed)]


class VisibleValueStep(AsyncStep):
    """The value of a property as `by(name)` reads it, if it is a property of a vertex that a criterion lets pass."""

    def __init__(self, name: str, criterion: Pipeline) -> None:
        self.name = name
        self.criterion = criterion
        self.read_other: Callable[[Any], Any] = property_reader(name, default=MISSING)

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        candidates: list[VertexProperty] = []
        counts: list[int] = []
        for traverser in batch:
            entries = traverser.value.properties.get(self.name, []) if isinstance(traverser.value, Vertex) else []
            candidates += entries
            counts.append(len(entries))
        passed = iter(await self.criterion.succeeds([Traverser(entry) for entry in candidates], frame.run))
        offered = iter(candidates)
        found: Batch = []
        for traverser, count in zip(batch, counts, strict=True):
            if isinstance(traverser.value, Vertex):
                visible = [entry.value for entry in (next(offered) for _ in range(count)) if next(passed)]
                value = visible[0] if visible else MISSING
            else:
                value = self.read_other(traverser.value)
            if value is not MISSING:
                found.append(traverser.to(value))
        return found


def _make_filter(call: StepCall, compiler: Compiler) -> VertexPropertyFilterStep:
    return VertexPropertyFilterStep(compiler.child(*call.arguments[:1]))


def _make_value(call: StepCall, compiler: Compiler) -> VisibleValueStep | MapStep:
    if len(call.arguments) != 2:
        raise call.refused(f"Unable to find any method '{call.name}'")
    name = compiler.key(call.arguments[0])
    if isinstance(name, Token):
        return MapStep(token_reader(name))
    return VisibleValueStep(str(name), compiler.child(call.arguments[1]))


def _make_entry(call: StepCall, _: Compiler) -> MapStep:
    if len(call.arguments) != 2:
        raise call.refused(f"Unable to find any method '{call.name}'")
    key, entry = call.arguments
    return MapStep(lambda value: {**value, key: entry} if isinstance(value, dict) else {key: entry})


STEPS: Mapping[str, Maker] = {
    FILTER_STEP: _make_filter,
    VALUE_STEP: _make_value,
    ENTRY_STEP: _make_entry,
}
