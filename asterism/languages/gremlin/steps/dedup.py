"""`dedup`: the first traverser of each value."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.merging import single
from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.scope import value_required
from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.engine.traverser import ROOT, Batch, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.basic import MapStep
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.identity import identity_key
from asterism.languages.gremlin.values.results import Path
from asterism.languages.gremlin.values.structures import freeze


class DedupStep(Step):
    """Passes the first traverser of each value (or value of a modulator, or values of names) of an origin, without its
    bulk. In a loop it remembers the values of earlier rounds."""

    def __init__(self, names: Sequence[str], modulator: Modulator | None) -> None:
        self._names = tuple(dict.fromkeys(names))
        self._modulator = modulator

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        async for batch in source:
            if found := await self.whole(batch, frame):
                yield found

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        if not batch:
            return batch
        seen: dict[int, set[Hashable]] = frame.state.setdefault(self, {})
        found: Batch = []
        for traverser, key in zip(batch, await self._keys(batch, frame), strict=True):
            if key is MISSING:
                continue
            of_origin = seen.setdefault(frame.identity(traverser.origin), set())
            if key not in of_origin:
                of_origin.add(key)
                found.append(single(traverser))
        frame.hold(len(found))
        return found

    async def _keys(self, batch: Batch, frame: Frame) -> list[Any]:
        if not self._names:
            return [_key(value) for value in await self._modulated(batch, frame)]
        columns = []
        for name in self._names:
            starts = [_at(value_required(name, traverser, frame.run, step="dedup()"), traverser) for traverser in batch]
            columns.append(await self._modulated(starts, frame))
        return [
            MISSING if any(value is MISSING for value in row) else tuple(map(_key, row))
            for row in zip(*columns, strict=True)
        ]

    async def _modulated(self, batch: Batch, frame: Frame) -> list[Any]:
        if self._modulator is None:
            return [traverser.value for traverser in batch]
        return await self._modulator.values(batch, frame.run)


def _at(value: Any, traverser: Traverser) -> Traverser:
    return Traverser(value, path=None if traverser.path is None else ROOT)


def _key(value: Any) -> Any:
    return value if value is MISSING else identity_key(value)


def distinct_members(value: Any) -> Any:
    """Return the members of a list, a path or a map as a set; any other value as a set of its own."""
    if isinstance(value, Path):
        value = value.objects
    if isinstance(value, list | tuple | set | frozenset | dict):
        return {freeze(member) for member in value}
    if value is None:
        raise ExecutionFailure("dedup(local) cannot be applied to null.")
    return {freeze(value)}


def _make_dedup(call: StepCall, compiler: Compiler) -> Step:
    arguments: Sequence[Any] = call.arguments
    if arguments and isinstance(arguments[0], Token) and arguments[0].kind == "Scope":
        if arguments[0].name == "local":
            return MapStep(distinct_members)
        arguments = arguments[1:]
    modulators = compiler.modulators(call)
    if len(modulators) > 1:
        raise call.refused("Dedup step can only have one by modulator")
    return DedupStep(arguments, modulators[0] if modulators else None)


STEPS: Mapping[str, Maker] = {"dedup": _make_dedup}
