"""The operator's door: health, partitions, split and merge on demand, jobs, metrics, queries."""

from __future__ import annotations

from asterism.access.keys import AccountKeys, grant_allows
from asterism.access.master_key import check_master_key
from asterism.apis.admin.console import Console
from asterism.apis.admin.errors import refusal, response_for
from asterism.apis.admin.routes import ROUTES, Route
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.damage import name_damage
from asterism.apis.http import Request, Response
from asterism.clock import Clock
from asterism.errors import AsterismError, Forbidden, StoredDamage, Unauthorized
from asterism.keyspaces.refusals import REPORTED, as_error

# What takes the place of a Cosmos resource type in the signed text; the link is the path without its slashes.
SIGNED_RESOURCE_TYPE = "asterism"
_BEARER = "bearer "


class AdminDoor:
    """Everything under /_asterism/, signed as the rest is, with the account's own keys."""

    def __init__(self, console: Console, *, keys: AccountKeys, clock: Clock, guard: BrowserGuard | None = None) -> None:
        """`guard`: given while the account's key is a public one."""
        self._console = console
        self._keys = keys
        self._clock = clock
        self._guard = guard

    async def answer(self, request: Request) -> Response:
        reason = self._guard.refusal(request.headers, request.authority) if self._guard is not None else None
        if reason is not None:
            return refusal(403, "Forbidden", reason)
        path = request.path.strip("/")
        verb = "GET" if request.method == "HEAD" else request.method
        route = ROUTES.get((verb, path))
        if route is None:
            return _no_such_route(path)
        try:
            if route.signed:
                self._check_signature(request, path, route)
                # Routes that need no signature take no body.
                if request.read_body is not None:
                    request.body = await request.read_body()
            if self._console.store.is_shared:
                await self._console.store.catch_up()
            return await route.handle(self._console, request)
        except AsterismError as error:
            if isinstance(error, StoredDamage):
                name_damage(error, request)
            return response_for(error)
        except REPORTED as problem:
            return response_for(as_error(problem))

    def _check_signature(self, request: Request, path: str, route: Route) -> None:
        authorization = request.headers.get("authorization") or ""
        if route.takes_bearer and authorization[: len(_BEARER)].lower() == _BEARER:
            grant = self._keys.grant_of(authorization[len(_BEARER) :].strip().encode("utf-8", "surrogatepass"))
            if grant is None:
                raise Unauthorized(reason="The bearer token is no key of the account.")
        else:
            grant = check_master_key(
                self._keys,
                authorization=authorization,
                verb=request.method,
                resource_type=SIGNED_RESOURCE_TYPE,
                links=(path,),
                date=request.headers.get("x-ms-date") or "",
                now_wall_seconds=self._clock.wall_seconds(),
            )
        if not grant_allows(grant, verb=request.method, is_query=route.is_query):
            raise Forbidden(reason="A read-only key may look, and not split or merge.")


def _no_such_route(path: str) -> Response:
    verbs = [verb for verb, known in ROUTES if known == path]
    if not verbs:
        return refusal(404, "NotFound", f"There is no '/{path}'; see {_known_paths()}.")
    response = refusal(405, "MethodNotAllowed", f"'/{path}' answers {', '.join(verbs)} only.")
    return Response(response.status, [*response.headers, ("allow", ", ".join(verbs))], response.body)


def _known_paths() -> str:
    return ", ".join(sorted({f"/{path}" for _, path in ROUTES}))


__all__ = ["SIGNED_RESOURCE_TYPE", "AdminDoor", "Route"]
