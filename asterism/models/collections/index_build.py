"""Builds indexes on documents that exist: a walk in slices, while writers go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PlanOutdated
from asterism.models.collections.collection import Collection, CollectionServices
from asterism.models.collections.layout import INDEX_KEY_BYTES_MAX, ITEMS, NUMBER_BYTES, unpack_document
from asterism.models.collections.planner import duplicate
from asterism.models.collections.records import IndexRecord
from asterism.models.collections.results import FoundDocument
from asterism.models.collections.rules import Entries, IndexRules
from asterism.models.collections.scans import ScanQuery
from asterism.storage.contract import Batch, Expectation, ExpectationFailed
from asterism.values.bson.codec import decode

_PREFIX_BYTES = 8


@dataclass(slots=True)
class BuildProgress:
    """A build under way: the documents that it has visited, of those that there were at its beginning."""

    namespace: str
    names: tuple[str, ...]
    keyspace: Keyspace
    total: int
    done: int = 0


class IndexBuilder:
    """Writes the entries of documents that were there before their index. Writers keep those of all others."""

    def __init__(self, services: CollectionServices) -> None:
        self._services = services
        self.under_way: list[BuildProgress] = []

    async def build(self, collection: Collection, indexes: Sequence[IndexRecord]) -> int:
        """Return how many documents were visited; DuplicateKey at the first that violates a unique index."""
        names = tuple(index.name for index in indexes)
        total = (await collection.size()).items
        progress = BuildProgress(collection.record.namespace, names, collection.keyspace, total)
        self.under_way.append(progress)
        try:
            await self._visit(collection, indexes, progress)
        finally:
            self.under_way.remove(progress)
        return progress.done

    async def _visit(self, collection: Collection, indexes: Sequence[IndexRecord], progress: BuildProgress) -> None:
        # By the documents themselves: the order of inserts may be what is being built.
        scan = await collection.open_scan(ScanQuery(hint="$natural", by_documents=True))
        async for found in scan.batches():
            progress.done += len(found)
            by_point: dict[bytes, list[FoundDocument]] = {}
            for document in found:
                by_point.setdefault(document.key.point, []).append(document)
            for point, documents in by_point.items():
                await self._write(collection, indexes, point, documents)
            await asyncio.sleep(0)

    async def _write(
        self, collection: Collection, indexes: Sequence[IndexRecord], point: bytes, found: Sequence[FoundDocument]
    ) -> None:
        numbers = {index.number for index in indexes}
        pending = list(found)
        while pending:
            rules = [index for index in collection.rules.indexes if index.record.number in numbers]
            keys = [document.key.stored for document in pending]
            _, _, values = await self._services.router.read(collection.keyspace, point, keys)
            batch = Batch()
            for key, stored in zip(keys, values, strict=True):
                if stored is not None:
                    await self._plan(collection, rules, batch, key, stored, point)
            try:
                await self._services.router.apply(collection.keyspace, point, batch)
            except PlanOutdated:
                continue
            except ExpectationFailed:
                # A document was changed meanwhile, and its writer has kept the index.
                await asyncio.sleep(0)
                continue
            return

    async def _plan(
        self, collection: Collection, rules: Sequence[IndexRules], batch: Batch, key: bytes, stored: bytes, point: bytes
    ) -> None:
        document = unpack_document(stored, key)
        entries = Entries({}, {})
        decoded = decode(document.body)
        for index in rules:
            index.add_entries(decoded, point, entries)
        if not entries.keys:
            return
        reference = key[len(ITEMS) :]
        batch.expectations.append(Expectation(key, document.version))
        suffix = document.number.to_bytes(NUMBER_BYTES, "big")
        limit = _PREFIX_BYTES + INDEX_KEY_BYTES_MAX
        batch.puts += [(entry[:limit] + suffix, reference) for entry in entries.keys]
        if not entries.unique:
            return
        known = {put for put, _ in batch.puts}
        _, _, holders = await self._services.router.read(collection.keyspace, point, list(entries.unique))
        for (entry, (index_record, values)), holder in zip(entries.unique.items(), holders, strict=True):
            if entry in known or (holder is not None and holder != reference):
                if not index_record.options.get("unique"):
                    # `prepareUnique` holds for new documents only.
                    continue
                raise duplicate(collection.rules, index_record, values)
            batch.expectations.append(Expectation(entry, holder))
            batch.puts.append((entry, reference))
