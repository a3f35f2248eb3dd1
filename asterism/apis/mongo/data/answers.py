"""Answers with batches of documents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING

from asterism.apis.mongo.cursors import Patience, batch_answer
from asterism.values.bson.codec import encode
from asterism.values.bson.raw_documents import document_of
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.commands import Answer


async def slices_of(bodies: Sequence[bytes]) -> AsyncGenerator[list[bytes], None]:
    """Yield bodies that are all there."""
    if bodies:
        yield list(bodies)


def first_batch(namespace: str, bodies: Sequence[bytes]) -> bytes:
    """Return the answer whose first batch is also the last."""
    return batch_answer("firstBatch", namespace, bodies, 0)


async def open_cursor(
    call: Call,
    namespace: str,
    slices: AsyncGenerator[list[bytes], None],
    *,
    batch_size: int | None,
    single_batch: bool = False,
    limit: int | None = None,
    verify: Callable[[], None] | None = None,
    patience: Patience | None = None,
    waits: bool = False,
    further: Document | None = None,
) -> Answer:
    """Return the first batch, and keep the rest under a cursor. `further` are fields beside the cursor; the others are
    those of `CursorRegistry.open`."""
    answer = await call.context.cursors.open(
        call,
        namespace,
        slices,
        batch_size=batch_size,
        single_batch=single_batch,
        waits=waits,
        limit=limit,
        verify=verify,
        patience=patience,
        never_times_out=bool(call.field("noCursorTimeout")),
    )
    # The time of the command ends with its answer; a getMore has its own.
    call.deadline = None
    if further is None:
        return answer
    assert isinstance(answer, bytes), "batches are assembled as bytes"
    return document_of(answer[4:-1], encode(further)[4:-1])
