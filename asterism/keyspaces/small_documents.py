"""Small documents that a door keeps about something in the catalog, as bytes it alone understands.

They lie in the catalog's partition and are read from there each time, so every process over the store sees the newest.
"""

from __future__ import annotations

import hashlib

from asterism.errors import StorageFull, StorageUnavailable
from asterism.keyspaces.catalog_store import CATALOG_EPOCH, CATALOG_PARTITION
from asterism.keyspaces.layout import after_prefix
from asterism.storage.contract import Batch, Engine, OutOfSpace, Span, StorageRefusal

_DOCUMENT = b"a"
_DIGEST_BYTES = 16


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
        await self._change(Batch(puts=[(_key(owner_rid, name), document)]))

    async def forget_all(self, owner_rid: bytes) -> None:
        prefix = _owned(owner_rid)
        await self._change(Batch(range_deletes=[Span(prefix, after_prefix(prefix))]))

    async def _change(self, batch: Batch) -> None:
        try:
            await self._engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, batch)
        except OutOfSpace:
            raise StorageFull from None
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal


def _owned(owner_rid: bytes) -> bytes:
    # With its length, because the id of a keyspace begins with that of its database.
    return _DOCUMENT + bytes([len(owner_rid)]) + owner_rid


def _key(owner_rid: bytes, name: str) -> bytes:
    return _owned(owner_rid) + hashlib.blake2b(name.encode(), digest_size=_DIGEST_BYTES).digest()
