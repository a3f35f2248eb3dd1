"""The portal: from a request of a browser through guard, session and route to a page or to another door."""

from __future__ import annotations

import asyncio
import hmac
import importlib
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs, quote

from asterism.access.keys import Grant
from asterism.apis import http_pipeline
from asterism.apis.http_pipeline import make_pipeline, read_body
from asterism.apis.portal.call import Portal, PortalCall
from asterism.apis.portal.errors import SignedOut, failure, status_and_message
from asterism.apis.portal.origin_guard import SAFE_METHODS, page_refusal
from asterism.apis.portal.sessions import Session, csrf_token, new_session_id, read_session, sign_session
from asterism.apis.portal.spec import SPEC, PortalSettings
from asterism.apis.portal.static_files import PREFIX, StaticFiles
from asterism.apis.portal.visitors import VisitorAccount, VisitorAccounts
from asterism.apis.services import DoorServices
from asterism.apis.transports.http import Request, Response
from asterism.errors import AsterismError, Forbidden, MalformedRequest, ResourceNotFound
from asterism.values.json.text import dumps

_CSRF_HEADER: Final = "x-csrf-token"
# By then the server is ready: what a person sees first should not make the start slower.
_PREPARE_AFTER_SECONDS: Final = 0.5
_SIGN_IN: Final = "/sign-in"
_SIGN_OUT: Final = "/sign-out"
_FORM_BYTES_MAX: Final = 8192
_WRONG_KEY: Final = "This is not a key of the server's accounts. Run `asterism keys` to show them."


