"""The places where changes are carried out: a transaction of the tree, or a record for the write log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import lmdb

from asterism.storage.contract import PartitionUnknown
from asterism.storage.lmdb.layout import PartitionMeta, PartitionNames, decode_meta
from asterism.storage.lmdb.overlay import Layer, Overlaid, Overlay, layers_of_now, look_up
from asterism.storage.lmdb.views import StoreView
from asterism.values.identifiers import PartitionNumber

# Entries of a span that are looked at together when it is removed.
_REMOVED_AT_ONCE = 500


class Writes(Protocol):
    """Reads and writes of stored keys. A read sees what was written before it."""

    def get(self, key: bytes) -> bytes | None: ...

    def put_many(self, prefix: bytes, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Put the entries, with the prefix before each key."""
        ...

    def delete(self, key: bytes) -> None: ...

    def remove_span(self, low: bytes, high: bytes, *, limit: int | None = None) -> int:
        """Remove the stored keys from `low` up to `high`, at most `limit`; return the number of removed keys."""
        ...


class WriteView:
    """The writes of a group, and the meta records that it has read: each is read once and written once per group."""

    __slots__ = ("_changed", "_metas", "_names", "delete", "get", "has_room", "put_many", "remove_span")

    def __init__(self, writes: Writes, names: PartitionNames, *, has_room: bool) -> None:
        # Bound here, because every write calls them.
        self.get = writes.get
        self.put_many = writes.put_many
        self.delete = writes.delete
        self.remove_span = writes.remove_span
        # Without room, only changes that remove more than they add are carried out.
        self.has_room = has_room
        self._names = names
        self._metas: dict[PartitionNumber, PartitionMeta | None] = {}
        self._changed: set[PartitionNumber] = set()

    def prefix(self, partition: PartitionNumber) -> bytes:
        return self._names[partition][1]

    def stored_meta(self, partition: PartitionNumber) -> PartitionMeta | None:
        """Return the meta record, also of a partition that is being dropped."""
        if partition not in self._metas:
            record = self.get(self._names[partition][0])
            self._metas[partition] = None if record is None else decode_meta(record)
        return self._metas[partition]

    def meta(self, partition: PartitionNumber) -> PartitionMeta:
        meta = self.stored_meta(partition)
        if meta is None or meta.dropping:
            raise PartitionUnknown(partition)
        return meta

    def change_meta(self, partition: PartitionNumber, meta: PartitionMeta | None) -> None:
        self._metas[partition] = meta
        self._changed.add(partition)

    def save_metas(self) -> None:
        for partition in self._changed:
            meta = self._metas[partition]
            if meta is None:
                self.delete(self._names[partition][0])
            else:
                self.put_many(b"", [(self._names[partition][0], meta.encode())])


class TreeWrites:
    """Writes in a transaction of the tree."""

    __slots__ = ("_cursor", "_txn")

    def __init__(self, txn: lmdb.Transaction[bytes]) -> None:
        self._txn = txn
        # One for the whole transaction: to make it takes as long as two puts.
        self._cursor: lmdb.Cursor[bytes] | None = None

    def get(self, key: bytes) -> bytes | None:
        return self._txn.get(key)

    def put_many(self, prefix: bytes, entries: Iterable[tuple[bytes, bytes]]) -> None:
        # One call for all puts, and a cursor that keeps its position: entries of an index are adjacent.
        if self._cursor is None:
            self._cursor = self._txn.cursor()
        self._cursor.putmulti([(prefix + key, value) for key, value in entries] if prefix else entries)

    def delete(self, key: bytes) -> None:
        self._txn.delete(key)

    def remove_span(self, low: bytes, high: bytes, *, limit: int | None = None) -> int:
        removed = 0
        with self._txn.cursor() as cursor:
            found = cursor.set_range(low)
            # Deleting moves the cursor to the next entry; past the last one its key is empty.
            while found and removed != limit and (key := cursor.key()) and key < high:
                found = cursor.delete()
                removed += 1
        return removed


class LoggedWrites:
    """Writes that change nothing yet: `changes` is what the log is to have, over the tree and its overlays."""

    __slots__ = ("_layers", "_txn", "changes")

    def __init__(self, txn: lmdb.Transaction[bytes], layers: Sequence[Layer]) -> None:
        self._txn = txn
        self._layers = layers
        self.changes: dict[bytes, Overlaid] = {}

    def get(self, key: bytes) -> bytes | None:
        if key in self.changes:
            return self.changes[key]
        return look_up(self._layers, self._txn.get, key)

    def put_many(self, prefix: bytes, entries: Iterable[tuple[bytes, bytes]]) -> None:
        changes = self.changes
        for key, value in entries:
            changes[prefix + key] = value

    def delete(self, key: bytes) -> None:
        self.changes[key] = None

    def remove_span(self, low: bytes, high: bytes, *, limit: int | None = None) -> int:
        own = Overlay()
        # A copy, because the changes are written while they are read.
        own.add(dict(self.changes))
        take = StoreView(self._txn, [*layers_of_now([own]), *self._layers]).entries(low, high)
        removed = 0
        while removed != limit:
            wanted = _REMOVED_AT_ONCE if limit is None else min(_REMOVED_AT_ONCE, limit - removed)
            keys = [key for key, _ in take(wanted) if key < high]
            self.changes.update(dict.fromkeys(keys))
            removed += len(keys)
            if len(keys) < wanted:
                break
        return removed
