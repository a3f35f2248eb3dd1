"""`where`: a traversal whose ends are labels, or a comparison of values in scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.scope import value_required
from asterism.languages.gremlin.engine.step import AsyncStep, Step
from asterism.languages.gremlin.engine.traverser import ROOT, Batch, Traverser
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.child_filters import ChildFilterStep, bound_test
from asterism.languages.gremlin.tree import Predicate
from asterism.languages.gremlin.values.predicates import Test, comparison_of_two, compile_predicate

# Tests by their operator and the identity of the value that they compare with: a side effect is the same for many
# traversers, and may be large.
_Known = dict[tuple[str, int], Test]
# A test of a value against the values of the names in the predicate, which are taken from the iterator in their order.
_Comparison = Callable[[Any, Iterator[Any], _Known], bool]


class WherePredicateStep(AsyncStep):
    """Compares the traverser's value, or that of a name, with the values of other names. `by` modulators go round:
    the first is for the value, the others for the names in their order."""

    def __init__(self, start: str | None, predicate: Predicate, modulators: Sequence[Modulator]) -> None:
        self._start = start
        self._names: list[str] = []
        self._holds = self._comparison(predicate)
        self._modulators = tuple(modulators)

    def _comparison(self, predicate: Predicate) -> _Comparison:
        operator, value = predicate.operator, predicate.value
        if operator in ("and", "or"):
            # Every part takes its values from the iterator, also where the answer is known already.
            parts = [self._comparison(part) for part in value]
            combine = all if operator == "and" else any
            return lambda tested, values, known: combine([part(tested, values, known) for part in parts])
        if operator == "not" and isinstance(value, Predicate):
            inner = self._comparison(value)
            return lambda tested, values, known: not inner(tested, values, known)
        self._names.append(value[0] if isinstance(value, list | tuple) and value else value)
        test_of_two = comparison_of_two(operator)
        if test_of_two is not None:
            return lambda tested, values, _: test_of_two(tested, next(values))
        return lambda tested, values, known: _test(operator, next(values), known)(tested)

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        run = frame.run
        columns = [await self._tested(batch, run)]
        for place, name in enumerate(self._names, start=1):
            found = [_at(value_required(name, traverser, run, step="where()"), traverser) for traverser in batch]
            columns.append(await self._modulated(found, place, run))
        passed: Batch = []
        known: _Known = {}
        for traverser, row in zip(batch, zip(*columns, strict=True), strict=True):
            if not any(value is MISSING for value in row) and self._holds(row[0], iter(row[1:]), known):
                passed.append(traverser)
        return passed

    async def _tested(self, batch: Batch, run: Run) -> list[Any]:
        start = self._start
        if start is not None:
            batch = [_at(value_required(start, traverser, run, step="where()"), traverser) for traverser in batch]
        return await self._modulated(batch, 0, run)

    async def _modulated(self, batch: Batch, place: int, run: Run) -> list[Any]:
        if not self._modulators:
            return [traverser.value for traverser in batch]
        return await self._modulators[place % len(self._modulators)].values(batch, run)


def _test(operator: str, value: Any, known: _Known) -> Test:
    key = (operator, id(value))
    test = known.get(key)
    if test is None:
        test = known[key] = compile_predicate(Predicate(operator, value))
    return test


def _at(value: Any, traverser: Traverser) -> Traverser:
    """Return a traverser that begins at a value, for a modulator."""
    return Traverser(value, path=None if traverser.path is None else ROOT)


def _make_where(call: StepCall, compiler: Compiler) -> Step:
    match call.arguments:
        case [Predicate() as predicate]:
            return WherePredicateStep(None, predicate, compiler.modulators(call))
        case [start, Predicate() as predicate]:
            return WherePredicateStep(start, predicate, compiler.modulators(call))
        case [traversal]:
            return ChildFilterStep(bound_test(traversal, compiler))
    raise call.refused("The where() step takes a traversal, a predicate, or a name and a predicate.")


STEPS: Mapping[str, Maker] = {"where": _make_where}
