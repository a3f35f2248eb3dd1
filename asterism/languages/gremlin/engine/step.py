"""The kinds of steps. A step is made once for a plan, is shared by runs, and keeps nothing between calls.

A step gets traversers in batches. In a stream (`flow`) batches come one after the other, so that `limit` can stop the
steps before it; a child traversal is run `whole` over all of its parents, which `Traverser.origin` tells apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.traverser import Batch


class Step(ABC):
    """A step in general; see the subclasses for what to implement."""

    # Produces more than it can hold, or never ends, unless a later step stops it.
    is_endless: bool = False
    # Does not take all that comes.
    stops_early: bool = False
    # Its results for a traverser depend on others: a branch or a loop around it must give it all of them at once.
    is_stateful: bool = True
    # Changes a side effect that later steps may read.
    fills_side_effect: bool = False

    @abstractmethod
    def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        """Turn a stream of batches into another; empty batches need not be yielded."""

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        """Return everything that comes out for a batch which is all that goes in."""
        found: Batch = []
        async for part in self.flow(only(batch), frame):
            found += part
        return found


class SyncStep(Step):
    """A step whose results for a traverser depend on that traverser alone, and that waits for nothing."""

    is_stateful = False

    @abstractmethod
    def process(self, batch: Batch, frame: Frame) -> Batch: ...

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        async for batch in source:
            for part in slices(batch, SLICE):
                if found := self.process(part, frame):
                    yield found
                if part is not batch:
                    await frame.run.breathe()

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        if len(batch) <= SLICE:
            return self.process(batch, frame)
        found: Batch = []
        for part in slices(batch, SLICE):
            found += self.process(part, frame)
            await frame.run.breathe()
        return found


class AsyncStep(Step):
    """The same for a step that reads from the graph, or runs child traversals: over a batch at a time."""

    is_stateful = False

    @abstractmethod
    async def process(self, batch: Batch, frame: Frame) -> Batch: ...

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        async for batch in source:
            for part in slices(batch, READING_SLICE):
                await frame.run.breathe()
                if found := await self.process(part, frame):
                    yield found

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        await frame.run.breathe()
        if len(batch) <= READING_SLICE:
            return await self.process(batch, frame)
        run = frame.run
        found: Batch = []
        try:
            for part in slices(batch, READING_SLICE):
                results = await self.process(part, frame)
                run.hold(len(results))
                found += results
                await run.breathe()
        finally:
            run.hold(-len(found))
        return found


class BarrierStep(Step):
    """A step that needs all traversers before it gives the first result, such as `order` and `count`.

    `complete` gets them all, and treats those of each origin apart. A reducing step also answers for the origins
    without a traverser: `frame.segments` tells how many origins there are.
    """

    @abstractmethod
    async def complete(self, batch: Batch, frame: Frame) -> Batch: ...

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        everything: Batch = []
        async for batch in source:
            frame.run.hold(len(batch))
            everything += batch
        await frame.run.breathe()
        found = await self.complete(everything, frame)
        frame.run.hold(-len(everything))
        if found:
            yield found

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        return await self.complete(batch, frame)


# A step works on so many traversers before other requests may have a turn. Steps that read have reads to go out
# together; for others a few hundred paths are a few milliseconds already.
READING_SLICE = 1024
SLICE = 256


def slices(batch: Batch, length: int) -> Sequence[Batch]:
    """Return the batch in parts that are short work; itself if it is."""
    if len(batch) <= length:
        return (batch,)
    return [batch[start : start + length] for start in range(0, len(batch), length)]


async def only(batch: Batch) -> AsyncIterator[Batch]:
    """Yield one batch as a stream."""
    if batch:
        yield batch


async def close(source: AsyncIterator[Batch]) -> None:
    """Stop a stream that is not read to its end, so that what it holds is let go at once."""
    if isinstance(source, AsyncGenerator):
        await source.aclose()


def by_origin(batch: Batch, segments: int) -> list[Batch]:
    """Divide traversers by their origin, in their order; an origin without any has an empty list."""
    if segments == 1:
        return [batch]
    groups: list[Batch] = [[] for _ in range(segments)]
    for traverser in batch:
        groups[traverser.origin].append(traverser)
    return groups
