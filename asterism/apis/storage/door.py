"""The door that blobs and queues share: from a request to its route, through authentication, to an answer.

A door describes itself by `DoorRules`: its routes, its words for errors, and what its handlers need.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Generic, Protocol, TypeVar

from asterism.access.sas_grants import Policy
from asterism.apis.browser_guard import BrowserGuard
from asterism.apis.http_pipeline import HttpCall, describe, make_pipeline
from asterism.apis.pipeline import UNROUTED, Pipeline, RequestMeter, SharedCatalog, look_again
from asterism.apis.storage.accounts import Account, Accounts
from asterism.apis.storage.address import Address, ServiceName, read_address
from asterism.apis.storage.auth import Authenticator
from asterism.apis.storage.call import Call, Resource, SourceOfCopy, request_of_url
from asterism.apis.storage.cors import answer_preflight, cors_headers
from asterism.apis.storage.documents import AccountDocuments
from asterism.apis.storage.headers import VERSION, add_common, check_headers, check_version, read_query
from asterism.apis.storage.refusals import (
    Refusal,
    body_too_large,
    internal_error,
    invalid_input,
    no_credentials,
    not_authenticated,
    resource_not_found,
    secondary_is_read_only,
    unread_body,
)
from asterism.apis.storage.routes import STREAMED, Route, RouteTable
from asterism.apis.storage.service_properties import stored_properties
from asterism.apis.storage.xml_errors import xml_error_body, xml_error_headers
from asterism.apis.translation import Translation
from asterism.apis.transports.http import Answer, BodyRefused, HeaderList, Request, Response
from asterism.clock import Clock
from asterism.errors import AsterismError, Category, Forbidden
from asterism.keyspaces.routing.refusals import REPORTED, as_error
from asterism.limits import KIB

ContextT = TypeVar("ContextT")

# Versions from which on a client without credentials is told that it needs some. Others learn that there is nothing.
_VERSION_WITH_CHALLENGES: Final = "2019-12-12"
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
# Of a body that no route asked for: it is read so that the client keeps its connection.
_UNWANTED_BODY_BYTES_MAX: Final = 64 * KIB


class DoorRules(Protocol[ContextT]):
    """The description of a door for blobs or queues."""

    @property
    def service(self) -> ServiceName: ...

    @property
    def name(self) -> str:
        """The name of the door in metrics and logs."""

    @property
    def server(self) -> str:
        """The value of the Server header."""

    @property
    def routes(self) -> Sequence[Route[ContextT]]: ...

    @property
    def translation(self) -> Translation[Callable[[Any], Refusal]]: ...

    @property
    def context(self) -> ContextT:
        """The services that handlers use."""

    @property
    def catalog(self) -> SharedStore: ...

    @property
    def documents(self) -> AccountDocuments: ...

    def read_resource(self, address: Address, query: Mapping[str, str]) -> Resource:
        """Return the resource of a request; may raise Refusal."""

    async def policies(self, account: str, resource: Resource) -> Mapping[str, Policy]:
        """Return the stored access policies of the queue or container; none if it does not exist."""

    async def public_access(self, call: Call[ContextT]) -> bool:
        """Return True if a sender without credentials may make this call."""


class SharedStore(SharedCatalog, Protocol):
    @property
    def is_shared(self) -> bool:
        """True if other processes change the catalog too."""


class Arrival(HttpCall, Generic[ContextT]):
    """A request at the door; `call` is set once its sender and its route are known."""

    __slots__ = ("call",)

    def __init__(self, request: Request, request_id: str) -> None:
        # As HttpCall does it; a call of its own would cost every request.
        self.request = request
        self.request_id = request_id
        self.operation = UNROUTED
        self.call: Call[ContextT] | None = None


class StorageDoor(Generic[ContextT]):
    """Answers the requests of one service, for all accounts."""

    def __init__(
        self,
        rules: DoorRules[ContextT],
        *,
        accounts: Accounts,
        clock: Clock,
        unsigned_tokens: bool = False,
        new_request_id: Callable[[], str],
        guard: BrowserGuard | None = None,
        meter: RequestMeter | None = None,
    ) -> None:
        """`guard` applies to accounts whose key is public."""
        self.rules = rules
        self._routes = RouteTable(rules.routes)
        self._accounts = accounts
        self._clock = clock
        self._authenticator = Authenticator(rules.service, clock, unsigned_tokens)
        self._new_request_id = new_request_id
        self._guard = guard
        self._words: _StorageWords[ContextT] = _StorageWords(rules.translation, clock)
        self._pipeline: Pipeline[Arrival[ContextT], Answer] = make_pipeline(
            rules.name,
            self._words,
            self._handle,
            meter or RequestMeter(clock.monotonic_seconds),
            operations=self._routes.operations,
        )

    async def answer(self, request: Request) -> Answer:
        arrival: Arrival[ContextT] = Arrival(request, self._new_request_id())
        response = await self._pipeline.run(arrival)
        self._add_common(response, arrival)
        origin = request.headers.get("origin")
        if origin is not None and request.method != "OPTIONS":
            response.headers += await self._cross_origin(request, origin, response.headers)
        if isinstance(response, Response) and (request.method == "HEAD" or response.status == HTTPStatus.NOT_MODIFIED):
            response.body = b""
        return response

    def word_refusal(self, refused: BodyRefused, request: Request) -> Response:
        """Word what the listener refuses on its own: a body that is too large, too slow or cut off, or too many."""
        arrival: Arrival[ContextT] = Arrival(request, self._new_request_id())
        response = self._words.in_form(unread_body(refused.status, refused.message), arrival)
        self._add_common(response, arrival)
        return response

    async def answer_part(self, request: Request, *, within: Call[ContextT], operations: Collection[str]) -> Response:
        """Answer a request that is a part of another, such as of a batch: it has credentials of its own, and its
        refusal is its answer. Other operations than those named are refused, as are streams."""
        arrival: Arrival[ContextT] = Arrival(request, within.request_id)
        try:
            check_headers(request.headers)
            address, account = await self._addressed(request)
            if account.name != within.account.name:
                raise not_authenticated("All parts of a batch are for one account.")
            call = await self._authenticated(arrival, account, address)
            if within.resource.container not in ("", call.resource.container):
                raise invalid_input("All parts of a batch of a container are for blobs of it.")
            if call.route.operation not in operations:
                raise invalid_input("This operation cannot be a part of a batch.")
            call.spent = within.spent
            answer = await self._run(call)
            assert isinstance(answer, Response), "an operation of batches has a short answer"
        except Refusal as refusal:
            answer = self._words.in_form(refusal, arrival)
        except (AsterismError, *REPORTED) as problem:
            error = problem if isinstance(problem, AsterismError) else as_error(problem)
            if not isinstance(error, AsterismError):
                raise
            answer = self._words.refuse(error, arrival)
        self._add_common(answer, arrival)
        return answer

    async def find_source(
        self, url: str, *, within: Call[ContextT], authorization: str | None = None
    ) -> SourceOfCopy | None:
        """Return the resource that a URL names, checked by the signature in it or by a bearer token; None if it is not
        an address of this server: the host of the request, or a host that names one of the accounts."""
        request = request_of_url(url, like=within.request, authorization=authorization)
        is_own = _is_same_place(request.authority, within.request.authority)
        address = read_address(self.rules.service, request.authority, request.path)
        account = self._accounts.get(address.account)
        if account is None or not (is_own or not address.base_path):
            return None
        query = read_query(request.query_string)
        resource = self.rules.read_resource(address, query)
        sender = await self._authenticator.authenticate(
            request,
            account,
            address,
            query,
            path=resource.path,
            policies=lambda: self._policies(account.name, resource),
        )
        return SourceOfCopy(account, resource, query, sender)

    async def _handle(self, arrival: Arrival[ContextT]) -> Answer:
        request = arrival.request
        address, account = await self._addressed(request)
        guard = self._guard
        if guard is not None and account.is_public and guard.refusal(request.headers, request.authority) is not None:
            await self._check_page(guard, request)
        if request.method == "OPTIONS":
            return await self._preflight(account, request)
        check_headers(request.headers)
        check_version(request.headers, self._clock.date_seconds())
        call = await self._authenticated(arrival, account, address)
        await self._read_body(call)
        return await self._run(call)

    async def _addressed(self, request: Request) -> tuple[Address, Account]:
        address = read_address(self.rules.service, request.authority, request.path)
        account = self._accounts.get(address.account)
        if account is None and self.rules.catalog.is_shared:
            # Another process may have made it a moment ago.
            await self.rules.catalog.catch_up()
            account = self._accounts.get(address.account)
        if account is None:
            raise not_authenticated("There is no such account.")
        return address, account

    async def _authenticated(self, arrival: Arrival[ContextT], account: Account, address: Address) -> Call[ContextT]:
        """Return the call of a request whose sender may make it."""
        request = arrival.request
        query = read_query(request.query_string)
        resource = self.rules.read_resource(address, query)
        sender = await self._authenticator.authenticate(
            request,
            account,
            address,
            query,
            path=resource.path if self.rules.service == "blob" else resource.container,
            policies=lambda: self._policies(account.name, resource),
        )
        route = self._routes.find(request.method, resource.kind, query, request.headers)
        arrival.operation = route.operation
        if address.is_secondary and route.writes:
            raise secondary_is_read_only()
        now = self._clock.wall_seconds()
        call = Call(self, route, request, account, address, resource, query, sender, arrival.request_id, now)
        arrival.call = call
        if sender.is_anonymous:
            await self._check_anonymous(call)
        elif route.needs is not None:
            call.allow(route.needs)
        return call

    async def _check_anonymous(self, call: Call[ContextT]) -> None:
        needs = call.route.needs
        if self.rules.catalog.is_shared:
            # Another process may have made it public or private a moment ago.
            await self.rules.catalog.catch_up()
        if needs is not None and needs.anonymous and await self.rules.public_access(call):
            return
        if needs is not None and needs.anonymous and (call.headers.get(VERSION) or "") < _VERSION_WITH_CHALLENGES:
            raise resource_not_found()
        raise no_credentials()

    async def _read_body(self, call: Call[ContextT]) -> None:
        bytes_max = call.route.body_bytes_max
        request = call.request
        if bytes_max == STREAMED:
            return
        if bytes_max == 0:
            request.body = b""
            if request.read_body is not None:
                await request.read_body(_UNWANTED_BODY_BYTES_MAX)
            return
        # Always digits: the HTTP server refuses any other length itself.
        if int(request.headers.get("content-length") or 0) > bytes_max:
            raise body_too_large(call.route.shown_bytes_max or bytes_max)
        if request.read_body is not None:
            request.body = await request.read_body()
        if len(request.body) > bytes_max:
            raise body_too_large(call.route.shown_bytes_max or bytes_max)

    async def _run(self, call: Call[ContextT]) -> Answer:
        if not self.rules.catalog.is_shared:
            return await call.route.handler(call)
        if call.route.body_bytes_max == STREAMED:
            # Its body can be read once, so it is not handled again.
            await self.rules.catalog.catch_up()
            return await call.route.handler(call)
        return await look_again(
            self.rules.catalog,
            call.route.handler,
            call,
            looks_first=call.route.looks_first,
            is_missing=_is_missing,
        )

    async def _policies(self, account: str, resource: Resource) -> Mapping[str, Policy]:
        if not resource.container:
            return {}
        if self.rules.catalog.is_shared:
            # Another process may have stored or revoked it a moment ago.
            await self.rules.catalog.catch_up()
        return await self.rules.policies(account, resource)

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
        script could not tell them apart."""
        address = read_address(self.rules.service, request.authority, request.path)
        account = self._accounts.get(address.account)
        if account is None:
            return []
        try:
            properties = await stored_properties(self.rules.documents, account.name, self.rules.service)
        except (AsterismError, *REPORTED):
            # The request is done; its answer is sent without these headers.
            return []
        return cors_headers(properties["Cors"], method=request.method, origin=origin, answered=answered)

    async def _preflight(self, account: Account, request: Request) -> Response:
        if self.rules.catalog.is_shared:
            await self.rules.catalog.catch_up()
        properties = await stored_properties(self.rules.documents, account.name, self.rules.service)
        return answer_preflight(properties["Cors"], request.headers)

    def _add_common(self, answer: Answer, arrival: Arrival[ContextT]) -> None:
        add_common(
            answer.headers,
            arrival.request.headers,
            arrival.request_id,
            server=self.rules.server,
            now_wall_seconds=self._clock.wall_seconds(),
        )


