"""The documents that open transactions of this process have changed.

A transaction that changes a document of another open one would be refused at its commit; it learns of it here, at
once. Transactions of other processes still meet at the commit.
"""

from __future__ import annotations

from asterism.models.collections.results import TransactionOvertaken


class WriteClaims:
    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: dict[tuple[bytes, bytes], object] = {}

    def take(self, keyspace_rid: bytes, key: bytes, owner: object) -> None:
        """Claim a document; TransactionOvertaken if another transaction has changed it."""
        if self._owners.setdefault((keyspace_rid, key), owner) is not owner:
            raise TransactionOvertaken

    def release(self, keyspace_rid: bytes, keys: list[bytes], owner: object) -> None:
        for key in keys:
            if self._owners.get((keyspace_rid, key)) is owner:
                del self._owners[keyspace_rid, key]
