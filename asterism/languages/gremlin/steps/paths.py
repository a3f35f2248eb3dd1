"""Steps that show the whole way of traversers: `path` and `tree`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.reducing import ReducingStep
from asterism.languages.gremlin.engine.run import Frame, Run, SideEffect
from asterism.languages.gremlin.engine.step import AsyncStep, BarrierStep, Step
from asterism.languages.gremlin.engine.traverser import Batch, PathNode, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.selecting import modulated
from asterism.languages.gremlin.values.results import Path, Tree
from asterism.languages.gremlin.values.structures import freeze


def sub_path(places: list[PathNode], *, from_label: str | None, to_label: str | None) -> list[PathNode]:
    """Return the places from the last with one label to the last with another, both included."""
    start, end = 0, len(places)
    if from_label is not None:
        start = _place_of(places, from_label)
    if to_label is not None:
        end = _place_of(places, to_label) + 1
    if start >= end:
        raise ExecutionFailure(f"The path has no part from {from_label} to {to_label}.")
    return places[start:end]


def _place_of(places: list[PathNode], label: str) -> int:
    for place in range(len(places) - 1, -1, -1):
        if label in places[place].labels:
            return place
    raise ExecutionFailure(f"The step with label {label} does not exist: label a step of the path with as('{label}').")


async def modulated_places(paths: list[list[PathNode]], modulators: Sequence[Modulator], run: Run) -> list[list[Any]]:
    """Return the objects of each path as the modulators, taken in turn, show them."""
    if not modulators:
        return [[place.value for place in path] for path in paths]
    columns: list[list[Any]] = []
    for turn, modulator in enumerate(modulators):
        values = [place.value for path in paths for place in path[turn :: len(modulators)]]
        columns.append(await modulated(values, modulator, run))
    readers = [iter(column) for column in columns]
    shown: list[list[Any]] = [[MISSING] * len(path) for path in paths]
    for turn, reader in enumerate(readers):
        for path in shown:
            for place in range(turn, len(path), len(modulators)):
                path[place] = next(reader)
    return shown


class PathStep(AsyncStep):
    """`path()`. A path with a place that its modulator yields nothing for is left out."""

    def __init__(self, modulators: Sequence[Modulator], *, from_label: str | None, to_label: str | None) -> None:
        self.modulators = modulators
        self.from_label = from_label
        self.to_label = to_label

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        paths = [
            sub_path(_places(traverser), from_label=self.from_label, to_label=self.to_label) for traverser in batch
        ]
        shown = await modulated_places(paths, self.modulators, frame.run)
        return [
            traverser.to(Path([place.labels for place in path], objects))
            for traverser, path, objects in zip(batch, paths, shown, strict=True)
            if not any(value is MISSING for value in objects)
        ]


def _places(traverser: Traverser) -> list[PathNode]:
    return [] if traverser.path is None else traverser.path.places()


async def grow_tree(trees: Sequence[Tree], batch: Batch, modulators: Sequence[Modulator], run: Run) -> None:
    """Add the path of each traverser to the tree of its origin; places without a value are passed over."""
    shown = await modulated_places([_places(traverser) for traverser in batch], modulators, run)
    for traverser, objects in zip(batch, shown, strict=True):
        node = trees[traverser.origin if len(trees) > 1 else 0]
        for value in objects:
            if value is MISSING:
                continue
            key = freeze(value)
            child = node.get(key)
            if child is None:
                run.hold(1)
                child = node[key] = Tree()
            node = child


class TreeStep(ReducingStep):
    """`tree()`: all paths as a tree."""

    def __init__(self, modulators: Sequence[Modulator]) -> None:
        self.modulators = modulators

    def start(self, frame: Frame) -> list[Tree]:
        return [Tree() for _ in range(frame.segments)]

    async def add(self, state: list[Tree], batch: Batch, frame: Frame) -> None:
        await grow_tree(state, batch, self.modulators, frame.run)

    async def results(self, state: list[Tree], frame: Frame) -> list[Any]:  # noqa: ARG002
        return state


class TreeSideEffectStep(BarrierStep):
    """`tree(name)`: all paths so far as a tree that is a side effect."""

    fills_side_effect = True

    def __init__(self, name: str, modulators: Sequence[Modulator]) -> None:
        self.name = name
        self.modulators = modulators

    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        effect = frame.run.side_effects.setdefault(self.name, SideEffect(Tree()))
        if not isinstance(effect.value, Tree):
            raise ExecutionFailure(f"The side effect '{self.name}' is not a tree.")
        await grow_tree([effect.value], batch, self.modulators, frame.run)
        return batch


def _label(call: StepCall, name: str) -> str | None:
    labels = [modulator.arguments for modulator in call.modulators_named(name)]
    if not labels:
        return None
    if len(labels) > 1 or len(labels[0]) != 1 or not isinstance(labels[0][0], str):
        raise call.refused(f"{call.name}().{name}() takes the label of a step.")
    return labels[0][0]


def _make_path(call: StepCall, compiler: Compiler) -> PathStep:
    compiler.needs_path = True
    return PathStep(compiler.modulators(call), from_label=_label(call, "from"), to_label=_label(call, "to"))


def _make_tree(call: StepCall, compiler: Compiler) -> Step:
    compiler.needs_path = True
    modulators = compiler.modulators(call)
    if not call.arguments:
        return TreeStep(modulators)
    name = call.arguments[0]
    if len(call.arguments) != 1 or not isinstance(name, str):
        raise call.refused("tree() takes nothing, or the name of a side effect.")
    compiler.settings.filled.setdefault(name, Tree)
    return TreeSideEffectStep(name, modulators)


STEPS: Mapping[str, Maker] = {
    "path": _make_path,
    "tree": _make_tree,
}
