"""Ranges of traversers (`range`, `limit`, `skip`, `tail`), and of the members of a value."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from itertools import islice
from typing import Any

from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import BarrierStep, Step, by_origin, close
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure
from asterism.languages.gremlin.plan.calls import Maker, StepCall
from asterism.languages.gremlin.plan.compiler import Compiler
from asterism.languages.gremlin.steps.basic import MapStep
from asterism.languages.gremlin.tree import Token
from asterism.languages.gremlin.values.results import Path

# Ends of ranges that are not given.
_OPEN = -1
# `tail` cuts what it keeps when that is this much more than it needs.
_TAIL_SLACK = 1024


class RangeStep(Step):
    """Passes the traversers from `low` up to `high`, not included, of each origin, and stops those before it."""

    def __init__(self, low: int, high: int | None) -> None:
        self.low = max(low, 0)
        self.high = high
        self.stops_early = high is not None

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        counts: dict[int, int] = {}
        finished: set[int] = set()
        high = self.high
        if high is not None and high <= self.low:
            return
        async for batch in source:
            found = self._pass(batch, counts, finished)
            is_over = high is not None and len(finished) >= frame.segments
            if is_over:
                await close(source)
            if found:
                yield found
            if is_over:
                return

    async def whole(self, batch: Batch, frame: Frame) -> Batch:  # noqa: ARG002 - counts are of one batch
        return self._pass(batch, {}, set())

    def _pass(self, batch: Batch, counts: dict[int, int], finished: set[int]) -> Batch:
        low, high = self.low, self.high
        found: Batch = []
        for traverser in batch:
            origin, bulk = traverser.origin, traverser.bulk
            before = counts.get(origin, 0)
            if high is not None and before >= high:
                continue
            after = counts[origin] = before + bulk
            passing = (after if high is None else min(after, high)) - max(before, low)
            if high is not None and after >= high:
                finished.add(origin)
            if passing > 0:
                found.append(_with_bulk(traverser, passing))
        return found


class TailStep(BarrierStep):
    """Passes the last traversers of each origin."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        kept: Batch = []
        next_cut = self.limit + _TAIL_SLACK
        async for batch in source:
            kept += batch
            frame.run.hold(len(batch))
            if len(kept) > next_cut:
                before = len(kept)
                kept = await self.complete(kept, frame)
                frame.run.hold(len(kept) - before)
                next_cut = 2 * len(kept) + _TAIL_SLACK
        found = await self.complete(kept, frame)
        frame.run.hold(-len(kept))
        if found:
            yield found

    async def complete(self, batch: Batch, frame: Frame) -> Batch:
        return [traverser for group in by_origin(batch, frame.segments) for traverser in self._last(group)]

    def _last(self, batch: Batch) -> Batch:
        found: Batch = []
        missing = self.limit
        for traverser in reversed(batch):
            if missing <= 0:
                break
            found.append(_with_bulk(traverser, min(traverser.bulk, missing)))
            missing -= traverser.bulk
        found.reverse()
        return found


def _with_bulk(traverser: Traverser, bulk: int) -> Traverser:
    if traverser.bulk == bulk:
        return traverser
    copied = traverser.copy()
    copied.bulk = bulk
    return copied


def members_between(value: Any, low: int, high: int | None) -> Any:
    """Return a part of a list, a set, a map or a path; any other value as it is."""
    low = max(low, 0)
    if high is not None:
        high = max(high, low)
    if isinstance(value, dict):
        return dict(islice(value.items(), low, high))
    if isinstance(value, list | tuple):
        return list(value[low:high])
    if isinstance(value, Path):
        return list(value.objects[low:high])
    if isinstance(value, set | frozenset):
        return set(islice(value, low, high))
    return value


def last_members(value: Any, limit: int) -> Any:
    """Return the last members of a value that has members; any other value as it is."""
    if isinstance(value, dict | list | tuple | set | frozenset | Path):
        return members_between(value, len(value) - limit, len(value))
    return value


def _scope_and_numbers(call: StepCall) -> tuple[bool, list[int]]:
    """Return whether the call is on the members of a value, and its numbers."""
    arguments = list(call.arguments)
    is_local = False
    if arguments and isinstance(arguments[0], Token) and arguments[0].kind == "Scope":
        is_local = arguments.pop(0).name == "local"
    if not all(isinstance(argument, int) and not isinstance(argument, bool) for argument in arguments):
        kinds = ",".join(type(argument).__name__ for argument in call.arguments)
        raise call.refused(f"Unable to bind to method '{call.name}', with arguments of type: ({kinds})")
    return is_local, arguments


def _make_range(call: StepCall, _: Compiler) -> Step:
    is_local, numbers = _scope_and_numbers(call)
    match call.name, numbers:
        case "range", [low, high]:
            pass
        case "limit", [high]:
            low = 0
        case "skip", [low]:
            high = _OPEN
        case _:
            raise call.refused(f"The {call.name}() step takes {'two numbers' if call.name == 'range' else 'a number'}.")
    if _OPEN not in (low, high) and low > high:
        raise ExecutionFailure(f"Not a legal range: [{low}, {high}]")
    end = None if high == _OPEN else high
    if is_local:
        return MapStep(lambda value: members_between(value, low, end))
    return RangeStep(low, end)


def _make_tail(call: StepCall, _: Compiler) -> Step:
    is_local, numbers = _scope_and_numbers(call)
    if len(numbers) > 1:
        raise call.refused("The tail() step takes a number.")
    limit = numbers[0] if numbers else 1
    if is_local:
        return MapStep(lambda value: last_members(value, limit))
    return TailStep(limit)


STEPS: Mapping[str, Maker] = {
    "limit": _make_range,
    "range": _make_range,
    "skip": _make_range,
    "tail": _make_tail,
}
