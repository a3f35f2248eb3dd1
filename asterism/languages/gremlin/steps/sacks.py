"""`sack` and `barrier`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.languages.gremlin.engine.bulking import bulked
from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import AsyncStep, BarrierStep, Step, SyncStep, by_origin
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.arithmetic import OPERATORS, add, divide, multiply
from asterism.languages.gremlin.values.numbers import Long


class SackStep(SyncStep):
    """`sack()`: what the traverser carries."""

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002
        return [traverser.to(traverser.sack) for traverser in batch]


class SackValueStep(AsyncStep):
    """`sack(operator)`: merges the value, or that of a modulator, into what the traverser carries."""

    def __init__(self, operator: Callable[[Any, Any], Any], modulator: Modulator | None) -> None:
        self.operator = operator
        self.modulator = modulator

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        if self.modulator is None:
            values = [traverser.value for traverser in batch]
        else:
            values = await self.modulator.values(batch, frame.run)
        found: Batch = []
        for traverser, value in zip(batch, values, strict=True):
            if value is not MISSING:
                copied = traverser.copy()
                copied.sack = self.operator(traverser.sack, value)
                found.append(copied)
        return found


class MergeStep(BarrierStep):
    """`barrier()`: waits for all traversers and merges equal ones."""

    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        return bulked(batch, frame.run)


class NormalizeSacksStep(BarrierStep):
    """`barrier(normSack)`: divides sacks so that those of all traversers add up to 1."""

    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        found: Batch = []
        for group in by_origin(bulked(batch, frame.run), frame.segments):
            shares = [multiply(traverser.sack, Long(traverser.bulk)) for traverser in group]
            total: Any = 0.0
            for share in shares:
                total = add(total, share)
            for traverser, share in zip(group, shares, strict=True):
                copied = traverser.copy()
                copied.sack = divide(share, total)
                found.append(copied)
        return found


def _make_sack(call: StepCall, compiler: Compiler) -> Step:
    if not call.arguments:
        return SackStep()
    operator = call.arguments[0]
    is_operator = isinstance(operator, Token) and operator.kind == "Operator" and operator.name in OPERATORS
    if len(call.arguments) != 1 or not is_operator:
        raise call.refused("sack() takes nothing, or an Operator such as Operator.sum.")
    modulators = compiler.modulators(call)
    if len(modulators) > 1:
        raise call.refused("Sack step can only have one by modulator")
    return SackValueStep(OPERATORS[operator.name], modulators[0] if modulators else None)


def _make_barrier(call: StepCall, _: Compiler) -> Step:
    argument = call.arguments[0] if call.arguments else None
    if argument is None or (isinstance(argument, int) and not isinstance(argument, bool)):
        return MergeStep()
    if isinstance(argument, Token) and argument.name == "normSack":
        return NormalizeSacksStep()
    raise call.refused("barrier() takes nothing, a number of traversers, or Barrier.normSack.")


STEPS: Mapping[str, Maker] = {
    "barrier": _make_barrier,
    "sack": _make_sack,
}
