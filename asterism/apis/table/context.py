"""The arguments of handlers: the services of the door, and the request whose sender is known."""

from __future__ import annotations

from dataclasses import dataclass, field

from asterism.access.sas_grants import ResourceType, SasGrant
from asterism.apis.storage.accounts import Account, Accounts
from asterism.apis.storage.refusals import Refusal, not_permitted, resource_not_found
from asterism.apis.table import headers
from asterism.apis.table.entities.entity_json import Metadata, TableUrl
from asterism.apis.table.errors import table_not_found
from asterism.apis.table.resource_paths import Resource
from asterism.apis.table.resources.names import cosmos_name_refusal, storage_name_refusal
from asterism.apis.transports.http import HeaderList, Request, Response
from asterism.clock import Clock
from asterism.keyspaces.routing.keyspace import Spent
from asterism.models.tables.entities import TableKind
from asterism.models.tables.store import TableStore
from asterism.models.tables.table import Table


@dataclass(frozen=True, slots=True)
class Context:
    store: TableStore
    accounts: Accounts
    clock: Clock
    # True for the port of Cosmos DB for Table, False for that of Azure Table storage.
    is_cosmos: bool

    @property
    def kind(self) -> TableKind:
        return "cosmos" if self.is_cosmos else "storage"


@dataclass(slots=True)
class Call:
    """A request whose sender is known."""

    context: Context
    request: Request
    method: str
    account: Account
    resource: Resource
    query: dict[str, str]
    is_secondary: bool
    # Scheme, host and account, without a slash at the end: answers put this before the name of a table.
    base: str
    # None when the request was signed with the account's key.
    grant: SasGrant | None
    request_id: str
    spent: Spent = field(default_factory=Spent)

    def table_url(self, table: str) -> TableUrl:
        return TableUrl(self.base, self.account.name, table)

    def level(self) -> Metadata:
        return headers.metadata_level(self.request.headers, self.query)

    def check_name(self, name: str) -> None:
        refusal = cosmos_name_refusal(name) if self.context.is_cosmos else storage_name_refusal(name)
        if refusal is not None:
            raise refusal

    def table(self, name: str) -> Table:
        """Return the table of an operation on entities. A sender with a signature for another table learns nothing
        about it."""
        if self.grant is not None and not self.grant.is_about(name):
            raise not_permitted()
        found = self.context.store.find_table(self.account.name, name)
        if found is not None:
            return found
        self.check_name(name)
        raise self.missing_table()

    def missing_table(self) -> Refusal:
        return resource_not_found() if self.context.is_cosmos else table_not_found()

    def allow(self, permissions: str, resource_type: ResourceType, table: str | None) -> None:
        """Refuse what the request's shared access signature does not permit. Alternatives are separated: `c|w`."""
        if self.grant is None:
            return
        if not any(self.grant.allows(needed, resource_type, table) for needed in permissions.split("|")):
            raise not_permitted()

    def allow_key(self, partition_key: str, row_key: str) -> None:
        if self.grant is not None and not self.grant.covers((partition_key, row_key)):
            raise not_permitted()


def json_answer(status: int, level: Metadata, body: bytes, more: HeaderList | None = None) -> Response:
    answer = [*headers.JSON_HEADERS[level], *more] if more else list(headers.JSON_HEADERS[level])
    return Response(status, answer, body)
