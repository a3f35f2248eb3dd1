"""The part of a container that a feed or query reads, and the pages of its items."""

from __future__ import annotations

from collections.abc import Mapping

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import ContainerFacts, Context
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.paging import encode_position, feed_body, page_items_max, position_of
from asterism.apis.nosql.session import session_token
from asterism.apis.transports.http import HeaderList, Headers, Response
from asterism.errors import MalformedRequest
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.models.documents.container import Container, check_session
from asterism.models.documents.forwarding import own_scopes
from asterism.models.documents.item_position import Position
from asterism.models.documents.pages import range_scope, read_items_page
from asterism.models.documents.results import Scope
from asterism.partitioning.effective_key import from_text
from asterism.partitioning.key_range import FULL, KeyRange
from asterism.values.whole_numbers import whole_number

# Range ids are numbers of their own, one for each partition that a container ever had.
_RANGE_ID_MAX = 2**63 - 1


def given_key_text(container: Container, given: Headers) -> str | None:
    """Return the partition key a request names. An empty list is a key only in a container without a partition key."""
    text = given.get(headers.PARTITION_KEY)
    if text is not None and text.strip() == "[]" and not container.record.definition.system_key:
        return None
    return text


def scope_of(container: Container, given: Headers) -> Scope:
    """Return the interval of the hash line that all the scoping headers of a request leave."""
    scopes = asked_scopes(container, given)
    if len(scopes) > 1:
        raise MalformedRequest(
            reason=f"The partition key of the request stands for {len(scopes)} logical partitions, and a feed reads "
            "one. Name the value of the partition key itself, with its suffix, or send a query."
        )
    return scopes[0]


def asked_scopes(container: Container, given: Headers) -> list[Scope]:
    """Return the intervals of the hash line that all the scoping headers of a request leave, in order: one, but where
    the partition key stands for several."""
    asked = _asked_interval(container, given)
    key_text = given_key_text(container, given)
    if key_text is None:
        return [asked]
    keys = container.keys_named(container.key_named(key_text))
    scopes = sorted((container.logical_scope(key) for key in keys), key=lambda scope: scope.start)
    return [_intersection(scope, asked) for scope in scopes]


def _asked_interval(container: Container, given: Headers) -> Scope:
    scope = range_scope(FULL)
    range_id = given.get(headers.PARTITION_RANGE_ID)
    if range_id is not None:
        scope = _intersection(scope, range_scope(asked_interval(container.keyspace, range_id)))
    start, end = given.get(headers.START_EPK), given.get(headers.END_EPK)
    if start is not None or end is not None:
        asked = Scope(from_text(start or ""), from_text(end or "FF"))
        scope = _intersection(scope, asked)
    return scope


def is_scoped(container: Container, given: Headers) -> bool:
    """Return whether the request names the part of the container that it reads."""
    return (
        given_key_text(container, given) is not None
        or headers.PARTITION_RANGE_ID in given
        or headers.START_EPK in given
        or headers.END_EPK in given
    )


def asked_interval(keyspace: Keyspace, text: str) -> KeyRange:
    """Return the interval of the line that a range id stands for."""
    number = whole_number(_range_number(text), maximum=_RANGE_ID_MAX)
    # An id that was split or merged away is still an interval of the line, and is served as that.
    interval = None if number is None else keyspace.record.map.interval_of(number)
    if interval is None:
        raise MalformedRequest(
            reason=f"The value '{text[:64]}' specified for the header '{headers.PARTITION_RANGE_ID}' is invalid: the "
            "container has no such partition key range, and had none as far as it remembers."
        )
    return interval


def _range_number(text: str) -> str:
    # Some clients put the container's resource id before the range's, with a comma.
    return text.rpartition(",")[2].strip()


def _intersection(scope: Scope, other: Scope) -> Scope:
    start, end = max(scope.start, other.start), min(scope.end, other.end)
    return Scope(start, max(start, end))


async def check_sessions(
    context: Context, container: Container, scope: Scope, session: Mapping[int, int] | None
) -> None:
    """Refuse a feed or query over partitions that have not reached the session's tokens."""
    if not session or scope.start >= scope.end:
        return
    keyspace = container.keyspace
    for overlapping in keyspace.record.map.overlapping(KeyRange(scope.start, scope.end)):
        partition, lsn, _ = await context.store.services.router.read(
            keyspace, max(overlapping.range.start, scope.start), ()
        )
        check_session(session, partition, lsn)


def page_headers(
    context: Context,
    container: Container,
    given: Headers,
    *,
    charge: float,
    range_id: int,
    lsn: int,
    count: int,
    continuation: str | None,
) -> HeaderList:
    return feed_headers(
        context.facts(container),
        given,
        charge=charge,
        range_id=range_id,
        lsn=lsn,
        count=count,
        continuation=continuation,
    )


def feed_headers(
    facts: ContainerFacts,
    given: Headers,
    *,
    charge: float,
    range_id: int,
    lsn: int,
    count: int,
    continuation: str | None,
) -> HeaderList:
    # A client that asked for a range gets that range's id, even if it was split meanwhile: at an unknown id the Python
    # client drops its map, and in the middle of a query over a feed range it then restarts and yields items twice.
    # The session token names the partition that was read, because the LSNs of two children differ.
    asked = given.get(headers.PARTITION_RANGE_ID)
    named = str(range_id) if asked is None else _range_number(asked)
    answer_headers = [
        *facts.headers,
        (headers.CHARGE, str(charge)),
        (headers.SESSION_TOKEN, session_token(range_id, lsn)),
        (headers.LSN, str(lsn)),
        (headers.PARTITION_RANGE_ID, named),
        (headers.ITEM_COUNT, str(count)),
    ]
    if continuation is not None:
        answer_headers.append((headers.CONTINUATION, continuation))
    return answer_headers


async def read_item_feed(call: Call) -> Response:
    """Return a page of the container, or of the part that the request names; crossing partitions is permitted."""
    context, request = call.context, call.request
    given = request.headers
    container = call.items_container()
    scope, rules = scope_of(container, given), container.keyspace.record.forwarding
    own_scopes(container.keyspace.record, [scope])
    session = context.consistency_rules.session_of(given)
    await check_sessions(context, container, scope, session)
    token = position_of(given)
    page = await read_items_page(
        context.reading_router(given, session),
        container,
        scope,
        position=None if token is None else Position.from_bytes(token),
        items_max=page_items_max(given),
        tells_unindexed=is_true(given.get(headers.INDEX_MARKS)),
    )
    if container.keyspace.record.forwarding is not rules:
        # Items may have left the container while the page was read.
        return await read_item_feed(call)
    answer_headers = page_headers(
        context,
        container,
        given,
        charge=page.charge,
        range_id=page.range_id,
        lsn=page.lsn,
        count=len(page.bodies),
        continuation=None if page.position is None else encode_position(page.position.to_bytes()),
    )
    if page.unindexed:
        answer_headers.append((headers.UNINDEXED_ITEMS, ",".join(map(str, page.unindexed))))
    return Response(200, answer_headers, feed_body(context.facts(container).rid, "Documents", page.bodies))
