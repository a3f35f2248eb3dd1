"""Queries: entities in pages, through a filter and within the range of a shared access signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from asterism.access.sas_grants import ResourceType, SasGrant
from asterism.apis.storage.refusals import Refusal
from asterism.apis.table import headers
from asterism.apis.table.context import Call, json_answer
from asterism.apis.table.continuation import read_token, write_token
from asterism.apis.table.entities.entity_json import write_page
from asterism.apis.table.paging import PAGE_ENTITIES_MAX, read_select, read_top
from asterism.apis.transports.http import HeaderList, Response
from asterism.languages.odata.match import Matcher, make_matcher
from asterism.languages.odata.parser import parse_filter
from asterism.languages.odata.search import EntitySearch, slice_entities
from asterism.languages.odata.spans import Key, KeySpan, spans_of, within
from asterism.models.tables.entities import StoredEntity

# Options of OData that tables do not have.
_UNKNOWN_OPTIONS: Final = frozenset({"$orderby", "$skip", "$expand", "$inlinecount", "$count"})


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
    search = EntitySearch(
        table,
        accept=_acceptance(None if condition is None else make_matcher(condition), call.grant),
        limit=read_top(query) or PAGE_ENTITIES_MAX,
        slice_entities=slice_entities(condition),
        monotonic_seconds=call.context.clock.monotonic_seconds,
        spent=call.spent,
    )
    page = await search.run(_granted(spans_of(condition), call.grant), _start(query))
    more: HeaderList = []
    if page.next_key is not None:
        partition_key, row_key = page.next_key
        more = [
            (headers.NEXT_PARTITION_KEY, write_token(partition_key)),
            (headers.NEXT_ROW_KEY, write_token(row_key)),
        ]
    body = write_page(page.entities, call.table_url(table.name), level, read_select(query))
    return json_answer(200, level, body, more)


def _acceptance(matcher: Matcher | None, grant: SasGrant | None) -> Callable[[StoredEntity], bool] | None:
    """Return the test of an entity for the answer: the filter, and the range of a shared access signature."""
    if grant is None or not grant.has_range:
        return None if matcher is None else matcher.matches
    covers = grant.covers
    if matcher is None:
        return lambda entity: covers((entity.partition_key, entity.row_key))
    matches = matcher.matches
    return lambda entity: covers((entity.partition_key, entity.row_key)) and matches(entity)


def _granted(spans: list[KeySpan], grant: SasGrant | None) -> list[KeySpan]:
    """Return the parts of the spans that a shared access signature covers: the rest of the table is not read."""
    if grant is None or not grant.has_range:
        return spans
    lower: Key = ("", "") if grant.first is None else (grant.first[0], grant.first[1] or "")
    upper: Key | None = None
    if grant.last is not None:
        partition_key, row_key = grant.last
        # The range includes its last key, so it ends before the key that follows.
        upper = (partition_key + "\0", "") if row_key is None else (partition_key, row_key + "\0")
    return within(spans, lower, upper)


def _start(query: dict[str, str]) -> Key | None:
    """Return the key at which an earlier page ended. Names of parameters may be in any case; the row key may be
    missing."""
    lowered = {name.lower(): value for name, value in query.items()} if query else {}
    partition_key = read_token(lowered.get("nextpartitionkey"))
    if partition_key is None:
        return None
    return partition_key, read_token(lowered.get("nextrowkey")) or ""
