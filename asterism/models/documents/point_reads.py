"""Reads of the units of work in one logical partition, each of the newest moment."""

from __future__ import annotations

from collections.abc import Sequence

from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.documents.forwarding import check_write


class PointReads:
    __slots__ = ("_keyspace", "_point", "_router")

    def __init__(self, router: PartitionRouter, keyspace: Keyspace, point: bytes) -> None:
        self._router = router
        self._keyspace = keyspace
        self._point = point

    async def read(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        keyspace = self._keyspace
        values = (await self._router.read(keyspace, self._point, keys))[2]
        # A process learns of a rule at its first read under it, and must not decide by what it has read there.
        if keyspace.record.forwarding is not None:
            check_write(keyspace.record, self._point)
        return values
