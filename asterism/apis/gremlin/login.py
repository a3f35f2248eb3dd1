"""Logins: a graph by its link, and a key of the account or a resource token that opens it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from asterism.access.keys import Grant
from asterism.access.resource_token import ResourceGrant, check_resource_token
from asterism.apis.granted_resources import check_permission
from asterism.apis.gremlin.accounts import GraphAccount, GraphAccounts
from asterism.apis.gremlin.malformed import InvalidCredentials
from asterism.apis.gremlin.sasl import Credentials, read_graph_link
from asterism.errors import Forbidden, OwnerNotFound, Unauthorized
from asterism.languages.gremlin.evaluation import GraphName
from asterism.languages.gremlin.graph.session import check_graph
from asterism.models.documents.container import Container
from asterism.models.documents.store import DocumentStore

_TOKEN_START = "type=resource"
# A link to a container has four segments.
_CONTAINER_SEGMENTS = 4


@dataclass(frozen=True, slots=True)
class Login:
    """A connection's right to a graph."""

    graph: GraphName
    may_write: bool
    # The state of accounts that it was checked against.
    accounts_version: int
    credentials: Credentials = field(repr=False)
    # None for a key.
    expires_at_wall_seconds: float | None = None


class LoginDesk:
    """Checks credentials. A password is compared in a time that says nothing about the keys."""

    def __init__(
        self,
        accounts: GraphAccounts,
        documents: DocumentStore,
        *,
        wall_seconds: Callable[[], float],
    ) -> None:
        self._accounts = accounts
        self._documents = documents
        self._wall_seconds = wall_seconds

    async def check(self, credentials: Credentials, authority: str) -> Login:
        """Return the login of a client of this host. Raises InvalidCredentials, or an error of the graph."""
        link = read_graph_link(credentials.user)
        if link is None:
            raise InvalidCredentials
        if credentials.password.startswith(_TOKEN_START):
            return await self._check_token(credentials, link, authority)
        for account, grant in self._granting(credentials.password, authority):
            container = await self._find(account.name, link)
            return Login(
                self._name(account.name, container),
                may_write=grant is Grant.FULL,
                accounts_version=self._accounts.version,
                credentials=credentials,
            )
        raise InvalidCredentials

    async def renewed(self, login: Login, authority: str) -> Login:
        """Return a login that still holds: the same one, or one for the keys of today. Raises InvalidCredentials."""
        expires_at = login.expires_at_wall_seconds
        if expires_at is None and login.accounts_version == self._accounts.version:
            return login
        # A token may have been withdrawn, too.
        return await self.check(login.credentials, authority)

    def _granting(self, password: str, authority: str) -> Iterator[tuple[GraphAccount, Grant]]:
        given = password.encode("utf-8", "surrogatepass")
        for account in self._accounts.candidates(authority):
            grant = account.keys.grant_of(given)
            if grant is not None:
                yield account, grant

    async def _check_token(self, credentials: Credentials, link: tuple[str, str], authority: str) -> Login:
        for account in self._accounts.candidates(authority):
            try:
                grant = check_resource_token(account.keys, credentials.password, now_wall_seconds=self._wall_seconds())
            except Unauthorized:
                continue
            container = await self._find(account.name, link)
            self._check_scope(account.name, container, grant)
            return Login(
                self._name(account.name, container),
                may_write=not grant.is_read_only,
                accounts_version=self._accounts.version,
                credentials=credentials,
                expires_at_wall_seconds=grant.expires_at_wall_seconds,
            )
        raise InvalidCredentials

    def _check_scope(self, account: str, container: Container, grant: ResourceGrant) -> None:
        check_permission(self._documents.catalog.permissions, grant)
        granted = grant.resource.strip("/").split("/")
        if not self._is_granted(account, container, granted, grant):
            raise Forbidden(reason="The resource token is for another resource than the graph that the user names.")
        if len(granted) > _CONTAINER_SEGMENTS or grant.partition_key is not None:
            raise Forbidden(
                reason="The resource token is for a part of the graph. Traversals go anywhere in it: use a token of a "
                "permission on the whole container, without a partition key."
            )

    def _is_granted(self, account: str, container: Container, granted: list[str], grant: ResourceGrant) -> bool:
        if grant.container_rid is not None:
            return grant.container_rid == container.record.rid
        if len(granted) < _CONTAINER_SEGMENTS:
            return False
        try:
            found = self._documents.container_for_items(account, granted[1], granted[3])
        except OwnerNotFound:
            return False
        return found.record.rid == container.record.rid

    async def _find(self, account: str, link: tuple[str, str]) -> Container:
        documents = self._documents
        try:
            found = documents.container_for_items(account, *link)
        except OwnerNotFound:
            if not documents.is_shared:
                raise
            # Another process may have created it a moment ago.
            await documents.catch_up()
            found = documents.container_for_items(account, *link)
        check_graph(found)
        return found

    def _name(self, account: str, container: Container) -> GraphName:
        database = self._documents.catalog.databases[container.record.database_rid]
        return GraphName(database.name, container.record.name, account)
