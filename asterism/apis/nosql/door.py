"""The NoSQL door: from a request to its route, through the signature check, to a response in the protocol's words."""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import unquote

from asterism.access.keys import AccountKeys
from asterism.access.resource_token import ResourceGrant
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.damage import name_damage
from asterism.apis.http import Request, RequestUnread, Response
from asterism.apis.nosql import headers
from asterism.apis.nosql.auth import authorize
from asterism.apis.nosql.context import Context, check_common_headers
from asterism.apis.nosql.errors import Refusal, error_response, failure_response, refusal_response
from asterism.apis.nosql.routes import BY_KEY, Route, refusal_for
from asterism.apis.nosql.session import ConsistencyRules
from asterism.apis.nosql.token_scope import check_token_scope
from asterism.apis.nosql.triggers import names_triggers
from asterism.clock import Clock
from asterism.documents.store import DocumentStore
from asterism.errors import AsterismError, ContainerRecreated, OwnerNotFound, ResourceNotFound, StoredDamage
from asterism.keyspaces.refusals import REPORTED, as_error
from asterism.limits import Limits
from asterism.query.limits import QueryMemory
from asterism.query.result_sets import ResultSets
from asterism.query.work import QueryAbandoned
from asterism.scripts.runtime import ScriptRuntime

_log = logging.getLogger("asterism.nosql")

# A GUID has 36; whatever else a client calls its activity, a response does not carry back without end.
_ACTIVITY_ID_CHARACTERS_MAX = 64

# In the path of an item: dbs/{database}/colls/{container}/docs/{item}.
_ITEM_SEGMENTS = 6
# The account itself is not in the catalog; what is said of items, see `_handle_shared`.
_NEEDS_NO_LOOK = ("docs", "")
_MAY_BE_OUTDATED = (ResourceNotFound, OwnerNotFound, ContainerRecreated)


class NoSqlDoor:
    """One account's front. Stateless between requests, apart from what it remembers to be quick."""

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
    ) -> None:
        """`guard`: given while the account's key is a public one. `query_memory` is shared by all queries of the
        process; without it the door's have one of their own."""
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
                random_bytes=store.tools.random_bytes,
                memory=query_memory or QueryMemory(limits.query_memory_bytes_max),
            ),
            lenient_sql=lenient_sql,
        )
        self._keys = keys
        self._catalog_store = store.catalog.store
        self._wall_seconds = clock.wall_seconds
        self._new_activity_id = new_activity_id
        self._guard = guard

    async def answer(self, request: Request) -> Response:
        activity_id = request.headers.get(headers.ACTIVITY_ID)
        if activity_id is None or len(activity_id) > _ACTIVITY_ID_CHARACTERS_MAX:
            activity_id = self._new_activity_id()
        try:
            response = await self._route(request)
        except AsterismError as error:
            if isinstance(error, StoredDamage):
                name_damage(error, request)
            response = error_response(error, activity_id)
        except REPORTED as problem:
            response = error_response(as_error(problem), activity_id)
        except Refusal as refusal:
            response = refusal_response(refusal, activity_id)
        except QueryAbandoned:
            # Nobody hears it; the log of requests does.
            response = refusal_response(Refusal(408, "RequestTimeout", "The client has gone."), activity_id)
        except RequestUnread:
            raise
        except Exception:
            # The path is the client's text: %r keeps line breaks in it from forging lines of the log.
            _log.exception("activity %r failed: %s %r", activity_id, request.method, request.path[:512])
            response = failure_response(activity_id)
        response.headers.append((headers.ACTIVITY_ID, activity_id))
        return response

    async def _route(self, request: Request) -> Response:
        if self._guard is not None:
            reason = self._guard.refusal(request.headers, request.authority)
            if reason is not None:
                raise Refusal(403, "Forbidden", reason)
        path = request.path.strip("/")
        parts = path.split("/")
        if request.query_string and len(parts) == _ITEM_SEGMENTS and parts[4] == "docs":
            # The JavaScript client leaves a question mark in an id as it is, and signs it as part of the link. Nothing
            # else of an item's address is a query.
            rest = f"?{unquote(request.query_string)}"
            path, parts[5] = path + rest, parts[5] + rest
        # The same key as routes.route_key makes; written out, because every request pays for it.
        route = BY_KEY.get((request.method, len(parts), "/".join(parts[::2])))
        if route is None:
            raise refusal_for(request.method, parts)
        grant = authorize(
            self._keys,
            request,
            path=path,
            parts=parts,
            resource_type=route.resource_type,
            now_wall_seconds=self._wall_seconds(),
        )
        if request.read_body is not None:
            request.body = await request.read_body()
        if self._catalog_store.is_shared:
            return await self._handle_shared(route, request, parts, grant)
        if grant is not None:
            await check_token_scope(self._context, request, parts, grant)
        check_common_headers(request.headers)
        return await route.handler(self._context, request, parts)

    async def _handle_shared(
        self, route: Route, request: Request, parts: list[str], grant: ResourceGrant | None
    ) -> Response:
        """Where other processes change the catalog too: a request about it sees what they have done, and one about
        items looks there before it says that something is missing. Items themselves need no look: fences tell."""
        store = self._context.store
        seen_lsn: int = store.catalog.store.known_lsn
        # A token needs its permission, which another process may have made or deleted a moment ago.
        if grant is not None or route.resource_type not in _NEEDS_NO_LOOK or _runs_scripts(request):
            seen_lsn = await store.catch_up()

        async def handle() -> Response:
            if grant is not None:
                await check_token_scope(self._context, request, parts, grant)
            check_common_headers(request.headers)
            return await route.handler(self._context, request, parts)

        try:
            return await handle()
        except _MAY_BE_OUTDATED:
            # Nothing was done: what was asked for was not found.
            if await store.catch_up() == seen_lsn:
                raise
            return await handle()


def _runs_scripts(request: Request) -> bool:
    """Whether an item's request depends on scripts that another process may have changed a moment ago."""
    return names_triggers(request) or (request.method == "POST" and b"udf." in request.body)
