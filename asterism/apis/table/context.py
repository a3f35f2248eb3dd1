"""What handlers work with: the door's own things, and what is known of one request."""

from __future__ import annotations

from dataclasses import dataclass, field

from asterism.access.shared_access import ResourceType, SasGrant
from asterism.apis.http import HeaderList, Request, Response
from asterism.apis.table import headers
from asterism.apis.table.accounts import Account, Accounts
from asterism.apis.table.entity_json import Metadata, Place
from asterism.apis.table.errors import Refusal, not_permitted, resource_not_found, table_not_found
from asterism.apis.table.names import cosmos_name_refusal, storage_name_refusal
from asterism.apis.table.resources import Resource
from asterism.apis.table.store_contract import StoreLike, TableLike
from asterism.apis.table.stored import Spent, TableKind
from asterism.clock import Clock


@dataclass(frozen=True, slots=True)
class Context:
    store: StoreLike
    accounts: Accounts
    clock: Clock
    # Which service the listener speaks for.
    is_cosmos: bool
    # Whether tokens that nobody has signed count; see access/bearer_token.py.
    unsigned_tokens: bool

    @property
    def kind(self) -> TableKind:
        return "cosmos" if self.is_cosmos else "storage"


@dataclass(slots=True)
class Call:
    """One request whose sender is known."""

    context: Context
    request: Request
    method: str
    account: Account
    resource: Resource
    query: dict[str, str]
    is_secondary: bool
    # Scheme, host and account, without a slash at the end: what answers put before a table's name.
    base: str
    # None when the request was signed with the account's key.
    grant: SasGrant | None
    request_id: str
    spent: Spent = field(default_factory=Spent)

    def place(self, table: str) -> Place:
        return Place(self.base, self.account.name, table)

    def level(self) -> Metadata:
        return headers.metadata_level(self.request.headers, self.query)

    def check_name(self, name: str) -> None:
        refusal = cosmos_name_refusal(name) if self.context.is_cosmos else storage_name_refusal(name)
        if refusal is not None:
            raise refusal

    def table(self, name: str) -> TableLike:
        """The table of an operation on entities. Whoever holds a signature of another learns nothing of it."""
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
        """Refuses what the request's shared access signature does not permit. Alternatives stand apart: `c|w`."""
        if self.grant is None:
            return
        if not any(self.grant.allows(one, resource_type, table) for one in permissions.split("|")):
            raise not_permitted()

    def allow_key(self, partition_key: str, row_key: str) -> None:
        if self.grant is not None and not self.grant.covers((partition_key, row_key)):
            raise not_permitted()


def json_answer(status: int, level: Metadata, body: bytes, more: HeaderList | None = None) -> Response:
    told = [*headers.JSON_HEADERS[level], *more] if more else list(headers.JSON_HEADERS[level])
    return Response(status, told, body)
