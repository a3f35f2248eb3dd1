"""`simplePath` and `cyclicPath`, and `timeLimit`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.scope import part_of_path
from asterism.languages.gremlin.engine.step import AsyncStep, Step, close
from asterism.languages.gremlin.engine.traverser import ROOT, Batch, PathNode, Traverser
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.values.identity import identity_key


class PathFilterStep(AsyncStep):
    """Passes traversers whose path has no value twice, or those that have. `by` modulators go round its places."""

    def __init__(self, *, is_simple: bool, start: str | None, end: str | None, modulators: Sequence[Modulator]) -> None:
        self._is_simple = is_simple
        self._start = start
        self._end = end
        self._modulators = tuple(modulators)

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        if not self._modulators and self._start is None and self._end is None:
            is_simple = self._is_simple
            return [traverser for traverser in batch if _is_simple(traverser.path) is is_simple]
        passed: Batch = []
        for traverser in batch:
            places = [] if traverser.path is None else traverser.path.places()
            places = part_of_path(places, start=self._start, end=self._end)
            values = await self._values([place.value for place in places], frame)
            if any(value is MISSING for value in values):
                continue
            if (len({identity_key(value) for value in values}) == len(values)) is self._is_simple:
                passed.append(traverser)
        return passed

    async def _values(self, objects: list[Any], frame: Frame) -> list[Any]:
        modulators = self._modulators
        if not modulators:
            return objects
        found: list[Any] = [MISSING] * len(objects)
        for turn, modulator in enumerate(modulators):
            starts = [Traverser(value, path=ROOT) for value in objects[turn :: len(modulators)]]
            found[turn :: len(modulators)] = await modulator.values(starts, frame.run)
        return found


def _is_simple(path: PathNode | None) -> bool:
    seen = set()
    while path is not None and path.parent is not None:
        key = identity_key(path.value)
        if key in seen:
            return False
        seen.add(key)
        path = path.parent
    return True


class TimeLimitStep(Step):
    """Passes the traversers of some seconds, counted from the first of them."""

    stops_early = True

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        end: float | None = None
        async for batch in source:
            now = frame.run.seconds_since_start()
            if end is None:
                end = now + self._seconds
            if now >= end:
                await close(source)
                return
            yield batch


def _make_path_filter(call: StepCall, compiler: Compiler) -> Step:
    compiler.needs_path = True
    return PathFilterStep(
        is_simple=call.name == "simplePath",
        start=_label(call, "from"),
        end=_label(call, "to"),
        modulators=compiler.modulators(call),
    )


def _label(call: StepCall, name: str) -> str | None:
    found = call.modulators_named(name)
    if not found:
        return None
    match found[-1].arguments:
        case [str() as label]:
            return label
    raise call.refused(f"The {name}() modulator of {call.name}() takes the label of a step.")


def _make_time_limit(call: StepCall, _: Compiler) -> Step:
    match call.arguments:
        case [int() as milliseconds]:
            return TimeLimitStep(milliseconds / 1000)
    raise call.refused("The timeLimit() step takes a number of milliseconds.")


STEPS: Mapping[str, Maker] = {
    "cyclicPath": _make_path_filter,
    "simplePath": _make_path_filter,
    "timeLimit": _make_time_limit,
}
