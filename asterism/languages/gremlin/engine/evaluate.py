"""A traversal from its start to its last result."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame, Run, root_of
from asterism.languages.gremlin.engine.step import only
from asterism.languages.gremlin.engine.traverser import Batch, Traverser


async def evaluate(pipeline: Pipeline, run: Run) -> AsyncGenerator[Batch, None]:
    """Yield the results in batches and commit what was written before the last of them is out.

    A traversal that fails, or whose results are not wanted any more, commits nothing.
    """
    start = Traverser(None, path=root_of(run), sack=run.sack)
    kept: Batch = []
    async for batch in pipeline.flow(only([start]), Frame(run)):
        if kept:
            yield kept
        kept = batch
    await run.graph.commit()
    if kept:
        yield kept
