"""Bringing single items of one container into another that has another partition key.

Not the changes are copied but the state: whatever changed about an item of the source, the places in the target that
it had or has are brought in line with what the source holds now. Doing that again, or late, does no harm.

An item of the target has all properties of its source, so the partition key that it has there is found in it. That
tells which of two source items a place belongs to when their new key and id are the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import cast

from asterism.documents.container import Container
from asterism.documents.item_record import StoredItem, unpack_item
from asterism.documents.planning import Place, place_at
from asterism.documents.rekey_job import RekeyJob, Uncopied
from asterism.errors import (
    AsterismError,
    ItemExists,
    ItemNotFound,
    LogicalPartitionFull,
    MalformedRequest,
    PreconditionFailed,
    RequestRateTooLarge,
    TooLarge,
    UniqueKeyViolation,
)
from asterism.keyspaces.owner import Owner
from asterism.partitioning.partition_key import PartitionKey, extract
from asterism.values.item import Item
from asterism.values.json_text import dumps, loads_stored
from asterism.values.undefined import UNDEFINED

# With more than this the copying is given up: the key is not one for these items.
UNCOPIED_MAX = 1000
# Items on their way at once: they share commits.
_AT_ONCE = 32
_COLLISION = "Another item has the same id and the same new partition key."
# What is wrong with an item, and not with the moment.
_ITEM_ERRORS = (UniqueKeyViolation, MalformedRequest, TooLarge, LogicalPartitionFull)
_SYSTEM_PROPERTIES = ("_rid", "_self", "_etag", "_attachments", "_ts")


class TooManyUncopied(Exception):
    """More items than can be listed have no place in the target."""


class ItemCopier:
    """For a moment's versions of the two containers."""

    def __init__(self, owner: Owner, source: Container, target: Container, job: RekeyJob) -> None:
        self._owner = owner
        self._source = source
        self._target = target
        self._job = job

    async def settle(self, images: Iterable[Item]) -> None:
        """Brings the items in line that these are images of, from whatever time. An image may also be an item of the
        target: it is then removed if the source has none for its place."""
        by_id: dict[str, list[Item]] = {}
        for image in images:
            by_id.setdefault(cast(str, image["id"]), []).append(image)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def settle_id(same_id: list[Item]) -> None:
            # One after the other: only items of one id can want the same place.
            async with turns:
                for image in same_id:
                    await self._settle_one(image)

        outcomes = await asyncio.gather(*map(settle_id, by_id.values()), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def settle_uncopied(self) -> None:
        """Looks again at what had no place: others may have left theirs, or the item may be gone."""
        for reference in list(self._job.uncopied):
            told = self._job.uncopied[reference]
            key = tuple(UNDEFINED if value == {} else value for value in told.partition_key)
            place = place_at(self._source.planner.point(key), told.id)
            current = await self._visible(self._source, place)
            if current is None:
                del self._job.uncopied[reference]
            else:
                await self._settle_one(cast(Item, loads_stored(current.body)))

    # --- one item ---------------------------------------------------------------------------------------------------

    async def _settle_one(self, image: Item) -> None:
        while True:
            try:
                return await self._attempt(image)
            except RequestRateTooLarge as throttled:
                await asyncio.sleep(throttled.retry_after_seconds)
            except PreconditionFailed:
                await asyncio.sleep(0)

    async def _attempt(self, image: Item) -> None:
        place = self._source_place(image)
        stored = await self._visible(self._source, place)
        current = None if stored is None else cast(Item, loads_stored(stored.body))
        item_id = cast(str, image["id"])
        before = self._target_place(image)
        try:
            wanted = None if current is None else self._required_target_place(current)
            if before is not None and before != wanted:
                await self._remove(before, image, place)
            if stored is not None and current is not None and wanted is not None:
                await self._put(current, place, wanted, indexes=stored.is_indexed)
        except _ITEM_ERRORS as error:
            self._note(place, item_id, image, str(getattr(error, "reason", error)))
        else:
            if current is None:
                self._job.uncopied.pop(place.reference.hex(), None)

    async def _put(self, item: Item, source_place: Place, wanted: Place, *, indexes: bool) -> None:
        there = await self._visible(self._target, wanted)
        if there is not None:
            other = cast(Item, loads_stored(there.body))
            if await self._belongs_to_another(other, source_place, wanted):
                self._note(source_place, cast(str, item["id"]), item, _COLLISION)
                return
            if _contents(other) == _contents(item) and there.is_indexed == indexes:
                self._job.uncopied.pop(source_place.reference.hex(), None)
                return
        if there is None:
            # Not an upsert: a process that led before may be at the same item.
            try:
                await self._target.create_item(item, None, indexes=indexes)
            except ItemExists:
                raise PreconditionFailed from None
        else:
            await self._target.upsert_item(item, None, if_match=there.etag, indexes=indexes)
        self._job.uncopied.pop(source_place.reference.hex(), None)

    async def _belongs_to_another(self, there: Item, mine: Place, wanted: Place) -> bool:
        theirs = self._source_place(there)
        if theirs == mine:
            return False
        stored = await self._visible(self._source, theirs)
        return stored is not None and self._target_place(cast(Item, loads_stored(stored.body))) == wanted

    async def _remove(self, before: Place, image: Item, source_place: Place) -> None:
        """Empties a place, if it is that item's."""
        there = await self._visible(self._target, before)
        if there is None or self._source_place(cast(Item, loads_stored(there.body))) != source_place:
            return
        key = extract(self._target.record.definition, image)
        try:
            await self._target.delete_item(cast(str, image["id"]), key, if_match=there.etag)
        except ItemNotFound:
            return

    def _note(self, place: Place, item_id: str, image: Item, reason: str) -> None:
        if len(self._job.uncopied) >= UNCOPIED_MAX and place.reference.hex() not in self._job.uncopied:
            raise TooManyUncopied
        key = extract(self._source.record.definition, image)
        self._job.uncopied[place.reference.hex()] = Uncopied(item_id, _key_json(key), reason)

    # --- places -----------------------------------------------------------------------------------------------------

    def _source_place(self, item: Item) -> Place:
        key = extract(self._source.record.definition, item)
        return place_at(self._source.planner.point(key), cast(str, item["id"]))

    def _required_target_place(self, item: Item) -> Place:
        key = extract(self._target.record.definition, item)
        return place_at(self._target.planner.point(key), cast(str, item["id"]))

    def _target_place(self, item: Item) -> Place | None:
        """None for an item that has no sound value at the new key's path, and so never was in the target."""
        try:
            return self._required_target_place(item)
        except AsterismError:
            return None

    async def _visible(self, container: Container, place: Place) -> StoredItem | None:
        _, _, (stored,) = await self._owner.read(container.keyspace, place.point, (place.key,))
        found = None if stored is None else unpack_item(stored)
        return found if found is not None and container.planner.is_visible(found.body) else None


def _key_json(key: PartitionKey) -> list[object]:
    return [{} if value is UNDEFINED else value for value in key]


def _contents(item: Item) -> bytes:
    return dumps({name: value for name, value in item.items() if name not in _SYSTEM_PROPERTIES})
