"""The table door: from a request to its route, through the signature check, to a response in the protocol's words."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus

from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.damage import name_damage
from asterism.apis.http import HeaderList, Request, RequestUnread, Response
from asterism.apis.table import headers
from asterism.apis.table.accounts import Account, Accounts, read_address
from asterism.apis.table.auth import authenticate
from asterism.apis.table.context import Call, Context
from asterism.apis.table.cors import answer_preflight, cors_headers
from asterism.apis.table.errors import (
    Refusal,
    body_too_large,
    error_body,
    error_headers,
    internal_error,
    not_authenticated,
    not_permitted,
    refusal_of,
)
from asterism.apis.table.resources import Kind, read_resource
from asterism.apis.table.routes import BY_KEY, Route, refusal_for
from asterism.apis.table.store_contract import StoreLike
from asterism.clock import Clock
from asterism.errors import AsterismError, StoredDamage
from asterism.keyspaces.refusals import REPORTED, as_error
from asterism.limits import MIB

_log = logging.getLogger("asterism.table")

BODY_BYTES_MAX = 4 * MIB
_ABOUT_ENTITIES = frozenset({Kind.ENTITY, Kind.ENTITIES})


class TableDoor:
    """Accounts and their tables, as Azure Table storage presents them or as Cosmos DB for Table does."""

    def __init__(
        self,
        store: StoreLike,
        *,
        accounts: Accounts,
        clock: Clock,
        is_cosmos: bool,
        unsigned_tokens: bool = False,
        new_request_id: Callable[[], str],
        guard: BrowserGuard | None = None,
    ) -> None:
        """`guard`: what holds for accounts whose key is a public one."""
        self._context = Context(store, accounts, clock, is_cosmos, unsigned_tokens)
        self._accounts = accounts
        self._new_request_id = new_request_id
        self._guard = guard
        self._public_accounts = frozenset(name for name, account in accounts.items() if account.is_public)

    async def answer(self, request: Request) -> Response:
        request_id = self._new_request_id()
        try:
            response = await self._route(request, request_id)
        except Refusal as refusal:
            response = self._refused(refusal, request, request_id)
        except AsterismError as error:
            response = self._refused(refusal_of(error), request, request_id)
        except REPORTED as problem:
            response = self._refused(refusal_of(as_error(problem)), request, request_id)
        except RequestUnread:
            raise
        except Exception:
            # The path is the client's text: %r keeps line breaks in it from forging lines of the log.
            _log.exception("request %s failed: %s %r", request_id, request.method, request.path[:512])
            response = self._refused(internal_error(), request, request_id)
        origin = request.headers.get("origin")
        if origin is not None and request.method != "OPTIONS":
            response.headers += await self._cross_origin(request, origin)
        headers.tell_common(response.headers, request.headers, request_id)
        return response

    def _refused(self, refusal: Refusal, request: Request, request_id: str) -> Response:
        if refusal.is_xml and "json" in (request.headers.get("accept") or ""):
            # Clients in JavaScript make no text of an error in XML when they have asked for JSON, as they do for data.
            refusal = refusal.as_json()
        now = self._context.clock.wall_seconds()
        body = b"" if request.method == "HEAD" else error_body(refusal, request_id=request_id, now_wall_seconds=now)
        return Response(refusal.status, error_headers(refusal), body)

    async def _route(self, request: Request, request_id: str) -> Response:
        context = self._context
        address = read_address(request.authority, request.path)
        account = self._accounts.get(address.account)
        if account is None:
            raise not_authenticated("There is no such account.")
        if self._guard is not None and account.name in self._public_accounts:
            await self._check_page(self._guard, request)
        if request.method == "OPTIONS":
            return await self._preflight(account, request)
        query = headers.read_query(request.query_string)
        grant = await authenticate(context, request, account, address, query)
        # Only digits get here: the HTTP server refuses any other length itself.
        if int(request.headers.get("content-length") or 0) > BODY_BYTES_MAX:
            raise body_too_large()
        resource = read_resource(address.resource)
        method = _method_of(request)
        comp = query.get("comp") if query else None
        route = BY_KEY.get((method, resource.kind, comp))
        if route is None:
            raise refusal_for(method, resource.kind, comp)
        if address.is_secondary and route.is_write and not context.is_cosmos:
            raise Refusal(403, "InsufficientAccountPermissions", "Write operations are not allowed.")
        await _read_body(request)
        base = f"{request.scheme}://{request.authority}{address.base_path}"
        call = Call(context, request, method, account, resource, query, address.is_secondary, base, grant, request_id)
        try:
            response = await (self._handle_shared(route, call) if context.store.is_shared else route.handler(call))
        except (AsterismError, Refusal) as problem:
            if isinstance(problem, StoredDamage):
                name_damage(problem, call.request)
            refusal = problem if isinstance(problem, Refusal) else refusal_of(problem)
            if context.is_cosmos:
                # What was looked for in vain was paid for as well.
                refusal.more_headers = [*refusal.more_headers, _charge(call)]
            raise refusal.as_xml() if comp is not None else refusal from None
        if context.is_cosmos:
            response.headers.append(_charge(call))
        return response

    async def _check_page(self, guard: BrowserGuard, request: Request) -> None:
        """Refuse what a web page asks, unless a rule of the account lets it; preflights are answered by the rules."""
        told, authority = request.headers, request.authority
        reason = guard.host_refusal(authority)
        if reason is None and request.method != "OPTIONS":
            reason = guard.origin_refusal(told, authority)
            origin = told.get("origin")
            if reason is not None and origin is not None and await self._cross_origin(request, origin):
                reason = None
        if reason is not None:
            raise not_permitted(reason)

    async def _cross_origin(self, request: Request, origin: str) -> HeaderList:
        """What lets a page of another origin see the answer. A refusal too: without it, all that a script learns of a
        table that is already there is that something went wrong."""
        account = self._accounts.get(read_address(request.authority, request.path).account)
        if account is None or self._context.is_cosmos:
            return []
        try:
            return await cors_headers(self._context.store, account.name, request.method, origin)
        except (AsterismError, *REPORTED):
            # The answer stands as it is: what was done is done.
            return []

    async def _handle_shared(self, route: Route, call: Call) -> Response:
        """Where other processes make and delete tables too: a request about tables sees what they have done, and one
        about entities looks there before it says that something is missing. Entities need no look: fences tell."""
        store = self._context.store
        seen = 0 if call.resource.kind in _ABOUT_ENTITIES else await store.catch_up()
        try:
            return await route.handler(call)
        except Refusal as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND or await store.catch_up() == seen:
                raise
            return await route.handler(call)

    async def _preflight(self, account: Account, request: Request) -> Response:
        if self._context.is_cosmos:
            raise Refusal(400, "NotImplemented", "Cosmos DB for Table has no rules of cross-origin requests.")
        if self._context.store.is_shared:
            await self._context.store.catch_up()
        return await answer_preflight(self._context.store, account.name, request.headers)


async def _read_body(request: Request) -> None:
    if request.read_body is not None:
        request.body = await request.read_body()
    if len(request.body) > BODY_BYTES_MAX:
        raise body_too_large()


def _charge(call: Call) -> tuple[str, str]:
    return headers.CHARGE, f"{call.spent.charge:.2f}"


def _method_of(request: Request) -> str:
    """PATCH is another word for MERGE, and a POST may say that it stands for another method."""
    method = request.method
    if method == "PATCH":
        return "MERGE"
    if method != "POST":
        return method
    override = request.headers.get(headers.METHOD_OVERRIDE)
    if override is None:
        return method
    stands_for = override.strip().upper()
    if stands_for == "PATCH":
        return "MERGE"
    if stands_for not in ("MERGE", "PUT", "DELETE"):
        raise Refusal(400, "XMethodIncorrectValue", "The HTTP method specified in X-HTTP-Method is incorrect.")
    return stands_for
