"""A unit of work in one logical partition: reads see what was staged, and all that was staged becomes one batch.

Nothing is written before the batch is applied. What was read from the store is expected to be still so then; if it is
not, nothing of the batch happens, and the whole unit is decided again on fresh data. Single writes, transactional
batches and stored procedures all go through here. An operation that raises has staged nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from asterism.documents.item_record import StoredItem, unpack_item
from asterism.documents.patch import Patch
from asterism.documents.planning import ChangePlanner, NewItem, Place, place_at
from asterism.errors import (
    ItemExists,
    ItemNotFound,
    MalformedRequest,
    PartitionKeyMismatch,
    PreconditionFailed,
    TooLarge,
    UniqueKeyViolation,
)
from asterism.keyspaces.layout import ITEMS
from asterism.limits import ITEM_NESTING_LEVELS_MAX
from asterism.partitioning.partition_key import PartitionKey, extract, header_agrees_with_item
from asterism.storage.contract import Batch, Expectation
from asterism.throughput import charge
from asterism.values.item import Item, check_nesting, validate_item_id
from asterism.values.json_text import loads_stored

ReadKeys = Callable[[Sequence[bytes]], Awaitable[Sequence[bytes | None]]]
Version = StoredItem | NewItem


@dataclass(slots=True)
class Outcome:
    """What one operation did, or saw. `body` is the item's JSON text (of the deleted item, after a delete)."""

    body: bytes
    etag: str
    charge: float
    created: bool = False


@dataclass(frozen=True, slots=True)
class Conditions:
    """What must be true of the item's etag for an operation to happen."""

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, before: Version) -> None:
        if self.if_match is not None and self.if_match not in ("*", before.etag):
            raise PreconditionFailed
        if self.if_none_match is not None and self.if_none_match in ("*", before.etag):
            raise PreconditionFailed


UNCONDITIONAL = Conditions()

# What an item that cannot be created is refused with, before the store is asked.
_REFUSALS = (MalformedRequest, PartitionKeyMismatch, TooLarge)


class Mark(NamedTuple):
    """What was staged at some moment of a unit of work."""

    staged: Mapping[bytes, tuple[Place, NewItem | None]]
    holders: Mapping[bytes, bytes | None]


