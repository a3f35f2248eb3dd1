"""Exact copies of items in another container: with the same number, version tag and time of change.

Clients then find the items as they know them: etags, positions in the order of creation and times to live stay valid.
And two versions are equal if their tags are. As in `rekey/copier.py`, the state is copied, not the changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from asterism.errors import RequestRateTooLarge, UniqueKeyViolation
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.documents.codec import Document
from asterism.models.documents.container import Container
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import StoredItem, unpack_item
from asterism.models.documents.planner import ChangePlanner, NewItem
from asterism.models.documents.point_reads import PointReads
from asterism.models.documents.transaction import Transaction
from asterism.partitioning.partition_key import PartitionKey, extract
from asterism.storage.contract import ExpectationFailed
from asterism.throughput import charge

# Copied with one commit. Batches hold the event loop one by one.
_BATCH_ITEMS = 16
# Batches on their way at once: they share commits.
_AT_ONCE = 4


class _Place(NamedTuple):
    """The place of an item in both containers."""

    key: PartitionKey
    source: ItemKey
    target: ItemKey


class ExactCopier:
    """Copies items from a source to a target. Made for a moment's versions of the two containers."""

    def __init__(self, router: PartitionRouter, source: Container, target: Container) -> None:
        self._router = router
        self._source = source
        self._target = target

    async def settle(self, bodies: Iterable[bytes]) -> list[ItemKey]:
        """Bring the items into line that these are images of, from whatever time. Return the keys, in the source, of
        those that have to wait, because another item still holds a unique key of theirs."""
        places: dict[bytes, _Place] = {}
        for body in bodies:
            place = self._place_of(self._source.codec.decode(body))
            places[place.target.key] = place
        turns = asyncio.Semaphore(_AT_ONCE)

        async def settle_some(some: Sequence[_Place]) -> list[ItemKey]:
            async with turns:
                return await self._settle_together(some)

        waiting = await asyncio.gather(*map(settle_some, _batches(places.values())))
        return [item_key for some in waiting for item_key in some]

    async def settle_waiting(self, item_keys: Iterable[ItemKey]) -> list[ItemKey]:
        """Try items again that had to wait. The deletion of a missing one is followed with the other changes."""
        waiting = []
        for item_key in item_keys:
            (stored,) = await self._read_source([item_key])
            if stored is not None:
                waiting += await self.settle([stored.body])
        return waiting

    async def _settle_together(self, places: Sequence[_Place]) -> list[ItemKey]:
        try:
            await self._settle_unit(places)
        except UniqueKeyViolation:
            if len(places) == 1:
                return [places[0].source]
            return [item_key for place in places for item_key in await self._settle_together([place])]
        return []

    async def _settle_unit(self, places: Sequence[_Place]) -> None:
        while True:
            try:
                return await self._attempt(places)
            except RequestRateTooLarge as throttled:
                await asyncio.sleep(throttled.retry_after_seconds)
            except ExpectationFailed:
                await asyncio.sleep(0)

    async def _attempt(self, places: Sequence[_Place]) -> None:
        target, keyspace = self._target, self._target.keyspace
        with keyspace.in_flight:
            unit = _CopyUnit(target.planner, places[0].key, places[0].target.point, self._router, keyspace)
            # The target first: a version that was read there is then never newer than the source's, and the batch
            # expects it, so that of two processes at work neither puts an earlier version over a later one.
            before = await unit.stored_items([place.target for place in places])
            after = await self._read_source([place.source for place in places])
            changed = [
                (place.target, version)
                for place, old, version in zip(places, before, after, strict=True)
                if _identity(old) != _identity(version)
            ]
            if not changed:
                return
            await unit.put(
                (item_key, None if version is None else self._copy_of(target.planner, version, item_key))
                for item_key, version in changed
            )
            await target.commit(unit)

    async def _read_source(self, item_keys: Sequence[ItemKey]) -> list[StoredItem | None]:
        keys = [item_key.key for item_key in item_keys]
        _, _, values = await self._router.read(self._source.keyspace, item_keys[0].point, keys)
        return [None if stored is None else unpack_item(stored, key) for key, stored in zip(keys, values, strict=True)]

    def _copy_of(self, planner: ChangePlanner, version: StoredItem, item_key: ItemKey) -> NewItem:
        document = self._source.codec.decode(version.body, key=item_key.key)
        stamped, body, etag = planner.codec.stamp(
            document,
            number=version.number,
            tag=version.tag,
            changed_at_seconds=self._source.codec.changed_at_seconds(version.body),
        )
        terms = planner.rules.terms(stamped) if version.is_indexed else ()
        return NewItem(version.number, version.tag, etag, body, terms, version.is_indexed, stamped)

    def _place_of(self, document: Document) -> _Place:
        source, target, item_id = self._source, self._target, self._source.codec.stored_id(document)
        source_key, key = (extract(container.record.definition, document) for container in (source, target))
        return _Place(
            key,
            ItemKey.at(source.planner.point(source_key), item_id),
            ItemKey.at(target.planner.point(key), item_id),
        )


class _CopyUnit(Transaction):
    """A unit of work that stores versions as they are."""

    __slots__ = ()

    def __init__(
        self, planner: ChangePlanner, key: PartitionKey, point: bytes, router: PartitionRouter, keyspace: Keyspace
    ) -> None:
        super().__init__(planner, key, point, reads=PointReads(router, keyspace, point), next_item_number=_no_number)

    async def stored_items(self, item_keys: Sequence[ItemKey]) -> list[StoredItem | None]:
        """Return the items as the store has them, expired or not, all from one moment."""
        await self.load(item_keys)
        return [self._found[item_key.key] for item_key in item_keys]

    async def put(self, versions: Iterable[tuple[ItemKey, NewItem | None]]) -> None:
        """Stage versions that were made elsewhere; None removes an item. UniqueKeyViolation if an item that is not
        among them holds a unique key of theirs."""
        changes = list(versions)
        # All unique keys are given up before any is taken: items may have exchanged theirs.
        for item_key, _ in changes:
            await self._stage(item_key, None)
        for item_key, version in changes:
            if version is not None:
                await self._stage(item_key, version)
                self.cost += charge.write(len(version.body), len(version.terms))


def _no_number() -> int:
    raise AssertionError("a copy keeps the number of its item")


def _batches(places: Iterable[_Place]) -> list[list[_Place]]:
    """Return the places by logical partitions of the target, in batches of bounded size."""
    batches = []
    for _, group in groupby(sorted(places, key=_target_point), key=_target_point):
        rest = list(group)
        while rest:
            batches.append(rest[:_BATCH_ITEMS])
            rest = rest[_BATCH_ITEMS:]
    return batches


def _target_point(place: _Place) -> bytes:
    return place.target.point


def _identity(version: StoredItem | None) -> tuple[int, bytes] | None:
    return None if version is None else (version.number, version.tag)
