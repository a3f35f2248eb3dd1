"""The operations of a door for blobs or queues as a table: a route is found by method, kind of resource, restype and
comp, and among those that are left by a header."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from asterism.access.sas_grants import ResourceType
from asterism.apis.storage.refusals import Refusal, invalid_query_parameter, invalid_uri, method_not_allowed
from asterism.apis.transports.http import Answer, Headers

if TYPE_CHECKING:
    from asterism.apis.storage.call import Call

ContextT = TypeVar("ContextT")
Handler = Callable[["Call[ContextT]"], Awaitable[Answer]]
RouteKey = tuple[str, str, str | None, str | None]

# The limit of a body that the handler reads itself, in pieces.
STREAMED: Final = -1
READING_METHODS: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Needs:
    """The permission that a route needs; a sender with a key of the account or a token needs none."""

    # Of an account's signature (srt).
    type: ResourceType
    # Letters of an account's signature (sp), all of them; alternatives are separated: `c|w`.
    account: str
    # The same of a signature for the queue, container or blob; empty if such a signature never permits it.
    service: str = ""
    # The door's `public_access` decides about senders without credentials; otherwise they are refused.
    anonymous: bool = False


# Without slots: `Route[Context](...)` fails for a generic dataclass that is frozen and has them.
@dataclass(frozen=True)
class Route(Generic[ContextT]):
    method: str
    kind: str
    # The name in metrics and logs.
    operation: str
    handler: Handler[ContextT]
    help: str
    comp: str | None = None
    restype: str | None = None
    # None: the handler asks `call.allow` itself.
    needs: Needs | None = None
    # The largest body, which is read before the handler runs; 0 for routes without a body, or STREAMED.
    body_bytes_max: int = 0
    # The limit that a refused sender is told, where it is one of what the body says, not of the body.
    shown_bytes_max: int | None = None
    # Of several routes with one key, the first whose header is in the request is taken; None is in every request.
    header: str | None = None
    # None: decided by the method. A secondary location refuses writes.
    is_write: bool | None = None
    # The operation is about the catalog, and must see all that other processes have done.
    looks_first: bool = False
    # Parameters that name another resource than the path does, such as a snapshot of a blob. They are refused: a
    # signature for that resource must not permit a change of the one in the path.
    refused_parameters: tuple[str, ...] = ()

    @property
    def key(self) -> RouteKey:
        return self.method, self.kind, self.restype, self.comp

    @property
    def writes(self) -> bool:
        return self.method not in READING_METHODS if self.is_write is None else self.is_write


class RouteTable(Generic[ContextT]):
    def __init__(self, routes: Sequence[Route[ContextT]]) -> None:
        self._by_key: dict[RouteKey, tuple[Route[ContextT], ...]] = {}
        for route in routes:
            self._by_key[route.key] = (*self._by_key.get(route.key, ()), route)
        self._kinds = frozenset(key[1:] for key in self._by_key)
        self.operations = frozenset(route.operation for route in routes)

    def find(self, method: str, kind: str, query: Mapping[str, str], headers: Headers) -> Route[ContextT]:
        """Return the route of a request; refuse a request that has none."""
        restype, comp = query.get("restype"), query.get("comp")
        # Clients spell them in any case.
        key = (method, kind, restype and restype.lower(), comp and comp.lower())
        for route in self._by_key.get(key, ()):
            if route.header is None or route.header in headers:
                for name in route.refused_parameters:
                    if query.get(name):
                        raise invalid_query_parameter(name, query[name], "The operation has no such parameter.")
                return route
        raise self._refusal(method, key[1:], query)

    def _refusal(self, method: str, kind: tuple[str, str | None, str | None], query: Mapping[str, str]) -> Refusal:
        if kind in self._kinds:
            return method_not_allowed(method)
        for name in ("comp", "restype"):
            if name in query:
                return invalid_query_parameter(name, query[name])
        return invalid_uri()
