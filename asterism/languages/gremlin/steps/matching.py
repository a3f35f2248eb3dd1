"""`match`: patterns between labels, solved together.

A pattern starts at the value of one label and may bind another one to its results. Labels are kept on the path, so that
later steps find them there. A pattern is tried as soon as its labels are bound; those that bind nothing come first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.scope import labelled_value
from asterism.languages.gremlin.engine.step import AsyncStep
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import CompileFailure, ExecutionFailure
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.connectives import with_connectives
from asterism.languages.gremlin.steps.group_values import has_barrier
from asterism.languages.gremlin.tree import Instruction, Predicate, Traversal
from asterism.languages.gremlin.values.comparison import are_equal


class Pattern(ABC):
    """A condition on the values of labels. `needed` must be bound before it is tried; `bound` are bound by it."""

    needed: frozenset[str]
    bound: frozenset[str]

    @abstractmethod
    async def solutions(self, batch: Batch, run: Run) -> Batch:
        """Return the traversers that fit, with the labels that are bound by the pattern."""


class PathPattern(Pattern):
    """`as(a)...as(b)`: results of steps from the value of a label."""

    def __init__(self, start: str, end: str | None, child: Pipeline, *, has_barrier: bool) -> None:
        self.start = start
        self.end = end
        self.child = child
        self.has_barrier = has_barrier
        self.needed = frozenset({start})
        self.bound = frozenset({start} if end is None else {start, end})

    async def solutions(self, batch: Batch, run: Run) -> Batch:
        starts: Batch = []
        for traverser in batch:
            start = traverser.copy()
            start.value = labelled_value(traverser.path, self.start)
            starts.append(start)
        found: Batch = []
        for start, results in zip(starts, await self.child.each(starts, run), strict=True):
            bound_value = MISSING if self.end is None else labelled_value(start.path, self.end)
            for result in results:
                if self.has_barrier:
                    # A step that reduces forgets the path, but the labels are needed.
                    bulk, result = result.bulk, start.to(result.value)
                    result.bulk = bulk
                if bound_value is not MISSING:
                    if are_equal(bound_value, result.value):
                        found.append(result)
                elif self.end is not None:
                    found.append(result.labelled((self.end,)))
                else:
                    found.append(result)
        return found


class FilterPattern(Pattern):
    """`where(...)` and `not(...)`."""

    def __init__(self, test: Pipeline, needed: Iterable[str]) -> None:
        self.test = test
        self.needed = frozenset(needed)
        self.bound = frozenset()

    async def solutions(self, batch: Batch, run: Run) -> Batch:
        passed = await self.test.succeeds(batch, run)
        return [traverser for traverser, passes in zip(batch, passed, strict=True) if passes]


class AllPattern(Pattern):
    """`and(...)` of patterns, as the whole of a match is."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = patterns
        self.bound = frozenset[str]().union(*(pattern.bound for pattern in patterns))
        self.needed = _first_needed(patterns)

    async def solutions(self, batch: Batch, run: Run) -> Batch:
        labels = self.bound | frozenset[str]().union(*(pattern.needed for pattern in self.patterns))
        # Traversers may come with different labels, by which the order of the patterns is chosen.
        parts: dict[frozenset[str], Batch] = {}
        for traverser in batch:
            parts.setdefault(_labels_of(traverser) & labels, []).append(traverser)
        found: Batch = []
        for known, part in parts.items():
            found += await self._solve(part, set(known), run)
        return found

    async def _solve(self, batch: Batch, known: set[str], run: Run) -> Batch:
        pending = list(self.patterns)
        while pending and batch:
            await run.breathe()
            ready = [pattern for pattern in pending if pattern.needed <= known]
            if not ready:
                raise ExecutionFailure(
                    "The provided match pattern is unsolvable: no pattern starts at a label that is bound."
                )
            chosen = next((pattern for pattern in ready if pattern.bound <= known), ready[0])
            batch = await chosen.solutions(batch, run)
            run.hold(len(batch))
            run.hold(-len(batch))
            known |= chosen.bound
            pending.remove(chosen)
        return batch


