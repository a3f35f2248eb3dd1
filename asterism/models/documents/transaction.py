"""A unit of work in one logical partition: reads see what was staged, and all that was staged becomes one batch.

Nothing is written before the batch is applied. It expects everything that was read from the store to be unchanged then;
otherwise nothing of it happens, and the whole unit is decided again on fresh data (D2). Single writes, transactional
batches and stored procedures all go through here. An operation that raises has staged nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from asterism.errors import (
    AsterismError,
    Category,
    ItemExists,
    ItemNotFound,
    MalformedRequest,
    PartitionKeyMismatch,
    PreconditionFailed,
    TooLarge,
    UniqueKeyViolation,
)
from asterism.models.documents.codec import Document
from asterism.models.documents.indexes.terms import Term
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import StoredItem, unpack_item
from asterism.models.documents.planner import ChangePlanner, NewItem
from asterism.partitioning.partition_key import PartitionKey, extract, header_agrees_with_item
from asterism.storage.contract import Batch, Expectation
from asterism.throughput import charge

Version = StoredItem | NewItem


class KeyReads(Protocol):
    """The values that a unit reads: of one moment, or of several, because the batch expects them all unchanged."""

    async def read(self, keys: Sequence[bytes], /) -> Sequence[bytes | None]: ...


class DocumentEdit(Protocol):
    """A change inside of a document, such as a patch."""

    def apply(self, document: Document, /) -> None:
        """Change the document. Raises MalformedRequest or PreconditionFailed; the document is of no use then."""
        ...


# Up to a hundred are made for a request, so not frozen: that would double the time it takes.
@dataclass(slots=True)
class Outcome:
    """The result of one operation. `body` is that of the item (of the deleted item, after a delete)."""

    body: bytes
    etag: str
    charge: float
    created: bool = False


@dataclass(frozen=True, slots=True)
class Conditions:
    """The etags that an item must have, or must not have, for an operation to happen."""

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, etag: str) -> None:
        if self.if_match is not None and self.if_match not in ("*", etag):
            raise PreconditionFailed
        if self.if_none_match is not None and self.if_none_match in ("*", etag):
            raise PreconditionFailed


UNCONDITIONAL = Conditions()


@dataclass(eq=False)
class Overtaken(AsterismError):
    """Another writer changed data that a unit of work has read; nothing was written. Run the unit again."""

    category: ClassVar[Category] = Category.CONTENTION
    text: ClassVar[str] = "Another writer changed the data that the unit of work has read."


# The refusals of a document that cannot be created, before the store is asked.
_REFUSALS = (MalformedRequest, PartitionKeyMismatch, TooLarge)


class Savepoint(NamedTuple):
    """The changes that were staged at some moment of a unit of work."""

    staged: Mapping[bytes, tuple[ItemKey, NewItem | None]]
    holders: Mapping[bytes, bytes | None]


# An item's key, the item in the store and the item to be; None is no item.
Change = tuple[ItemKey, StoredItem | None, NewItem | None]


class PlannedUnit(NamedTuple):
    """The batch of a unit, the growth of its logical partition, and the changes that the batch was made of."""

    batch: Batch
    bytes_delta: int
    items_delta: int
    changes: Sequence[Change]


class Transaction:
    """Operations on items of one logical partition, staged. Made for one attempt; not used after its batch."""

    __slots__ = (
        "_codec",
        "_found",
        "_holders",
        "_holders_found",
        "_next_number",
        "_old_terms",
        "_reads",
        "_staged",
        "cost",
        "indexes",
        "key",
        "planner",
        "point",
    )

    def __init__(
        self,
        planner: ChangePlanner,
        key: PartitionKey,
        point: bytes,
        *,
        reads: KeyReads,
        next_item_number: Callable[[], int],
        indexes: bool | None = None,
    ) -> None:
        """`point` is that of the partition key `key`. `indexes` says whether the items written are indexed; None leaves
        it to the container's policy."""
        self.planner = planner
        self.key = key
        self.point = point
        # Request units of everything done so far.
        self.cost = 0.0
        self.indexes = indexes
        self._codec = planner.codec
        self._reads = reads
        self._next_number = next_item_number
        # Stored keys of items -> as the store has them, and as they are to be, in the order of their last change.
        self._found: dict[bytes, StoredItem | None] = {}
        self._staged: dict[bytes, tuple[ItemKey, NewItem | None]] = {}
        # Stored keys of items whose terms were made for the price of their deletion.
        self._old_terms: dict[bytes, Sequence[Term]] = {}
        # Unique-key entries -> their holder in the store, and the holder to be.
        self._holders_found: dict[bytes, bytes | None] = {}
        self._holders: dict[bytes, bytes | None] = {}

    # --- keys -------------------------------------------------------------------------------------------------------

    def item_key(self, item_id: bytes) -> ItemKey:
        return ItemKey.at(self.point, item_id)

    def key_of(self, document: Document) -> ItemKey:
        """Return the key of a document, which must belong to this logical partition."""
        item_id = self._codec.id_of(document)
        computed = self.planner.computed_key
        if computed is None:
            belongs = header_agrees_with_item(self.key, extract(self.planner.definition, document))
        else:
            belongs = computed.accepts(document, self.key)
        if not belongs:
            raise PartitionKeyMismatch
        return ItemKey.at(self.point, item_id)

    def _completed(self, document: Document, number: int) -> NewItem:
        """Return the new version of an item of this logical partition."""
        computed = self.planner.computed_key
        if computed is not None:
            document = computed.fill(document, self.key)
        return self.planner.complete(document, number, self.indexes)

    # --- operations -------------------------------------------------------------------------------------------------

    async def load(self, item_keys: Iterable[ItemKey]) -> None:
        """Read many items at once, all from one moment."""
        keys = [key for key in dict.fromkeys(item_key.key for item_key in item_keys) if key not in self._found]
        if not keys:
            return
        for key, stored in zip(keys, await self._reads.read(keys), strict=True):
            self._found[key] = None if stored is None else unpack_item(stored, key)

    async def read(self, item_key: ItemKey) -> Outcome:
        found = await self._visible(item_key)
        if found is None:
            self.cost += charge.MISS
            raise self._not_found(item_key)
        return self._done(found, charge.point_read(len(found.body)))

    async def create(self, item_key: ItemKey, document: Document) -> Outcome:
        if await self._visible(item_key) is not None:
            raise self._exists(item_key)
        return await self._write(item_key, None, document)

    async def create_many(self, documents: Sequence[Document], *, looks: bool = True) -> list[Outcome] | None:
        """Do a `create` of each, much faster. Return None, with nothing staged, where one of them would be refused, or
        cannot be decided without another: the caller then takes them one by one. Without `looks` nothing is read: that
        the keys are free is only expected, and may fail with the batch."""
        planner = self.planner
        if planner.unique_keys is not None or not documents:
            return None
        try:
            item_keys = [self.key_of(document) for document in documents]
            if planner.computed_key is not None:
                documents = [planner.computed_key.fill(document, self.key) for document in documents]
            keys = {item_key.key for item_key in item_keys}
            if looks:
                await self.load(item_keys)
            else:
                self._found = dict.fromkeys(keys) | self._found
            is_free = len(keys) == len(item_keys) and keys.isdisjoint(self._staged)
            if not is_free or any(self._found[key] is not None for key in keys):
                return None
            new_items = planner.complete_many(documents, [self._next_number() for _ in documents])
        except _REFUSALS:
            return None
        self._staged.update(
            {item_key.key: (item_key, after) for item_key, after in zip(item_keys, new_items, strict=True)}
        )
        outcomes = [
            Outcome(after.body, after.etag, charge.write(len(after.body), len(after.terms)), True)
            for after in new_items
        ]
        self.cost += sum(outcome.charge for outcome in outcomes)
        return outcomes

    async def upsert(self, item_key: ItemKey, document: Document, conditions: Conditions = UNCONDITIONAL) -> Outcome:
        before = await self._visible(item_key)
        if before is not None:
            self._check(conditions, before)
        return await self._write(item_key, before, document)

    async def replace(
        self, item_key: ItemKey, target: ItemKey, document: Document, conditions: Conditions = UNCONDITIONAL
    ) -> Outcome:
        """Replace an item by a document whose own key is `target`: another id renames the item, which is a delete and a
        create in one batch."""
        before = await self._required(item_key, conditions)
        if target.key == item_key.key:
            return await self._write(item_key, before, document)
        return await self._rename(item_key, before, target, document)

    async def patch(self, item_key: ItemKey, edit: DocumentEdit, conditions: Conditions = UNCONDITIONAL) -> Outcome:
        document = await self.patched(item_key, edit, conditions)
        return await self._write(item_key, await self._visible(item_key), document)

    async def patched(self, item_key: ItemKey, edit: DocumentEdit, conditions: Conditions = UNCONDITIONAL) -> Document:
        """Return the document as an edit would make it; nothing is staged."""
        before = await self._required(item_key, conditions)
        document = self._codec.decode(before.body, key=item_key.key)
        edit.apply(document)
        if self.key_of(document).key != item_key.key:
            raise MalformedRequest(reason="A patch cannot change an item's id or partition key.")
        return document

    async def delete(self, item_key: ItemKey, conditions: Conditions = UNCONDITIONAL) -> Outcome:
        before = await self._required(item_key, conditions)
        await self._stage(item_key, None)
        terms = self.planner.terms_of(item_key, before)
        if isinstance(before, StoredItem):
            self._old_terms[item_key.key] = terms
        return self._done(before, charge.delete(len(before.body), len(terms)))

    # --- savepoints -------------------------------------------------------------------------------------------------

    def savepoint(self) -> Savepoint:
        """Return what is staged now, for `return_to`. Later reads are kept, and expected to hold."""
        return Savepoint(dict(self._staged), dict(self._holders))

    def return_to(self, savepoint: Savepoint) -> None:
        self._staged = dict(savepoint.staged)
        # Entries that were looked up since are as the store has them.
        self._holders = {**self._holders_found, **savepoint.holders}

    # --- the batch --------------------------------------------------------------------------------------------------

    @property
    def staged(self) -> Mapping[bytes, tuple[ItemKey, NewItem | None]]:
        """Stored key -> the item that is to be there, for readers of the logical partition as this unit sees it."""
        return self._staged

    def planned(self, key: bytes) -> Batch:
        """Return what the staged change of one item will do to its entries; sizes and expectations are the unit's."""
        (item_key, after), before, batch = self._staged[key], self._found[key], Batch()
        if before is not None or after is not None:
            self.planner.plan_change(batch, item_key, before, after, place_in_batch=0)
        return batch

    def sizes_delta(self) -> tuple[int, int]:
        """Return by how many bytes and items the staged changes will let the logical partition grow."""
        bytes_delta = items_delta = 0
        for key, (_, after) in self._staged.items():
            before = self._found[key]
            if before is not None:
                bytes_delta -= len(before.body)
                items_delta -= 1
            if after is not None:
                bytes_delta += len(after.body)
                items_delta += 1
        return bytes_delta, items_delta

    def plan(self) -> PlannedUnit | None:
        """Return everything that was staged, as one batch; None when it changes nothing."""
        batch, found, planner = Batch(), self._found, self.planner
        changes = [
            (item_key, found[key], after)
            for key, (item_key, after) in self._staged.items()
            if after is not None or found[key] is not None
        ]
        if not changes:
            return None
        if len(changes) > 1 and all(before is None for _, before, _ in changes):
            planner.plan_new_items(batch, [(item_key, after) for item_key, _, after in changes if after is not None])
        else:
            for place_in_batch, (item_key, before, after) in enumerate(changes):
                old_terms = self._old_terms.get(item_key.key)
                planner.plan_change(batch, item_key, before, after, place_in_batch=place_in_batch, old_terms=old_terms)
        batch.expectations += [
            Expectation(key, None if stored is None else stored.version) for key, stored in found.items()
        ]
        if self._holders:
            self._plan_holders(batch)
        return PlannedUnit(batch, *self.sizes_delta(), changes)

    def _plan_holders(self, batch: Batch) -> None:
        for entry, holder in self._holders.items():
            stored = self._holders_found[entry]
            if stored == holder:
                continue
            batch.expectations.append(Expectation(entry, stored))
            if holder is None:
                batch.deletes.append(entry)
            else:
                batch.puts.append((entry, holder))

    # --- steps of an operation --------------------------------------------------------------------------------------

    async def _stored(self, key: bytes) -> Version | None:
        """Return the version under a key, staged or stored, expired or not: an expired item stays until removed."""
        staged = self._staged.get(key)
        if staged is not None:
            return staged[1]
        if key not in self._found:
            (stored,) = await self._reads.read((key,))
            self._found[key] = None if stored is None else unpack_item(stored, key)
        return self._found[key]

    async def _visible(self, item_key: ItemKey) -> Version | None:
        stored = await self._stored(item_key.key)
        return stored if stored is not None and self.planner.is_visible(stored.body) else None

    async def _required(self, item_key: ItemKey, conditions: Conditions) -> Version:
        before = await self._visible(item_key)
        if before is None:
            raise self._not_found(item_key)
        self._check(conditions, before)
        return before

    def _check(self, conditions: Conditions, before: Version) -> None:
        if conditions is not UNCONDITIONAL:
            conditions.check(self._codec.etag(before.tag))

    def _not_found(self, item_key: ItemKey) -> ItemNotFound:
        return ItemNotFound(item_id=self._codec.id_text(item_key.item_id))

    def _exists(self, item_key: ItemKey) -> ItemExists:
        return ItemExists(item_id=self._codec.id_text(item_key.item_id))

    async def _write(self, item_key: ItemKey, before: Version | None, document: Document) -> Outcome:
        number = self._next_number() if before is None else before.number
        after = self._completed(document, number)
        await self._stage(item_key, after)
        return self._written(before, after)

    async def _rename(self, item_key: ItemKey, before: Version, target: ItemKey, document: Document) -> Outcome:
        if await self._visible(target) is not None:
            raise self._exists(target)
        after = self._completed(document, self._next_number())
        # The new one may hold the unique keys of the old one, so that goes first; it comes back if the new one cannot.
        staged, holders = dict(self._staged), dict(self._holders)
        await self._stage(item_key, None)
        try:
            await self._stage(target, after)
        except UniqueKeyViolation:
            self._staged, self._holders = staged, holders
            raise
        return self._written(before, after)

    def _written(self, before: Version | None, after: NewItem) -> Outcome:
        size, paths = len(after.body), len(after.terms)
        if before is None:
            cost = charge.write(size, paths)
        else:
            cost = charge.replace(before_bytes=len(before.body), after_bytes=size, indexed_paths=paths)
        self.cost += cost
        return Outcome(after.body, after.etag, cost, before is None)

    def _done(self, version: Version, cost: float) -> Outcome:
        self.cost += cost
        return Outcome(version.body, self._codec.etag(version.tag), cost)

    async def _stage(self, item_key: ItemKey, after: NewItem | None) -> None:
        if self.planner.unique_keys is not None:
            await self._hold(item_key, after)
        staged, key = self._staged, item_key.key
        # The order of the last changes is that of the change log.
        staged.pop(key, None)
        staged[key] = (item_key, after)

    # --- unique keys ------------------------------------------------------------------------------------------------

    async def _hold(self, item_key: ItemKey, after: NewItem | None) -> None:
        """Move the unique-key entries of an item from its old version to its new one, or refuse."""
        stored = await self._stored(item_key.key)
        old = {} if stored is None else self._entries(self._codec.decode(stored.body, key=item_key.key))
        new = {} if after is None or after.document is None else self._entries(after.document)
        own = item_key.reference[len(self.point) :]
        for entry, paths in new.items():
            holder = await self._holder(entry)
            if holder is not None and holder != own:
                await self._dislodge(holder, paths)
        for entry in old:
            await self._holder(entry)
            self._holders[entry] = None
        for entry in new:
            self._holders[entry] = own

    def _entries(self, document: Document) -> dict[bytes, tuple[str, ...]]:
        unique_keys = self.planner.unique_keys
        return {} if unique_keys is None else unique_keys.entries(self.point, document)

    async def _holder(self, entry: bytes) -> bytes | None:
        if entry not in self._holders:
            (stored,) = await self._reads.read((entry,))
            self._holders_found[entry] = self._holders[entry] = stored
        return self._holders[entry]

    async def _dislodge(self, holder: bytes, paths: tuple[str, ...]) -> None:
        """Remove the holder of a unique key if it has expired: it must not keep others from the key."""
        item_key = ItemKey.of_reference(self.point, self.point + holder)
        if await self._visible(item_key) is not None:
            raise UniqueKeyViolation(paths=paths)
        await self._stage(item_key, None)
