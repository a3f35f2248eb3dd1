"""Checks of a collection: every document is BSON, and has the index entries that it must have."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from asterism.keyspaces.routing.families import after_prefix
from asterism.models.collections.collection import Collection, CollectionServices
from asterism.models.collections.layout import (
    ARRAY_VALUES,
    INDEX_KEY_BYTES_MAX,
    ITEMS,
    NUMBER_BYTES,
    SINGLE_VALUES,
    unpack_document,
)
from asterism.models.collections.rules import Entries, IndexRules
from asterism.models.collections.scans import ScanQuery
from asterism.storage.contract import Span
from asterism.values.bson.codec import InvalidBson, decode

_PREFIX_BYTES = 8
_PAGE_ENTRIES = 2000


@dataclass(slots=True)
class Findings:
    """The outcome of a check. Writers that go on meanwhile may make it differ by what they write."""

    documents: int = 0
    invalid: list[object] = field(default_factory=list)
    keys: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    # The names of indexes with the ids of documents without an entry.
    missing: list[tuple[str, object]] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not self.invalid and not self.missing


async def verify(services: CollectionServices, collection: Collection) -> Findings:
    """Read all documents and look for all of their index entries."""
    findings = Findings()
    rules = collection.rules.indexes
    scan = await collection.open_scan(ScanQuery(hint="$natural"))
    async for found in scan.batches():
        for document in found:
            findings.documents += 1
            try:
                decoded = decode(document.body)
            except InvalidBson:
                findings.invalid.append(document.key.id_key)
                continue
            for index in rules:
                await _verify_entries(services, collection, index, decoded, document.key.stored, findings)
        await asyncio.sleep(0)
    for index in rules:
        findings.keys[index.record.name], findings.bytes[index.record.name] = await index_size(
            services, collection, index
        )
    return findings


async def _verify_entries(
    services: CollectionServices,
    collection: Collection,
    index: IndexRules,
    decoded: dict[str, object],
    stored_key: bytes,
    findings: Findings,
) -> None:
    point_bytes = collection.rules.point_bytes
    point = stored_key[len(ITEMS) : len(ITEMS) + point_bytes]
    _, _, (stored,) = await services.router.read(collection.keyspace, point, (stored_key,))
    if stored is None:
        return
    current = unpack_document(stored, stored_key)
    entries = Entries({}, {})
    index.add_entries(decode(current.body), point, entries)
    suffix = current.number.to_bytes(NUMBER_BYTES, "big")
    limit = _PREFIX_BYTES + INDEX_KEY_BYTES_MAX
    keys = [key[:limit] + suffix for key in entries.keys]
    if keys:
        _, _, values = await services.router.read(collection.keyspace, point, keys)
        if any(value is None for value in values):
            findings.missing.append((index.record.name, decoded.get("_id")))


async def index_size(services: CollectionServices, collection: Collection, index: IndexRules) -> tuple[int, int]:
    """Return the number of entries of an index, and their bytes."""
    count = size = 0
    keyspace = collection.keyspace
    for region in (SINGLE_VALUES, ARRAY_VALUES):
        prefix = index.prefix(region)
        for partition in keyspace.record.map.ranges:
            rest: Span | None = Span(prefix, after_prefix(prefix))
            while rest is not None:
                page = await services.router.scan(
                    keyspace, keyspace.record, partition, rest, limit=_PAGE_ENTRIES, bytes_max=None
                )
                if page is None:
                    break
                count += len(page.entries)
                size += sum(len(key) + len(value) for key, value in page.entries)
                rest = page.rest(rest)
                await asyncio.sleep(0)
    return count, size
