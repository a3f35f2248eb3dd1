"""The batch of a change of documents: bodies, index entries, unique keys, the log and its images, all or nothing.

Entries are a function of the document and the indexes, so that a change removes those of the document before and adds
those of the document after; entries of both stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from asterism.models.collections.layout import (
    CHANGE_LOG,
    INDEX_KEY_BYTES_MAX,
    NUMBER_BYTES,
    DocumentKey,
    StoredDocument,
    image_key,
    log_suffix,
    pack_document,
    pack_image,
)
from asterism.models.collections.log_entries import CatalogChange, document_entry, entry_head, log_catalog_changes
from asterism.models.collections.records import ID_INDEX, IndexRecord
from asterism.models.collections.results import DuplicateKey, IndexEntryProblem
from asterism.models.collections.rules import CollectionRules, Entries
from asterism.storage.contract import Batch, Expectation
from asterism.throughput import charge
from asterism.values.bson.codec import decode, encode
from asterism.values.bson.raw_documents import document_of, end_of_id, get_field
from asterism.values.bson.types import MISSING, Document

_NO_ENTRIES = Entries({}, {})
_PREFIX_BYTES = 8


@dataclass(slots=True)
class DocumentChange:
    """A document before and after, None if it does not exist. `document` is the decoded body after, if known."""

    rules: CollectionRules
    key: DocumentKey
    before: StoredDocument | None
    after: bytes | None
    document: Document | None = None
    operation: str = "insert"
    description: Document | None = None
    keeps_images: bool = True
    # False for a copy, which is no change of the collection.
    is_logged: bool = True


# Expected key -> what is wrong if it is not as expected: the change, and the index with its values.
Blame = dict[bytes, tuple[int, CollectionRules, IndexRecord | None, tuple[Any, ...]]]


@dataclass(slots=True)
class PlannedChanges:
    batch: Batch = field(default_factory=Batch)
    # Point -> bytes and documents that it gains.
    sizes: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    cost: float = 0.0
    blame: Blame = field(default_factory=dict)
    # Unique keys that some change of the batch holds.
    _held: dict[bytes, int] = field(default_factory=dict)
    _released: dict[bytes, bytes] = field(default_factory=dict)
    # The shared parts of log entries, by collection and operation.
    _heads: dict[tuple[int, str], bytes] = field(default_factory=dict)


class ChangePlanner:
    """Plans batches. `next_number` numbers new documents, `next_time` is the hybrid clock of changes."""

    __slots__ = ("_next_number", "_next_time", "_wall_milliseconds")

    def __init__(
        self,
        next_number: Callable[[], int],
        next_time: Callable[[], int],
        wall_milliseconds: Callable[[], int],
    ) -> None:
        self._next_number = next_number
        self._next_time = next_time
        self._wall_milliseconds = wall_milliseconds

    def plan(self, changes: Sequence[DocumentChange], transaction: Document | None = None) -> PlannedChanges:
        """Return one batch for all changes; DuplicateKey if two of them claim the same unique key. `transaction` is
        noted in the log with each of them."""
        planned = PlannedChanges()
        now = self._wall_milliseconds()
        time = self._next_time()
        for place, change in enumerate(changes):
            self._plan_one(planned, change, place=place, now=now, time=time, transaction=transaction)
        batch = planned.batch
        batch.deletes += [key for key in planned._released if key not in planned._held]
        return planned

    def _plan_one(
        self,
        planned: PlannedChanges,
        change: DocumentChange,
        *,
        place: int,
        now: int,
        time: int,
        transaction: Document | None,
    ) -> None:
        batch, rules, key, before, after = planned.batch, change.rules, change.key, change.before, change.after
        stored_key = key.stored
        old = new = _NO_ENTRIES
        document: Document | None = None
        if before is None:
            if stored_key in planned.blame:
                raise duplicate(rules, None, (get_field(after or b"", "_id"),), place=place)
            batch.expectations.append(Expectation(stored_key, None))
            planned.blame[stored_key] = place, rules, None, ()
            number = self._next_number()
        else:
            batch.expectations.append(Expectation(stored_key, before.version))
            number = before.number
        if rules.indexes:
            if before is not None:
                old = rules.entries(decode(before.body), key.point)
            if after is not None:
                document = change.document or decode(after)
                try:
                    new = rules.entries(document, key.point)
                except Exception as error:
                    raise IndexEntryProblem(place, error) from error
            self._plan_index(batch, old, new, number, key.reference)
            self._plan_unique(planned, change, old, new, place)
        size_before = 0 if before is None else len(before.body)
        if after is None:
            batch.deletes.append(stored_key)
            size_after = 0
        else:
            size_after = len(after)
            batch.versioned_puts.append(
                (stored_key, pack_document(number=number, place=place, changed_at=now, body=after))
            )
        bytes_delta, items_delta = planned.sizes.get(key.point, (0, 0))
        planned.sizes[key.point] = (
            bytes_delta + size_after - size_before,
            items_delta + (after is not None) - (before is not None),
        )
        if before is not None and change.keeps_images:
            # The log finds the body of a version here once it is no longer that of the document.
            image = image_key(before.version, place=before.place, number=before.number)
            batch.puts.append((image, pack_image(key.point, now, before.body)))
        if change.is_logged:
            self._plan_log(planned, change, place, number, now, time, transaction)
        entries = len(old.keys.keys() ^ new.keys.keys())
        if before is None:
            planned.cost += charge.write(size_after, entries)
        elif after is None:
            planned.cost += charge.delete(size_before, entries)
        else:
            planned.cost += charge.replace(before_bytes=size_before, after_bytes=size_after, indexed_paths=entries)

    def _plan_log(
        self,
        planned: PlannedChanges,
        change: DocumentChange,
        place: int,
        number: int,
        now: int,
        time: int,
        transaction: Document | None,
    ) -> None:
        record, before = change.rules.record, change.before
        head = planned._heads.get((record.number, change.operation))
        if head is None:
            head = planned._heads[record.number, change.operation] = entry_head(
                change.operation,
                record.name,
                record.uuid,
                time=time,
                wall_milliseconds=now,
                keeps_images=record.offers_images,
            )
        displaced = None if before is None else before.version + log_suffix(place=before.place, number=number)
        body = change.after if change.after is not None else before.body if before is not None else b""
        key = _key_document(change.rules, body)
        entry = document_entry(head, key, displaced, change.description, transaction)
        planned.batch.stamped_puts.append(
            (CHANGE_LOG, log_suffix(place=place, number=number), change.key.point + entry)
        )

    def log_catalog(self, batch: Batch, point: bytes, changes: Sequence[CatalogChange]) -> None:
        """Add changes of the catalog to a batch of the partition of `point`, for readers of changes."""
        log_catalog_changes(
            batch,
            point,
            changes,
            numbers=[self._next_number() for _ in changes],
            time=self._next_time(),
            wall_milliseconds=self._wall_milliseconds(),
        )

    def _plan_index(self, batch: Batch, old: Entries, new: Entries, number: int, reference: bytes) -> None:
        suffix = number.to_bytes(NUMBER_BYTES, "big")
        limit = _PREFIX_BYTES + INDEX_KEY_BYTES_MAX
        before = {key[:limit]: None for key in old.keys}
        after = {key[:limit]: None for key in new.keys}
        batch.deletes.extend([key + suffix for key in before if key not in after])
        batch.puts.extend([(key + suffix, reference) for key in after if key not in before])

    def _plan_unique(
        self, planned: PlannedChanges, change: DocumentChange, old: Entries, new: Entries, place: int
    ) -> None:
        batch, reference = planned.batch, change.key.reference
        for key in old.unique:
            if key not in new.unique:
                planned._released[key] = reference
        for key, (index, values) in new.unique.items():
            if key in old.unique:
                continue
            if key in planned._held:
                raise duplicate(change.rules, index, values, place=place)
            planned._held[key] = place
            expected = planned._released.get(key)
            batch.expectations.append(Expectation(key, expected))
            planned.blame[key] = place, change.rules, index, values
            batch.puts.append((key, reference))


def _key_document(rules: CollectionRules, body: bytes) -> bytes:
    """Return the shard key and the `_id` of a document as BSON. `_id` is its first element."""
    end = end_of_id(body)
    if not rules.is_sharded:
        return document_of(body[4:end])
    paths = rules.record.shard_key
    values = dict(zip(paths, rules.shard_values(decode(body)), strict=True))
    shard = encode({path: value for path, value in values.items() if path != "_id" and value is not MISSING})
    return document_of(shard[4:-1], body[4:end])


def duplicate(
    rules: CollectionRules, index: IndexRecord | None, values: Sequence[Any], *, place: int = 0
) -> DuplicateKey:
    """Return the error of a document that has the values of another; without an index, its `_id`."""
    if index is None:
        return DuplicateKey(rules.record.namespace, ID_INDEX, {"_id": 1}, {"_id": values[0]}, place)
    shown = dict(zip(index.key, values, strict=False))
    return DuplicateKey(rules.record.namespace, index.name, index.key, shown, place)
