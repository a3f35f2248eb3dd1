"""`count` and `fold`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.languages.gremlin.engine.reducing import ReducingStep
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.scopes import is_local
from asterism.languages.gremlin.steps.basic import MapStep
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.arithmetic import OPERATORS
from asterism.languages.gremlin.values.numbers import LONG_MAX, Long
from asterism.languages.gremlin.values.results import Path


class CountStep(ReducingStep):
    """`count()`: the bulks of all traversers."""

    def start(self, frame: Frame) -> list[int]:
        return [0] * frame.segments

    async def add(self, state: list[int], batch: Batch, frame: Frame) -> None:
        if frame.segments == 1:
            state[0] += sum([traverser.bulk for traverser in batch])
        else:
            for traverser in batch:
                state[traverser.origin] += traverser.bulk

    async def results(self, state: list[int], frame: Frame) -> list[Any]:  # noqa: ARG002
        # Loops over a few edges make more walks than a Long can count; a larger number is a BigInteger.
        return [Long(count) if count <= LONG_MAX else count for count in state]


class FoldStep(ReducingStep):
    """`fold()`: a list of all values, each as often as its traverser counts."""

    def start(self, frame: Frame) -> list[list[Any]]:
        return [[] for _ in range(frame.segments)]

    async def add(self, state: list[list[Any]], batch: Batch, frame: Frame) -> None:
        # Bulks may be larger than any list: they are counted before the list grows.
        frame.run.hold(sum([traverser.bulk for traverser in batch]))
        for traverser in batch:
            if traverser.bulk == 1:
                state[traverser.origin].append(traverser.value)
            else:
                state[traverser.origin].extend([traverser.value] * traverser.bulk)

    async def results(self, state: list[list[Any]], frame: Frame) -> list[Any]:
        frame.run.hold(-sum(map(len, state)))
        return state


class FoldByStep(ReducingStep):
    """`fold(seed, operator)`."""

    def __init__(self, seed: Any, operator: Callable[[Any, Any], Any]) -> None:
        self.seed = seed
        self.operator = operator

    def start(self, frame: Frame) -> list[Any]:
        seed = self.seed
        return [seed.copy() if isinstance(seed, list | set | dict) else seed for _ in range(frame.segments)]

    async def add(self, state: list[Any], batch: Batch, frame: Frame) -> None:
        for traverser in batch:
            for count in range(traverser.bulk):
                if count % 1024 == 1023:
                    await frame.run.breathe()
                state[traverser.origin] = self.operator(state[traverser.origin], traverser.value)

    async def results(self, state: list[Any], frame: Frame) -> list[Any]:  # noqa: ARG002
        return state


def count_members(value: Any) -> int:
    """Return the number of members of a container; any other value counts as one."""
    return Long(len(value)) if isinstance(value, list | tuple | set | frozenset | dict | Path) else Long(1)


def _make_count(call: StepCall, _: Compiler) -> Step:
    return MapStep(count_members) if is_local(call) else CountStep()


def _make_fold(call: StepCall, _: Compiler) -> Step:
    if not call.arguments:
        return FoldStep()
    if len(call.arguments) == 2:
        seed, operator = call.arguments
        if isinstance(operator, Token) and operator.kind == "Operator" and operator.name in OPERATORS:
            return FoldByStep(seed, OPERATORS[operator.name])
    raise call.refused("fold() takes nothing, or a value to begin with and an Operator.")


STEPS: Mapping[str, Maker] = {
    "count": _make_count,
    "fold": _make_fold,
}
