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
from asterism.apis.table.filter_match import Matcher, comparison_count, make_matcher
from asterism.apis.table.filter_parser import parse_filter
from asterism.apis.table.filter_spans import WHOLE_TABLE, Key, KeySpan, order, spans_of, within
from asterism.apis.table.filter_tree import Condition
from asterism.apis.table.paging import PAGE_ENTITIES_MAX, read_select, read_top
from asterism.apis.table.store_contract import TableLike
from asterism.apis.table.stored import StoredEntity
from asterism.limits import PAGE_BYTES_MAX

# OData has more than tables do.
_UNKNOWN_OPTIONS: Final = frozenset({"$orderby", "$skip", "$expand", "$inlinecount", "$count"})
# What is done without a break for other requests, a few milliseconds: so many entities looked at, fewer the more
# comparisons there are for each (about a dozen take as long as to read an entity).
SLICE_ENTITIES: Final = 1000
SLICE_ENTITIES_MIN: Final = 20
COMPARISONS_PER_ENTITY: Final = 12
SLICE_SECONDS: Final = 0.003
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
        slice_entities=_slice_entities(condition),
    )
    spans = _granted(spans_of(condition), call.grant)
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


def _slice_entities(condition: Condition | None) -> int:
    comparisons = 0 if condition is None else comparison_count(condition)
    return max(SLICE_ENTITIES_MIN, SLICE_ENTITIES * COMPARISONS_PER_ENTITY // (COMPARISONS_PER_ENTITY + comparisons))


def _acceptance(matcher: Matcher | None, grant: SasGrant | None) -> Callable[[StoredEntity], bool] | None:
    """What an entity must meet to be in the answer: the filter, and the range of a shared access signature."""
    if grant is None or not grant.has_range:
        return None if matcher is None else matcher.matches
    covers = grant.covers
    if matcher is None:
        return lambda entity: covers((entity.partition_key, entity.row_key))
    matches = matcher.matches
    return lambda entity: covers((entity.partition_key, entity.row_key)) and matches(entity)


def _granted(spans: list[KeySpan], grant: SasGrant | None) -> list[KeySpan]:
    """The spans as far as a shared access signature goes: the rest of a large table need not be read for it."""
    if grant is None or not grant.has_range:
        return spans
    lower: Key = ("", "") if grant.first is None else (grant.first[0], grant.first[1] or "")
    upper: Key | None = None
    if grant.last is not None:
        partition_key, row_key = grant.last
        # Both ends are granted, so what comes next is the first that is not.
        upper = (partition_key + "\0", "") if row_key is None else (partition_key, row_key + "\0")
    return within(spans, lower, upper)


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
        self,
        call: Call,
        table: TableLike,
        *,
        accept: Callable[[StoredEntity], bool] | None,
        limit: int,
        slice_entities: int,
    ) -> None:
        self._call = call
        self._table = table
        self._accept = accept
        self._limit = limit
        self._slice_entities = slice_entities
        self._monotonic = call.context.clock.monotonic_seconds
        self._ends_at = self._monotonic() + PAGE_SECONDS_MAX
        self._break_at = self._monotonic() + SLICE_SECONDS
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
            await self._let_others_work()
        return self._found

    async def _scan(self, lower: Key | None, upper: Key | None) -> None:
        while True:
            page = await self._table.scan(
                lower,
                upper,
                limit=self._limit - len(self._found),
                entries_examined_max=self._slice_entities,
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
            await self._let_others_work()

    async def _let_others_work(self) -> None:
        if self._monotonic() >= self._break_at:
            await asyncio.sleep(0)
            self._break_at = self._monotonic() + SLICE_SECONDS

    def _is_full(self) -> bool:
        return len(self._found) >= self._limit or self._bytes >= PAGE_BYTES_MAX or self._monotonic() >= self._ends_at
