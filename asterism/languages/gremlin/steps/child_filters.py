"""Filters by child traversals: `filter`, `not`, `and`, `or`, and `where` with a traversal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.merging import single
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.scope import value_required
from asterism.languages.gremlin.engine.step import AsyncStep, Step
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.connectives import with_connectives
from asterism.languages.gremlin.tree import Instruction, Traversal
from asterism.languages.gremlin.values.comparison import are_equal


class ChildTest(ABC):
    """A question about traversers that child traversals answer."""

    @abstractmethod
    async def holds(self, parents: Batch, run: Run) -> list[bool]:
        """Return the answer for each parent, in their order."""


class PipelineTest(ChildTest):
    """A child that must yield something."""

    def __init__(self, child: Pipeline) -> None:
        self._child = child

    async def holds(self, parents: Batch, run: Run) -> list[bool]:
        return await self._child.succeeds([single(parent) for parent in parents], run)


class BoundTest(ChildTest):
    """A child that starts at a label, or must end at the value of another one."""

    def __init__(self, child: Pipeline, *, start: str | None, end: str | None) -> None:
        self._child = child
        self._start = start
        self._end = end

    async def holds(self, parents: Batch, run: Run) -> list[bool]:
        start, end = self._start, self._end
        starts = [single(parent) for parent in parents]
        if start is not None:
            starts = [parent.to(value_required(start, parent, run, step="where()")) for parent in starts]
        if end is None:
            return await self._child.succeeds(starts, run)
        wanted = [value_required(end, parent, run, step="where()") for parent in parents]
        found = await self._child.each(starts, run)
        return [
            any(are_equal(result.value, value) for result in results)
            for results, value in zip(found, wanted, strict=True)
        ]


class NotTest(ChildTest):
    def __init__(self, test: ChildTest) -> None:
        self._test = test

    async def holds(self, parents: Batch, run: Run) -> list[bool]:
        return [not answer for answer in await self._test.holds(parents, run)]


class AllTest(ChildTest):
    """Several tests that must all hold; later ones are asked for the parents that are still in question."""

    # The answer of a test that decides the question.
    _deciding = False

    def __init__(self, tests: Sequence[ChildTest]) -> None:
        self._tests = tuple(tests)

    async def holds(self, parents: Batch, run: Run) -> list[bool]:
        deciding = self._deciding
        answers = [not deciding] * len(parents)
        open_places = list(range(len(parents)))
        for test in self._tests:
            found = await test.holds([parents[place] for place in open_places], run)
            for place, answer in zip(open_places, found, strict=True):
                if answer is deciding:
                    answers[place] = deciding
            open_places = [place for place in open_places if answers[place] is not deciding]
            if not open_places:
                break
        return answers


class AnyTest(AllTest):
    """Several tests of which one must hold."""

    _deciding = True


class ChildFilterStep(AsyncStep):
    """Passes the traversers for which a test holds."""

    def __init__(self, test: ChildTest) -> None:
        self.test = test

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        if not batch:
            return batch
        answers = await self.test.holds(batch, frame.run)
        return [traverser for traverser, answer in zip(batch, answers, strict=True) if answer]


# Steps with many results, of which a test needs one.
_MANY_RESULTS = frozenset({"out", "in", "both", "outE", "inE", "bothE", "V", "E"})


def existence_test(argument: Any, compiler: Compiler) -> ChildTest:
    """Return the test of a traversal that must yield something. Where its last step reads the graph, one result is
    enough, and the read is told so."""
    if isinstance(argument, Traversal) and argument.steps and argument.steps[-1].name in _MANY_RESULTS:
        argument = Traversal((*argument.steps, Instruction("limit", (1,))))
    return PipelineTest(compiler.child(argument))


def connective_test(call: StepCall, children: list[ChildTest]) -> ChildTest:
    """Return the test of `and`, `or` or `not` over its children."""
    if call.name == "not":
        if len(children) != 1:
            raise call.refused("The not() step takes one traversal.")
        return NotTest(children[0])
    return AllTest(children) if call.name == "and" else AnyTest(children)


def bound_test(argument: Any, compiler: Compiler) -> ChildTest:
    """Return the test of a traversal in `where`: labels at its ends, also within `and`, `or` and `not`, are those of
    the traverser that is tested."""
    if not isinstance(argument, Traversal):
        return existence_test(argument, compiler)
    chain = with_connectives(argument.steps, is_start=False)
    start = end = None
    if chain and chain[0].name == "as":
        start, chain = chain[0].arguments[0], chain[1:]
    if chain and chain[-1].name == "as":
        end, chain = chain[-1].arguments[0], chain[:-1]
    if end is None and chain and chain[-1].name in _MANY_RESULTS:
        chain = (*chain, Instruction("limit", (1,)))
    child = Pipeline(_bound_steps(chain, compiler))
    return PipelineTest(child) if start is None and end is None else BoundTest(child, start=start, end=end)


def _bound_steps(chain: tuple[Instruction, ...], compiler: Compiler) -> list[Step]:
    if not chain or chain[0].name not in ("and", "or", "not"):
        return compiler.steps(chain)
    children = [bound_test(argument, compiler) for argument in chain[0].arguments]
    first = ChildFilterStep(connective_test(StepCall(chain[0]), children))
    return [first, *compiler.steps(chain[1:])]


def _make_connective(call: StepCall, compiler: Compiler) -> Step:
    children = [existence_test(argument, compiler) for argument in call.arguments]
    return ChildFilterStep(connective_test(call, children))


def _make_filter(call: StepCall, compiler: Compiler) -> Step:
    if len(call.arguments) != 1:
        raise call.refused("The filter() step takes one traversal.")
    return ChildFilterStep(existence_test(call.arguments[0], compiler))


STEPS: Mapping[str, Maker] = {
    "and": _make_connective,
    "filter": _make_filter,
    "not": _make_connective,
    "or": _make_connective,
}
