"""Pipelines: the steps of a traversal or of a child traversal in a row, as a stream or over whole batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from asterism.languages.gremlin.engine.run import Frame, Run
from asterism.languages.gremlin.engine.step import SLICE, Step, SyncStep, close, only
from asterism.languages.gremlin.engine.traverser import Batch, Traverser

# Parents for which a child is run at once: enough that reads of the graph go out together, and a short turn.
_PARENTS_AT_ONCE = 512


class Pipeline:
    """Steps in a row. A pipeline without steps passes everything on."""

    __slots__ = ("_has_endless", "_is_streamed", "_parents_at_once", "_stages", "is_endless", "is_stateful", "steps")

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        self._stages = tuple(_fused(steps))
        # A child is run over whole batches unless one of its steps must be stopped by a later one.
        endless_at = next((place for place, step in enumerate(steps) if step.is_endless), len(steps))
        self._is_streamed = any(step.stops_early for step in steps[endless_at:])
        self._has_endless = endless_at < len(steps)
        # True for a child that a step behind its parent has to stop.
        self.is_endless = self._has_endless and not self._is_streamed
        self.is_stateful = any(step.is_stateful for step in steps)
        # A step may read a side effect that one before it fills: a parent must not see the values of the next parent.
        self._parents_at_once = 1 if any(step.fills_side_effect for step in steps[:-1]) else _PARENTS_AT_ONCE

    def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        """Run as a stream."""
        for stage in self._stages:
            source = stage.flow(source, frame)
        return source

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        """Return everything that comes out for a batch. The traversers keep their origins: for children that see all
        traversers of their parent step as one stream, as those of `union` and `repeat` do."""
        if self._is_streamed:
            found: Batch = []
            async for part in self.flow(only(batch), frame):
                found += part
            return found
        for stage in self._stages:
            if isinstance(stage, SyncStep) and len(batch) <= SLICE:
                batch = stage.process(batch, frame)
            else:
                batch = await stage.whole(batch, frame)
        return batch

    async def each(self, parents: Batch, run: Run) -> list[Batch]:
        """Run the child for each parent apart and return the results of each, in the order of the parents. Results keep
        path and sack of the child, and get the origin of their parent."""
        results: list[Batch] = [[] for _ in parents]
        at_once = self._parents_at_once
        for start in range(0, len(parents), at_once):
            part = parents[start : start + at_once]
            starts = [
                Traverser(parent.value, parent.bulk, parent.path, parent.loop, parent.sack, origin)
                for origin, parent in enumerate(part)
            ]
            frame = Frame(run, len(part))
            for found in await self.whole(starts, frame):
                place = start + found.origin
                found.origin = parents[place].origin
                results[place].append(found)
            if frame.state:
                frame.release()
            if start:
                await run.breathe()
        return results

    async def first(self, parents: Batch, run: Run) -> list[Traverser | None]:
        """Return the first result for each parent; None where the child yields nothing."""
        if self._has_endless:
            return await self._first_of_endless(parents, run)
        return [found[0] if found else None for found in await self.each(parents, run)]

    async def _first_of_endless(self, parents: Batch, run: Run) -> list[Traverser | None]:
        """Return the first results of a child that need not end by itself; it is stopped when each parent has one."""
        results: list[Traverser | None] = [None for _ in parents]
        frame = Frame(run, len(parents))
        starts = [
            Traverser(parent.value, parent.bulk, parent.path, parent.loop, parent.sack, origin)
            for origin, parent in enumerate(parents)
        ]
        stream = self.flow(only(starts), frame)
        async for batch in stream:
            for found in batch:
                if results[found.origin] is None:
                    results[found.origin] = found
                    frame.finished.add(found.origin)
            if len(frame.finished) == len(parents):
                await close(stream)
                break
        frame.release()
        for parent, result in zip(parents, results, strict=True):
            if result is not None:
                result.origin = parent.origin
        return results

    async def succeeds(self, parents: Batch, run: Run) -> list[bool]:
        """Return for each parent whether the child yields anything."""
        if self._has_endless:
            return [found is not None for found in await self.first(parents, run)]
        return [bool(found) for found in await self.each(parents, run)]


class FusedStep(SyncStep):
    """Several steps that wait for nothing, as one stage of a stream."""

    def __init__(self, steps: Sequence[SyncStep]) -> None:
        self._steps = tuple(steps)

    def process(self, batch: Batch, frame: Frame) -> Batch:
        for step in self._steps:
            batch = step.process(batch, frame)
            if not batch:
                return batch
        return batch


def _fused(steps: Sequence[Step]) -> list[Step]:
    stages: list[Step] = []
    row: list[SyncStep] = []
    for step in [*steps, None]:
        if isinstance(step, SyncStep):
            row.append(step)
            continue
        if row:
            stages.append(row[0] if len(row) == 1 else FusedStep(row))
            row = []
        if step is not None:
            stages.append(step)
    return stages
