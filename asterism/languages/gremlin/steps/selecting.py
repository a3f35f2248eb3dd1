"""Steps that read what a traverser carries: `select`, `project`, `path`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.languages.gremlin.engine.modulators import MISSING, Modulator, token_reader
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame, Run, new_traverser
from asterism.languages.gremlin.engine.scope import scope_value
from asterism.languages.gremlin.engine.step import AsyncStep, Step, SyncStep
from asterism.languages.gremlin.engine.traverser import Batch
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.basic import MapStep
from asterism.languages.gremlin.tree import Token, Traversal


async def modulated(values: Sequence[Any], modulator: Modulator | None, run: Run) -> list[Any]:
    """Return the value of a modulator for each value that is there; MISSING stays."""
    if modulator is None:
        return list(values)
    present = [new_traverser(value, run) for value in values if value is not MISSING]
    found = iter(await modulator.values(present, run))
    return [MISSING if value is MISSING else next(found) for value in values]


class SelectStep(SyncStep):
    """`select(key)`, the commonest form: a value by its name, as it is."""

    def __init__(self, key: str, *, pop: str) -> None:
        self.key = key
        self.pop = pop

    def process(self, batch: Batch, frame: Frame) -> Batch:
        key, pop, run = self.key, self.pop, frame.run
        found: Batch = []
        for traverser in batch:
            value = scope_value(traverser, key, run, pop=pop)
            if value is not MISSING:
                found.append(traverser.to(value))
        return found


class SelectByStep(AsyncStep):
    """`select(key).by(...)`, and `select(a, b, ...)`, which gives a map. A traverser without all values is left
    out.
    """

    def __init__(self, keys: tuple[str, ...], modulators: Sequence[Modulator | None], *, pop: str) -> None:
        self.keys = keys
        # One for each key; they are taken in turn.
        self.modulators = [modulators[place % len(modulators)] if modulators else None for place in range(len(keys))]
        self.pop = pop

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        run, pop = frame.run, self.pop
        columns: list[list[Any]] = []
        for key, modulator in zip(self.keys, self.modulators, strict=True):
            values = [scope_value(traverser, key, run, pop=pop) for traverser in batch]
            if len(self.keys) == 1 and modulator is not None:
                # Null is selected as it is, without a look at its properties.
                nulls = [place for place, value in enumerate(values) if value is None]
                values = await modulated([MISSING if value is None else value for value in values], modulator, run)
                for place in nulls:
                    values[place] = None
            else:
                values = await modulated(values, modulator, run)
            columns.append(values)
        found: Batch = []
        for traverser, row in zip(batch, zip(*columns, strict=True), strict=True):
            if not any(value is MISSING for value in row):
                value = row[0] if len(self.keys) == 1 else dict(zip(self.keys, row, strict=True))
                found.append(traverser.to(value))
        return found


class SelectKeyStep(AsyncStep):
    """`select(traversal)`: the value whose key a child yields first."""

    def __init__(self, child: Pipeline, modulator: Modulator | None, *, pop: str) -> None:
        self.child = child
        self.modulator = modulator
        self.pop = pop

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        run = frame.run
        keys = await self.child.first(batch, run)
        values = [
            MISSING if key is None else scope_value(traverser, key.value, run, pop=self.pop)
            for traverser, key in zip(batch, keys, strict=True)
        ]
        values = await modulated(values, self.modulator, run)
        return [traverser.to(value) for traverser, value in zip(batch, values, strict=True) if value is not MISSING]


class ProjectStep(AsyncStep):
    """`project(a, b, ...)`: a map of what each modulator yields; a key without a value is left out."""

    def __init__(self, keys: tuple[str, ...], modulators: Sequence[Modulator]) -> None:
        self.keys = keys
        self.modulators = [modulators[place % len(modulators)] if modulators else None for place in range(len(keys))]

    async def process(self, batch: Batch, frame: Frame) -> Batch:
        projections: list[dict[str, Any]] = [{} for _ in batch]
        for key, modulator in zip(self.keys, self.modulators, strict=True):
            if modulator is None:
                values = [traverser.value for traverser in batch]
            else:
                values = await modulator.values(batch, frame.run)
            for projection, value in zip(projections, values, strict=True):
                if value is not MISSING:
                    projection[key] = value
        return [traverser.to(projection) for traverser, projection in zip(batch, projections, strict=True)]


def _read_pop(call: StepCall) -> tuple[str | None, tuple[Any, ...]]:
    first = call.arguments[0] if call.arguments else None
    if isinstance(first, Token) and first.kind == "Pop":
        return first.name, call.arguments[1:]
    return None, call.arguments


def _make_select(call: StepCall, compiler: Compiler) -> Step:
    pop, arguments = _read_pop(call)
    modulators = compiler.modulators(call)
    if not arguments:
        raise call.refused("select() takes the labels, keys or columns to select.")
    if len(arguments) == 1:
        (argument,) = arguments
        if isinstance(argument, Token) and argument.kind == "Column":
            return MapStep(token_reader(argument))
        compiler.needs_labels = True
        if isinstance(argument, Traversal):
            child = compiler.child(argument)
            return SelectKeyStep(child, modulators[0] if modulators else None, pop=pop or "mixed")
        if isinstance(argument, str) and not modulators:
            return SelectStep(argument, pop=pop or "last")
    if not all(isinstance(argument, str) for argument in arguments):
        raise call.refused("select() takes texts, a Column or a traversal.")
    compiler.needs_labels = True
    return SelectByStep(arguments, modulators, pop=pop or "last")


def _make_project(call: StepCall, compiler: Compiler) -> ProjectStep:
    keys = call.arguments
    if not keys or not all(isinstance(key, str) for key in keys):
        raise call.refused("project() takes the keys of the map to make, which are texts.")
    if len(set(keys)) != len(keys):
        raise call.refused("keys must be unique in ProjectStep")
    return ProjectStep(keys, compiler.modulators(call))


STEPS: Mapping[str, Maker] = {
    "project": _make_project,
    "select": _make_select,
}
