"""The change feed on the wire: where a reader begins, what it gets, and the etag that it comes back with."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.errors import Refusal
from asterism.apis.nosql.items.feeds import check_sessions, read_item_feed, scope_of
from asterism.apis.nosql.paging import feed_body, page_items_max
from asterism.apis.nosql.session import session_token
from asterism.apis.transports.http import HeaderList, Headers, Response
from asterism.errors import MalformedRequest
from asterism.models.documents.changes.feed import (
    AllVersions,
    FeedLog,
    FeedPage,
    LatestVersions,
    position_now,
    read_feed_page,
)
from asterism.models.documents.container import Container
from asterism.models.documents.forwarding import own_scopes
from asterism.models.documents.results import Scope
from asterism.partitioning.feed_position import FeedPosition
from asterism.values.identifiers import Lsn

_LATEST_VERSIONS = "incremental feed"
_ALL_VERSIONS = "full-fidelity feed"
_NOW = "*"
# Clients give a request up after about a minute.
_PAGE_SECONDS_MAX = 20.0

# The client's own tests know the capability by these words.
_NO_VERSIONS = (
    "The change feed mode All Versions and Deletes must be enabled for the container: give it a changeFeedPolicy with "
    "a retentionDuration, in minutes."
)


async def read_items_or_changes(call: Call) -> Response:
    """Answer one of the two feeds that share this address; a header says which."""
    request = call.request
    if headers.CHANGE_FEED in request.headers:
        call.operation = "read_changes"
        return await read_changes(call)
    return await read_item_feed(call)


async def read_changes(call: Call) -> Response:
    context, request = call.context, call.request
    given = request.headers
    container = call.items_container()
    log = _log_of(container, given)
    scope, rules = scope_of(container, given), container.keyspace.record.forwarding
    own_scopes(container.keyspace.record, [scope])
    items_max = page_items_max(given)
    await check_sessions(context, container, scope, context.consistency_rules.session_of(given))
    position = await _position_of(context, container, scope, given)
    services = context.store.services
    finish_at = services.clock.monotonic_seconds() + _PAGE_SECONDS_MAX
    page = await read_feed_page(
        services.router,
        container,
        scope,
        position,
        log,
        items_max=items_max,
        is_time_up=lambda: services.clock.monotonic_seconds() >= finish_at,
    )
    if container.keyspace.record.forwarding is not rules:
        # Items may have left the container while the page was read.
        return await read_changes(call)
    answer_headers = _headers(context, container, page)
    if not page.rows and not page.was_cut_short:
        # Clients take this, not an empty page, as the sign that they have caught up.
        return Response(304, answer_headers)
    return Response(200, answer_headers, feed_body(context.facts(container).rid, "Documents", page.rows))


def _log_of(container: Container, given: Headers) -> FeedLog:
    mode = (given.get(headers.CHANGE_FEED) or "").strip().lower()
    if mode == _LATEST_VERSIONS:
        return LatestVersions()
    if mode != _ALL_VERSIONS:
        raise MalformedRequest(
            reason=f"The value '{mode[:64]}' specified for the header '{headers.CHANGE_FEED}' is invalid: it is "
            "'Incremental Feed' or 'Full-Fidelity Feed'."
        )
    if not container.keeps_versions:
        raise Refusal(400, "BadRequest", _NO_VERSIONS)
    return AllVersions()


def _since_of(given: Headers) -> int | None:
    text = given.get(headers.IF_MODIFIED_SINCE)
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        raise MalformedRequest(
            reason=f"The value '{text[:64]}' specified for the header '{headers.IF_MODIFIED_SINCE}' is not a date."
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


async def _position_of(context: Context, container: Container, scope: Scope, given: Headers) -> FeedPosition:
    since = _since_of(given)
    known = (given.get(headers.IF_NONE_MATCH) or "").strip().removeprefix("W/").strip("\"'")
    if known == _NOW:
        position = await position_now(context.store.services.router, container, scope)
    else:
        position = FeedPosition.from_text(known) if known else FeedPosition.at(Lsn(0))
    return position if since is None else position.since(since)


def _headers(context: Context, container: Container, page: FeedPage) -> HeaderList:
    return [
        *context.facts(container).headers,
        (headers.CHARGE, str(page.charge)),
        (headers.SESSION_TOKEN, session_token(page.range_id, page.lsn)),
        (headers.LSN, str(page.lsn)),
        # The partition that was read, also when the client asked for one that was split: it then looks up its ranges,
        # and follows the children with the etag it was given here, which holds for each of them.
        (headers.PARTITION_RANGE_ID, str(page.range_id)),
        (headers.ITEM_COUNT, str(len(page.rows))),
        (headers.ETAG, f'"{page.position.to_text()}"'),
    ]
