"""The table door: from a request to its route, through authentication, to a response of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from asterism.access.sas_grants import Policy
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.http_pipeline import HttpCall, describe, make_pipeline
from asterism.apis.pipeline import UNROUTED, RequestMeter, look_again
from asterism.apis.storage.accounts import Account, Accounts
from asterism.apis.storage.address import read_address
from asterism.apis.storage.auth import Authenticator
from asterism.apis.storage.cors import answer_preflight, cors_headers
from asterism.apis.storage.headers import read_query
from asterism.apis.storage.refusals import Refusal, body_too_large, internal_error, not_authenticated, unread_body
from asterism.apis.storage.service_properties import stored_properties
from asterism.apis.table import headers
from asterism.apis.table.context import Call, Context
from asterism.apis.table.errors import error_body, error_headers, refusal_of
from asterism.apis.table.resource_paths import Kind, read_resource
from asterism.apis.table.resources.access_policies import signing_policies
from asterism.apis.table.routes import BY_KEY, OPERATIONS, refusal_for
from asterism.apis.transports.http import BodyRefused, HeaderList, Request, Response
from asterism.clock import Clock
from asterism.errors import AsterismError, Forbidden
from asterism.keyspaces.routing.refusals import REPORTED
from asterism.limits import MIB
from asterism.models.tables.store import TableStore

BODY_BYTES_MAX = 4 * MIB
_ABOUT_ENTITIES = frozenset({Kind.ENTITY, Kind.ENTITIES})


class Arrival(HttpCall):
    """A request at the door; `call` is set once its sender and its route are known."""

    __slots__ = ("call",)

    def __init__(self, request: Request, request_id: str) -> None:
        # As HttpCall does it; a call of its own would cost every request.
        self.request = request
        self.request_id = request_id
        self.operation = UNROUTED
        self.call: Call | None = None


class TableDoor:
    """Accounts and their tables, as Azure Table storage presents them or as Cosmos DB for Table does."""

    def __init__(
        self,
        store: TableStore,
        *,
        accounts: Accounts,
        clock: Clock,
        is_cosmos: bool,
        unsigned_tokens: bool = False,
        new_request_id: Callable[[], str],
        guard: BrowserGuard | None = None,
        meter: RequestMeter | None = None,
    ) -> None:
        """`guard` applies to accounts whose key is public."""
        self._context = Context(store, accounts, clock, is_cosmos)
        self._authenticator = Authenticator("table", clock, unsigned_tokens)
        self._accounts = accounts
        self._new_request_id = new_request_id
        self._guard = guard
        self._words = _TableWords(self._context)
        self._pipeline = make_pipeline(
            "cosmos-table" if is_cosmos else "table",
            self._words,
            self._handle,
            meter or RequestMeter(clock.monotonic_seconds),
            operations=OPERATIONS,
        )

    async def answer(self, request: Request) -> Response:
        arrival = Arrival(request, self._new_request_id())
        response = await self._pipeline.run(arrival)
        headers.add_common(response.headers, request.headers, arrival.request_id)
        origin = request.headers.get("origin")
        if origin is not None and request.method != "OPTIONS":
            response.headers += await self._cross_origin(request, origin, response.headers)
        return response

    def word_refusal(self, refused: BodyRefused, request: Request) -> Response:
        """Word what the listener refuses on its own: a body that is too large, too slow or cut off, or too many."""
        arrival = Arrival(request, self._new_request_id())
        response = self._words.in_form(unread_body(refused.status, refused.message), arrival)
        headers.add_common(response.headers, request.headers, arrival.request_id)
        return response

    async def _handle(self, arrival: Arrival) -> Response:
        context, request = self._context, arrival.request
        address = read_address("table", request.authority, request.path)
        account = self._accounts.get(address.account)
        if account is None and context.store.is_shared:
            # Another process may have made it a moment ago.
            await context.store.catch_up()
            account = self._accounts.get(address.account)
        if account is None:
            raise not_authenticated("There is no such account.")
        guard = self._guard
        if guard is not None and account.is_public and guard.refusal(request.headers, request.authority) is not None:
            await self._check_page(guard, request)
        if request.method == "OPTIONS":
            return await self._preflight(account, request)
        query = read_query(request.query_string, of_tables=True)
        sender = await self._authenticator.authenticate(
            request, account, address, query, path="", policies=lambda: self._policies(account.name, query)
        )
        # Always digits: the HTTP server refuses any other length itself.
        if int(request.headers.get("content-length") or 0) > BODY_BYTES_MAX:
            raise body_too_large()
        resource = read_resource(address.resource)
        method = _method_of(request)
        comp = query.get("comp") if query else None
        route = BY_KEY.get((method, resource.kind, comp))
        if route is None:
            raise refusal_for(method, resource.kind, comp)
        arrival.operation = route.operation
        if address.is_secondary and route.is_write and not context.is_cosmos:
            raise Refusal(403, "InsufficientAccountPermissions", "Write operations are not allowed.")
        if request.read_body is not None:
            request.body = await request.read_body()
        if len(request.body) > BODY_BYTES_MAX:
            raise body_too_large()
        base = f"{request.scheme}://{request.authority}{address.base_path}"
        call = Call(
            context=context,
            request=request,
            method=method,
            account=account,
            resource=resource,
            query=query,
            is_secondary=address.is_secondary,
            base=base,
            grant=sender.grant,
            request_id=arrival.request_id,
        )
        arrival.call = call
        if context.store.is_shared:
            response = await look_again(
                context.store,
                route.handler,
                call,
                looks_first=call.resource.kind not in _ABOUT_ENTITIES,
                is_missing=_is_missing,
            )
        else:
            response = await route.handler(call)
        if context.is_cosmos:
            response.headers.append(_charge(call))
        return response

    async def _check_page(self, guard: BrowserGuard, request: Request) -> None:
        """Refuse a web page that no rule of the account permits; preflights are answered by the rules."""
        authority = request.authority
        reason = guard.host_refusal(authority)
        if reason is None and request.method != "OPTIONS":
            reason = guard.origin_refusal(request.headers, authority)
            origin = request.headers.get("origin")
            if reason is not None and origin is not None and await self._cross_origin(request, origin, []):
                reason = None
        if reason is not None:
            raise Forbidden(reason=reason)

    async def _cross_origin(self, request: Request, origin: str, answered: HeaderList) -> HeaderList:
        """Return the headers with which a page of another origin sees the answer. Refusals have them too: otherwise a
        script could not tell an existing table from any other failure."""
        account = self._accounts.get(read_address("table", request.authority, request.path).account)
        if account is None or self._context.is_cosmos:
            return []
        try:
            properties = await stored_properties(self._context.store, account.name, "table")
        except (AsterismError, *REPORTED):
            # The request is done; its answer is sent without these headers.
            return []
        return cors_headers(properties["Cors"], method=request.method, origin=origin, answered=answered)

    async def _preflight(self, account: Account, request: Request) -> Response:
        if self._context.is_cosmos:
            raise Refusal(400, "NotImplemented", "Cosmos DB for Table has no rules of cross-origin requests.")
        if self._context.store.is_shared:
            await self._context.store.catch_up()
        properties = await stored_properties(self._context.store, account.name, "table")
        return answer_preflight(properties["Cors"], request.headers)

    async def _policies(self, account: str, query: dict[str, str]) -> Mapping[str, Policy]:
        store = self._context.store
        if "tn" not in query:
            return {}
        found = await signing_policies(store, account, query["tn"])
        if query["si"] in found or not store.is_shared:
            return found
        # Another process may have created the table a moment ago.
        await store.catch_up()
        return await signing_policies(store, account, query["tn"])


class _TableWords:
    """The answers of the door for the pipeline."""

    describe = staticmethod(describe)

    def __init__(self, context: Context) -> None:
        self._context = context

    def refuse(self, error: AsterismError, arrival: Arrival) -> Response:
        return self._refused(refusal_of(error), arrival)

    def refuse_own(self, problem: Exception, arrival: Arrival) -> Response | None:
        return self._refused(problem, arrival) if isinstance(problem, Refusal) else None

    def fail(self, arrival: Arrival) -> Response:
        return self.in_form(internal_error(), arrival)

    def charge_of(self, arrival: Arrival, answer: Response) -> str:  # noqa: ARG002
        return "" if arrival.call is None else f"{arrival.call.spent.charge:.2f}"

    def _refused(self, refusal: Refusal, arrival: Arrival) -> Response:
        call = arrival.call
        if call is not None:
            if self._context.is_cosmos:
                # A request without a result has a charge as well.
                refusal.more_headers = [*refusal.more_headers, _charge(call)]
            if "comp" in call.query:
                refusal = refusal.as_xml()
        return self.in_form(refusal, arrival)

    def in_form(self, refusal: Refusal, arrival: Arrival) -> Response:
        request = arrival.request
        if refusal.is_xml and "json" in (request.headers.get("accept") or ""):
            # Clients in JavaScript cannot show an XML error after they asked for JSON, as they do for data.
            refusal = refusal.as_json()
        now = self._context.clock.wall_seconds()
        is_head = request.method == "HEAD"
        body = b"" if is_head else error_body(refusal, request_id=arrival.request_id, now_wall_seconds=now)
        return Response(refusal.status, error_headers(refusal), body)


def _is_missing(problem: Exception) -> bool:
    return isinstance(problem, Refusal) and problem.status == HTTPStatus.NOT_FOUND


def _charge(call: Call) -> tuple[str, str]:
    return headers.CHARGE, f"{call.spent.charge:.2f}"


def _method_of(request: Request) -> str:
    """Return the method of a request: PATCH is MERGE, and a header of a POST may name another method."""
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
