"""Steps between containers and their members: `unfold`, `index`, `inject`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from asterism.languages.gremlin.engine.run import Frame, new_traverser
from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.basic import FlatMapStep, MapStep
from asterism.languages.gremlin.values.lists import items_of

_INDEXER = "~tinkerpop.index.indexer"


def _indexed_list(value: Any) -> list[Any]:
    return [[member, place] for place, member in enumerate(items_of(value))]


def _indexed_map(value: Any) -> dict[int, Any]:
    return dict(enumerate(items_of(value)))


class InjectStep(Step):
    """`inject()`: values put before those that come; at the start of a traversal nothing comes.

    At the start of a child they stand behind the traverser of the parent, which came first.
    """

    def __init__(self, values: tuple[Any, ...], *, is_start: bool, is_first_of_child: bool = False) -> None:
        self.values = values
        self.is_start = is_start
        self.is_first_of_child = is_first_of_child

    def _injected(self, frame: Frame) -> Batch:
        run = frame.run
        return [new_traverser(value, run, origin) for origin in range(frame.segments) for value in self.values]

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        injected = self._injected(frame)
        if injected and not self.is_first_of_child:
            yield injected
        async for batch in source:
            if not self.is_start:
                yield batch
        if injected and self.is_first_of_child:
            yield injected

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        injected = self._injected(frame)
        if self.is_start:
            return injected
        return batch + injected if self.is_first_of_child else injected + batch


def _make_index(call: StepCall, _: Compiler) -> MapStep:
    as_map = False
    for option in call.modulators_named("with"):
        if len(option.arguments) != 2 or option.arguments[0] != _INDEXER or option.arguments[1] not in (0, 1):
            raise call.refused(
                "WithOptions.indexer requires a single Integer argument (possible values are: WithOptions.[list|map])"
            )
        as_map = option.arguments[1] == 1
    return MapStep(_indexed_map if as_map else _indexed_list)


def _make_inject(call: StepCall, _: Compiler) -> InjectStep:
    return InjectStep(call.arguments, is_start=call.is_start, is_first_of_child=call.is_first_of_child)


STEPS: Mapping[str, Maker] = {
    "index": _make_index,
    "inject": _make_inject,
    "unfold": lambda _call, _compiler: FlatMapStep(items_of),
}