class Transaction:
    """Operations on items of one logical partition, staged. Made for one attempt; not used after its batch."""

    __slots__ = (
        "_found",
        "_holders",
        "_holders_found",
        "_next_number",
        "_places",
        "_planner",
        "_read_keys",
        "_staged",
        "cost",
        "indexes",
        "key",
        "planned_under",
        "point",
    )

    def __init__(
        self,
        planner: ChangePlanner,
        key: PartitionKey,
        *,
        read_keys: ReadKeys,
        next_item_number: Callable[[], int],
    ) -> None:
        """`read_keys` gives the store's values: of one moment, or of several, for the batch checks them all."""
        self.key = key
        self.point = planner.point(key)
        self.planned_under = planner.settings
        # Request units of everything done so far.
        self.cost = 0.0
        # Whether the items written next are indexed; None leaves it to the container's policy.
        self.indexes: bool | None = None
        self._planner = planner
        self._read_keys = read_keys
        self._next_number = next_item_number
        # Item ids -> where they live, as far as they were asked for.
        self._places: dict[str, Place] = {}
        # Item keys: as the store has them, and as they are to be, in the order of their last change.
        self._found: dict[bytes, StoredItem | None] = {}
        self._staged: dict[bytes, tuple[Place, NewItem | None]] = {}
        # Unique-key entries: who holds them in the store, and who is to.
        self._holders_found: dict[bytes, bytes | None] = {}
        self._holders: dict[bytes, bytes | None] = {}

    # --- operations -------------------------------------------------------------------------------------------------

    async def load(self, item_ids: Iterable[str]) -> None:
        """Reads many items at once, all from one moment."""
        await self._load_places([self._place(one) for one in item_ids])

    async def _load_places(self, places: Iterable[Place]) -> None:
        keys = [key for key in dict.fromkeys(place.key for place in places) if key not in self._found]
        if not keys:
            return
        for key, stored in zip(keys, await self._read_keys(keys), strict=True):
            self._found[key] = None if stored is None else unpack_item(stored, key)

    async def read(self, item_id: str) -> Outcome:
        found = await self._visible(self._place(item_id))
        if found is None:
            self.cost += charge.MISS
            raise ItemNotFound(item_id=item_id)
        return self._done(found, charge.point_read(len(found.body)))

    async def create(self, item: Item) -> Outcome:
        place = self._place_of(item)
        if await self._visible(place) is not None:
            raise ItemExists(item_id=str(item["id"]))
        return await self._write(place, None, item)

    async def create_many(self, items: Sequence[Item], *, looks: bool = True) -> list[Outcome] | None:
        """What a `create` of each would do, and much faster. None, with nothing staged, where one of them would be
        refused, or cannot be decided without looking at another one: who asked then takes them one by one. Without
        `looks` nothing is read: that the items are not there yet is only expected, and may fail with the batch."""
        planner = self._planner
        if planner.unique_keys is not None or not items:
            return None
        try:
            places = [self._place_of(item) for item in items]
            keys = {place.key for place in places}
            if looks:
                await self._load_places(places)
            else:
                self._found = dict.fromkeys(keys) | self._found
            is_free = len(keys) == len(places) and keys.isdisjoint(self._staged)
            if not is_free or any(self._found[key] is not None for key in keys):
                return None
            news = planner.complete_many(items, [self._next_number() for _ in items])
        except _REFUSALS:
            return None
        self._staged.update({place.key: (place, after) for place, after in zip(places, news, strict=True)})
        outcomes = [
            Outcome(after.body, after.etag, charge.write(len(after.body), len(after.terms)), True) for after in news
        ]
        self.cost += sum(outcome.charge for outcome in outcomes)
        return outcomes

    async def upsert(self, item: Item, conditions: Conditions = UNCONDITIONAL) -> Outcome:
        place = self._place_of(item)
        before = await self._visible(place)
        if before is not None:
            conditions.check(before)
        return await self._write(place, before, item)

    async def replace(self, item_id: str, item: Item, conditions: Conditions = UNCONDITIONAL) -> Outcome:
        place, target = self._place(item_id), self._place_of(item)
        before = await self._required(place, item_id, conditions)
        if target.key == place.key:
            return await self._write(place, before, item)
        return await self._rename(place, before, target, item)

    async def patch(self, item_id: str, patch: Patch, conditions: Conditions = UNCONDITIONAL) -> Outcome:
        item = await self.patched(item_id, patch, conditions)
        place = self._place(item_id)
        return await self._write(place, await self._visible(place), item)

    async def patched(self, item_id: str, patch: Patch, conditions: Conditions = UNCONDITIONAL) -> Item:
        """The item as a patch would make it; nothing is staged."""
        place = self._place(item_id)
        before = await self._required(place, item_id, conditions)
        item = cast(Item, loads_stored(before.body, key=place.key.hex()))
        if patch.condition is not None and not patch.condition(item):
            raise PreconditionFailed
        patch.apply(item)
        # A patch can put a value of any depth below a path of any depth.
        check_nesting(item, levels_max=ITEM_NESTING_LEVELS_MAX)
        if self._place_of(item).key != place.key:
            raise MalformedRequest(reason="A patch cannot change an item's id or partition key.")
        return item

    async def delete(self, item_id: str, conditions: Conditions = UNCONDITIONAL) -> Outcome:
        place = self._place(item_id)
        before = await self._required(place, item_id, conditions)
        await self._stage(place, None, None)
        return self._done(before, charge.delete(len(before.body), len(self._planner.terms_of(before))))

    # --- going back -------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """What is staged now, for `return_to`. What was read meanwhile stays read, and is checked with the rest."""
        return Mark(dict(self._staged), dict(self._holders))

    def return_to(self, mark: Mark) -> None:
        self._staged = dict(mark.staged)
        # Entries that were looked up since are as the store has them.
        self._holders = {**self._holders_found, **mark.holders}

    # --- the batch --------------------------------------------------------------------------------------------------

    @property
    def staged(self) -> Mapping[bytes, tuple[Place, NewItem | None]]:
        """Item key -> what is to be there, for whoever reads the logical partition as this unit sees it."""
        return self._staged

    def planned(self, key: bytes) -> Batch:
        """What the staged change of one item will do to its entries; sizes and expectations are those of the whole."""
        (place, after), before, batch = self._staged[key], self._found[key], Batch()
        if before is not None or after is not None:
            self._planner.plan_change(batch, place, before, after, place_in_batch=0)
        return batch

    def sizes_delta(self) -> tuple[int, int]:
        """By how many bytes and items the staged changes will let the logical partition grow."""
        changes = [(self._found[key], after) for key, (_, after) in self._staged.items()]
        bytes_delta = sum(len(after.body) for _, after in changes if after is not None)
        bytes_delta -= sum(len(before.body) for before, _ in changes if before is not None)
        return bytes_delta, sum((after is not None) - (before is not None) for before, after in changes)

    def batch(self) -> Batch | None:
        """Everything that was staged, as one batch; None when it changes nothing."""
        batch = Batch()
        if all(after is not None and self._found[key] is None for key, (_, after) in self._staged.items()):
            return self._batch_of_new_items(batch)
        bytes_delta, items_delta, place_in_batch = 0, 0, 0
        found, plan_change = self._found, self._planner.plan_change
        for place, after in self._staged.values():
            before = found[place.key]
            if before is None and after is None:
                continue
            plan_change(batch, place, before, after, place_in_batch=place_in_batch)
            bytes_delta += (0 if after is None else len(after.body)) - (0 if before is None else len(before.body))
            items_delta += (after is not None) - (before is not None)
            place_in_batch += 1
        if not place_in_batch:
            return None
        return self._completed(batch, bytes_delta=bytes_delta, items_delta=items_delta)

    def _batch_of_new_items(self, batch: Batch) -> Batch | None:
        news = [(place, after) for place, after in self._staged.values() if after is not None]
        if not news:
            return None
        self._planner.plan_new_items(batch, news)
        return self._completed(batch, bytes_delta=sum(len(after.body) for _, after in news), items_delta=len(news))

    def _completed(self, batch: Batch, *, bytes_delta: int, items_delta: int) -> Batch:
        batch.expectations += [
            Expectation(key, None if stored is None else stored.version) for key, stored in self._found.items()
        ]
        self._plan_holders(batch)
        self._planner.plan_sizes(batch, self.point, bytes_delta=bytes_delta, items_delta=items_delta)
        return batch

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

    # --- how an operation is done -----------------------------------------------------------------------------------

    def _place(self, item_id: str) -> Place:
        place = self._places.get(item_id)
        if place is None:
            place = self._places[item_id] = place_at(self.point, item_id)
        return place

    def _place_of(self, item: Item) -> Place:
        """Where an item belongs, which must be in this logical partition."""
        item_id = validate_item_id(item.get("id"))
        if not header_agrees_with_item(self.key, extract(self._planner.record.definition, item)):
            raise PartitionKeyMismatch
        return self._place(item_id)

    async def _find(self, key: bytes) -> StoredItem | None:
        if key not in self._found:
            (stored,) = await self._read_keys((key,))
            self._found[key] = None if stored is None else unpack_item(stored, key)
        return self._found[key]

    async def _kept(self, key: bytes) -> Version | None:
        """The version that is there, seen or not: an item whose time is over stays until it is removed."""
        staged = self._staged.get(key)
        if staged is not None:
            return staged[1]
        return self._found[key] if key in self._found else await self._find(key)

    async def _visible(self, place: Place) -> Version | None:
        kept = await self._kept(place.key)
        return kept if kept is not None and self._planner.is_visible(kept.body) else None

    async def _required(self, place: Place, item_id: str, conditions: Conditions) -> Version:
        before = await self._visible(place)
        if before is None:
            raise ItemNotFound(item_id=item_id)
        conditions.check(before)
        return before

    async def _write(self, place: Place, before: Version | None, item: Item) -> Outcome:
        number = self._next_number() if before is None else before.number
        after = self._planner.complete(item, number, self.indexes)
        await self._stage(place, after, item)
        return self._written(before, after)

    async def _rename(self, place: Place, before: Version, target: Place, item: Item) -> Outcome:
        if await self._visible(target) is not None:
            raise ItemExists(item_id=str(item["id"]))
        after = self._planner.complete(item, self._next_number(), self.indexes)
        # The new one may hold the unique keys of the old one, so that goes first; it comes back if the new one cannot.
        staged, holders = dict(self._staged), dict(self._holders)
        await self._stage(place, None, None)
        try:
            await self._stage(target, after, item)
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
        return self._done(after, cost, created=before is None)

    def _done(self, version: Version, cost: float, *, created: bool = False) -> Outcome:
        self.cost += cost
        return Outcome(version.body, version.etag, cost, created)

    async def _stage(self, place: Place, after: NewItem | None, item: Item | None) -> None:
        if self._planner.unique_keys is not None:
            await self._hold(place, item)
        staged, key = self._staged, place.key
        if key in staged:
            del staged[key]
        staged[key] = (place, after)

    # --- unique keys ------------------------------------------------------------------------------------------------

    async def _hold(self, place: Place, item: Item | None) -> None:
        """Moves the unique-key entries of a place from its old version to its new one, or refuses."""
        kept = await self._kept(place.key)
        old = {} if kept is None else self._entries(cast(Item, loads_stored(kept.body, key=place.key.hex())))
        new = {} if item is None else self._entries(item)
        own = place.reference[len(self.point) :]
        for entry, paths in new.items():
            holder = await self._holder(entry)
            if holder is not None and holder != own:
                await self._dislodge(holder, paths)
        for entry in old:
            await self._holder(entry)
            self._holders[entry] = None
        for entry in new:
            self._holders[entry] = own

    def _entries(self, item: Item) -> dict[bytes, tuple[str, ...]]:
        unique_keys = self._planner.unique_keys
        return {} if unique_keys is None else unique_keys.entries(self.point, item)

    async def _holder(self, entry: bytes) -> bytes | None:
        if entry not in self._holders:
            (stored,) = await self._read_keys((entry,))
            self._holders_found[entry] = self._holders[entry] = stored
        return self._holders[entry]

    async def _dislodge(self, holder: bytes, paths: tuple[str, ...]) -> None:
        """An item whose time is over must not keep others from its unique keys: it is removed on the way."""
        reference = self.point + holder
        place = Place(self.point, ITEMS + reference, reference)
        if await self._visible(place) is not None:
            raise UniqueKeyViolation(paths=paths)
        await self._stage(place, None, None)
