"""Reads of incoming edges: the edges that lead to vertices, found where the vertices are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from asterism.keyspaces.routing.families import after_prefix
from asterism.keyspaces.routing.router import Reads
from asterism.models.documents.container import Container
from asterism.models.documents.incoming.entries import distinct_references, label_prefix, sink_prefix
from asterism.storage.contract import Span

# Scans of one call that are under way at once: a store over the network answers them together.
_AT_ONCE: Final = 32
# After so many reads that did not suspend, a millisecond or less, other requests run.
_READS_BETWEEN_OTHERS: Final = 64
# An entry of 16 bytes of point and short texts has about 100 bytes, and is read in 0.3 µs.
_PAGE_ENTRIES: Final = 1000
_PAGE_BYTES: Final = 256 * 1024


async def entries_for(
    container: Container,
    sinks: Sequence[tuple[bytes, bytes]],
    labels: Sequence[bytes] | None = None,
    *,
    reads: Reads,
) -> list[list[bytes]] | None:
    """Return, for each vertex, the references (point and id key) of the edges that may lead to it, without duplicates,
    those of a label in the order of their creation. None if the container has no entries that can be relied on: it does
    not keep them, or is still being walked.

    `sinks` are pairs of a point (`ChangePlanner.point`) and an item id; `labels` limits the edges to those with one of
    them (`label_bytes`). `reads` is the router, relaxed or not.

    Every edge that leads to a vertex is among them. Others may be too, after a crash or a change in this moment:
    callers load the items (`ITEMS + reference`) and leave out those that are gone, expired, or name another sink or
    label.
    """
    spans = [span for point, item_id in sinks for span in _spans(point, item_id, labels)]
    # The entries are removed only after reads that rely on them (K8).
    with container.keyspace.in_flight:
        found = await _read_all(container, reads, spans)
    values = [of_span for of_span in found if of_span is not None]
    if len(values) < len(found) or not container.has_all_incoming_edges:
        return None
    each = 1 if labels is None else len(dict.fromkeys(labels))
    return [
        distinct_references(value for of_span in values[place * each : (place + 1) * each] for value in of_span)
        for place in range(len(sinks))
    ]


def _spans(point: bytes, item_id: bytes, labels: Sequence[bytes] | None) -> list[tuple[bytes, Span]]:
    """Return the spans to read for one vertex, each with the vertex's point."""
    if labels is None:
        prefixes = [sink_prefix(point, item_id)]
    else:
        prefixes = [label_prefix(point, item_id, label) for label in dict.fromkeys(labels)]
    return [(point, Span(prefix, after_prefix(prefix))) for prefix in prefixes]


async def _read_all(
    container: Container, reads: Reads, spans: Sequence[tuple[bytes, Span]]
) -> list[list[bytes] | None]:
    """Read all spans. Reads of an embedded store never suspend, and a task for each would take longer than the read:
    only if the first has suspended, the others are read at the same time."""
    if not spans:
        return []
    has_suspended: list[bool] = []
    marker = asyncio.get_running_loop().call_soon(has_suspended.append, True)
    found = [await _read(container, reads, spans[0])]
    marker.cancel()
    if not has_suspended:
        for place, span in enumerate(spans[1:], start=1):
            found.append(await _read(container, reads, span))
            if place % _READS_BETWEEN_OTHERS == 0:
                await asyncio.sleep(0)
        return found
    turns = asyncio.Semaphore(_AT_ONCE)

    async def read_in_turn(span: tuple[bytes, Span]) -> list[bytes] | None:
        async with turns:
            return await _read(container, reads, span)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(read_in_turn(span)) for span in spans[1:]]
    except BaseExceptionGroup as failures:
        # Callers know the errors of a single read.
        raise failures.exceptions[0] from None
    return found + [task.result() for task in tasks]


async def _read(container: Container, reads: Reads, placed: tuple[bytes, Span]) -> list[bytes] | None:
    """Return the values of a span; None if the entries cannot be relied on (any more)."""
    point, span = placed
    keyspace = container.keyspace
    values: list[bytes] = []
    rest: Span | None = span
    while rest is not None:
        # Again for each page: another process may have changed the settings, of which a fence makes this one aware.
        if not container.has_all_incoming_edges:
            return None
        record = keyspace.record
        page = await reads.scan(
            keyspace, record, record.map.find(point), rest, limit=_PAGE_ENTRIES, bytes_max=_PAGE_BYTES
        )
        if page is None:
            continue
        values += [value for _, value in page.entries]
        rest = page.rest(rest)
        if rest is not None:
            await asyncio.sleep(0)
    return values
