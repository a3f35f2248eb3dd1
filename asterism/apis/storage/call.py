"""The argument of handlers of the doors for blobs and queues: a request whose sender is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit

from asterism.access.sas_grants import SasGrant
from asterism.apis.storage.accounts import Account
from asterism.apis.storage.address import Address, decode_path
from asterism.apis.storage.auth import Sender
from asterism.apis.storage.refusals import (
    invalid_header_value,
    no_credentials,
    permission_mismatch,
    resource_type_mismatch,
)
from asterism.apis.storage.routes import Needs, Route
from asterism.apis.transports.http import Headers, Request
from asterism.keyspaces.routing.keyspace import Spent

if TYPE_CHECKING:
    from asterism.apis.storage.door import StorageDoor

ContextT = TypeVar("ContextT")


@dataclass(frozen=True, slots=True)
class Resource:
    """The resource that a path names."""

    # The door's own word for it, as its routes have it.
    kind: str
    # The name of the container, or of the queue; empty for the account.
    container: str = ""
    # The name of the blob, or the id of the message.
    name: str = ""

    @property
    def path(self) -> str:
        """The resource as shared access signatures for blobs name it."""
        return f"{self.container}/{self.name}" if self.name else self.container


@dataclass(slots=True)
class Call(Generic[ContextT]):
    door: StorageDoor[ContextT]
    route: Route[ContextT]
    request: Request
    account: Account
    address: Address
    resource: Resource
    query: dict[str, str]
    sender: Sender
    request_id: str
    # Seconds since 1970 when the request arrived.
    now: float
    spent: Spent = field(default_factory=Spent)

    @property
    def context(self) -> ContextT:
        return self.door.rules.context

    @property
    def method(self) -> str:
        return self.request.method

    @property
    def headers(self) -> Headers:
        return self.request.headers

    @property
    def grant(self) -> SasGrant | None:
        return self.sender.grant

    @property
    def is_secondary(self) -> bool:
        return self.address.is_secondary

    @property
    def base_url(self) -> str:
        """Scheme, host and account, without a slash at the end."""
        return f"{self.request.scheme}://{self.request.authority}{self.address.base_path}"

    def allow(self, needs: Needs) -> None:
        """Refuse what the sender may not do."""
        allow(self.sender, needs)

    def signed_response_headers(self) -> dict[str, str]:
        """Return the headers that a shared access signature puts in place of those of the blob."""
        return {} if self.grant is None else dict(self.grant.response_headers)


def allow(sender: Sender, needs: Needs) -> None:
    """Refuse what the sender may not do. Senders without credentials may do nothing here."""
    if sender.is_anonymous:
        raise no_credentials()
    grant = sender.grant
    if grant is None:
        return
    if grant.resource_types is None:
        if not needs.service or not grant.has(needs.service):
            raise permission_mismatch()
        return
    if needs.type.value not in grant.resource_types:
        raise resource_type_mismatch()
    if not grant.has(needs.account):
        raise permission_mismatch()


def request_of_url(url: str, *, like: Request, authorization: str | None = None) -> Request:
    """Return a request for a URL, from the client of another request: for the source of a copy."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise invalid_header_value("x-ms-copy-source", url) from None
    return Request(
        method="GET",
        path=decode_path(parts.path),
        query_string=parts.query,
        headers={} if authorization is None else {"authorization": authorization},
        body=b"",
        scheme=parts.scheme or like.scheme,
        authority=parts.netloc,
        client_address=like.client_address,
    )


@dataclass(frozen=True, slots=True)
class SourceOfCopy:
    """A resource on this server that a URL names, and the sender that the URL's own signature makes."""

    account: Account
    resource: Resource
    query: dict[str, str]
    sender: Sender
