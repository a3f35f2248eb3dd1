"""`repeat` with `until`, `times` and `emit` on either side, and `loops`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from asterism.languages.gremlin.engine.merging import merged
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import Step, SyncStep
from asterism.languages.gremlin.engine.substreams import gathered, in_larger_batches, run_whole
from asterism.languages.gremlin.engine.traverser import Batch, Loop, PathNode, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure, LimitExceeded
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.branches import PredicateTest
from asterism.languages.gremlin.steps.child_filters import ChildTest, existence_test
from asterism.languages.gremlin.tree import Instruction, Predicate
from asterism.languages.gremlin.values.predicates import as_test

# Traversers with paths do not merge: more of them than this go on one part after the other, depth first, so that memory
# does not grow with the whole width of the search.
_FRONTIER_MAX = 512
# Steps that may need no more than some of the results.
_STOPPING = frozenset({"limit", "range", "timeLimit"})


@dataclass(frozen=True, slots=True)
class Condition:
    """When a traverser leaves a loop (`until`), or is given out while it goes on (`emit`)."""

    # Asked before the body instead of behind it.
    is_first: bool
    # One of the two; neither for an `emit()` without a condition.
    test: ChildTest | None = None
    times: int | None = None

    async def holds(self, batch: Batch, rounds: int, frame: Frame) -> list[bool]:
        if self.times is not None:
            return [rounds >= self.times] * len(batch)
        if self.test is None:
            return [True] * len(batch)
        return await self.test.holds(batch, frame.run)


class RepeatStep(Step):
    """A loop over frontiers: all traversers of a round go through the body together."""

    def __init__(
        self,
        body: Pipeline,
        *,
        name: str | None,
        until: Condition | None,
        emit: Condition | None,
        is_limited: bool,
        may_stop_early: bool,
    ) -> None:
        self._body = body
        self._name = name
        self._until = until
        self._emit = emit
        # The service's limit of rounds is for its own dialect; time and memory limit all traversals.
        self._is_limited = is_limited
        # A later step may need a few results only: the first traversers go round without the others.
        self._may_stop_early = may_stop_early
        self.is_stateful = body.is_stateful
        self.is_endless = body.is_endless or until is None or until.times is None

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        if self.is_stateful:
            source = gathered(source, frame)
        elif not self._may_stop_early:
            source = in_larger_batches(source, frame)
        async for batch in source:
            async for found in self._loop(batch, frame):
                yield found

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        results: Batch = []
        async for found in self._loop(batch, frame):
            results += found
        return results

    async def _loop(self, batch: Batch, frame: Frame) -> AsyncIterator[Batch]:
        """Yield what leaves the loop, round by round."""
        # Parts of the search that are still to be done, the next one last.
        pending: list[tuple[int, Batch]] = [(0, [_entering(traverser, self._name) for traverser in batch])]
        frame.run.hold(len(batch))
        try:
            while pending:
                rounds, frontier = pending.pop()
                await frame.run.breathe()
                out, entering = await self._before_body(frontier, rounds, frame)
                if out:
                    yield out
                results = await self._round(entering, rounds, frame)
                out, staying = await self._behind_body(results, rounds + 1, frame)
                frame.run.hold(len(staying) - len(frontier))
                pending += self._parts(rounds + 1, staying)
                if out:
                    yield out
        finally:
            frame.run.hold(-sum(len(frontier) for _, frontier in pending))

    async def _round(self, frontier: Batch, rounds: int, frame: Frame) -> Batch:
        if frame.finished:
            frontier = [traverser for traverser in frontier if traverser.origin not in frame.finished]
        if not frontier:
            return []
        self._check_limit(rounds, frame)
        entered = frontier[0].loop
        if frame.run.is_bulked:
            frontier = merged(frontier)
        results = await run_whole(self._body, frontier, frame, self)
        # A traverser that was reduced in the body has lost its count.
        loop = Loop(self._name, rounds + 1, None if entered is None else entered.outer)
        for traverser in results:
            traverser.loop = loop
        return results

    def _parts(self, rounds: int, frontier: Batch) -> list[tuple[int, Batch]]:
        if not frontier:
            return []
        if self.is_stateful or type(frontier[0].path) is not PathNode or len(frontier) <= _FRONTIER_MAX:
            return [(rounds, frontier)]
        starts = range(0, len(frontier), _FRONTIER_MAX)
        return [(rounds, frontier[start : start + _FRONTIER_MAX]) for start in reversed(starts)]

    def _check_limit(self, rounds: int, frame: Frame) -> None:
        if self._is_limited and rounds >= frame.run.limits.loops:
            raise LimitExceeded(
                f"The repeat() step goes round more than {frame.run.limits.loops} times. End it earlier with times(), "
                "until() or a filter."
            )

    async def _before_body(self, frontier: Batch, rounds: int, frame: Frame) -> tuple[Batch, Batch]:
        """Return the traversers that leave before the body, and those that go into it."""
        out: Batch = []
        until, emit = self._until, self._emit
        if until is not None and until.is_first:
            out, frontier = await self._leaving(until, frontier, rounds, frame)
        if emit is not None and emit.is_first:
            out += await self._emitted(emit, frontier, rounds, frame)
        return out, frontier

    async def _behind_body(self, frontier: Batch, rounds: int, frame: Frame) -> tuple[Batch, Batch]:
        """Return the traversers that leave behind the body, and those that go round again."""
        out: Batch = []
        until, emit = self._until, self._emit
        if until is not None and not until.is_first:
            out, frontier = await self._leaving(until, frontier, rounds, frame)
        if emit is not None and not emit.is_first:
            out += await self._emitted(emit, frontier, rounds, frame)
        return out, frontier

    async def _leaving(self, until: Condition, frontier: Batch, rounds: int, frame: Frame) -> tuple[Batch, Batch]:
        if not frontier:
            return [], []
        answers = await until.holds(frontier, rounds, frame)
        out = [_left(traverser) for traverser, answer in zip(frontier, answers, strict=True) if answer]
        return out, [traverser for traverser, answer in zip(frontier, answers, strict=True) if not answer]

    async def _emitted(self, emit: Condition, frontier: Batch, rounds: int, frame: Frame) -> Batch:
        if not frontier:
            return []
        answers = await emit.holds(frontier, rounds, frame)
        return [_left(traverser) for traverser, answer in zip(frontier, answers, strict=True) if answer]


def _entering(traverser: Traverser, name: str | None) -> Traverser:
    copied = traverser.copy()
    copied.loop = Loop(name, 0, traverser.loop)
    return copied


def _left(traverser: Traverser) -> Traverser:
    copied = traverser.copy()
    copied.loop = None if traverser.loop is None else traverser.loop.outer
    return copied


class LoopsStep(SyncStep):
    """`loops`: the rounds so far of the innermost repeat, or of the one with a name."""

    def __init__(self, name: str | None) -> None:
        self._name = name

    def process(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002 - the count is the traverser's
        return [traverser.to(self._count(traverser.loop)) for traverser in batch]

    def _count(self, loop: Loop | None) -> int:
        name = self._name
        if name is None:
            return 0 if loop is None else loop.count
        while loop is not None:
            if loop.name == name:
                return loop.count
            loop = loop.outer
        raise ExecutionFailure(f"Loop name not defined: {name}")


def _make_repeat(call: StepCall, compiler: Compiler) -> Step:
    match call.arguments:
        case [body]:
            name = None
        case [str() as name, body]:
            pass
        case _:
            raise call.refused("The repeat() step takes a traversal, or a name and a traversal.")
    until = emit = None
    for modulator in call.modulators:
        kind, is_first = modulator.name.removesuffix("-first"), modulator.name.endswith("-first")
        if kind == "emit":
            if emit is not None:
                raise call.refused("The repeat()-step already has its emit()-modulator declared")
            emit = Condition(is_first, _test(modulator, call, compiler))
            continue
        if until is not None:
            raise call.refused("The repeat()-step already has its until()-modulator declared")
        if kind == "times":
            until = Condition(is_first, times=_times(modulator, call))
        else:
            until = Condition(is_first, _test(modulator, call, compiler))
    behind = [*call.following, *(instruction for parent in compiler.parents for instruction in parent.following)]
    return RepeatStep(
        compiler.child(body),
        name=name,
        until=until,
        emit=emit,
        is_limited=compiler.dialect == "cosmos",
        may_stop_early=any(instruction.name in _STOPPING for instruction in behind),
    )


def _test(modulator: Instruction, call: StepCall, compiler: Compiler) -> ChildTest | None:
    match modulator.arguments:
        case []:
            return None
        case [Predicate() as predicate]:
            return PredicateTest(as_test(predicate))
        case [argument]:
            return existence_test(argument, compiler)
    raise call.refused("until() and emit() take a traversal or a predicate.")


def _times(modulator: Instruction, call: StepCall) -> int:
    match modulator.arguments:
        case [int() as times]:
            return times
    raise call.refused("times() takes a number.")


def _refuse_alone(call: StepCall, _: Compiler) -> Step:
    raise call.refused(f"The repeat()-traversal was not defined: {call.name}() stands without it")


def _make_loops(call: StepCall, _: Compiler) -> Step:
    name: Any = call.arguments[0] if call.arguments else None
    return LoopsStep(name)


STEPS: Mapping[str, Maker] = {
    "emit": _refuse_alone,
    "loops": _make_loops,
    "repeat": _make_repeat,
    "times": _refuse_alone,
    "until": _refuse_alone,
}
