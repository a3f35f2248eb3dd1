"""`order`: of all traversers, or within a list or a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator, ValueModulator
from asterism.languages.gremlin.engine.run import Frame, Run, new_traverser
from asterism.languages.gremlin.engine.step import AsyncStep, BarrierStep, Step
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.scopes import is_local
from asterism.languages.gremlin.tree import Instruction, Token
from asterism.languages.gremlin.values.comparison import order_key
from asterism.languages.gremlin.values.structures import MapEntry

# A modulator and the direction of its values: asc, desc or shuffle.
Comparison = tuple[Modulator, str]


def sort_keys(values: Sequence[Any]) -> Sequence[Any]:
    """Return keys that sort as the values do: the values themselves if all are texts or all plain integers."""
    kinds = set(map(type, values))
    if kinds == {str} or kinds == {int}:
        return values
    return [order_key(value) for value in values]


async def sorted_places(traversers: Batch, comparisons: Sequence[Comparison], run: Run) -> list[int]:
    """Return the places of the traversers in their order, without those that a modulator yields nothing for."""
    places = list(range(len(traversers)))
    columns: list[list[Any]] = []
    for modulator, _ in comparisons:
        values = await modulator.values(traversers, run)
        columns.append(values)
        if any(value is MISSING for value in values):
            places = [place for place in places if values[place] is not MISSING]
    if comparisons[-1][1] == "shuffle":
        run.random.shuffle(places)
        return places
    # Sorting is stable: the first comparison decides if it comes last.
    for values, (_, direction) in reversed(list(zip(columns, comparisons, strict=True))):
        if direction == "shuffle":
            continue
        keys = dict(zip(places, sort_keys([values[place] for place in places]), strict=True))
        places.sort(key=keys.__getitem__, reverse=direction == "desc")
    return places


class OrderStep(BarrierStep):
    """`order()`: the traversers of each origin, sorted."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self.comparisons = comparisons

    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        if not batch:
            return batch
        places = await sorted_places(batch, self.comparisons, frame.run)
        if frame.segments > 1:
            places.sort(key=lambda place: batch[place].origin)
        return [batch[place] for place in places]


class OrderLocalStep(AsyncStep):
    """`order(local)`: the members of a list or the entries of a map, sorted."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self.comparisons = comparisons

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        return [traverser.to(await self._sorted(traverser, frame.run)) for traverser in batch]

    async def _sorted(self, traverser: Traverser, run: Run) -> Any:
        value = traverser.value
        if isinstance(value, dict):
            members: list[Any] = [MapEntry(key, entry) for key, entry in value.items()]
        elif isinstance(value, list | tuple | set | frozenset):
            members = list(value)
        else:
            return value
        if not members:
            return {} if isinstance(value, dict) else members
        await run.breathe()
        places = await sorted_places([new_traverser(member, run) for member in members], self.comparisons, run)
        if isinstance(value, dict):
            return {members[place].key: members[place].value for place in places}
        return [members[place] for place in places]


def _comparison(instruction: Instruction, compiler: Compiler) -> Comparison:
    arguments = instruction.arguments
    direction = "asc"
    if arguments and isinstance(arguments[-1], Token) and arguments[-1].kind == "Order":
        direction, arguments = arguments[-1].name, arguments[:-1]
    return compiler.modulator(Instruction("by", arguments, instruction.line, instruction.column)), direction


def _make_order(call: StepCall, compiler: Compiler) -> Step:
    comparisons = [_comparison(instruction, compiler) for instruction in call.modulators_named("by")]
    comparisons = comparisons or [(ValueModulator(lambda value: value), "asc")]
    return OrderLocalStep(comparisons) if is_local(call) else OrderStep(comparisons)


STEPS: Mapping[str, Maker] = {"order": _make_order}
