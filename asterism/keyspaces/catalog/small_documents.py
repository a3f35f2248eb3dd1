"""Small documents that a model keeps about a database or keyspace, as bytes that the catalog does not interpret.

They lie in the catalog's partition and are read from there each time, so that every process sees the newest. They are
deleted with their owner, in the same batch (K11).
"""

from __future__ import annotations

import hashlib

from asterism.errors import OwnerNotFound, StorageFull, StorageUnavailable
from asterism.keyspaces.catalog.store import CATALOG_EPOCH, CATALOG_PARTITION, DATABASE, KEYSPACE
from asterism.keyspaces.routing.families import after_prefix
from asterism.storage.contract import Batch, Engine, Expectation, ExpectationFailed, OutOfSpace, Span, StorageRefusal
from asterism.values.resource_ids import COLLECTION_RID_BYTES

_DOCUMENT = b"a"
_DIGEST_BYTES = 16
# Every value begins so: the key is present.
_PRESENT = b""


class SmallDocuments:
    """Documents by owner (the resource id of a database or keyspace) and name."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, owner_rid: bytes, name: str) -> bytes | None:
        try:
            _, (stored,) = await self._engine.read(CATALOG_PARTITION, CATALOG_EPOCH, [_key(owner_rid, name)])
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal
        return stored

    async def put(self, owner_rid: bytes, name: str, document: bytes) -> None:
        """Store a document, durably; OwnerNotFound if the owner was deleted meanwhile."""
        await self._put(owner_rid, _key(owner_rid, name), document, [])

    async def replace(self, owner_rid: bytes, name: str, document: bytes, *, before: bytes | None) -> bool:
        """Store a document in place of one that begins with `before`, or the first one if that is None; False if
        another process was faster."""
        key = _key(owner_rid, name)
        try:
            await self._put(owner_rid, key, document, [Expectation(key, before)])
        except ExpectationFailed:
            return False
        return True

    async def _put(self, owner_rid: bytes, key: bytes, document: bytes, expectations: list[Expectation]) -> None:
        owner = _record_key(owner_rid)
        batch = Batch(expectations=[Expectation(owner, _PRESENT), *expectations], puts=[(key, document)])
        try:
            await self._engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, batch)
        except ExpectationFailed as failure:
            if failure.key != owner:
                raise
            raise OwnerNotFound(kind="owner", name=owner_rid.hex()) from None
        except OutOfSpace:
            raise StorageFull from None
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal


def plan_document_removal(owner_rid: bytes, batch: Batch) -> None:
    """Add the removal of all documents of an owner to the batch that deletes it."""
    prefix = _owned(owner_rid)
    batch.range_deletes.append(Span(prefix, after_prefix(prefix)))


def _record_key(owner_rid: bytes) -> bytes:
    return (KEYSPACE if len(owner_rid) == COLLECTION_RID_BYTES else DATABASE) + owner_rid


def _owned(owner_rid: bytes) -> bytes:
    # With its length, because the id of a keyspace begins with that of its database.
    return _DOCUMENT + bytes([len(owner_rid)]) + owner_rid


def _key(owner_rid: bytes, name: str) -> bytes:
    return _owned(owner_rid) + hashlib.blake2b(name.encode(), digest_size=_DIGEST_BYTES).digest()
