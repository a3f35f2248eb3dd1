"""The operator's door: health, partitions, split and merge on demand, jobs, metrics, queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from asterism.access.keys import AccountKeys, grant_allows
from asterism.access.master_key import check_master_key
from asterism.apis import http_pipeline
from asterism.apis.admin.errors import refusal, response_for
from asterism.apis.admin.routes import ROUTES, Route, RouteKey, operation_of
from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.suite_controls import CONTROL_ROUTES
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.http_pipeline import HttpCall, make_pipeline, read_body
from asterism.apis.pipeline import RequestMeter
from asterism.apis.transports.http import Answer, Request, Response
from asterism.clock import Clock
from asterism.errors import AsterismError, Forbidden, ResourceNotFound, Unauthorized

# In the place of a Cosmos resource type in the signed text; the link is the path without its slashes.
SIGNED_RESOURCE_TYPE = "asterism"
_BEARER = "bearer "
# Names the only account that a request may reach; the server's own has access to all, and needs no header.
ACCOUNT_HEADER = "x-asterism-account"


class AdminDoor:
    """Everything under /_asterism/, signed as the rest is, with the account's own keys."""

    def __init__(
        self,
        services: AdminServices,
        *,
        keys: AccountKeys,
        clock: Clock,
        guard: BrowserGuard | None = None,
        meter: RequestMeter | None = None,
        new_request_id: Callable[[], str] = str,
    ) -> None:
        """`guard`: given while the account's key is a public one. Request ids are for the log: answers have none."""
        self._services = services
        self._routes = ROUTES if services.controls is None else ROUTES | CONTROL_ROUTES
        self._keys = keys
        self._clock = clock
        self._new_request_id = new_request_id
        self._pipeline = make_pipeline(
            "admin", _AdminWords(), self._handle, meter or RequestMeter(clock.monotonic_seconds), guard
        )

    async def answer(self, request: Request) -> Answer:
        return await self._pipeline.run(HttpCall(request, self._new_request_id()))

    async def _handle(self, call: HttpCall) -> Answer:
        request = call.request
        path = request.path.strip("/")
        key = ("GET" if request.method == "HEAD" else request.method, path)
        route = self._routes.get(key)
        if route is None:
            return _no_such_route(path, self._routes)
        call.operation = operation_of(key)
        if route.signed:
            self._check_signature(request, path, route)
            # Routes that need no signature take no body.
            await read_body(request)
        if self._services.store.is_shared:
            await self._services.store.catch_up()
        return await route.handle(self._scoped(request, route), request)

    def _scoped(self, request: Request, route: Route) -> AdminServices:
        """Return the services, limited to the account that the request names."""
        account = request.headers.get(ACCOUNT_HEADER)
        if account is None or account == self._services.account or not route.signed:
            return self._services
        if not self._services.is_account(account):
            raise ResourceNotFound(kind="account", name=account)
        if not route.scoped:
            raise Forbidden(
                reason=f"This request concerns the whole server, not the account '{account}'. Send it without the "
                f"header {ACCOUNT_HEADER}, as the operator of the server."
            )
        return replace(self._services, account=account, scope=account)

    def _check_signature(self, request: Request, path: str, route: Route) -> None:
        authorization = request.headers.get("authorization") or ""
        if route.takes_bearer and authorization[: len(_BEARER)].lower() == _BEARER:
            grant = self._keys.grant_of(authorization[len(_BEARER) :].strip().encode("utf-8", "surrogatepass"))
            if grant is None:
                raise Unauthorized(reason="The bearer token does not match any key of the account.")
        else:
            grant = check_master_key(
                self._keys,
                authorization=authorization,
                verb=request.method,
                resource_type=SIGNED_RESOURCE_TYPE,
                links=(path,),
                date=request.headers.get("x-ms-date") or "",
                now_wall_seconds=self._clock.date_seconds(),
            )
        if not grant_allows(grant, verb=request.method, is_query=route.is_query):
            raise Forbidden(reason="A read-only key cannot change anything. Use the primary or the secondary key.")


class _AdminWords:
    """The door's answers for the pipeline."""

    describe = staticmethod(http_pipeline.describe)

    def refuse(self, error: AsterismError, call: HttpCall) -> Answer:  # noqa: ARG002
        return response_for(error)

    def refuse_own(self, problem: Exception, call: HttpCall) -> Answer | None:  # noqa: ARG002
        return None

    def fail(self, call: HttpCall) -> Answer:  # noqa: ARG002
        return refusal(500, "InternalServerError", "The server met an error of its own; its log has the details.")

    def charge_of(self, call: HttpCall, answer: Answer) -> str:  # noqa: ARG002
        return ""


def _no_such_route(path: str, routes: Mapping[RouteKey, Route]) -> Response:
    verbs = [verb for verb, known in routes if known == path]
    if not verbs:
        return refusal(404, "NotFound", f"There is no '/{path}'; see {_known_paths(routes)}.")
    response = refusal(405, "MethodNotAllowed", f"'/{path}' answers {', '.join(verbs)} only.")
    return Response(response.status, [*response.headers, ("allow", ", ".join(verbs))], response.body)


def _known_paths(routes: Mapping[RouteKey, Route]) -> str:
    return ", ".join(sorted({f"/{path}" for _, path in routes}))


__all__ = ["ACCOUNT_HEADER", "SIGNED_RESOURCE_TYPE", "AdminDoor", "Route"]
