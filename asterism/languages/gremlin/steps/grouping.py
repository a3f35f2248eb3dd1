"""`group` and `groupCount`, as results and as side effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.reducing import BATCH_SIZE, ReducingStep
from asterism.languages.gremlin.engine.run import Frame, Run, SideEffect
from asterism.languages.gremlin.engine.step import BarrierStep, Step
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.group_values import CountedValues, Groups, GroupValues, group_values
from asterism.languages.gremlin.values.structures import freeze


class GroupRule:
    """The keys of a group, and its values."""

    def __init__(self, key: Modulator | None, values: GroupValues) -> None:
        self.key = key
        self.values = values

    async def add(self, groups: Groups, batch: Batch, run: Run) -> None:
        if self.key is None:
            keys = [freeze(traverser.value) for traverser in batch]
        else:
            keys = [key if key is MISSING else freeze(key) for key in await self.key.values(batch, run)]
        await self.values.add(groups, batch, keys, run)


class GroupStep(ReducingStep):
    """`group()` and `groupCount()`: a map for each origin."""

    def __init__(self, grouping: GroupRule) -> None:
        self.grouping = grouping

    def start(self, frame: Frame) -> Groups:
        return Groups([{} for _ in range(frame.segments)])

    async def add(self, state: Groups, batch: Batch, frame: Frame) -> None:
        await self.grouping.add(state, batch, frame.run)

    async def results(self, state: Groups, frame: Frame) -> list[Any]:
        await self.grouping.values.complete(state, frame.run)
        frame.run.hold(-state.held)
        return list(state.maps)


class GroupSideEffectStep(BarrierStep):
    """`group(name)` and `groupCount(name)`: traversers pass when all of them were counted."""

    fills_side_effect = True

    def __init__(self, name: str, grouping: GroupRule) -> None:
        self.name = name
        self.grouping = grouping

    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        run = frame.run
        effect = run.side_effects.setdefault(self.name, SideEffect({}))
        if not isinstance(effect.value, dict):
            raise ExecutionFailure(f"The side effect '{self.name}' is not a map, which group() and groupCount() fill.")
        groups = Groups([effect.value], effect.kept.setdefault(self, [{}]))
        for start in range(0, len(batch), BATCH_SIZE):
            await run.breathe()
            await self.grouping.add(groups, batch[start : start + BATCH_SIZE], run)
        await self.grouping.values.complete(groups, run)
        return batch


def _step(call: StepCall, compiler: Compiler, grouping: GroupRule) -> Step:
    if not call.arguments:
        return GroupStep(grouping)
    name = call.arguments[0]
    if len(call.arguments) != 1 or not isinstance(name, str):
        raise call.refused(f"{call.name}() takes nothing, or the name of a side effect.")
    compiler.settings.filled.setdefault(name, dict)
    return GroupSideEffectStep(name, grouping)


def _make_group(call: StepCall, compiler: Compiler) -> Step:
    modulators = call.modulators_named("by")
    if len(modulators) > 2:
        raise call.refused("The key and value traversals for group()-step have already been set")
    key = compiler.modulator(modulators[0]) if modulators and modulators[0].arguments else None
    values = group_values(modulators[1] if len(modulators) == 2 else None, compiler)
    return _step(call, compiler, GroupRule(key, values))


def _make_group_count(call: StepCall, compiler: Compiler) -> Step:
    modulators = call.modulators_named("by")
    if len(modulators) > 1:
        raise call.refused("GroupCount step can only have one by modulator")
    key = compiler.modulator(modulators[0]) if modulators and modulators[0].arguments else None
    return _step(call, compiler, GroupRule(key, CountedValues(None)))


STEPS: Mapping[str, Maker] = {
    "group": _make_group,
    "groupCount": _make_group_count,
}
