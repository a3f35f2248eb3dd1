"""A request to the portal on its way: the visitor, and the parts of the path that its route names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from asterism.apis.http_pipeline import HttpCall
from asterism.apis.portal.sessions import Session
from asterism.apis.transports.http import Request

if TYPE_CHECKING:
    from asterism.apis.peers import Peers
    from asterism.apis.portal.peer_client import PeerClient
    from asterism.apis.portal.rendering import Renderer
    from asterism.apis.portal.visitors import VisitorAccounts


@dataclass(frozen=True, slots=True)
class Portal:
    """The parts that pages use."""

    renderer: Renderer
    client: PeerClient
    accounts: VisitorAccounts
    peers: Peers


class PortalCall(HttpCall):
    __slots__ = ("csrf", "parts", "session")

    def __init__(self, request: Request, request_id: str) -> None:
        super().__init__(request, request_id)
        self.session: Session | None = None
        self.csrf = ""
        self.parts: dict[str, str] = {}

    @property
    def visitor(self) -> Session:
        assert self.session is not None, "only routes without a session are called without one"
        return self.session

    @property
    def is_api(self) -> bool:
        return self.request.path.startswith("/api/")

    def parameter(self, name: str, default: str = "") -> str:
        return parse_qs(self.request.query_string, keep_blank_values=True).get(name, [default])[-1]

    def context(self, **more: Any) -> dict[str, Any]:
        """Return what every template needs, and more."""
        return {"session": self.session, "csrf": self.csrf, "path": self.request.path, **more}
