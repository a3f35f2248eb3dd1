"""Pipelines over lists of documents, without a server."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from asterism.languages.mongo.expressions.compile import new_context
from asterism.languages.mongo.failure import MongoFailure
from asterism.languages.mongo.stages.pipeline import compile_pipeline
from asterism.languages.mongo.stages.stage import MemoryContext, PipelinePlace, RunContext, batches_of, collect
from asterism.values.bson.types import DatetimeMS, Document, Timestamp


def run_stages(
    documents: list[Document],
    *stages: Document,
    variables: dict[str, Any] | None = None,
    collate: Any = None,
    memory_bytes_max: int | None = None,
) -> list[Document]:
    """Return the output of a pipeline that needs no collections."""
    context = new_context(DatetimeMS(0), Timestamp(1, 1), collate, variables or {})
    pipeline = compile_pipeline(list(stages), context, place=PipelinePlace())
    run_context = cast(RunContext, MemoryContext(variables or {}, memory_bytes_max))

    async def run() -> list[Document]:
        return await collect(pipeline.run(batches_of(documents), run_context))

    return asyncio.run(run())


def refusal_of(documents: list[Document], *stages: Document, memory_bytes_max: int | None = None) -> int:
    """Return the code with which a pipeline is refused, when it is compiled or when it runs."""
    with pytest.raises(MongoFailure) as refused:
        run_stages(documents, *stages, memory_bytes_max=memory_bytes_max)
    return refused.value.code
