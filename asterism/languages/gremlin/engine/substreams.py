"""Children that see the traversers of their parent step as a stream of their own, for each origin that has any."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame
from asterism.languages.gremlin.engine.step import only
from asterism.languages.gremlin.engine.traverser import Batch

# The barriers that TinkerPop puts into loops wait for as many traversers.
_LOOP_SIZE = 2500


async def run_whole(child: Pipeline, batch: Batch, frame: Frame, key: Any) -> Batch:
    """Return everything that a child gives for a batch. Its traversers must not be in use elsewhere."""
    inner, origins = _entered(child, batch, frame, key)
    return _restored(await child.whole(batch, inner), origins)


async def run_as_stream(child: Pipeline, batch: Batch, frame: Frame, key: Any) -> AsyncIterator[Batch]:
    """Yield what a child gives for a batch as it comes."""
    inner, origins = _entered(child, batch, frame, key)
    async for found in child.flow(only(batch), inner):
        yield _restored(found, origins)


def _entered(child: Pipeline, batch: Batch, frame: Frame, key: Any) -> tuple[Frame, list[int] | None]:
    """Return the frame of a child, and the origins of its results if they were numbered anew: a child must not answer
    for origins that give it no traverser, as `count` would."""
    if frame.segments == 1 or not child.is_stateful:
        return frame.inner(key), None
    origins = sorted({traverser.origin for traverser in batch})
    if len(origins) == frame.segments:
        return frame.inner(key), None
    numbers = {origin: number for number, origin in enumerate(origins)}
    for traverser in batch:
        traverser.origin = numbers[traverser.origin]
    return frame.inner(key, origins), origins


def _restored(batch: Batch, origins: list[int] | None) -> Batch:
    if origins is not None:
        for traverser in batch:
            traverser.origin = origins[traverser.origin]
    return batch


async def gathered(source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
    """Yield all batches as one."""
    everything: Batch = []
    async for batch in source:
        frame.run.hold(len(batch))
        everything += batch
    frame.run.hold(-len(everything))
    if everything:
        yield everything


async def in_larger_batches(source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
    """Yield batches joined until they are worth the work of a loop, whose frontiers merge the better the more
    traversers go round together."""
    joined: Batch = []
    async for batch in source:
        frame.run.hold(len(batch))
        joined += batch
        if len(joined) >= _LOOP_SIZE:
            frame.run.hold(-len(joined))
            yield joined
            joined = []
    frame.run.hold(-len(joined))
    if joined:
        yield joined
