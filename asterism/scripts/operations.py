"""Operations of a script on data: the contract that the documents floor implements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ItemReference:
    """An item by its id, its resource id, or both; at least one is given. The id has precedence."""

    item_id: str | None
    resource_id: str | None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write or read. `etag`, if given, must be the item's own; `if_none_match` makes a read answer 304;
    `index_action` is "default", "include" or "exclude"."""

    etag: str | None = None
    if_none_match: str | None = None
    index_action: str = "default"


@dataclass(frozen=True, slots=True)
class FeedOptions:
    page_size: int = 100
    continuation: str | None = None


# Made for every operation, so not frozen: that would double the time.
@dataclass(slots=True)
class ItemOutcome:
    """Outcome of an item operation. `resource` is the item's JSON text with its system properties; None after a delete
    and if not modified."""

    status: int
    resource: bytes | None


@dataclass(slots=True)
class FeedOutcome:
    """A page of items. `continuation` is None only at the end of the data."""

    resources: Sequence[bytes]
    continuation: str | None
    status: int = 200


@dataclass(slots=True)
class OperationRefused:
    """A refusal that is reported to the script, which decides whether to continue."""

    number: int
    body: str


@dataclass(frozen=True, slots=True)
class ScriptQuery:
    text: str
    parameters: Sequence[Mapping[str, object]] = field(default_factory=list)


class ScriptOperations(Protocol):
    """One transaction on one logical partition, on one snapshot, in which later operations see earlier ones.

    Nothing is durable until the owner of this object commits, which it does after a successful run. A failure that the
    script caused (a conflict, a wrong partition key, an item that is too large, a query that does not compile) is
    answered as `OperationRefused`; an exception ends the run and propagates to the caller of the runtime.
    """

    async def create(self, body: dict[str, object], options: WriteOptions) -> ItemOutcome | OperationRefused: ...

    async def create_many(self, bodies: Sequence[dict[str, object]]) -> Sequence[ItemOutcome] | None:
        """Create all items at once, as a `create` of each would. None, and no change, unless all of them succeed."""
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
        """Discard all changes made through this object since the start of the run. Called if a run fails."""
        ...
