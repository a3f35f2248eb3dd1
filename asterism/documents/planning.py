"""How a change of an item becomes entries of a storage batch: one place for single writes, batches and scripts.

A change goes from what the store holds (maybe nothing) to a new version (maybe none). The item itself, its change-log
entry, its index entries and its expiry entry follow from the two; sizes and expectations are added by who applies the
batch, because several changes may share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat, zip_longest
from typing import Any, NamedTuple, cast

from asterism.clock import Clock
from asterism.documents.index_place import Term
from asterism.documents.indexes import IndexingRules
from asterism.documents.item_record import StoredItem, etag_text, pack_item
from asterism.documents.item_versions import plan_version, retention_seconds
from asterism.documents.time_to_live import TimeToLive, check_item_ttl
from asterism.documents.unique_keys import UniqueKeys
from asterism.errors import PartitionKeyMismatch, TooLarge
from asterism.keyspaces.layout import (
    CHANGE_LOG,
    CREATION_ORDER,
    EXPIRY,
    ITEMS,
    LOGICAL_ORDER,
    LOGICAL_SIZES,
    TOTALS_KEY,
    expiry_key,
    expiry_of,
    id_key,
    log_key,
    log_suffix,
    number_bytes,
)
from asterism.keyspaces.records import KeyspaceRecord
from asterism.limits import Limits
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.partition_key import PartitionKey, is_full
from asterism.storage.contract import Add, Batch
from asterism.values.item import Item
from asterism.values.json_text import dumps, loads_stored
from asterism.values.resource_ids import DocumentLinks

GUID_BYTES = 16
_GUIDS_AT_ONCE = 64
_SYSTEM_PROPERTIES = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts"})


class Place(NamedTuple):
    """Where an item lives: its point on the hash line, its key, and its reference, which is the key without its
    family: what index and change-log entries hold, and are routed by."""

    point: bytes
    key: bytes
    reference: bytes


def place_at(point: bytes, item_id: str) -> Place:
    reference = point + id_key(item_id)
    return Place(point, ITEMS + reference, reference)


# One is made for every write, so not frozen: that would double the time it takes.
@dataclass(slots=True)
class NewItem:
    """A version of an item that is not stored yet."""

    number: int
    guid: bytes
    etag: str
    body: bytes
    terms: Sequence[Term]
    is_indexed: bool = True


class ChangePlanner:
    """A container's settings, compiled to what every write needs of them."""

    __slots__ = (
        "_clock",
        "_current_record",
        "_guids",
        "_learned_from",
        "_limits",
        "_links",
        "_logical_bytes_max",
        "_random_bytes",
        "_rules",
        "_rules_of",
        "_time_to_live",
        "_versions_kept",
        "record",
        "unique_keys",
    )

    def __init__(
        self,
        current_record: Callable[[], KeyspaceRecord],
        *,
        limits: Limits,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self.record = record = current_record()
        self._current_record = current_record
        self._rules_of = record
        self._rules = rules_of(record)
        # Unlike the others, these cannot be changed after the container was made.
        self.unique_keys = UniqueKeys.of(record.settings)
        self._learn(record.settings)
        self._links = DocumentLinks(record.rid)
        self._limits = limits
        self._clock = clock
        self._random_bytes = random_bytes
        self._guids: list[bytes] = []
        fixed = record.definition.system_key
        self._logical_bytes_max = limits.fixed_container_bytes_max if fixed else limits.logical_partition_bytes_max

    @property
    def rules(self) -> IndexingRules:
        """The rules of the settings in force. Who goes by them does so within `keyspace.at_work`, entered in the same
        breath: items are brought to another policy only when nobody goes by the one before."""
        record, known = self._current_record(), self._rules_of
        if record.settings is not known.settings or record.catching_up is not known.catching_up:
            self._rules_of, self._rules = record, rules_of(record)
        return self._rules

    def _learn(self, settings: Mapping[str, Any]) -> None:
        self._learned_from = settings
        self._time_to_live = TimeToLive.of(settings)
        self._versions_kept = retention_seconds(settings) is not None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings in force. What is planned by them is applied only as long as they are (`PlanOutdated`)."""
        return self._current_record().settings

    @property
    def time_to_live(self) -> TimeToLive | None:
        settings = self._current_record().settings
        if settings is not self._learned_from:
            self._learn(settings)
        return self._time_to_live

    @property
    def keeps_versions(self) -> bool:
        """Whether the change feed can tell of all versions and deletes, and every change is therefore kept. Goes by
        the settings in force, as `rules` does: who begins to follow the versions must not miss a slow writer's."""
        settings = self._current_record().settings
        if settings is not self._learned_from:
            self._learn(settings)
        return self._versions_kept

    def point(self, key: PartitionKey) -> bytes:
        """The point of one logical partition; PartitionKeyMismatch for what is only the prefix of a key."""
        definition = self.record.definition
        if not is_full(definition, key):
            raise PartitionKeyMismatch
        return storage_point(definition, key)

    def is_visible(self, body: bytes) -> bool:
        """Whether a stored item is still there for clients: one whose time is over is not, removed or not."""
        rule = self.time_to_live
        return rule is None or not rule.is_expired(body, now=self._clock.wall_seconds())

    def complete(self, item: Item, number: int, indexes: bool | None = None) -> NewItem:
        """The item with the system properties added, in the service's order; refuses what cannot be stored. `indexes`
        overrules whether the policy has items indexed that nobody says it of."""
        guid = self._next_guid()
        etag, body = self._stamp(item, number, guid, self._clock.stored_seconds())
        if self._is_indexed(indexes):
            return NewItem(number, guid, etag, body, self.rules.terms(item))
        return NewItem(number, guid, etag, body, (), is_indexed=False)

    def _next_guid(self) -> bytes:
        # Asking the system for each of them takes as long as writing an entry.
        if not self._guids:
            random = self._random_bytes(GUID_BYTES * _GUIDS_AT_ONCE)
            self._guids = [random[start : start + GUID_BYTES] for start in range(0, len(random), GUID_BYTES)]
        return self._guids.pop()

    def complete_many(self, items: Sequence[Item], numbers: Sequence[int]) -> list[NewItem]:
        """The same for many at once, with one look at the clock."""
        now = self._clock.stored_seconds()
        random = self._random_bytes(GUID_BYTES * len(items))
        guids = [random[start : start + GUID_BYTES] for start in range(0, len(random), GUID_BYTES)]
        stamped = list(map(self._stamp, items, numbers, guids, repeat(now)))
        is_indexed = self._is_indexed(None)
        terms: Iterable[Sequence[Term]] = self.rules.terms_of_many(items) if is_indexed else repeat((), len(items))
        return [
            NewItem(number, guid, etag, body, own_terms, is_indexed)
            for number, guid, (etag, body), own_terms in zip(numbers, guids, stamped, terms, strict=True)
        ]

    def _is_indexed(self, indexes: bool | None) -> bool:
        rules = self.rules
        return bool(indexes) or (indexes is None and rules.is_automatic) or not rules.enabled

    def _stamp(self, item: Item, number: int, guid: bytes, now: int) -> tuple[str, bytes]:
        """Sets the system properties; the etag, and the text of the whole."""
        if "ttl" in item:
            check_item_ttl(item)
        # Most new items have none of them.
        if not _SYSTEM_PROPERTIES.isdisjoint(item):
            for name in _SYSTEM_PROPERTIES:
                item.pop(name, None)
        item["_rid"] = rid = self._links.rid_text(number)
        item["_self"] = self._links.self_link(rid)
        item["_etag"] = etag = etag_text(guid)
        item["_attachments"] = "attachments/"
        # The last one: `time_to_live` finds it there without parsing.
        item["_ts"] = now
        body = dumps(item)
        if len(body) > self._limits.item_bytes_max:
            raise TooLarge(what="item", bytes_max=self._limits.item_bytes_max)
        return etag, body

    def terms_of(self, version: StoredItem | NewItem) -> Sequence[Term]:
        """The terms that a version has, or may have while items are brought from one policy to another."""
        if isinstance(version, NewItem):
            return version.terms
        if not version.is_indexed:
            return []
        return self.rules.possible_terms(_parsed(version))

    def plan_change(
        self, batch: Batch, place: Place, before: StoredItem | None, after: NewItem | None, *, place_in_batch: int
    ) -> None:
        """From `before`, which is in the store, to `after`; None is no item."""
        if before is not None:
            new_terms = self._plan_removal(batch, place, before, after)
            if after is not None:
                self._plan_addition(batch, place, after, new_terms, place_in_batch)
        elif after is not None:
            self._plan_addition(batch, place, after, after.terms, place_in_batch)
        if after is not None and (before is None or before.number != after.number):
            batch.puts += order_puts(place, after.number)
        time_to_live = self.time_to_live
        if time_to_live is not None:
            self._plan_expiry(batch, place, time_to_live, before, after)
        if self.keeps_versions:
            self._plan_versions(batch, place, before, after, place_in_batch)

    def plan_new_items(self, batch: Batch, news: Sequence[tuple[Place, NewItem]]) -> None:
        """What `plan_change` does for items in places where there is none, for many at once.

        The index entries of one path come one after the other: they lie side by side in the store.
        """
        for place_in_batch, (place, after) in enumerate(news):
            self._plan_record(batch, place, after, place_in_batch)
            if self.time_to_live is not None:
                self._plan_expiry(batch, place, self.time_to_live, None, after)
            if self.keeps_versions:
                self._plan_versions(batch, place, None, after, place_in_batch)
        references = [place.reference for place, _ in news]
        tails = [number_bytes(after.number) for _, after in news]
        batch.puts += [(CREATION_ORDER + tail, reference) for tail, reference in zip(tails, references, strict=True)]
        batch.puts += [
            (LOGICAL_ORDER + place.point + tail, place.reference[len(place.point) :])
            for (place, _), tail in zip(news, tails, strict=True)
        ]
        for column in zip_longest(*[after.terms for _, after in news]):
            batch.puts += [
                (term + tail, reference)
                for term, tail, reference in zip(column, tails, references, strict=True)
                if term is not None
            ]

    def plan_sizes(self, batch: Batch, point: bytes, *, bytes_delta: int, items_delta: int) -> None:
        deltas = (bytes_delta, items_delta)
        batch.adds.append(Add(LOGICAL_SIZES + point, deltas, self._logical_bytes_max))
        batch.adds.append(Add(TOTALS_KEY, deltas, self._limits.physical_partition_bytes_max))

    def _plan_removal(self, batch: Batch, place: Place, before: StoredItem, after: NewItem | None) -> Iterable[Term]:
        """Takes away what the new version does not keep; gives the terms that it does not find there."""
        # The log keeps only the latest change of an item; the one before goes with the change that follows it.
        deletes = batch.deletes
        deletes.append(log_key(before.lsn, place_in_batch=before.place_in_batch, item_number=before.number))
        old_terms = self.terms_of(before)
        if after is None:
            deletes.append(place.key)
        elif after.number == before.number:
            deletes += _index_keys(set(old_terms).difference(after.terms), before.number)
            rules = self.rules
            there = rules.certain_terms(_parsed(before)) if rules.earlier and before.is_indexed else old_terms
            return set(after.terms).difference(there)
        deletes += _index_keys(old_terms, before.number)
        tail = number_bytes(before.number)
        deletes += (CREATION_ORDER + tail, LOGICAL_ORDER + place.point + tail)
        return () if after is None else after.terms

    def _plan_addition(
        self, batch: Batch, place: Place, after: NewItem, new_terms: Iterable[Term], place_in_batch: int
    ) -> None:
        self._plan_record(batch, place, after, place_in_batch)
        reference, tail = place.reference, number_bytes(after.number)
        batch.puts += [(term + tail, reference) for term in new_terms]

    def _plan_record(self, batch: Batch, place: Place, after: NewItem, place_in_batch: int) -> None:
        """The item itself and its change-log entry."""
        number = after.number
        packed = pack_item(
            number=number,
            place_in_batch=place_in_batch,
            guid=after.guid,
            body=after.body,
            is_indexed=after.is_indexed,
        )
        batch.versioned_puts.append((place.key, packed))
        suffix = log_suffix(place_in_batch=place_in_batch, item_number=number)
        batch.stamped_puts.append((CHANGE_LOG, suffix, place.reference))

    def _plan_versions(
        self, batch: Batch, place: Place, before: StoredItem | None, after: NewItem | None, place_in_batch: int
    ) -> None:
        """Keeps the change for the feed of all versions. A new item in the place of an old one is two changes."""
        now = self._clock.stored_seconds()
        if before is not None and (after is None or after.number != before.number):
            plan_version(
                batch,
                place.reference,
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
                place.reference,
                number=after.number,
                place_in_batch=place_in_batch,
                body=after.body,
                before=before,
                now_wall_seconds=now,
            )

    def _plan_expiry(
        self, batch: Batch, place: Place, rule: TimeToLive, before: StoredItem | None, after: NewItem | None
    ) -> None:
        old = None if before is None else _expiry_key_of(rule, before)
        new = None if after is None else _expiry_key_of(rule, after)
        if old is not None and old != new:
            batch.deletes.append(old)
        if new is not None:
            batch.puts.append((new, place.reference))


def rules_of(record: KeyspaceRecord) -> IndexingRules:
    policy = cast("Mapping[str, Any]", record.settings.get("indexingPolicy", {}))
    return IndexingRules.compile(policy, earlier=record.catching_up.get("policies", ()))


def _parsed(stored: StoredItem) -> Item:
    return cast(Item, loads_stored(stored.body, key=f"item number {stored.number}"))


def earliest_expiry(batch: Batch) -> int | None:
    """The first second at which something that the batch writes is due."""
    due = [expiry_of(key)[0] for key, _ in batch.puts if key.startswith(EXPIRY)]
    return min(due, default=None)


def _expiry_key_of(rule: TimeToLive, version: StoredItem | NewItem) -> bytes | None:
    expires_at = rule.expires_at(version.body)
    return None if expires_at is None else expiry_key(expires_at, item_number=version.number)


def order_puts(place: Place, item_number: int) -> list[tuple[bytes, bytes]]:
    """Return the entries by which an item is found in the order of creation."""
    point, _, reference = place
    tail = number_bytes(item_number)
    return [(CREATION_ORDER + tail, reference), (LOGICAL_ORDER + point + tail, reference[len(point) :])]


def _index_keys(terms: Iterable[Term], item_number: int) -> list[bytes]:
    tail = number_bytes(item_number)
    return [term + tail for term in terms]
