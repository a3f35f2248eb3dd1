"""A transaction: reads of one moment with the transaction's own changes laid over, and one batch at the end.

Everything lies in one physical partition, whose snapshot the transaction holds. Changes are staged; the batch expects
every changed document to be as the snapshot has it, so that a transaction that was overtaken writes nothing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.router import PartitionRouter
from asterism.models.collections.layout import unpack_document
from asterism.models.collections.planner import Blame, ChangePlanner, DocumentChange, duplicate
from asterism.models.collections.records import CollectionRecord
from asterism.models.collections.results import TransactionOvertaken, TransactionTooWide
from asterism.models.collections.write_claims import WriteClaims
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import LSN_BYTES, ScanPage, Snapshot, Span
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.types import Document
from asterism.values.identifiers import Lsn

_NO_LSN = bytes(8)
# Staged bodies of one transaction; MongoDB's own limit for its log entries is the same.
STAGED_BYTES_MAX = 16 * 1024 * 1024


class TransactionTooLarge(Exception):
    """The staged changes are more than a transaction may hold."""


def _join(earlier: DocumentChange, change: DocumentChange, original: bytes) -> None:
    """Let a change of a document that the transaction has changed before tell readers of both: they see it once."""
    if change.after is None:
        return
    if change.operation != "update" or earlier.operation != "update":
        # A document that was deleted and inserted again, or replaced on the way.
        change.operation, change.description = "replace", None
    else:
        change.description = _differing_fields(decode(original), decode(change.after))


def _differing_fields(before: Document, after: Document) -> Document:
    def is_kept(name: str) -> bool:
        return name in before and encode({"": before[name]}) == encode({"": after[name]})

    return {
        "updatedFields": {name: value for name, value in after.items() if not is_kept(name)},
        "removedFields": [name for name in before if name not in after],
        "truncatedArrays": [],
    }


class Unit:
    """The state of one open transaction. It is used by one statement at a time."""

    def __init__(self, router: PartitionRouter, planner: ChangePlanner, claims: WriteClaims) -> None:
        self._router = router
        self._planner = planner
        self._claims = claims
        self._claimed: list[bytes] = []
        self.is_closed = False
        self._snapshot: Snapshot | None = None
        self.keyspace: Keyspace | None = None
        self.partition: PartitionRange | None = None
        self.point = b""
        self._namespace = ""
        # Stored key -> the document as the snapshot has it, and the change of it.
        self.staged: dict[bytes, DocumentChange] = {}
        # Collections that exist for this transaction only until it commits, by database and name.
        self.created: dict[tuple[bytes, str], CollectionRecord] = {}
        self._over: dict[bytes, bytes | None] = {}
        self._sorted: list[bytes] = []
        self._laid: dict[bytes, list[bytes]] = {}
        self._bytes = 0

    async def enter(self, keyspace: Keyspace, point: bytes, namespace: str) -> None:
        """Begin at the first statement; TransactionTooWide if a later one is about another physical partition."""
        if self._snapshot is None:
            self._snapshot = await self._router.snapshot(keyspace, point)
            self.keyspace, self.point, self._namespace = keyspace, point, namespace
            self.partition = keyspace.record.map.find(point)
            return
        assert self.partition is not None
        if keyspace is not self.keyspace or not self.partition.range.start <= point < self.partition.range.end:
            raise TransactionTooWide(self._namespace, namespace)

    async def close(self) -> None:
        self.is_closed = True
        if self.keyspace is not None:
            self._claims.release(self.keyspace.record.rid, self._claimed, self)
            self._claimed = []
        if self._snapshot is not None:
            snapshot, self._snapshot = self._snapshot, None
            await snapshot.close()

    # --- reads ------------------------------------------------------------------------------------------------------

    async def read(
        self, keyspace: Keyspace, point: bytes, keys: Sequence[bytes]
    ) -> tuple[PartitionRange, Lsn, list[bytes | None]]:
        assert self._snapshot is not None, "a transaction is entered before it reads"
        values = await self._snapshot.read(keys)
        over = self._over
        laid = [over.get(key, value) for key, value in zip(keys, values, strict=True)]
        return keyspace.record.map.find(point), self._snapshot.lsn, laid

    async def read_from(
        self,
        keyspace: Keyspace,
        seen: KeyspaceRecord,  # noqa: ARG002
        partition: PartitionRange,  # noqa: ARG002
        keys: Sequence[bytes],
    ) -> tuple[Lsn, list[bytes | None]] | None:
        _, lsn, values = await self.read(keyspace, self.point, keys)
        return lsn, values

    async def scan(
        self,
        keyspace: Keyspace,  # noqa: ARG002 - one snapshot answers for all of its partition
        seen: KeyspaceRecord,  # noqa: ARG002
        partition: PartitionRange,  # noqa: ARG002
        span: Span,
        *,
        limit: int,
        bytes_max: int | None,
        reverse: bool = False,
    ) -> ScanPage | None:
        assert self._snapshot is not None, "a transaction is entered before it reads"
        while True:
            page = await self._snapshot.scan(span, limit=limit, bytes_max=bytes_max, reverse=reverse)
            rest = page.rest(span, reverse=reverse)
            entries = self._merged(page, span, rest, reverse=reverse)
            # The last entry of a page that is not the last says where the next one begins, so there must be one.
            if entries or rest is None:
                return ScanPage(entries, page.more)
            span = rest

    def _merged(self, page: ScanPage, span: Span, rest: Span | None, *, reverse: bool) -> list[tuple[bytes, bytes]]:
        start, end = span.start, span.end
        if rest is not None:
            start, end = (rest.end or b"", end) if reverse else (start, rest.start)
        first = bisect_left(self._sorted, start)
        last = len(self._sorted) if end is None else bisect_left(self._sorted, end)
        if first >= last:
            return page.entries
        merged: dict[bytes, bytes | None] = dict(page.entries)
        for key in self._sorted[first:last]:
            merged[key] = self._over[key]
        return sorted([(key, value) for key, value in merged.items() if value is not None], reverse=reverse)

    # --- changes ----------------------------------------------------------------------------------------------------

    async def stage(self, change: DocumentChange) -> None:
        """Lay a change over the snapshot. DuplicateKey if another document holds a unique key of it."""
        key = change.key.stored
        known = self.staged.get(key)
        assert self._snapshot is not None, "a transaction is entered before it writes"
        if known is None:
            (stored,) = await self._snapshot.read((key,))
            await self._claim(change, stored)
            original = None if stored is None else unpack_document(stored, key)
        else:
            original = known.before
            self._unstage(key)
        if change.after is None and original is None:
            return
        change.before = original
        if original is None:
            change.operation, change.description = "insert", None
        elif known is not None:
            _join(known, change, original.body)
        planned = self._planner.plan([change])
        if planned.blame:
            await self._check_unique(planned.blame, change)
        self.staged[key] = change
        self._bytes += len(change.after or b"")
        if self._bytes > STAGED_BYTES_MAX:
            raise TransactionTooLarge
        over: dict[bytes, bytes | None] = dict.fromkeys(planned.batch.deletes)
        over.update(planned.batch.puts)
        over.update((put, _NO_LSN + value) for put, value in planned.batch.versioned_puts)
        self._laid[key] = list(over)
        for laid, value in over.items():
            if laid not in self._over:
                insort(self._sorted, laid)
            self._over[laid] = value

    async def _claim(self, change: DocumentChange, stored: bytes | None) -> None:
        """Take a document for this transaction; TransactionOvertaken if another writer was faster."""
        keyspace = self.keyspace
        assert keyspace is not None, "a transaction is entered before it writes"
        key = change.key.stored
        self._claims.take(keyspace.record.rid, key, self)
        self._claimed.append(key)
        _, _, (current,) = await self._router.read(keyspace, change.key.point, (key,))
        if _version(current) != _version(stored):
            raise TransactionOvertaken

    def has_staged(self, collection: CollectionRecord) -> bool:
        return any(change.rules.record.number == collection.number for change in self.staged.values())

    def _unstage(self, key: bytes) -> None:
        self._bytes -= len(self.staged.pop(key).after or b"")
        for laid in self._laid.pop(key, ()):
            if laid in self._over:
                del self._over[laid]
                self._sorted.remove(laid)

    async def _check_unique(self, blame: Blame, change: DocumentChange) -> None:
        assert self._snapshot is not None, "a transaction is entered before it writes"
        keys = [key for key, (_, _, index, _) in blame.items() if index is not None]
        if not keys:
            return
        values = await self._snapshot.read(keys)
        for key, stored in zip(keys, values, strict=True):
            holder = self._over.get(key, stored)
            if holder is not None and holder != change.key.reference:
                _, rules, index, shown = blame[key]
                raise duplicate(rules, index, shown)


def _version(stored: bytes | None) -> bytes | None:
    return None if stored is None else stored[:LSN_BYTES]