class _StorageWords(Generic[ContextT]):
    """The answers of the door for the pipeline."""

    describe = staticmethod(describe)

    def __init__(self, translation: Translation[Callable[[Any], Refusal]], clock: Clock) -> None:
        self._translation = translation
        self._clock = clock

    def refuse(self, error: AsterismError, arrival: Arrival[ContextT]) -> Response:
        return self.in_form(self._translation.row(error)(error), arrival)

    def refuse_own(self, problem: Exception, arrival: Arrival[ContextT]) -> Response | None:
        return self.in_form(problem, arrival) if isinstance(problem, Refusal) else None

    def fail(self, arrival: Arrival[ContextT]) -> Response:
        return self.in_form(internal_error(), arrival)

    def charge_of(self, arrival: Arrival[ContextT], answer: Answer) -> str:  # noqa: ARG002
        return "" if arrival.call is None else f"{arrival.call.spent.charge:.2f}"

    def in_form(self, refusal: Refusal, arrival: Arrival[ContextT]) -> Response:
        if refusal.status == HTTPStatus.NOT_MODIFIED or arrival.request.method == "HEAD":
            without_body = [("x-ms-error-code", refusal.code), *refusal.more_headers]
            return Response(refusal.status, without_body)
        now = self._clock.wall_seconds()
        body = xml_error_body(refusal, request_id=arrival.request_id, now_wall_seconds=now)
        return Response(refusal.status, xml_error_headers(refusal), body)


def _is_missing(problem: Exception) -> bool:
    if isinstance(problem, AsterismError):
        return problem.category is Category.ABSENT
    return isinstance(problem, Refusal) and problem.status == HTTPStatus.NOT_FOUND


def _is_same_place(one_authority: str, other_authority: str) -> bool:
    """Return True for two authorities that lead to the same listener, as far as texts can tell."""
    host, _, port = one_authority.lower().rpartition(":")
    other_host, _, other_port = other_authority.lower().rpartition(":")
    return port == other_port and (host == other_host or {host, other_host} <= _LOCAL_HOSTS)
