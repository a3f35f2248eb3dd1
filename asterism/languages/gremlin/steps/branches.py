"""Branches whose children see the traversers as one stream: `union`, `choose`, `branch`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.merging import single
from asterism.languages.gremlin.engine.modulators import MISSING, ChildModulator, Modulator
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.engine.substreams import gathered, run_as_stream, run_whole
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.child_filters import ChildTest, PipelineTest, existence_test
from asterism.languages.gremlin.tree import Instruction, Predicate, Token, Traversal
from asterism.languages.gremlin.values.predicates import Test, as_test


class BranchingStep(Step):
    """Gives traversers to children. A child with steps that need all traversers gets all that come, a plain one those
    of each batch, so that a later step can stop it."""

    def __init__(self, children: Sequence[Pipeline]) -> None:
        self.children = tuple(children)
        self.is_stateful = any(child.is_stateful for child in children)
        self.is_endless = any(child.is_endless for child in children)

    @abstractmethod
    async def divided(self, batch: Batch, run: Run) -> list[Batch]:
        """Return the traversers for each child; a traverser for several is copied."""

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        async for batch in gathered(source, frame) if self.is_stateful else source:
            await frame.run.breathe()
            for place, part in enumerate(await self.divided(batch, frame.run)):
                if part:
                    async for found in run_as_stream(self.children[place], part, frame, (self, place)):
                        yield found

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        await frame.run.breathe()
        results: Batch = []
        for place, part in enumerate(await self.divided(batch, frame.run)):
            if part:
                results += await run_whole(self.children[place], part, frame, (self, place))
        return results


class UnionStep(BranchingStep):
    """Gives every traverser to every child."""

    async def divided(self, batch: Batch, run: Run) -> list[Batch]:  # noqa: ARG002 - other branches need the run
        return [[traverser.copy() for traverser in batch] for _ in self.children]


class IfStep(BranchingStep):
    """`choose` with a condition: the first child if it holds, else the second."""

    def __init__(self, condition: ChildTest, children: Sequence[Pipeline]) -> None:
        super().__init__(children)
        self._condition = condition

    async def divided(self, batch: Batch, run: Run) -> list[Batch]:
        answers = await self._condition.holds(batch, run)
        parts: list[Batch] = [[], []]
        for traverser, answer in zip(batch, answers, strict=True):
            parts[0 if answer else 1].append(traverser.copy())
        return parts


class Options:
    """The children of `choose` or `branch` by what picks them: places in the list of children."""

    def __init__(self) -> None:
        self.children: list[Pipeline] = []
        # Tests of the choice; a traversal is a test too, with the choice as its start.
        self.tests: list[tuple[Test | ChildTest, int]] = []
        self.picks: dict[str, list[int]] = {}

    def add(self, child: Pipeline) -> int:
        self.children.append(child)
        return len(self.children) - 1


class SwitchStep(BranchingStep):
    """`choose` and `branch` with options: the choice of each traverser picks its children."""

    def __init__(self, choice: Modulator, options: Options, *, takes_first: bool) -> None:
        super().__init__(options.children)
        self._choice = choice
        self._options = options
        self._takes_first = takes_first

    async def divided(self, batch: Batch, run: Run) -> list[Batch]:
        parts: list[Batch] = [[] for _ in self.children]
        choices = await self._choice.values(batch, run)
        for traverser, choice in zip(batch, choices, strict=True):
            for place in await self._picked(choice, run):
                parts[place].append(traverser.copy())
        return parts

    async def _picked(self, choice: Any, run: Run) -> Sequence[int]:
        options, picks = self._options, self._options.picks
        found: list[int] = []
        if choice is MISSING:
            found += picks.get("unproductive", ())
        else:
            for test, place in options.tests:
                if await _holds(test, choice, run):
                    found.append(place)
                    if self._takes_first:
                        break
        return (found or picks.get("none", [])) + picks.get("any", [])


async def _holds(test: Test | ChildTest, choice: Any, run: Run) -> bool:
    if isinstance(test, ChildTest):
        (answer,) = await test.holds([Traverser(choice)], run)
        return answer
    return test(choice)


class PredicateTest(ChildTest):
    """A predicate on the value of the traverser itself."""

    def __init__(self, test: Test) -> None:
        self._test = test

    async def holds(self, parents: Batch, run: Run) -> list[bool]:  # noqa: ARG002 - values are at hand
        return [self._test(parent.value) for parent in parents]


class SingleChoice(Modulator):
    """The first result of a child, or MISSING: the choice is nothing where the child yields nothing."""

    def __init__(self, child: Pipeline) -> None:
        self._child = ChildModulator(child, is_productive=False)

    async def values(self, batch: Batch, run: Run) -> list[Any]:
        return await self._child.values([single(traverser) for traverser in batch], run)


def _make_union(call: StepCall, compiler: Compiler) -> Step:
    children = []
    for argument in call.arguments:
        if call.is_start and isinstance(argument, Traversal):
            children.append(Pipeline(compiler.steps(argument.steps, is_start=True)))
        else:
            children.append(compiler.child(argument))
    return UnionStep(children)


def _make_choose(call: StepCall, compiler: Compiler) -> Step:
    if len(call.arguments) == 1:
        return _switch(call, compiler, takes_first=True)
    if not 2 <= len(call.arguments) <= 3 or call.modulators_named("option"):
        raise call.refused("The choose() step takes a condition and one or two traversals, or a choice with options.")
    first, *others = call.arguments
    is_predicate = isinstance(first, Predicate)
    condition = PredicateTest(as_test(first)) if is_predicate else existence_test(first, compiler)
    children = [compiler.child(argument) for argument in others]
    return IfStep(condition, children if len(children) == 2 else [*children, Pipeline(())])


def _make_branch(call: StepCall, compiler: Compiler) -> Step:
    if len(call.arguments) != 1:
        raise call.refused("The branch() step takes a traversal, and has options.")
    return _switch(call, compiler, takes_first=False)


def _switch(call: StepCall, compiler: Compiler, *, takes_first: bool) -> Step:
    options = Options()
    for instruction in call.modulators_named("option"):
        _add_option(instruction, call, compiler, options, is_choose=takes_first)
    if takes_first and compiler.dialect == "tinkerpop":
        # Without an option that fits, `choose` passes the traverser on; in the service it ends there.
        for pick in ("unproductive", "none"):
            options.picks[pick] = options.picks.get(pick, [])[:1] or [options.add(Pipeline(()))]
    return SwitchStep(_choice(call, compiler), options, takes_first=takes_first)


def _choice(call: StepCall, compiler: Compiler) -> Modulator:
    (argument,) = call.arguments
    if isinstance(argument, Token):
        return compiler.modulator(Instruction("by", (argument,)))
    return SingleChoice(compiler.child(argument))


def _add_option(
    instruction: Instruction, call: StepCall, compiler: Compiler, options: Options, *, is_choose: bool
) -> None:
    arguments = instruction.arguments
    if not 1 <= len(arguments) <= 2:
        raise call.refused("An option() takes what picks it and a traversal.")
    pick: Any = arguments[0] if len(arguments) == 2 else Token("Pick", "any")
    place = options.add(compiler.child(arguments[-1]))
    if isinstance(pick, Token) and pick.kind == "Pick":
        if is_choose and pick.name == "any":
            raise call.refused("Choose step can not have an any-option as only one option per traverser is allowed")
        options.picks.setdefault(pick.name, []).append(place)
    elif isinstance(pick, Traversal):
        if is_choose:
            raise call.refused("Traversal is not allowed as a Pick token for choose().option()")
        options.tests.append((PipelineTest(compiler.child(pick)), place))
    else:
        options.tests.append((as_test(pick), place))


STEPS: Mapping[str, Maker] = {
    "branch": _make_branch,
    "choose": _make_choose,
    "union": _make_union,
}
