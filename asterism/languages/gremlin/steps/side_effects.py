"""Side effects by name: `aggregate`, `store`, `cap`; and `fail`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.reducing import BATCH_SIZE, ReducingStep
from asterism.languages.gremlin.engine.run import Frame, Run, SideEffect
from asterism.languages.gremlin.engine.step import AsyncStep, BarrierStep, Step, SyncStep, by_origin
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.failure import ExecutionFailure, FailStep
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.scopes import is_local, without_scope
from asterism.languages.gremlin.values.arithmetic import OPERATORS
from asterism.languages.gremlin.values.structures import BulkSet, freeze

# Operators that take a collection of values at once; the others take them one by one.
_COLLECTING = frozenset({OPERATORS["addAll"], OPERATORS["assign"]})
# Operators for which a value counts the same however often it comes.
_IDEMPOTENT = frozenset({OPERATORS[name] for name in ("min", "max", "and", "or")})


async def collect(effect: SideEffect, batch: Batch, modulator: Modulator | None, run: Run) -> None:
    """Add the values of traversers to a side effect, by its operator or into its collection."""
    if not batch:
        return
    if modulator is None:
        values = [traverser.value for traverser in batch]
    else:
        values = await modulator.values(batch, run)
    added: list[Any] = []
    operator = effect.operator
    is_collecting = operator is None or operator in _COLLECTING
    for traverser, value in zip(batch, values, strict=True):
        if value is MISSING:
            continue
        if is_collecting:
            # Bulks may be larger than any list: they are counted before the list grows.
            run.hold(traverser.bulk)
            added.extend([value] * traverser.bulk)
        else:
            assert operator is not None
            for count in range(1 if operator in _IDEMPOTENT else traverser.bulk):
                if count % BATCH_SIZE == BATCH_SIZE - 1:
                    await run.breathe()
                effect.value = operator(effect.value, value)
    if operator is not None and is_collecting:
        effect.value = operator(effect.value, added)
    elif operator is None:
        _extend(effect, added)


def _extend(effect: SideEffect, added: list[Any]) -> None:
    if isinstance(effect.value, list):
        effect.value.extend(added)
    elif isinstance(effect.value, set):
        effect.value.update(map(freeze, added))
    elif effect.value is None:
        effect.value = BulkSet(added)
    else:
        raise ExecutionFailure("Objects must be both of Map or Collection: aggregate() fills a list or a set.")


class AggregateStep(BarrierStep):
    """`aggregate(name)`: traversers pass when the values of all of them were collected."""

    fills_side_effect = True

    def __init__(self, name: str, modulator: Modulator | None) -> None:
        self.name = name
        self.modulator = modulator

    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        run = frame.run
        effect = run.side_effects.setdefault(self.name, SideEffect(BulkSet()))
        if effect.operator is not None:
            # An operator such as `assign` takes all values of a barrier together.
            for group in by_origin(batch, frame.segments):
                await run.breathe()
                await collect(effect, group, self.modulator, run)
            return batch
        for start in range(0, len(batch), BATCH_SIZE):
            await run.breathe()
            await collect(effect, batch[start : start + BATCH_SIZE], self.modulator, run)
        return batch


class StoreStep(AsyncStep):
    """`aggregate(local, name)` and `store(name)`: values are collected as their traversers pass."""

    fills_side_effect = True

    def __init__(self, name: str, modulator: Modulator | None) -> None:
        self.name = name
        self.modulator = modulator

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        effect = frame.run.side_effects.setdefault(self.name, SideEffect(BulkSet()))
        await collect(effect, batch, self.modulator, frame.run)
        return batch


class CapStep(ReducingStep):
    """`cap(name, ...)`: waits for all traversers, and gives a side effect, or a map of several."""

    def __init__(self, names: tuple[str, ...], filled: Mapping[str, Callable[[], Any]]) -> None:
        self.names = names
        # The first values of side effects that steps of the traversal fill.
        self.filled = filled

    def start(self, frame: Frame) -> None:  # noqa: ARG002
        return None

    async def add(self, state: None, batch: Batch, frame: Frame) -> None: ...

    async def results(self, state: None, frame: Frame) -> list[Any]:  # noqa: ARG002
        effects = frame.run.side_effects
        for name in self.names:
            if name not in effects and name in self.filled:
                effects[name] = SideEffect(self.filled[name]())
        if len(self.names) > 1:
            value: Any = {name: effects[name].value for name in self.names if name in effects}
        elif self.names[0] in effects:
            value = effects[self.names[0]].value
        else:
            raise ExecutionFailure(f"The side-effect key does not exist in the side-effects: {self.names[0]}")
        return [value] * frame.segments


class FailingStep(SyncStep):
    """`fail()`: ends the traversal as soon as a traverser comes here."""

    def __init__(self, message: str) -> None:
        self.message = message

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002
        if batch:
            raise FailStep(self.message)
        return batch


def _make_aggregate(call: StepCall, compiler: Compiler) -> Step:
    arguments = without_scope(call)
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        raise call.refused(f"{call.name}() takes the name of a side effect.")
    modulators = compiler.modulators(call)
    if len(modulators) > 1:
        raise call.refused("Aggregate step can only have one by modulator")
    compiler.settings.filled.setdefault(arguments[0], BulkSet)
    modulator = modulators[0] if modulators else None
    is_lazy = call.name == "store" or is_local(call)
    return StoreStep(arguments[0], modulator) if is_lazy else AggregateStep(arguments[0], modulator)


def _make_cap(call: StepCall, compiler: Compiler) -> CapStep:
    names = call.arguments
    if not names or not all(isinstance(name, str) for name in names):
        raise call.refused("cap() takes the names of side effects.")
    return CapStep(names, compiler.settings.filled)


def _make_fail(call: StepCall, _: Compiler) -> FailingStep:
    if len(call.arguments) > 1 or not all(isinstance(argument, str) for argument in call.arguments):
        raise call.refused("fail() takes nothing, or a message.")
    return FailingStep(call.arguments[0] if call.arguments else "fail() step triggered")


def _refuse_subgraph(call: StepCall, _: Compiler) -> Step:
    raise call.refused(
        "subgraph() is not available: clients cannot read a graph as a result. Collect its edges with aggregate()."
    )


STEPS: Mapping[str, Maker] = {
    "aggregate": _make_aggregate,
    "cap": _make_cap,
    "fail": _make_fail,
    "store": _make_aggregate,
    "subgraph": _refuse_subgraph,
}
