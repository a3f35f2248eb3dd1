"""Copies of single items from one container into another that has another partition key.

The state is copied, not the changes: whatever changed about an item of the source, the keys in the target that it had
or has are brought into line with what the source holds now. Doing that again, or late, does no harm.

An item of the target has all properties of its source, so its partition key in the source is found in it. That tells
which of two source items a target key belongs to when their new partition key and id are the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from asterism.errors import (
    AsterismError,
    ItemExists,
    ItemNotFound,
    LogicalPartitionFull,
    MalformedRequest,
    PartitionKeyMismatch,
    PreconditionFailed,
    RequestRateTooLarge,
    TooLarge,
    UniqueKeyViolation,
)
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.documents.codec import Document
from asterism.models.documents.container import Container
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import StoredItem, unpack_item
from asterism.models.documents.rekey.job import RekeyJob, Uncopied
from asterism.models.documents.transaction import Conditions
from asterism.partitioning.partition_key import PartitionKey, extract
from asterism.values.undefined import UNDEFINED

# With more than this the job fails: the key does not suit these items.
UNCOPIED_MAX = 1000
# Items on their way at once: they share commits.
_AT_ONCE = 32
_COLLISION = "Another item has the same id and the same new partition key."
# Errors of an item, and not of the moment.
_ITEM_ERRORS = (UniqueKeyViolation, MalformedRequest, PartitionKeyMismatch, TooLarge, LogicalPartitionFull)


class TooManyUncopied(Exception):
    """More items than can be listed cannot be in the target."""


class ItemCopier:
    """Copies items from a source to a target. Made for a moment's versions of the two containers."""

    def __init__(self, router: PartitionRouter, source: Container, target: Container, job: RekeyJob) -> None:
        self._router = router
        self._source = source
        self._target = target
        self._codec = source.codec
        self._job = job

    async def settle(self, bodies: Iterable[bytes]) -> None:
        """Bring the items into line that these are images of, from whatever time. An image may also be an item of the
        target: it is then removed if the source has no item for its key."""
        by_id: dict[bytes, list[Document]] = {}
        for body in bodies:
            image = self._codec.decode(body)
            by_id.setdefault(self._codec.stored_id(image), []).append(image)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def settle_id(same_id: list[Document]) -> None:
            # One after the other: only items of one id can want the same key.
            async with turns:
                for image in same_id:
                    await self._settle_image(image)

        outcomes = await asyncio.gather(*map(settle_id, by_id.values()), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def settle_uncopied(self) -> None:
        """Try again the items that could not be copied: others may have left their keys, or the item may be gone."""
        for reference in list(self._job.uncopied):
            uncopied = self._job.uncopied[reference]
            key = tuple(UNDEFINED if value == {} else value for value in uncopied.partition_key)
            item_key = ItemKey.of_reference(self._source.planner.point(key), bytes.fromhex(reference))
            current = await self._visible(self._source, item_key)
            if current is None:
                del self._job.uncopied[reference]
            else:
                await self._settle_image(self._codec.decode(current.body, key=item_key.key))

    # --- one item ---------------------------------------------------------------------------------------------------

    async def _settle_image(self, image: Document) -> None:
        while True:
            try:
                return await self._attempt(image)
            except RequestRateTooLarge as throttled:
                await asyncio.sleep(throttled.retry_after_seconds)
            except PreconditionFailed:
                await asyncio.sleep(0)

    async def _attempt(self, image: Document) -> None:
        source_key = self._source_key(image)
        stored = await self._visible(self._source, source_key)
        current = None if stored is None else self._codec.decode(stored.body, key=source_key.key)
        before = self._target_key(image)
        try:
            wanted = None
            if current is not None:
                # With the properties that its new key computes.
                current, wanted = self._in_target(current)
            if before is not None and before != wanted:
                await self._remove(before, image, source_key)
            if stored is not None and current is not None and wanted is not None:
                await self._put(current, source_key, wanted, indexes=stored.is_indexed)
        except _ITEM_ERRORS as error:
            self._note(source_key, image, str(getattr(error, "reason", error)))
        else:
            if current is None:
                self._forget(source_key)

    async def _put(self, document: Document, source_key: ItemKey, wanted: ItemKey, *, indexes: bool) -> None:
        existing = await self._visible(self._target, wanted)
        if existing is None:
            # Not an upsert: a process that led before may be at the same item.
            try:
                await self._target.create_item(document, None, indexes=indexes)
            except ItemExists:
                raise PreconditionFailed from None
            self._forget(source_key)
            return
        other = self._codec.decode(existing.body, key=wanted.key)
        if await self._belongs_to_another(other, source_key, wanted):
            self._note(source_key, document, _COLLISION)
            return
        is_equal = self._codec.contents(other) == self._codec.contents(document) and existing.is_indexed == indexes
        if not is_equal:
            await self._target.upsert_item(document, None, conditions=self._unchanged(existing), indexes=indexes)
        self._forget(source_key)

    async def _belongs_to_another(self, other: Document, source_key: ItemKey, wanted: ItemKey) -> bool:
        other_source_key = self._source_key(other)
        if other_source_key == source_key:
            return False
        stored = await self._visible(self._source, other_source_key)
        if stored is None:
            return False
        return self._target_key(self._codec.decode(stored.body, key=other_source_key.key)) == wanted

    async def _remove(self, before: ItemKey, image: Document, source_key: ItemKey) -> None:
        """Remove the item of a target key, if it is a copy of that source item."""
        existing = await self._visible(self._target, before)
        if existing is None:
            return
        if self._source_key(self._codec.decode(existing.body, key=before.key)) != source_key:
            return
        _, key = self._target.with_own_key(image)
        try:
            await self._target.delete_item(before.item_id, key, conditions=self._unchanged(existing))
        except ItemNotFound:
            return

    def _unchanged(self, existing: StoredItem) -> Conditions:
        return Conditions(if_match=self._target.codec.etag(existing.tag))

    def _note(self, source_key: ItemKey, image: Document, reason: str) -> None:
        reference = source_key.reference.hex()
        if len(self._job.uncopied) >= UNCOPIED_MAX and reference not in self._job.uncopied:
            raise TooManyUncopied
        key = extract(self._source.record.definition, image)
        item_id = self._codec.id_text(source_key.item_id)
        self._job.uncopied[reference] = Uncopied(item_id, _key_fields(key), reason)

    def _forget(self, source_key: ItemKey) -> None:
        self._job.uncopied.pop(source_key.reference.hex(), None)

    # --- keys -------------------------------------------------------------------------------------------------------

    def _source_key(self, document: Document) -> ItemKey:
        # A stored item has the properties that its key computes.
        key = extract(self._source.record.definition, document)
        return ItemKey.at(self._source.planner.point(key), self._codec.stored_id(document))

    def _in_target(self, document: Document) -> tuple[Document, ItemKey]:
        """Return a document as the target is to have it, and its key there."""
        filled, key = self._target.with_own_key(document)
        return filled, ItemKey.at(self._target.planner.point(key), self._codec.stored_id(document))

    def _target_key(self, document: Document) -> ItemKey | None:
        """None for a document that has no sound value at the new key's path, and so never was in the target."""
        try:
            return self._in_target(document)[1]
        except AsterismError:
            return None

    async def _visible(self, container: Container, item_key: ItemKey) -> StoredItem | None:
        _, _, (stored,) = await self._router.read(container.keyspace, item_key.point, (item_key.key,))
        found = None if stored is None else unpack_item(stored, item_key.key)
        return found if found is not None and container.planner.is_visible(found.body) else None


def _key_fields(key: PartitionKey) -> list[object]:
    """Return a partition key as the job's record has it, with {} for an absent value."""
    return [{} if value is UNDEFINED else value for value in key]
