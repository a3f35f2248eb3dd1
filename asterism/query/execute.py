"""Running a compiled query over a container, one page at a time.

A page ends when it is full or when it has worked long enough; its position is a place on the hash line, so the next
page finds its way whatever was split or restarted meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from asterism.documents.answers import Scope, Stopped
from asterism.documents.container import Container
from asterism.documents.pages import Slice, scan_items
from asterism.errors import RequestRateTooLarge
from asterism.keyspaces.owner import Owner
from asterism.limits import PAGE_BYTES_MAX
from asterism.partitioning.partition_key import PartitionKey, PartitionKeyKind
from asterism.partitioning.partition_map import PartitionRange
from asterism.query.compile import CompiledQuery, Item
from asterism.throughput import charge
from asterism.values.json_text import dumps, loads
from asterism.values.undefined import UNDEFINED

# A page that finds little in much data answers with what it has after this long, and the client asks on.
PAGE_SECONDS_MAX = 1.0


@dataclass(frozen=True, slots=True)
class QueryPage:
    """Results as JSON texts. `position` is where the next page begins; None only at the end of the data."""

    results: list[bytes]
    position: bytes | None
    stopped: Stopped
    charge: float
    # The last partition read, for the response's headers.
    range_id: int
    lsn: int
    items_loaded: int = 0
    bytes_loaded: int = 0
    bytes_returned: int = 0


@dataclass(slots=True)
class _Work:
    """What a page has collected so far."""

    items_max: int
    # The last partition read.
    partition: PartitionRange
    results: list[bytes] = field(default_factory=list)
    bytes_returned: int = 0
    items_loaded: int = 0
    bytes_loaded: int = 0
    charge: float = 0.0


def scopes_of(container: Container, query: CompiledQuery, scope: Scope) -> list[Scope]:
    """Where in `scope` the query must look: the logical partitions its filter names, or all of it."""
    keys = pinned_keys(container, query)
    if keys is None:
        return [scope]
    pinned = [container.logical_scope(key) for key in keys]
    narrowed = [Scope(max(one.start, scope.start), min(one.end, scope.end)) for one in pinned]
    return sorted((one for one in narrowed if one.start < one.end), key=lambda one: one.start)


def pinned_keys(container: Container, query: CompiledQuery) -> list[PartitionKey] | None:
    """The partition keys (or prefixes of hierarchical ones) that matching items can have; None if any."""
    definition = container.record.definition
    if definition.system_key or not query.reads_items:
        return None
    keys = query.pinned_partition_keys(definition.segments)
    if keys is None or not all(_is_key(key) for key in keys):
        return None
    # A component that is absent may have been stored as a null by a client, and the other way round, so a
    # hierarchical key with such a component is looked for everywhere.
    if definition.kind is PartitionKeyKind.MULTI_HASH and any(None in key or UNDEFINED in key for key in keys):
        return None
    return [cast(PartitionKey, key) for key in keys]


def _is_key(key: Sequence[object]) -> bool:
    return all(part is None or part is UNDEFINED or isinstance(part, str | int | float) for part in key)


async def run_page(
    owner: Owner,
    container: Container,
    query: CompiledQuery,
    scopes: Sequence[Scope],
    *,
    position: bytes | None,
    items_max: int,
    monotonic_seconds: Callable[[], float],
) -> QueryPage:
    """The next page of a query over `scopes`, which are in order and do not overlap."""
    partition_map = container.keyspace.record.map
    start = scopes[0].start if scopes else b""
    work = _Work(items_max, partition_map.find(start if position is None else max(position, start)))
    stopped_at: tuple[bytes, Stopped] | None = None
    if query.reads_items:
        finish_at = monotonic_seconds() + PAGE_SECONDS_MAX
        for scope in scopes:
            if position is not None and scope.end <= position:
                continue
            pieces = scan_items(owner, container, scope, position=position)
            stopped_at = await _read_scope(work, container, query, scope, pieces, monotonic_seconds, finish_at)
            if stopped_at is not None:
                break
    elif query.matches({}):
        _add_result(work, query.project({}))
    if work.charge == 0.0:
        _pay(work, container, start)
    next_position, stopped = stopped_at or (None, Stopped.END_OF_DATA)
    _, lsn, _ = await owner.read(container.keyspace, work.partition.range.start, ())
    return QueryPage(
        work.results,
        next_position,
        stopped,
        round(work.charge, 2),
        work.partition.id,
        lsn,
        work.items_loaded,
        work.bytes_loaded,
        work.bytes_returned,
    )


async def _read_scope(
    work: _Work,
    container: Container,
    query: CompiledQuery,
    scope: Scope,
    pieces: AsyncIterator[Slice],
    monotonic_seconds: Callable[[], float],
    finish_at: float,
) -> tuple[bytes, Stopped] | None:
    """Works through a scope; says where and why the page ended, if it did before the scope's end."""
    async for piece in pieces:
        work.partition = piece.partition
        stopped_at = _take(work, query, piece)
        is_first_payment = work.charge == 0.0
        try:
            _pay(work, container, scope.start)
        except RequestRateTooLarge:
            # A page that was begun is finished with what it has; the next one is refused until the budget is back.
            # To refuse this one would have the client ask for all of it again, and perhaps for ever.
            if is_first_payment:
                raise
            return stopped_at or (piece.behind, Stopped.BUDGET_SPENT)
        if stopped_at is None and monotonic_seconds() >= finish_at:
            stopped_at = (piece.behind, Stopped.TIME)
        if stopped_at is not None:
            return stopped_at
    return None


def _pay(work: _Work, container: Container, effective_key: bytes) -> None:
    """Takes what the work has cost since the last payment from the budget of the partition it was done in."""
    due = _cost(work) - work.charge
    container.keyspace.spend(work.partition, due, effective_key)
    work.charge += due


def _take(work: _Work, query: CompiledQuery, piece: Slice) -> tuple[bytes, Stopped] | None:
    """Adds what the query makes of a slice; says where and why it stopped, if it did."""
    as_it_is = query.is_select_star and not query.has_filter
    for place, body in piece.items:
        if len(work.results) >= work.items_max:
            return place, Stopped.ITEM_COUNT
        if work.bytes_returned + len(body) > PAGE_BYTES_MAX and work.results:
            return place, Stopped.PAGE_BYTES
        work.items_loaded += 1
        work.bytes_loaded += len(body)
        if as_it_is:
            work.results.append(body)
            work.bytes_returned += len(body)
            continue
        item = cast(Item, loads(body))
        if not query.matches(item):
            continue
        if query.is_select_star:
            work.results.append(body)
            work.bytes_returned += len(body)
        else:
            _add_result(work, query.project(item))
    return None


def _add_result(work: _Work, result: object) -> None:
    if result is UNDEFINED:
        return
    text = dumps(result)
    work.results.append(text)
    work.bytes_returned += len(text)


def _cost(work: _Work) -> float:
    return charge.query(0, work.items_loaded, work.bytes_loaded, len(work.results), work.bytes_returned)
