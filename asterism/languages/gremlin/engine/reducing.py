"""Steps that reduce all traversers of an origin to one value, without keeping the traversers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator
from typing import Any

from asterism.languages.gremlin.engine.run import Frame, new_traverser
from asterism.languages.gremlin.engine.step import Step
from asterism.languages.gremlin.engine.traverser import Batch

# Traversers that are taken at once, so that a turn stays short.
BATCH_SIZE = 1024


class ReducingStep(Step):
    """A step with a state that takes batches as they come. An origin without traversers gets a result too."""

    @abstractmethod
    def start(self, frame: Frame) -> Any:
        """Return the state before the first traverser, for all origins."""

    @abstractmethod
    async def add(self, state: Any, batch: Batch, frame: Frame) -> None: ...

    @abstractmethod
    async def results(self, state: Any, frame: Frame) -> list[Any]:
        """Return the result for each origin."""

    async def flow(self, source: AsyncIterator[Batch], frame: Frame) -> AsyncIterator[Batch]:
        state = self.start(frame)
        async for batch in source:
            await frame.run.breathe()
            await self.add(state, batch, frame)
        yield await self._complete(state, frame)

    async def whole(self, batch: Batch, frame: Frame) -> Batch:
        state = self.start(frame)
        for start in range(0, len(batch), BATCH_SIZE):
            if start:
                await frame.run.breathe()
            await self.add(state, batch[start : start + BATCH_SIZE], frame)
        return await self._complete(state, frame)

    async def _complete(self, state: Any, frame: Frame) -> Batch:
        run = frame.run
        return [new_traverser(value, run, origin) for origin, value in enumerate(await self.results(state, frame))]
