"""What a script may do to data: the promise that the documents floor keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ItemReference:
    """An item by its id, its resource id, or both; at least one is there. The id counts when both are."""

    item_id: str | None
    resource_id: str | None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """`etag` must be the item's own when given; `if_none_match` makes a read answer 304; `index_action` is
    "default", "include" or "exclude"."""

    etag: str | None = None
    if_none_match: str | None = None
    index_action: str = "default"


@dataclass(frozen=True, slots=True)
class FeedOptions:
    page_size: int = 100
    continuation: str | None = None


# Made for every operation, so not frozen: that would double the time it takes.
@dataclass(slots=True)
class ItemOutcome:
    """`resource` is the item's JSON text with its system properties; None after a delete and when not modified."""

    status: int
    resource: bytes | None


@dataclass(slots=True)
class FeedOutcome:
    """A page. `continuation` is None only at the end of the data."""

    resources: Sequence[bytes]
    continuation: str | None
    status: int = 200


@dataclass(slots=True)
class OperationRefused:
    """An operation that the script is told about; the script decides whether the run goes on."""

    number: int
    body: str


@dataclass(frozen=True, slots=True)
class ScriptQuery:
    text: str
    parameters: Sequence[Mapping[str, object]] = field(default_factory=list)


class ScriptOperations(Protocol):
    """One transaction on one logical partition, on one snapshot, in which later operations see earlier ones.

    Nothing is durable until the owner of this object commits, which it does after a run that succeeded. Whatever the
    script can cause (a conflict, a wrong partition key, an item that is too large, a query that does not compile)
    is answered as `OperationRefused`; an exception ends the run and reaches the caller of the runtime.
    """

    async def create(self, body: dict[str, object], options: WriteOptions) -> ItemOutcome | OperationRefused: ...

    async def create_many(self, bodies: Sequence[dict[str, object]]) -> Sequence[ItemOutcome] | None:
        """What a `create` of each would do, at once. None, with nothing done, unless all of them are created so."""
        ...

    async def upsert(self, body: dict[str, object], options: WriteOptions) -> ItemOutcome | OperationRefused: ...

    async def replace(
        self, reference: ItemReference, body: dict[str, object], options: WriteOptions
    ) -> ItemOutcome | OperationRefused: ...

    async def read(self, reference: ItemReference, options: WriteOptions) -> ItemOutcome | OperationRefused: ...

    async def delete(self, reference: ItemReference, options: WriteOptions) -> ItemOutcome | OperationRefused: ...

    async def query(self, query: ScriptQuery, options: FeedOptions) -> FeedOutcome | OperationRefused: ...

    async def read_feed(self, options: FeedOptions) -> FeedOutcome | OperationRefused: ...

    def roll_back(self) -> None:
        """Forget everything that was done through this object since it was handed over. Called when a run fails."""
        ...
