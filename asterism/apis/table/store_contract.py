"""What the door needs of the floors below: tables in a catalog, entities in order, small documents beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from asterism.apis.table.stored import EntityPage, EntityWrite, Spent, StoredEntity, TableKind
from asterism.throughput.budgets import Throughput

Key = tuple[str, str]


class TableLike(Protocol):
    """One table. Every call raises ResourceNotFound(kind="table") when the table was deleted meanwhile, and for a
    `cosmos` table RequestRateTooLarge when its request units are spent; what a call costs is added to `spent`."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> TableKind: ...

    async def get(self, partition_key: str, row_key: str, spent: Spent | None = None) -> StoredEntity | None: ...

    async def apply(
        self, operations: Sequence[EntityWrite], spent: Spent | None = None
    ) -> Sequence[StoredEntity | None]:
        """All of them or none, durable when it returns; all have one partition key. What each left behind is
        returned. OperationFailed tells the first that could not be done."""
        ...

    async def scan(
        self,
        lower: Key | None,
        upper: Key | None,
        *,
        limit: int,
        entries_examined_max: int,
        accept: Callable[[StoredEntity], bool] | None = None,
        spent: Spent | None = None,
    ) -> EntityPage:
        """Entities from `lower` on and before `upper`, with `accept` only those it takes: in the order of their keys,
        or for a `cosmos` table in the order of the hash of their partition keys. May stop early, and then says where
        to go on."""
        ...


class StoreLike(Protocol):
    @property
    def is_shared(self) -> bool:
        """Whether other processes make and delete tables too."""
        ...

    async def catch_up(self) -> int:
        """Takes over what they have done; a number that is higher the more is known of it."""
        ...

    def find_table(self, account: str, name: str) -> TableLike | None: ...

    async def create_table(
        self, account: str, name: str, *, kind: TableKind, throughput: Throughput | None
    ) -> TableLike: ...

    async def delete_table(self, account: str, name: str) -> None: ...

    async def list_tables(self, account: str, after: str | None, limit: int) -> Sequence[str]:
        """Names in order, those after `after`."""
        ...

    async def get_document(self, account: str, table: TableLike | None, name: str) -> bytes | None:
        """A small document of the account, or of one of its tables, with which it goes."""
        ...

    async def put_document(self, account: str, table: TableLike | None, name: str, content: bytes) -> None: ...
