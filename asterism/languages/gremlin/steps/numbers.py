"""Steps of numbers: sums, minima and means of a stream or of a list, and conversions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from asterism.languages.gremlin.engine.run import Frame, Run, new_traverser
from asterism.languages.gremlin.engine.step import BarrierStep, Step, SyncStep
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.arguments import refuse_arguments, scoped
from asterism.languages.gremlin.steps.basic import MapStep
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.arithmetic import REDUCTIONS, Reduction
from asterism.languages.gremlin.values.conversions import as_bool, as_number
from asterism.languages.gremlin.values.lists import items_of
from asterism.languages.gremlin.values.numbers import is_number

# The event loop is left to others after so many values.
_VALUES_AT_ONCE = 4_096


class ReduceStep(BarrierStep):
    """A value of all traversers, which are not kept; no value where there is no traverser."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        states: dict[int, Any] = {}
        async for batch in source:
            await self._add(batch, states, frame.run)
        if found := self._results(states, frame.run):
            yield found

    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        states: dict[int, Any] = {}
        await self._add(batch, states, frame.run)
        return self._results(states, frame.run)

    async def _add(self, batch: Batch, states: dict[int, Any], run: Run) -> None:
        add = self.reduction.add
        for start in range(0, len(batch), _VALUES_AT_ONCE):
            for traverser in batch[start : start + _VALUES_AT_ONCE]:
                origin = traverser.origin
                states[origin] = add(states.get(origin), traverser.value, traverser.bulk)
            await run.breathe()

    def _results(self, states: dict[int, Any], run: Run) -> Batch:
        finish = self.reduction.finish
        return [new_traverser(finish(states[origin]), run, origin) for origin in sorted(states)]


class ReduceMembersStep(SyncStep):
    """A value of the members of each list; a list without any yields nothing."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002 - a function of values needs no frame
        reduction = self.reduction
        return [traverser.to(reduction.of(members)) for traverser in batch if (members := items_of(traverser.value))]


# The service answers the least and the greatest of numbers as doubles, its emulator's 0 is `0.0`.
_COSMOS_REDUCTIONS = {
    name: Reduction(REDUCTIONS[name].add, lambda state: float(state) if is_number(state) else state)
    for name in ("min", "max")
}


def _make_reduction(call: StepCall, compiler: Compiler) -> Step:
    is_local, arguments = scoped(call)
    if arguments:
        raise refuse_arguments(call)
    reduction = REDUCTIONS[call.name]
    if compiler.dialect == "cosmos":
        reduction = _COSMOS_REDUCTIONS.get(call.name, reduction)
    return ReduceMembersStep(reduction) if is_local else ReduceStep(reduction)


def _make_as_number(call: StepCall, _: Compiler) -> Step:
    if len(call.arguments) > 1 or not all(isinstance(argument, Token) for argument in call.arguments):
        raise refuse_arguments(call)
    return MapStep(as_number(call.arguments[0] if call.arguments else None))


def _make_as_bool(call: StepCall, _: Compiler) -> Step:
    if call.arguments:
        raise refuse_arguments(call)
    return MapStep(as_bool)


STEPS: Mapping[str, Maker] = {
    **dict.fromkeys(REDUCTIONS, _make_reduction),
    "asBool": _make_as_bool,
    "asNumber": _make_as_number,
}
