"""The values of `group`: how the traversers of one key become one value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

from asterism.languages.gremlin.engine.bulking import merge_key
from asterism.languages.gremlin.engine.modulators import MISSING, Modulator
from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.plan.effects import has_effects
from asterism.languages.gremlin.tree import Instruction, Token, Traversal
from asterism.languages.gremlin.values.numbers import Long

# Groups whose values are reduced at once.
_GROUPS_AT_ONCE = 512

# Steps that take all traversers of a group together; those before them take each alone.
_BARRIERS = frozenset(
    {"count", "fold", "sum", "min", "max", "mean", "order", "dedup", "sample", "tail", "range", "limit", "skip", "cap"}
)
_BARRIERS_WITHOUT_NAME = frozenset({"group", "groupCount", "tree"})


# Traversers of a group; equal ones are merged.
Waiting = dict[Hashable, Traverser]


class Groups:
    """The map of each origin, or one map for all of them, and what is needed to go on with it."""

    __slots__ = ("held", "kept", "maps")

    def __init__(self, maps: Sequence[dict[Any, Any]], kept: list[dict[Any, Waiting]] | None = None) -> None:
        self.maps = maps
        # Traversers that wait to be reduced, for each map by key.
        self.kept = kept if kept is not None else [{} for _ in maps]
        self.held = 0

    def hold(self, count: int, run: Run) -> None:
        """Count values that stay in memory as long as the groups do."""
        self.held += count
        run.hold(count)


class GroupValues(ABC):
    """A way to make values of the traversers of a key."""

    @abstractmethod
    async def add(self, groups: Groups, batch: Batch, keys: Sequence[Any], run: Run) -> None:
        """Take traversers with their keys; MISSING for those without."""

    async def complete(self, groups: Groups, run: Run) -> None:  # noqa: B027 - most ways have nothing left to do
        """Bring the maps up to date. Further traversers may come afterwards."""


class CollectedValues(GroupValues):
    """A list of values, for `by()`, `by(name)` and `by(token)`."""

    def __init__(self, modulator: Modulator | None) -> None:
        self.modulator = modulator

    async def add(self, groups: Groups, batch: Batch, keys: Sequence[Any], run: Run) -> None:
        values = (
            [traverser.value for traverser in batch]
            if self.modulator is None
            else await self.modulator.values(batch, run)
        )
        groups.hold(sum([traverser.bulk for traverser in batch]), run)
        maps = groups.maps
        shares_map = len(maps) == 1
        for traverser, key, value in zip(batch, keys, values, strict=True):
            if key is MISSING:
                continue
            target = maps[0 if shares_map else traverser.origin]
            collected = target.get(key)
            if collected is None:
                groups.hold(1, run)
                collected = target[key] = []
            if value is not MISSING:
                collected.extend([value] * traverser.bulk)


class CountedValues(GroupValues):
    """The number of traversers, for `by(count())` and `by(out().count())`."""

    def __init__(self, before: Pipeline | None) -> None:
        self.before = before

    async def add(self, groups: Groups, batch: Batch, keys: Sequence[Any], run: Run) -> None:
        if self.before is None:
            counts = [traverser.bulk for traverser in batch]
        else:
            counts = [sum(result.bulk for result in results) for results in await self.before.each(batch, run)]
        maps = groups.maps
        shares_map = len(maps) == 1
        for traverser, key, count in zip(batch, keys, counts, strict=True):
            if key is MISSING:
                continue
            target = maps[0 if shares_map else traverser.origin]
            if key not in target:
                groups.hold(1, run)
            target[key] = Long((target.get(key) or 0) + count)


class LastValues(GroupValues):
    """The first result of a child for the last traverser that has any."""

    def __init__(self, child: Modulator) -> None:
        self.child = child

    async def add(self, groups: Groups, batch: Batch, keys: Sequence[Any], run: Run) -> None:
        values = await self.child.values(batch, run)
        maps = groups.maps
        shares_map = len(maps) == 1
        for traverser, key, value in zip(batch, keys, values, strict=True):
            if key is MISSING or value is MISSING:
                continue
            target = maps[0 if shares_map else traverser.origin]
            if key not in target:
                groups.hold(1, run)
            if value is not None or key not in target:
                target[key] = value


class ReducedValues(GroupValues):
    """The first result of a child over all traversers of a key; a key without a result is left out."""

    def __init__(self, child: Pipeline, *, merges: bool) -> None:
        self.child = child
        # Equal traversers go through the child together.
        self.merges = merges

    async def add(self, groups: Groups, batch: Batch, keys: Sequence[Any], run: Run) -> None:
        shares_map = len(groups.maps) == 1
        for traverser, key in zip(batch, keys, strict=True):
            if key is MISSING:
                continue
            kept = groups.kept[0 if shares_map else traverser.origin]
            waiting = kept.get(key)
            if waiting is None:
                waiting = kept[key] = {}
                groups.hold(1, run)
            same = merge_key(traverser, ignores_sack=False) if self.merges else len(waiting)
            known = waiting.get(same)
            if known is None:
                groups.hold(1, run)
                waiting[same] = traverser.copy()
            else:
                known.bulk += traverser.bulk

    async def complete(self, groups: Groups, run: Run) -> None:
        waiting = [
            (target, key, traversers)
            for target, kept in zip(groups.maps, groups.kept, strict=True)
            for key, traversers in kept.items()
        ]
        for start in range(0, len(waiting), _GROUPS_AT_ONCE):
            part = waiting[start : start + _GROUPS_AT_ONCE]
            starts: Batch = []
            for origin, (_, _, traversers) in enumerate(part):
                for traverser in traversers.values():
                    copied = traverser.copy()
                    copied.origin = origin
                    starts.append(copied)
            await run.breathe()
            first: dict[int, Any] = {}
            for result in await self.child.whole(starts, Frame(run, len(part))):
                first.setdefault(result.origin, result.value)
            for origin, (target, key, _) in enumerate(part):
                if origin in first:
                    target[key] = first[origin]
                else:
                    target.pop(key, None)


def _barrier_place(steps: Sequence[Instruction]) -> int | None:
    for place, step in enumerate(steps):
        is_local = any(isinstance(argument, Token) and argument.name == "local" for argument in step.arguments)
        if step.name in _BARRIERS and not is_local:
            return place
        if step.name in _BARRIERS_WITHOUT_NAME and not step.arguments:
            return place
    return None


def has_barrier(steps: Sequence[Instruction]) -> bool:
    """Return whether a chain has a step that takes all traversers together."""
    return _barrier_place(steps) is not None


def group_values(instruction: Instruction | None, compiler: Compiler) -> GroupValues:
    """Return the values of a group by the `by` that tells them; without one they are collected as they are."""
    argument = instruction.arguments[0] if instruction is not None and instruction.arguments else None
    if instruction is None or argument is None:
        return CollectedValues(None)
    modulator = compiler.modulator
    if not isinstance(argument, Traversal):
        return CollectedValues(modulator(instruction))
    place = _barrier_place(argument.steps)
    if place is None:
        return LastValues(modulator(instruction))
    before, reducing = argument.steps[:place], argument.steps[place:]
    if len(reducing) == 1 and reducing[0].name == "count":
        return CountedValues(compiler.pipeline(Traversal(before)) if before else None)
    return ReducedValues(compiler.pipeline(argument), merges=not has_effects(argument))