class PortalDoor:
    """Built quickly: templates, pages and static files are loaded when the server is ready."""

    def __init__(self, services: DoorServices, settings: PortalSettings) -> None:
        self._services = services
        self._settings = settings
        self._accounts = VisitorAccounts(
            services.account, services.keys, services.documents.catalog.accounts, services.peers
        )
        self._loaded: tuple[Portal, StaticFiles] | None = None
        self._pipeline = make_pipeline("portal", _PortalWords(self), self._handle, services.meter)
        asyncio.get_running_loop().call_later(_PREPARE_AFTER_SECONDS, self._prepare)

    async def answer(self, request: Request) -> Response:
        return await self._pipeline.run(PortalCall(request, self._services.new_request_id()))

    def _prepare(self) -> None:
        """Load what the first page needs, in a thread, so that no request waits for it."""
        asyncio.get_running_loop().run_in_executor(None, self._load_first_page)

    def _load_first_page(self) -> None:
        for module in SPEC.modules:
            importlib.import_module(module)
        self.portal.renderer.prepare()

    @property
    def portal(self) -> Portal:
        return self._load()[0]

    def _load(self) -> tuple[Portal, StaticFiles]:
        if self._loaded is None:
            from asterism.apis.portal.peer_client import PeerClient
            from asterism.apis.portal.rendering import Renderer

            files = StaticFiles()
            services = self._services
            renderer = Renderer(files, services.random_bytes)
            client = PeerClient(services.peers, self._accounts, services.clock)
            self._loaded = (Portal(renderer, client, self._accounts, services.peers), files)
        return self._loaded

    # --- the way of a request ---------------------------------------------------------------------------------------

    async def _handle(self, call: PortalCall) -> Response:
        from asterism.apis.portal.rendering import COMMON_HEADERS
        from asterism.apis.portal.routes import find_route

        request = call.request
        reason = page_refusal(
            self._services.guard, method=request.method, headers=request.headers, authority=request.authority
        )
        if reason is not None:
            raise Forbidden(reason=reason)
        if request.path.startswith(PREFIX):
            call.operation = "static"
            found = self._load()[1].answer(request.path, COMMON_HEADERS)
            if found is None:
                raise ResourceNotFound(kind="file", name=request.path[:100])
            return found
        if (request.method, request.path) == ("POST", _SIGN_IN):
            call.operation = "sign_in"
            return await self._sign_in(call)
        matched = find_route(request.method, request.path)
        if matched is None:
            raise ResourceNotFound(kind="page", name=request.path[:100])
        route, call.parts = matched
        call.operation = route.operation
        new_cookie = self._identify(call)
        if route.needs_session:
            if call.session is None:
                return self._ask_for_key(call)
            await self._check_form(call)
        answer = await route.handle(self.portal, call)
        if route.pattern == _SIGN_OUT:
            new_cookie = self._sign_out(call)
        if new_cookie is not None:
            answer.headers = [*answer.headers, ("set-cookie", new_cookie)]
        return answer

    def _identify(self, call: PortalCall) -> str | None:
        """Find the session of a request; return a cookie to set if an open portal has made one."""
        call.session = self._session(call.request)
        cookie = None
        if call.session is None and self._settings.is_open:
            call.session = self._new_session(self._accounts.operator, Grant.FULL)
            cookie = self._cookie(call, sign_session(call.session, self._accounts.operator.session_key))
        if call.session is not None:
            account = self._accounts.find(call.session.account)
            if account is not None:
                call.csrf = csrf_token(call.session, account.session_key)
        return cookie

    def _session(self, request: Request) -> Session | None:
        token = _cookie_of(request, self._cookie_name(request))
        if not token:
            return None
        session = read_session(
            token,
            key_of=self._session_key,
            operator=self._services.account,
            now_wall_seconds=self._services.clock.wall_seconds(),
        )
        return None if session is None or self._services.revocations.is_revoked(session.id) else session

    def _session_key(self, account: str) -> bytes | None:
        found = self._accounts.find(account)
        return None if found is None else found.session_key

    def _ask_for_key(self, call: PortalCall) -> Response:
        if call.is_api or call.request.method not in SAFE_METHODS:
            raise SignedOut
        query = f"?{call.request.query_string}" if call.request.query_string else ""
        wanted = quote(f"{call.request.path}{query}", safe="")
        return Response(303, [("location", f"{_SIGN_IN}?next={wanted}"), ("cache-control", "no-store")])

    async def _check_form(self, call: PortalCall) -> None:
        """Read the body; what changes something must carry the token of the session, which only its pages have."""
        request = call.request
        if request.method in SAFE_METHODS:
            return
        given = request.headers.get(_CSRF_HEADER)
        await read_body(request)
        if given is None and (request.headers.get("content-type") or "").startswith(
            "application/x-www-form-urlencoded"
        ):
            given = _form(request.body).get("csrf")
        if given is None or not _equal(given, call.csrf):
            raise Forbidden(reason="The page is of an earlier session. Load it again, then repeat the action.")

    # --- signing in and out -----------------------------------------------------------------------------------------

    async def _sign_in(self, call: PortalCall) -> Response:
        from asterism.apis.portal.pages.signing import own_path, sign_in_page

        if call.request.read_body is not None:
            call.request.body = await call.request.read_body(_FORM_BYTES_MAX)
        form = _form(call.request.body)
        found, wanted = self._accounts.sign_in(form.get("key", "")), form.get("next", "/")
        if found is None:
            return sign_in_page(self.portal, call, wanted=wanted, problem=_WRONG_KEY, status=403)
        account, grant = found
        session = self._new_session(account, grant)
        cookie = self._cookie(call, sign_session(session, account.session_key))
        location = quote(own_path(wanted), safe="/?&=%:@,;+$!*'()~-._")
        return Response(303, [("location", location), ("set-cookie", cookie), ("cache-control", "no-store")])

    def _new_session(self, account: VisitorAccount, grant: Grant) -> Session:
        now = int(self._services.clock.wall_seconds())
        return Session(
            account.name,
            grant,
            new_session_id(self._services.random_bytes),
            now + self._settings.portal_session_seconds_max,
            account.name == self._services.account,
        )

    def _sign_out(self, call: PortalCall) -> str:
        self._services.revocations.revoke(call.visitor.id, call.visitor.expires_at)
        return self._cookie(call, "", seconds=0)

    def _cookie(self, call: PortalCall, token: str, *, seconds: int | None = None) -> str:
        age = self._settings.portal_session_seconds_max if seconds is None else seconds
        secure = "; Secure" if call.request.scheme == "https" else ""
        name = self._cookie_name(call.request)
        return f"{name}={token}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"

    def _cookie_name(self, request: Request) -> str:
        # Cookies do not tell ports apart, and several servers may run on one machine.
        port = request.authority.rpartition(":")[2]
        return f"asterism-portal-{port}" if port.isdigit() else "asterism-portal"


class _PortalWords:
    """The portal's answers for the pipeline: a page for people, JSON for scripts."""

    describe = staticmethod(http_pipeline.describe)

    def __init__(self, door: PortalDoor) -> None:
        self._door = door

    def refuse(self, error: AsterismError, call: PortalCall) -> Response:
        return self._explain(call, *(status_and_message(error) or failure()))

    def refuse_own(self, problem: Exception, call: PortalCall) -> Response | None:
        explained = status_and_message(problem)
        return None if explained is None else self._explain(call, *explained)

    def fail(self, call: PortalCall) -> Response:
        return self._explain(call, *failure())

    def charge_of(self, call: PortalCall, answer: Response) -> str:  # noqa: ARG002
        return ""

    def _explain(self, call: PortalCall, status: int, code: str, message: str) -> Response:
        if call.is_api:
            headers = [("content-type", "application/json"), ("cache-control", "no-store")]
            return Response(status, headers, dumps({"code": code, "message": message}))
        context = call.context(status=status, message=message)
        return self._door.portal.renderer.page("problem.html", context, status=status)


def _cookie_of(request: Request, name: str) -> str:
    header = request.headers.get("cookie") or ""
    try:
        cookie = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value


def _form(body: bytes) -> dict[str, str]:
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        raise MalformedRequest(reason="The form cannot be read.") from None
    return {name: values[-1] for name, values in fields.items()}


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())
