"""Which part of a container a feed or query is about, and the pages of its items."""

from __future__ import annotations

from collections.abc import Mapping

from asterism.apis.http import HeaderList, Headers, Request, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.paging import encode_position, feed_body, page_items_max, position_of
from asterism.apis.nosql.session import session_token
from asterism.documents.answers import Scope
from asterism.documents.container import Container, check_session
from asterism.documents.item_position import Position
from asterism.documents.pages import range_scope, read_items_page
from asterism.errors import MalformedRequest
from asterism.partitioning.effective_key import from_text
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.partitioning.partition_key import parse_header
from asterism.values.whole_numbers import whole_number

# Range ids are numbers of their own, one for each partition that a container ever had.
_RANGE_ID_MAX = 2**63 - 1


def told_key_text(container: Container, told: Headers) -> str | None:
    """The partition key a request names. An empty list names one only in a container without a partition key."""
    text = told.get(headers.PARTITION_KEY)
    if text is not None and text.strip() == "[]" and not container.record.definition.system_key:
        return None
    return text


def scope_of(container: Container, told: Headers) -> Scope:
    """The interval of the hash line that all the scoping headers of a request leave."""
    scope = range_scope(FULL)
    key_text = told_key_text(container, told)
    if key_text is not None:
        scope = container.logical_scope(parse_header(key_text, container.record.definition))
    range_id = told.get(headers.PARTITION_RANGE_ID)
    if range_id is not None:
        scope = _narrowed(scope, range_scope(_interval_of(container, range_id)))
    start, end = told.get(headers.START_EPK), told.get(headers.END_EPK)
    if start is not None or end is not None:
        asked = Scope(from_text(start or ""), from_text(end or "FF"))
        scope = _narrowed(scope, asked)
    return scope


def is_scoped(container: Container, told: Headers) -> bool:
    """Whether the request itself says which part of the container it is about."""
    return (
        told_key_text(container, told) is not None
        or headers.PARTITION_RANGE_ID in told
        or headers.START_EPK in told
        or headers.END_EPK in told
    )


def _interval_of(container: Container, text: str) -> KeyRange:
    number = whole_number(_range_number(text), maximum=_RANGE_ID_MAX)
    # An id that was split or merged away is still an interval of the line, and is served as that.
    interval = None if number is None else container.keyspace.record.map.interval_of(number)
    if interval is None:
        raise MalformedRequest(
            reason=f"The value '{text[:64]}' specified for the header '{headers.PARTITION_RANGE_ID}' is invalid: the "
            "container has no such partition key range, and had none as far as it remembers."
        )
    return interval


def _range_number(text: str) -> str:
    # Some clients put the container's resource id before the range's, with a comma.
    return text.rpartition(",")[2].strip()


def _narrowed(one: Scope, other: Scope) -> Scope:
    start, end = max(one.start, other.start), min(one.end, other.end)
    return Scope(start, max(start, end))


async def check_sessions(
    context: Context, container: Container, scope: Scope, session: Mapping[int, int] | None
) -> None:
    """Refuses a feed or query over partitions that have not reached the session's tokens."""
    if not session or scope.start >= scope.end:
        return
    keyspace = container.keyspace
    for one in keyspace.record.map.overlapping(KeyRange(scope.start, scope.end)):
        partition, lsn, _ = await context.store.tools.owner.read(keyspace, max(one.range.start, scope.start), ())
        check_session(session, partition, lsn)


def page_headers(
    context: Context,
    container: Container,
    told: Headers,
    *,
    charge: float,
    range_id: int,
    lsn: int,
    count: int,
    continuation: str | None,
) -> HeaderList:
    # A client that asked for a range hears of that range, even when it was split meanwhile: at an unknown id the Python
    # client drops its map, and in the middle of a query over a feed range it then begins anew and yields items twice.
    # The session token names the partition that was read, because the LSNs of two children differ.
    asked = told.get(headers.PARTITION_RANGE_ID)
    named = str(range_id) if asked is None else _range_number(asked)
    answer_headers = [
        *context.facts(container).headers,
        (headers.CHARGE, str(charge)),
        (headers.SESSION_TOKEN, session_token(range_id, lsn)),
        (headers.LSN, str(lsn)),
        (headers.PARTITION_RANGE_ID, named),
        (headers.ITEM_COUNT, str(count)),
    ]
    if continuation is not None:
        answer_headers.append((headers.CONTINUATION, continuation))
    return answer_headers


async def read_item_feed(context: Context, request: Request, parts: list[str]) -> Response:
    """All items of the container, or of the part that the request names; no permission to cross partitions needed."""
    told = request.headers
    container = context.items_container(told, parts)
    scope = scope_of(container, told)
    session = context.consistency_rules.session_of(told)
    await check_sessions(context, container, scope, session)
    token = position_of(told)
    page = await read_items_page(
        context.reading_owner(told, session),
        container,
        scope,
        position=None if token is None else Position.from_bytes(token),
        items_max=page_items_max(told),
        tells_unindexed=is_true(told.get(headers.INDEX_MARKS)),
    )
    answer_headers = page_headers(
        context,
        container,
        told,
        charge=page.charge,
        range_id=page.range_id,
        lsn=page.lsn,
        count=len(page.bodies),
        continuation=None if page.position is None else encode_position(page.position.to_bytes()),
    )
    if page.unindexed:
        answer_headers.append((headers.UNINDEXED_ITEMS, ",".join(map(str, page.unindexed))))
    return Response(200, answer_headers, feed_body(context.facts(container).rid, "Documents", page.bodies))
