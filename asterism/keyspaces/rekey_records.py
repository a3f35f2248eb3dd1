"""Where the catalog keeps jobs that copy a keyspace into one with another partition key."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from typing import Final

from asterism.storage.contract import Batch
from asterism.values.identifiers import Lsn

_REKEY: Final = b"r"
_NUMBER: Final = struct.Struct(">Q")


class RekeyRecords:
    def __init__(
        self,
        change: Callable[[Batch], Awaitable[Lsn]],
        scan: Callable[[bytes], Awaitable[list[tuple[bytes, bytes]]]],
    ) -> None:
        self._change = change
        self._scan = scan

    def entry(self, number: int, stored: bytes) -> tuple[bytes, bytes]:
        """What a catalog batch has to put."""
        return _REKEY + _NUMBER.pack(number), stored

    async def put(self, number: int, stored: bytes) -> None:
        await self._change(Batch(puts=[self.entry(number, stored)]))

    async def forget(self, number: int) -> None:
        await self._change(Batch(deletes=[_REKEY + _NUMBER.pack(number)]))

    async def all(self) -> list[bytes]:
        return [value for _, value in await self._scan(_REKEY)]
