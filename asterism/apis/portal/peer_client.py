"""The portal's way to the other doors: requests within the process, signed with the key of an account.

So no rule of a protocol stands here a second time: quotas, rights, throttling and words are the doors' own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Final, cast
from urllib.parse import urlencode

from asterism.access.keys import Grant
from asterism.apis.peers import Peers
from asterism.apis.portal.errors import PeerRefusal
from asterism.apis.portal.origin_guard import SAFE_METHODS
from asterism.apis.portal.sessions import Session
from asterism.apis.portal.signers import Signer, sign_documents, sign_entities, sign_operator, sign_traversals
from asterism.apis.portal.visitors import VisitorAccount, VisitorAccounts
from asterism.apis.transports.http import Door, Request, Response
from asterism.clock import Clock
from asterism.errors import Forbidden, ResourceNotFound
from asterism.values.json.text import loads

ACCOUNT_HEADER: Final = "x-asterism-account"
# Doors answer this name whatever their rules for host names.
_AUTHORITY: Final = "localhost"
# The version of the service's protocol that the scripts of the portal are written for.
_SERVICE_VERSION: Final = "2020-07-15"


@dataclass(frozen=True, slots=True)
class Target:
    """A door that the portal asks, and how a request to it is signed."""

    # None for the operator's door, which has no port.
    port: str | None
    sign: Signer
    # Before the path that the visitor's page gives; `{account}` is replaced.
    prefix: str
    # The door knows read-only keys; for one that does not, the portal refuses changes itself.
    has_readonly_keys: bool = True
    # The path of every request of a protocol whose credentials name the resource; None for the path of the resource.
    request_path: str | None = None


TARGETS: Final = {
    "nosql": Target("nosql", sign_documents, "/"),
    "table": Target("table", sign_entities, "/{account}/", has_readonly_keys=False),
    "gremlin": Target("gremlin", sign_traversals, "/", request_path="/gremlin"),
    "admin": Target(None, sign_operator, "/_asterism/"),
}


class PeerClient:
    def __init__(self, peers: Peers, accounts: VisitorAccounts, clock: Clock) -> None:
        self._peers = peers
        self._accounts = accounts
        self._clock = clock

    async def ask(
        self,
        session: Session,
        target: str,
        account: str,
        *,
        method: str,
        path: str,
        query_string: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        client_gone: Callable[[], Awaitable[None]] | None = None,
    ) -> Response:
        """Send a request as the visitor; its answer is the door's own, refusals included."""
        chosen = TARGETS[target]
        if not chosen.has_readonly_keys and not session.may_change and method not in SAFE_METHODS:
            raise Forbidden(reason="A read-only key cannot change anything. Sign in with the primary or secondary key.")
        owner = self._owner(session, account)
        full_path = chosen.prefix.format(account=account) + path
        signer, more = self._identity(chosen, owner)
        date = formatdate(self._clock.date_seconds(), usegmt=True)
        signed = chosen.sign(
            signer.key(session.grant if chosen.has_readonly_keys else Grant.FULL), method, full_path, date
        )
        request = Request(
            method=method,
            path=chosen.request_path or full_path,
            query_string=query_string,
            headers={"x-ms-version": _SERVICE_VERSION, **(headers or {}), **signed, **more},
            body=body,
            scheme="http",
            authority=_AUTHORITY,
            client_gone=client_gone,
        )
        # The doors that are asked answer with whole bodies.
        return cast(Response, await self._door(target).answer(request))

    async def admin(self, session: Session, name: str, *, owner: str | None = None, **parameters: str) -> Any:
        """Return the JSON of a route of the operator's door; PeerRefusal if it refuses. `owner` is the account whose
        data the route is about; routes for tables have a parameter `account` besides."""
        answer = await self.ask(
            session,
            "admin",
            owner or session.account,
            method="GET",
            path=name,
            query_string=urlencode(parameters),
        )
        content = loads(answer.body)
        if answer.status >= 400:
            reply = content if isinstance(content, dict) else {}
            raise PeerRefusal(answer.status, str(reply.get("code", "")), str(reply.get("message", "")))
        return content

    def _owner(self, session: Session, account: str) -> VisitorAccount:
        """Return an account that the visitor may see; another one's names are not even confirmed."""
        found = self._accounts.find(account) if session.is_operator or account == session.account else None
        if found is None:
            raise ResourceNotFound(kind="account", name=account)
        return found

    def _identity(self, target: Target, owner: VisitorAccount) -> tuple[VisitorAccount, Mapping[str, str]]:
        """Return the account whose key signs. The operator's door knows the server's keys only, and is told on behalf
        of which account it acts."""
        if target.port is not None:
            return owner, {}
        operator = self._accounts.operator
        return operator, {} if owner.name == operator.name else {ACCOUNT_HEADER: owner.name}

    def _door(self, target: str) -> Door:
        port = TARGETS[target].port
        door = self._peers.operator if port is None else self._peers.doors.get(port)
        if door is None:
            raise ResourceNotFound(kind="door", name=target)
        return cast(Door, door)


__all__ = ["ACCOUNT_HEADER", "TARGETS", "PeerClient"]
