"""A traversal from its start to its last result."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from asterism.languages.gremlin.engine.pipeline import Pipeline
from asterism.languages.gremlin.engine.run import Frame, Run, root_of
from asterism.languages.gremlin.engine.step import only
from asterism.languages.gremlin.engine.traverser import Batch, Traverser
from asterism.languages.gremlin.failure import ExecutionFailure


async def evaluate(pipeline: Pipeline, run: Run) -> AsyncGenerator[Batch, None]:
    """Yield the results in batches and commit what was written before the last of them is out.

    A traversal that fails, or whose results are not wanted any more, commits nothing.
    """
    start = Traverser(None, path=root_of(run), sack=run.sack)
    kept: Batch = []
    try:
        async for batch in pipeline.flow(only([start]), Frame(run)):
            if kept:
                yield kept
            kept = batch
    except RecursionError:
        # Hundreds of `fold()` in a row make a list that no comparison gets to the bottom of.
        raise ExecutionFailure("A value is nested too deeply.") from None
    await run.graph.commit()
    if kept:
        yield kept
