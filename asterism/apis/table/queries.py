"""Queries: entities in pages, through a filter, from the spans of the table that the filter can match in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from asterism.access.shared_access import ResourceType, SasGrant
from asterism.apis.http import HeaderList, Response
from asterism.apis.table import headers
from asterism.apis.table.context import Call, json_answer
from asterism.apis.table.continuation import read_token, write_token
from asterism.apis.table.entity_json import write_page
from asterism.apis.table.errors import Refusal
from asterism.apis.table.filter_match import Matcher, make_matcher
from asterism.apis.table.filter_parser import parse_filter
from asterism.apis.table.filter_spans import WHOLE_TABLE, Key, KeySpan, order, spans_of
from asterism.apis.table.paging import PAGE_ENTITIES_MAX, read_select, read_top
from asterism.apis.table.store_contract import TableLike
from asterism.apis.table.stored import StoredEntity
from asterism.limits import PAGE_BYTES_MAX

# OData has more than tables do.
_UNKNOWN_OPTIONS: Final = frozenset({"$orderby", "$skip", "$expand", "$inlinecount", "$count"})
# Entities looked at without a break for other requests: a few milliseconds.
SLICE_ENTITIES: Final = 1000
# A page ends after this long with what it has; the service allows itself five.
PAGE_SECONDS_MAX: Final = 1.0


async def query_entities(call: Call) -> Response:
    name = call.resource.table
    table = call.table(name)
    call.allow("r", ResourceType.OBJECT, name)
    query = call.query
    if not _UNKNOWN_OPTIONS.isdisjoint(query):
        # Not one of the statuses that clients repeat.
        raise Refusal(501, "NotImplemented", "The requested operation is not implemented on the specified resource.")
    level = call.level()
    text = query.get("$filter")
    condition = parse_filter(text) if text else None
    search = _Search(
        call,
        table,
        accept=_acceptance(None if condition is None else make_matcher(condition), call.grant),
        limit=read_top(query) or PAGE_ENTITIES_MAX,
    )
    spans = spans_of(condition)
    if table.kind == "cosmos":
        spans = _spans_by_hash(spans)
    found = await search.run(spans, _start(query))
    more: HeaderList = []
    if search.next_key is not None:
        partition_key, row_key = search.next_key
        more = [
            (headers.NEXT_PARTITION_KEY, write_token(partition_key)),
            (headers.NEXT_ROW_KEY, write_token(row_key)),
        ]
    return json_answer(200, level, write_page(found, call.place(table.name), level, read_select(query)), more)


def _acceptance(matcher: Matcher | None, grant: SasGrant | None) -> Callable[[StoredEntity], bool] | None:
    """What an entity must meet to be in the answer: the filter, and the range of a shared access signature."""
    if grant is None or not grant.has_range:
        return None if matcher is None else matcher.matches
    covers = grant.covers
    if matcher is None:
        return lambda entity: covers((entity.partition_key, entity.row_key))
    matches = matcher.matches
    return lambda entity: covers((entity.partition_key, entity.row_key)) and matches(entity)


def _start(query: dict[str, str]) -> Key | None:
    """Where an earlier page has stopped. Names of parameters are taken in any case, and the row key may be missing."""
    lowered = {name.lower(): value for name, value in query.items()} if query else {}
    partition_key = read_token(lowered.get("nextpartitionkey"))
    if partition_key is None:
        return None
    return partition_key, read_token(lowered.get("nextrowkey")) or ""


def _spans_by_hash(spans: list[KeySpan]) -> list[KeySpan]:
    """A table in the order of hashes knows no ranges of partition keys: it is read key by key, or whole."""
    if all(span.partition_key is not None for span in spans):
        return spans
    return [WHOLE_TABLE]


class _Search:
    """One page in the making."""

    def __init__(
        self, call: Call, table: TableLike, *, accept: Callable[[StoredEntity], bool] | None, limit: int
    ) -> None:
        self._call = call
        self._table = table
        self._accept = accept
        self._limit = limit
        self._monotonic = call.context.clock.monotonic_seconds
        self._ends_at = self._monotonic() + PAGE_SECONDS_MAX
        self._bytes = 0
        self._found: list[StoredEntity] = []
        # Where the next page begins; None when there is none.
        self.next_key: Key | None = None

    async def run(self, spans: list[KeySpan], start: Key | None) -> list[StoredEntity]:
        whole_by_hash = self._table.kind == "cosmos" and spans == [WHOLE_TABLE]
        for span in spans:
            lower: Key | None = None if span == WHOLE_TABLE else span.lower
            if start is not None:
                if not whole_by_hash and span.upper is not None and order(start) >= order(span.upper):
                    continue
                lower = start if whole_by_hash or lower is None else max(lower, start, key=order)
            if self._is_full():
                self.next_key = lower or span.lower
                break
            await self._scan(lower, span.upper)
            if self.next_key is not None:
                break
        return self._found

    async def _scan(self, lower: Key | None, upper: Key | None) -> None:
        while True:
            page = await self._table.scan(
                lower,
                upper,
                limit=self._limit - len(self._found),
                entries_examined_max=SLICE_ENTITIES,
                accept=self._accept,
                spent=self._call.spent,
            )
            self._found += page.entities
            self._bytes += sum([len(entity.properties) for entity in page.entities])
            if page.next_key is None:
                return
            if self._is_full():
                self.next_key = page.next_key
                return
            lower = page.next_key
            await asyncio.sleep(0)

    def _is_full(self) -> bool:
        return len(self._found) >= self._limit or self._bytes >= PAGE_BYTES_MAX or self._monotonic() >= self._ends_at
