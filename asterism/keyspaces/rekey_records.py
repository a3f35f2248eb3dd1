"""Where the catalog keeps jobs that copy a keyspace into one with another partition key."""

from __future__ import annotations

from asterism.keyspaces.catalog_store import REKEY, CatalogStore, numbered
from asterism.keyspaces.catalog_work import CatalogWork


class RekeyRecords:
    def __init__(self, store: CatalogStore, work: CatalogWork) -> None:
        self._store = store
        self._work = work

    def entry(self, number: int, stored: bytes) -> tuple[bytes, bytes]:
        """What a catalog batch has to put."""
        return numbered(REKEY, number), stored

    async def put(self, number: int, stored: bytes) -> None:
        await self._work.put_rekey(number, stored)

    async def forget(self, number: int) -> None:
        await self._work.put_rekey(number, None)

    async def all(self) -> list[bytes]:
        return [value for _, value in await self._store.scan(REKEY)]
