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
    spans = [_spans(point, item_id, labels) for point, item_id in sinks]
    # The entries are removed only after reads that rely on them (K8).
    with container.keyspace.in_flight:
        if sum(map(len, spans)) <= 1:
            found = [[await _read(container, reads, span) for span in of_sink] for of_sink in spans]
        else:
            turns = asyncio.Semaphore(_AT_ONCE)
            found = await asyncio.gather(*(_read_all(container, reads, of_sink, turns) for of_sink in spans))
    answers: list[list[bytes]] = []
    for of_sink in found:
        stored = [values for values in of_sink if values is not None]
        if len(stored) < len(of_sink):
            return None
        answers.append(distinct_references(value for values in stored for value in values))
    return answers


def _spans(point: bytes, item_id: bytes, labels: Sequence[bytes] | None) -> list[tuple[bytes, Span]]:
    """Return the spans to read for one vertex, each with the vertex's point."""
    if labels is None:
        prefixes = [sink_prefix(point, item_id)]
    else:
        prefixes = [label_prefix(point, item_id, label) for label in dict.fromkeys(labels)]
    return [(point, Span(prefix, after_prefix(prefix))) for prefix in prefixes]


async def _read_all(
    container: Container, reads: Reads, spans: Sequence[tuple[bytes, Span]], turns: asyncio.Semaphore
) -> list[list[bytes] | None]:
    async with turns:
        return [await _read(container, reads, span) for span in spans]


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
