"""Copies of documents from one place of a collection to another.

The state is copied, not the changes: whatever changed about a document of the source, its copy is brought into line
with what the source holds now. Doing that again, or late, does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from asterism.models.collections.collection import Collection, CollectionServices
from asterism.models.collections.layout import DocumentKey, unpack_document
from asterism.models.collections.planner import DocumentChange, duplicate
from asterism.models.collections.results import DuplicateKey
from asterism.models.collections.rules import CollectionRules
from asterism.models.collections.scans import ScanQuery
from asterism.storage.contract import ExpectationFailed
from asterism.values.bson.codec import decode
from asterism.values.bson.raw_documents import get_field

_WALK = ScanQuery(hint="$natural")


class _Wanted(NamedTuple):
    """A key of the target with the source document that it belongs to; without a body it is to be empty."""

    source: DocumentKey
    target: DocumentKey
    body: bytes | None


class DocumentCopier:
    """Copies between two collections, which nothing but this writes to the second of."""

    def __init__(self, services: CollectionServices, source: Collection, target: Collection) -> None:
        self._services = services
        self._source = source
        self._target = target
        # Documents that found their place, or a unique key, taken: perhaps by a copy that is out of date.
        self.deferred: set[DocumentKey] = set()

    def target_key(self, key: DocumentKey, body: bytes) -> DocumentKey:
        """Return the place of a document in the target; ShardKeyProblem if it has none."""
        return DocumentKey(_point(self._target.rules, body), key.id_key)

    async def settle(self, keys: Iterable[DocumentKey], images: Sequence[tuple[DocumentKey, bytes]] = ()) -> None:
        """Bring the copies of source documents into line. `images` are bodies that they had before, whose places in the
        target they may have left. Documents that are in each other's way are deferred."""
        wanted: dict[tuple[DocumentKey, DocumentKey], _Wanted] = {}
        present = await self._bodies(set(keys))
        for key, image in images:
            left = self.target_key(key, image)
            wanted[key, left] = _Wanted(key, left, None)
        for key, body in present.items():
            if body is not None:
                at = self.target_key(key, body)
                wanted[key, at] = _Wanted(key, at, body)
        by_point: dict[bytes, list[_Wanted]] = {}
        for entry in wanted.values():
            by_point.setdefault(entry.target.point, []).append(entry)
        for point, entries in by_point.items():
            await self._settle_group(point, entries)

    async def settle_deferred(self) -> None:
        """Settle what was deferred; DuplicateKey if documents are still in each other's way."""
        while self.deferred:
            keys, self.deferred = self.deferred, set()
            await self.settle(keys)
            if self.deferred == keys:
                for key, body in (await self._bodies(keys)).items():
                    if body is not None:
                        at = self.target_key(key, body)
                        await self._settle_point(at.point, [_Wanted(key, at, body)])

    async def _settle_group(self, point: bytes, entries: Sequence[_Wanted]) -> None:
        try:
            await self._settle_point(point, entries)
        except DuplicateKey:
            if len(entries) == 1:
                self.deferred.add(entries[0].source)
                return
            for entry in entries:
                await self._settle_group(point, [entry])

    async def _bodies(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, bytes | None]:
        """Return the source's documents as they are now."""
        by_point: dict[bytes, list[DocumentKey]] = {}
        for key in keys:
            by_point.setdefault(key.point, []).append(key)
        found: dict[DocumentKey, bytes | None] = {}
        for point, group in by_point.items():
            stored = await self._stored(self._source, point, group)
            for key, value in zip(group, stored, strict=True):
                found[key] = None if value is None else unpack_document(value, key.stored).body
        return found

    async def _stored(
        self, collection: Collection, point: bytes, keys: Sequence[DocumentKey]
    ) -> Sequence[bytes | None]:
        _, _, values = await self._services.router.read(collection.keyspace, point, [key.stored for key in keys])
        return values

    async def _settle_point(self, point: bytes, entries: Sequence[_Wanted]) -> None:
        while True:
            try:
                with self._target.keyspace.in_flight:
                    await self._try_to_settle(point, entries)
            except ExpectationFailed:
                # Other settings are in force, or a process that led before was at the same documents.
                continue
            return

    async def _try_to_settle(self, point: bytes, entries: Sequence[_Wanted]) -> None:
        target = self._target
        settings, rules = target.keyspace.record.settings, target.rules
        copies = await self._stored(target, point, [entry.target for entry in entries])
        # After the target: a process that led before and comes late must not undo what its successor has copied.
        present = await self._bodies({entry.source for entry in entries})
        changes: list[DocumentChange] = []
        for entry, stored in zip(entries, copies, strict=True):
            change = self._plan(rules, entry, stored, present[entry.source])
            if change is not None:
                changes.append(change)
        if changes:
            await target.apply_copies(point, changes, settings)

    def _plan(
        self, rules: CollectionRules, entry: _Wanted, stored: bytes | None, body: bytes | None
    ) -> DocumentChange | None:
        before = None if stored is None else unpack_document(stored, entry.target.stored)
        belongs = before is None or self._source_key(entry.target, before.body) == entry.source
        if body is not None and self.target_key(entry.source, body) == entry.target:
            if before is None:
                return DocumentChange(rules, entry.target, None, body, is_logged=False)
            if not belongs:
                raise duplicate(rules, None, (get_field(body, "_id"),))
            if before.body == body:
                return None
            return DocumentChange(rules, entry.target, before, body, is_logged=False, keeps_images=False)
        if before is None or not belongs:
            return None
        return DocumentChange(
            rules, entry.target, before, None, operation="delete", is_logged=False, keeps_images=False
        )

    def _source_key(self, key: DocumentKey, body: bytes) -> DocumentKey:
        return DocumentKey(_point(self._source.rules, body), key.id_key)

    async def sweep(self) -> None:
        """Remove copies whose documents the source no longer has there."""
        scan = await self._target.open_scan(_WALK)
        async for found in scan.batches():
            entries = [(self._source_key(copy.key, copy.body), copy.body) for copy in found]
            await self.settle([key for key, _ in entries], entries)


def _point(rules: CollectionRules, body: bytes) -> bytes:
    return rules.point_of(decode(body), allow_missing=True) if rules.is_sharded else rules.fixed_point
