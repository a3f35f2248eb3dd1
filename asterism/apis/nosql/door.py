"""The NoSQL door: from a request to its route, through the signature check, to a response in the protocol's words."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

from asterism.access.keys import AccountKeys
from asterism.access.resource_token import ResourceGrant
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.captures.captures import Captures
from asterism.apis.http_pipeline import REQUEST_ID_CHARACTERS_MAX, describe, make_pipeline
from asterism.apis.nosql import headers
from asterism.apis.nosql.accounts import CosmosAccounts
from asterism.apis.nosql.asked_operation import OPERATIONS, asked_operation
from asterism.apis.nosql.auth import authorize, signed_links
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.captured import keep
from asterism.apis.nosql.collections.routes import answer_for_collections
from asterism.apis.nosql.context import Context, check_common_headers
from asterism.apis.nosql.errors import (
    ContainerRecreated,
    Refusal,
    error_response,
    failure_response,
    refusal_response,
)
from asterism.apis.nosql.forwarding import answer_elsewhere
from asterism.apis.nosql.routes import BY_KEY, OF_FEEDS, OF_ITEMS, Handler, refusal_for, route_key
from asterism.apis.nosql.scripts.triggers import names_triggers
from asterism.apis.nosql.session import ConsistencyRules
from asterism.apis.nosql.token_scope import check_token_scope
from asterism.apis.pipeline import RequestMeter, look_again
from asterism.apis.transports.http import Request, Response
from asterism.clock import Clock
from asterism.errors import AsterismError, OwnerNotFound, ResourceNotFound, Unauthorized
from asterism.limits import Limits
from asterism.models.collections.store import CollectionStore
from asterism.models.documents.forwarding import PartitionFenced, PartitionForwarded
from asterism.models.documents.store import DocumentStore
from asterism.reading.limits import QueryMemory
from asterism.reading.page_progress import QueryAbandoned
from asterism.reading.result_sets import ResultSets
from asterism.scripts.runtime import ScriptRuntime

# In the path of an item: dbs/{database}/colls/{container}/docs/{item}.
_ITEM_SEGMENTS = 6
# The account itself is not in the catalog, and items are guarded by fences.
_NEEDS_NO_LOOK = ("docs", "")
_MAY_BE_OUTDATED = (ResourceNotFound, OwnerNotFound, ContainerRecreated)


class NoSqlDoor:
    """The front of the accounts. Stateless between requests, apart from what it remembers to be quick."""

    def __init__(
        self,
        store: DocumentStore,
        *,
        account: str,
        keys: AccountKeys,
        clock: Clock,
        consistency: str = "Session",
        limits: Limits,
        scripts: ScriptRuntime,
        region: str = "Local",
        lenient_sql: bool = False,
        new_activity_id: Callable[[], str],
        guard: BrowserGuard | None = None,
        query_memory: QueryMemory | None = None,
        meter: RequestMeter | None = None,
        collections: CollectionStore | None = None,
        mongo_address: Callable[[], str | None] = lambda: None,
        captures: Captures | None = None,
    ) -> None:
        """`account`, with its keys and its consistency, is the default one; the catalog has the others. `guard`: given
        while the account's key is a public one. `query_memory` is shared by all queries of the process; without it the
        door's have one of their own."""
        self._context = Context(
            store=store,
            account=account,
            consistency=consistency,
            consistency_rules=ConsistencyRules(consistency),
            region=region,
            limits=limits,
            clock=clock,
            keys=keys,
            scripts=scripts,
            result_sets=ResultSets(
                monotonic_seconds=clock.monotonic_seconds,
                random_bytes=store.services.random_bytes,
                memory=query_memory or QueryMemory(limits.query_memory_bytes_max),
            ),
            lenient_sql=lenient_sql,
            collections=collections,
            mongo_address=mongo_address,
            captures=captures,
        )
        self._accounts = CosmosAccounts(self._context, store.catalog.accounts)
        self._item_paths = self._context.item_paths
        self._catalog_store = store.catalog.store
        self._date_seconds, self._wall_seconds = clock.date_seconds, clock.wall_seconds
        self._new_activity_id = new_activity_id
        self._pipeline = make_pipeline(
            "nosql",
            _NoSqlWords(),
            self._handle,
            meter or RequestMeter(clock.monotonic_seconds),
            guard,
            operations=OPERATIONS,
            asked_operation=asked_operation,
        )

    def answer(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Return the pipeline's coroutine itself: another one around it would cost every request."""
        activity_id = request.headers.get(headers.ACTIVITY_ID)
        if activity_id is None or len(activity_id) > REQUEST_ID_CHARACTERS_MAX:
            activity_id = self._new_activity_id()
        return self._pipeline.run(Call(self._context, request, activity_id))

    async def _handle(self, call: Call) -> Response:
        request = call.request
        path = request.path.strip("/")
        known = None if request.query_string else self._item_paths.find(path)
        if known is not None:
            parts, links = known
            route = (OF_ITEMS if len(parts) == _ITEM_SEGMENTS else OF_FEEDS).get(request.method)
        else:
            path, parts = _split(path, request.query_string)
            route = BY_KEY.get(route_key(request.method, parts))
            links = [] if route is None else signed_links(path, parts, route.resource_type)
        if route is None:
            raise refusal_for(request.method, parts)
        call.parts, call.operation = parts, route.operation
        try:
            grant = self._authorize(call, links, route.resource_type)
        except Unauthorized:
            # Another process may have made the account, or given it this key, a moment ago.
            if not self._catalog_store.is_shared or not await self._context.store.catalog.follow():
                raise
            grant = self._authorize(call, links, route.resource_type)
        if request.read_body is not None:
            request.body = await request.read_body()
        try:
            if self._catalog_store.is_shared:
                # A token needs its permission, which another process may have made or deleted a moment ago.
                looks_first = grant is not None or route.resource_type not in _NEEDS_NO_LOOK or _runs_scripts(request)
                response = await look_again(
                    self._context.store,
                    partial(_handle_checked, route.handler, grant),
                    call,
                    looks_first=looks_first,
                    is_missing=_is_missing,
                )
            else:
                # As _handle_checked does it; a call of its own would cost every request.
                if grant is not None:
                    await check_token_scope(call, grant)
                check_common_headers(request.headers)
                response = await route.handler(call)
        except (PartitionForwarded, PartitionFenced) as detour:
            response = await answer_elsewhere(call, route.handler, detour)
        except (ResourceNotFound, OwnerNotFound) as missing:
            response = await answer_for_collections(call, route.operation, grant, missing)
        response.headers.append((headers.ACTIVITY_ID, call.request_id))
        if call.sampled is not None:
            keep(call, call.sampled, response)
        return response

    def _authorize(self, call: Call, links: list[str], resource_type: str) -> ResourceGrant | None:
        """Find the account whose key signed a request, and return the grant of its token, if it has one; or raise
        Unauthorized or Forbidden."""
        request, now = call.request, self._date_seconds()
        accounts: Sequence[Context] = self._accounts.every
        if len(accounts) > 1:
            accounts = self._accounts.candidates(request.authority)
        for context in accounts:
            try:
                grant = authorize(
                    context.keys,
                    request,
                    parts=call.parts,
                    links=links,
                    resource_type=resource_type,
                    now_wall_seconds=now,
                    expiry_seconds=self._wall_seconds,
                )
            except Unauthorized:
                # The last one says why.
                if context is accounts[-1]:
                    raise
            else:
                call.context = context
                return grant
        raise AssertionError("there is always the default account")


def _refused(response: Response, call: Call) -> Response:
    """Complete the answer of a call that has not come to its own."""
    response.headers.append((headers.ACTIVITY_ID, call.request_id))
    if call.sampled is not None:
        keep(call, call.sampled, response)
    return response


def _split(path: str, query_string: str) -> tuple[str, list[str]]:
    """Return the path of a request and its segments, with an item's id as the client means it."""
    parts = path.split("/")
    if query_string and len(parts) == _ITEM_SEGMENTS and parts[4] == "docs":
        # The JavaScript client leaves a question mark in an id as it is, and signs it as part of the link. No part of
        # an item's address is a query.
        rest = f"?{unquote(query_string)}"
        path, parts[5] = path + rest, parts[5] + rest
    return path, parts


async def _handle_checked(handler: Handler, grant: ResourceGrant | None, call: Call) -> Response:
    if grant is not None:
        await check_token_scope(call, grant)
    check_common_headers(call.request.headers)
    return await handler(call)


class _NoSqlWords:
    """The door's answers for the pipeline."""

    describe = staticmethod(describe)

    def refuse(self, error: AsterismError, call: Call) -> Response:
        return _refused(error_response(error, call.request_id), call)

    def refuse_own(self, problem: Exception, call: Call) -> Response | None:
        if isinstance(problem, Refusal):
            return _refused(refusal_response(problem, call.request_id), call)
        if isinstance(problem, QueryAbandoned):
            # No client reads it; metrics and the log count it.
            gone = Refusal(408, "RequestTimeout", "The client has gone.")
            return _refused(refusal_response(gone, call.request_id), call)
        return None

    def fail(self, call: Call) -> Response:
        return _refused(failure_response(call.request_id), call)

    def charge_of(self, call: Call, answer: Response) -> str:  # noqa: ARG002
        return next((value for name, value in answer.headers if name == headers.CHARGE), "")


def _is_missing(problem: Exception) -> bool:
    return isinstance(problem, _MAY_BE_OUTDATED)


def _runs_scripts(request: Request) -> bool:
    """Return whether an item's request depends on scripts that another process may have changed a moment ago."""
    return names_triggers(request) or (request.method == "POST" and b"udf." in request.body)
