"""Steps that run a child for each traverser: `map`, `flatMap`, `local`, `optional`, `coalesce`, `sideEffect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asterism.languages.gremlin.engine.merging import single, unmerged
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import AsyncStep, Step
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.effects import has_effects


class ChildStep(AsyncStep):
    """A step over children that see one traverser at a time.

    Equal traversers are run once, and their results counted as often, unless the children have effects: then each has
    its own turn. So the results do not depend on which traversers were merged.
    """

    def __init__(self, children: Sequence[Pipeline], *, has_effects: bool) -> None:
        self.children = tuple(children)
        self._has_effects = has_effects

    def _parents(self, batch: Batch) -> Batch:
        return unmerged(batch) if self._has_effects else batch


class ChildMapStep(ChildStep):
    """`map` and `flatMap`: the first result, or all of them, as the next place of the path."""

    def __init__(self, child: Pipeline, *, has_effects: bool, takes_first: bool) -> None:
        super().__init__([child], has_effects=has_effects)
        self._takes_first = takes_first

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        parents = self._parents(batch)
        starts = [single(parent) for parent in parents]
        child = self.children[0]
        if self._takes_first:
            first = await child.first(starts, frame.run)
            return [
                parent.to(result.value) for parent, result in zip(parents, first, strict=True) if result is not None
            ]
        found: Batch = []
        for parent, results in zip(parents, await child.each(starts, frame.run), strict=True):
            for result in results:
                made = parent.to(result.value)
                made.bulk *= result.bulk
                found.append(made)
        return found


class LocalStep(ChildStep):
    """`local`: all results, with the path, the sack and the labels that they got in the child."""

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        parents = self._parents(batch)
        results = await self.children[0].each([single(parent) for parent in parents], frame.run)
        return [result for parent, found in zip(parents, results, strict=True) for result in _times(found, parent.bulk)]


class OptionalStep(ChildStep):
    """`optional`: the results, or the traverser itself if there are none."""

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        parents = self._parents(batch)
        results = await self.children[0].each([single(parent) for parent in parents], frame.run)
        found: Batch = []
        for parent, of_parent in zip(parents, results, strict=True):
            if of_parent:
                found += _times(of_parent, parent.bulk)
            else:
                found.append(parent)
        return found


class CoalesceStep(ChildStep):
    """`coalesce`: the results of the first child that has any."""

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        parents = self._parents(batch)
        results: list[Batch] = [[] for _ in parents]
        open_places = list(range(len(parents)))
        for child in self.children:
            starts = [single(parents[place]) for place in open_places]
            for place, of_parent in zip(open_places, await child.each(starts, frame.run), strict=True):
                results[place] = of_parent
            open_places = [place for place in open_places if not results[place]]
            if not open_places:
                break
        found: Batch = []
        for parent, of_parent in zip(parents, results, strict=True):
            for result in of_parent:
                made = parent.to(result.value)
                made.bulk *= result.bulk
                found.append(made)
        return found


class ChildSideEffectStep(ChildStep):
    """`sideEffect`: runs the child and passes the traverser."""

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        await self.children[0].each(unmerged(batch), frame.run)
        return batch


def _times(results: Batch, bulk: int) -> Batch:
    if bulk != 1:
        for result in results:
            result.bulk *= bulk
    return results


def _only_child(call: StepCall, compiler: Compiler) -> tuple[Pipeline, bool]:
    if len(call.arguments) != 1:
        raise call.refused(f"The {call.name}() step takes one traversal.")
    return compiler.child(call.arguments[0]), has_effects(call.arguments[0])


def _make_map(call: StepCall, compiler: Compiler) -> Step:
    child, effects = _only_child(call, compiler)
    return ChildMapStep(child, has_effects=effects, takes_first=call.name == "map")


def _make_local(call: StepCall, compiler: Compiler) -> Step:
    child, effects = _only_child(call, compiler)
    return LocalStep([child], has_effects=effects)


def _make_optional(call: StepCall, compiler: Compiler) -> Step:
    child, effects = _only_child(call, compiler)
    return OptionalStep([child], has_effects=effects)


def _make_coalesce(call: StepCall, compiler: Compiler) -> Step:
    effects = any(has_effects(argument) for argument in call.arguments)
    return CoalesceStep([compiler.child(argument) for argument in call.arguments], has_effects=effects)


def _make_side_effect(call: StepCall, compiler: Compiler) -> Step:
    child, _ = _only_child(call, compiler)
    return ChildSideEffectStep([child], has_effects=True)


STEPS: Mapping[str, Maker] = {
    "coalesce": _make_coalesce,
    "flatMap": _make_map,
    "local": _make_local,
    "map": _make_map,
    "optional": _make_optional,
    "sideEffect": _make_side_effect,
}
