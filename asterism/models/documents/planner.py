"""The plan of a change: how a change of an item becomes entries of a storage batch, for every kind of write.

A change goes from what the store holds (maybe nothing) to a new version (maybe none). The item itself, its change-log
entry, its index entries and its expiry entry follow from the two. Sizes and expectations belong to the whole batch,
because several changes may share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat, zip_longest

from asterism.clock import Clock
from asterism.errors import PartitionKeyMismatch, TooLarge
from asterism.keyspaces.catalog.records import KeyspaceRecord
from asterism.keyspaces.routing.families import (
    CHANGE_LOG,
    CREATION_ORDER,
    EXPIRY,
    LOGICAL_ORDER,
    expiry_key,
    expiry_of,
    log_key,
    log_suffix,
    number_bytes,
)
from asterism.limits import Limits
from asterism.models.documents.changes.item_version import plan_version
from asterism.models.documents.codec import TAG_BYTES, Document, DocumentCodec
from asterism.models.documents.incoming.entries import Entry, EntryChanges, entry_of
from asterism.models.documents.indexes.terms import Term
from asterism.models.documents.item_key import ItemKey
from asterism.models.documents.item_record import StoredItem, pack_item
from asterism.models.documents.settings import ContainerSettings, StoredSettings
from asterism.models.documents.upkeep.time_to_live import TimeToLive
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.partition_key import PartitionKey, is_full
from asterism.storage.contract import Batch

_TAGS_AT_ONCE = 64


# Made for every write, so not frozen: that would double the time it takes.
@dataclass(slots=True)
class NewItem:
    """A version of an item that is not stored yet."""

    number: int
    tag: bytes
    etag: str
    body: bytes
    terms: Sequence[Term]
    is_indexed: bool = True
    # As it will be stored; kept only where unique keys or the sinks of edges are read from it.
    document: Document | None = None


class ChangePlanner:
    """Plans changes by one version of a container's settings, which holds until the record has others.

    A batch is applied only while the settings that it was planned under are in force; callers hold `keyspace.in_flight`
    meanwhile, because items are brought to new settings only when no write goes by the old ones any more (D4).
    """

    __slots__ = (
        "_clock",
        "_is_indexed",
        "_item_bytes_max",
        "_keeps_documents",
        "_random_bytes",
        "_tags",
        "catching_up",
        "codec",
        "computed_key",
        "definition",
        "keeps_versions",
        "planned_under",
        "rules",
        "settings",
        "sink_rule",
        "time_to_live",
        "unique_keys",
    )

    def __init__(
        self,
        record: KeyspaceRecord,
        settings: ContainerSettings,
        codec: DocumentCodec,
        *,
        limits: Limits,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self.definition = record.definition
        self.planned_under: StoredSettings = record.settings
        self.catching_up = record.catching_up
        self.codec = codec
        self.settings = settings
        self.rules = settings.rules
        self.unique_keys = settings.unique_keys
        # The rules of a key that is made of other properties; None where items have all of it themselves.
        self.computed_key = settings.computed_key
        # Finds the sinks of edges; None where edges have no entries at their sinks.
        self.sink_rule = settings.sink_rule
        self._keeps_documents = settings.unique_keys is not None or settings.sink_rule is not None
        seconds = settings.default_ttl_seconds
        self.time_to_live = None if seconds is None else TimeToLive(codec, seconds)
        # Items of an index that is off count as indexed: they get their entries when it is switched on.
        self._is_indexed = {
            None: self.rules.is_automatic or not self.rules.enabled,
            True: True,
            False: not self.rules.enabled,
        }
        # True if every change is kept, for the feed of all versions and deletes.
        self.keeps_versions = settings.versions_kept_seconds is not None
        self._item_bytes_max = limits.item_bytes_max
        self._clock = clock
        self._random_bytes = random_bytes
        self._tags: list[bytes] = []

    def is_for(self, record: KeyspaceRecord) -> bool:
        """Return whether the settings of a record are those planned by; its map may be another."""
        return record.settings is self.planned_under and record.catching_up is self.catching_up

    def point(self, key: PartitionKey) -> bytes:
        """Return the point of one logical partition; PartitionKeyMismatch for the prefix of a hierarchical key."""
        definition = self.definition
        if not is_full(definition, key):
            raise PartitionKeyMismatch
        return storage_point(definition, key)

    def is_visible(self, body: bytes) -> bool:
        """Return whether a stored item exists for clients: an expired one does not, removed or not (D5)."""
        rule = self.time_to_live
        return rule is None or not rule.is_expired(body, now=self._clock.wall_seconds())

    # --- new versions -----------------------------------------------------------------------------------------------

    def complete(self, document: Document, number: int, indexes: bool | None = None) -> NewItem:
        """Return the new version of an item, stamped and encoded; refuse a document that cannot be stored. `indexes`
        overrules the policy's choice of whether an item is indexed that comes without a word on it."""
        tag = self._next_tag()
        completed, body, etag = self.codec.stamp(
            document, number=number, tag=tag, changed_at_seconds=self._clock.stored_seconds()
        )
        self._check_size(body)
        is_indexed = self._is_indexed[indexes]
        new = NewItem(number, tag, etag, body, self.rules.terms(completed) if is_indexed else (), is_indexed)
        if self._keeps_documents:
            new.document = completed
        return new

    def complete_many(self, documents: Sequence[Document], numbers: Sequence[int]) -> list[NewItem]:
        """Do the same for many at once, with one look at the clock, in a container without unique keys."""
        assert self.unique_keys is None
        now = self._clock.stored_seconds()
        random = self._random_bytes(TAG_BYTES * len(documents))
        tags = [random[start : start + TAG_BYTES] for start in range(0, len(random), TAG_BYTES)]
        stamp = self.codec.stamp
        stamped = [
            stamp(document, number=number, tag=tag, changed_at_seconds=now)
            for document, number, tag in zip(documents, numbers, tags, strict=True)
        ]
        self._check_size(max((body for _, body, _ in stamped), key=len))
        is_indexed = self._is_indexed[None]
        terms: Iterable[Sequence[Term]] = repeat((), len(documents))
        if is_indexed:
            terms = self.rules.terms_of_many([completed for completed, _, _ in stamped])
        new_items = [
            NewItem(number, tag, etag, body, own_terms, is_indexed)
            for number, tag, (_, body, etag), own_terms in zip(numbers, tags, stamped, terms, strict=True)
        ]
        if self._keeps_documents:
            for new, (completed, _, _) in zip(new_items, stamped, strict=True):
                new.document = completed
        return new_items

    def _check_size(self, body: bytes) -> None:
        """Refuse an item that is too large with the properties of the system, as the service counts it."""
        if len(body) > self._item_bytes_max:
            raise TooLarge(what="item", bytes_max=self._item_bytes_max)

    def _next_tag(self) -> bytes:
        # Asking the system for each of them takes as long as writing an entry.
        if not self._tags:
            random = self._random_bytes(TAG_BYTES * _TAGS_AT_ONCE)
            self._tags = [random[start : start + TAG_BYTES] for start in range(0, len(random), TAG_BYTES)]
        return self._tags.pop()

    def terms_of(self, item_key: ItemKey, version: StoredItem | NewItem) -> Sequence[Term]:
        """Return the terms that a version has, or may have while items are brought from one policy to another."""
        if isinstance(version, NewItem):
            return version.terms
        if not version.is_indexed:
            return ()
        return self.rules.possible_terms(self.codec.decode(version.body, key=item_key.key))

    # --- entries ----------------------------------------------------------------------------------------------------

    def entry_changes(self, changes: Iterable[tuple[ItemKey, StoredItem | None, NewItem | None]]) -> EntryChanges:
        """Return what changes of items mean for the entries at the sinks of edges, where those are kept."""
        found, is_complete = EntryChanges(), self.settings.has_all_incoming_edges
        for item_key, before, after in changes:
            old = None if before is None else self.stored_entry(item_key, before)
            new = None
            if after is not None and after.document is not None and self.sink_rule is not None:
                new = entry_of(self.sink_rule(after.document), item_key, after.number)
            found.add(old, new, is_complete=is_complete)
        return found

    def stored_entry(self, item_key: ItemKey, stored: StoredItem) -> Entry | None:
        """Return the entry that a stored item has at its sink, if it is an edge and such entries are kept."""
        if self.sink_rule is None:
            return None
        sink = self.sink_rule(self.codec.decode(stored.body, key=item_key.key))
        return entry_of(sink, item_key, stored.number)

    def plan_change(
        self,
        batch: Batch,
        item_key: ItemKey,
        before: StoredItem | None,
        after: NewItem | None,
        *,
        place_in_batch: int,
        old_terms: Sequence[Term] | None = None,
    ) -> None:
        """Add the change from `before`, which is in the store, to `after`; None is no item. `old_terms` are the terms
        of `before`, if the caller has them."""
        if before is not None:
            new_terms = self._plan_removal(batch, item_key, before, after, old_terms)
        else:
            new_terms = () if after is None else after.terms
        if after is not None:
            self._plan_record(batch, item_key, after, place_in_batch)
            reference, tail = item_key.reference, number_bytes(after.number)
            if before is None or before.number != after.number:
                batch.puts += order_puts(item_key, tail)
            batch.puts += [(term + tail, reference) for term in new_terms]
        if self.time_to_live is not None:
            self._plan_expiry(batch, item_key, self.time_to_live, before, after)
        if self.keeps_versions:
            self._plan_versions(batch, item_key, before, after, place_in_batch)

    def plan_new_items(self, batch: Batch, new_items: Sequence[tuple[ItemKey, NewItem]]) -> None:
        """Do what `plan_change` does for items whose keys are free, for many at once.

        The index entries of one path come one after the other: they lie side by side in the store.
        """
        for place_in_batch, (item_key, after) in enumerate(new_items):
            self._plan_record(batch, item_key, after, place_in_batch)
            if self.time_to_live is not None:
                self._plan_expiry(batch, item_key, self.time_to_live, None, after)
            if self.keeps_versions:
                self._plan_versions(batch, item_key, None, after, place_in_batch)
        references = [item_key.reference for item_key, _ in new_items]
        tails = [number_bytes(after.number) for _, after in new_items]
        batch.puts += [(CREATION_ORDER + tail, reference) for tail, reference in zip(tails, references, strict=True)]
        batch.puts += [
            (LOGICAL_ORDER + item_key.point + tail, item_key.reference[len(item_key.point) :])
            for (item_key, _), tail in zip(new_items, tails, strict=True)
        ]
        for column in zip_longest(*[after.terms for _, after in new_items]):
            batch.puts += [
                (term + tail, reference)
                for term, tail, reference in zip(column, tails, references, strict=True)
                if term is not None
            ]

    def _plan_removal(
        self,
        batch: Batch,
        item_key: ItemKey,
        before: StoredItem,
        after: NewItem | None,
        old_terms: Sequence[Term] | None,
    ) -> Iterable[Term]:
        """Remove the entries that the new version does not keep; return the terms whose entries it lacks."""
        # The log keeps only the latest change of an item; the one before goes with the change that follows it.
        deletes = batch.deletes
        deletes.append(log_key(before.lsn, place_in_batch=before.place_in_batch, item_number=before.number))
        tail = number_bytes(before.number)
        if after is None or after.number != before.number:
            if after is None:
                deletes.append(item_key.key)
            if old_terms is None:
                old_terms = self.terms_of(item_key, before)
            deletes += [term + tail for term in old_terms]
            deletes += (CREATION_ORDER + tail, LOGICAL_ORDER + item_key.point + tail)
            return () if after is None else after.terms
        new_terms = set(after.terms)
        if not before.is_indexed:
            return new_terms
        rules, document = self.rules, self.codec.decode(before.body, key=item_key.key)
        possible = set(rules.possible_terms(document))
        deletes += [term + tail for term in possible - new_terms]
        # While items are brought to another policy, the entry of a possible term need not be there.
        return new_terms.difference(rules.certain_terms(document) if rules.earlier else possible)

    def _plan_record(self, batch: Batch, item_key: ItemKey, after: NewItem, place_in_batch: int) -> None:
        """Add the item itself and its change-log entry."""
        number = after.number
        packed = pack_item(
            self.codec.record_format,
            number=number,
            place_in_batch=place_in_batch,
            tag=after.tag,
            body=after.body,
            is_indexed=after.is_indexed,
        )
        batch.versioned_puts.append((item_key.key, packed))
        suffix = log_suffix(place_in_batch=place_in_batch, item_number=number)
        batch.stamped_puts.append((CHANGE_LOG, suffix, item_key.reference))

    def _plan_versions(
        self, batch: Batch, item_key: ItemKey, before: StoredItem | None, after: NewItem | None, place_in_batch: int
    ) -> None:
        """Keep the change for the feed of all versions. A new item under the key of an old one is two changes."""
        now = self._clock.stored_seconds()
        if before is not None and (after is None or after.number != before.number):
            plan_version(
                batch,
                item_key.reference,
                number=before.number,
                place_in_batch=place_in_batch,
                body=None,
                before=before,
                now_wall_seconds=now,
                expired=not self.is_visible(before.body),
            )
            before = None
        if after is not None:
            plan_version(
                batch,
                item_key.reference,
                number=after.number,
                place_in_batch=place_in_batch,
                body=after.body,
                before=before,
                now_wall_seconds=now,
            )

    def _plan_expiry(
        self, batch: Batch, item_key: ItemKey, rule: TimeToLive, before: StoredItem | None, after: NewItem | None
    ) -> None:
        old = None if before is None else _expiry_key_of(rule, before)
        new = None if after is None else _expiry_key_of(rule, after)
        if old is not None and old != new:
            batch.deletes.append(old)
        if new is not None:
            batch.puts.append((new, item_key.reference))


def earliest_expiry(batch: Batch) -> int | None:
    """Return the first second at which an item that the batch writes expires."""
    due = [expiry_of(key)[0] for key, _ in batch.puts if key.startswith(EXPIRY)]
    return min(due, default=None)


def _expiry_key_of(rule: TimeToLive, version: StoredItem | NewItem) -> bytes | None:
    expires_at = rule.expires_at(version.body)
    return None if expires_at is None else expiry_key(expires_at, item_number=version.number)


def order_puts(item_key: ItemKey, tail: bytes) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """Return the entries by which an item is found in the order of creation. `tail` is its number as bytes."""
    point, reference = item_key.point, item_key.reference
    return (CREATION_ORDER + tail, reference), (LOGICAL_ORDER + point + tail, reference[len(point) :])