class AnyPattern(Pattern):
    """`or(...)` of patterns: the solutions of each."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = patterns
        # Only the labels that every pattern binds are bound for sure.
        self.bound = frozenset.intersection(*(pattern.bound for pattern in patterns))
        self.needed = frozenset[str]().union(*(pattern.needed for pattern in patterns))

    async def solutions(self, batch: Batch, run: Run) -> Batch:
        found: Batch = []
        for pattern in self.patterns:
            found += await pattern.solutions(batch, run)
        return found


def _first_needed(patterns: Sequence[Pattern]) -> frozenset[str]:
    """Return the labels that some pattern needs and none binds as its end before."""
    needed = frozenset[str]().union(*(pattern.needed for pattern in patterns))
    ends = frozenset[str]().union(*(pattern.bound - pattern.needed for pattern in patterns))
    return (needed - ends) or patterns[0].needed


def _labels_of(traverser: Traverser) -> frozenset[str]:
    found: set[str] = set()
    node = traverser.path
    while node is not None:
        found |= node.labels
        node = node.parent
    return frozenset(found)


class MatchStep(AsyncStep):
    """`match(...)`: a map of the labels for each solution."""

    def __init__(self, pattern: Pattern, start: str, labels: Sequence[str]) -> None:
        self.pattern = pattern
        self.start = start
        self.labels = labels

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        starts = [
            traverser.labelled((self.start,))
            if not any(labelled_value(traverser.path, label) is not MISSING for label in self.labels)
            else traverser
            for traverser in batch
        ]
        found: Batch = []
        for solution in await self.pattern.solutions(starts, frame.run):
            values = ((label, labelled_value(solution.path, label)) for label in self.labels)
            found.append(solution.to({label: value for label, value in values if value is not MISSING}))
        return found


class _Patterns:
    """The patterns of a match, as they are compiled."""

    def __init__(self, call: StepCall, compiler: Compiler) -> None:
        self._call = call
        self._compiler = compiler
        # Every label that is bound, in the order of their appearance.
        self.labels: list[str] = []
        self.starts: list[str] = []
        self.ends: list[str] = []

    def read(self, argument: Any) -> Pattern:
        if not isinstance(argument, Traversal) or not argument.steps:
            raise self._call.refused("match() takes traversals that start with as(label).")
        steps = tuple(with_connectives(argument.steps, is_start=False))
        first = steps[0]
        if first.name in ("and", "or") and len(steps) == 1:
            patterns = [self.read(child) for child in first.arguments]
            return AllPattern(patterns) if first.name == "and" else AnyPattern(patterns)
        if first.name == "where" and len(steps) == 1:
            return FilterPattern(self._compiler.pipeline(Traversal(steps)), labels_in(steps))
        if first.name == "not" and len(steps) == 1:
            tested = Traversal((Instruction("where", (Traversal(steps),)),))
            return FilterPattern(self._compiler.pipeline(tested), labels_in(steps))
        return self._path_pattern(steps)

    def _path_pattern(self, steps: tuple[Instruction, ...]) -> PathPattern:
        first = steps[0]
        if first.name != "as" or len(first.arguments) != 1:
            raise self._call.refused(
                "All match()-traversals must have a single start label (i.e. variable): begin them with as(label)."
            )
        start = first.arguments[0]
        inner, end = steps[1:], None
        if inner and inner[-1].name == "as":
            if len(inner[-1].arguments) != 1:
                raise self._call.refused("The end step of a match()-traversal can have at most one label.")
            end, inner = inner[-1].arguments[0], inner[:-1]
        self._note(start, self.starts)
        if end is not None:
            self._note(end, self.ends)
        child = self._compiler.pipeline(Traversal(inner))
        return PathPattern(start, end, child, has_barrier=has_barrier(inner))

    def _note(self, label: str, labels: list[str]) -> None:
        labels.append(label)
        if label not in self.labels:
            self.labels.append(label)


def labels_in(steps: Sequence[Instruction]) -> Iterator[str]:
    """Yield the labels that a `where` or `not` in a match compares: they must be bound before it can be tried."""
    for step in steps:
        if step.name == "as":
            yield from step.arguments
        for argument in step.arguments:
            if isinstance(argument, Traversal):
                yield from labels_in(with_connectives(argument.steps, is_start=False))
        if step.name == "where" and step.arguments:
            if isinstance(step.arguments[0], str):
                yield step.arguments[0]
            for argument in step.arguments:
                if isinstance(argument, Predicate):
                    yield from _labels_of_predicate(argument)


def _labels_of_predicate(predicate: Predicate) -> Iterator[str]:
    values = predicate.value if isinstance(predicate.value, list | tuple | set) else [predicate.value]
    for value in values:
        if isinstance(value, Predicate):
            yield from _labels_of_predicate(value)
        elif isinstance(value, str):
            yield value


def _make_match(call: StepCall, compiler: Compiler) -> MatchStep:
    compiler.needs_labels = True
    reader = _Patterns(call, compiler)
    if not call.arguments:
        raise call.refused("match() takes traversals that start with as(label).")
    pattern = AllPattern([reader.read(argument) for argument in call.arguments])
    if not reader.labels:
        raise CompileFailure("match() needs a traversal that starts with as(label).")
    # Labels of filters that no pattern binds cannot be waited for.
    _forget_unbound(pattern, frozenset(reader.labels))
    start = next((label for label in reader.starts if label not in reader.ends), reader.labels[0])
    return MatchStep(pattern, start, reader.labels)


def _forget_unbound(pattern: Pattern, labels: frozenset[str]) -> None:
    pattern.needed &= labels
    if isinstance(pattern, AllPattern | AnyPattern):
        for child in pattern.patterns:
            _forget_unbound(child, labels)


STEPS: Mapping[str, Maker] = {"match": _make_match}
