"""A container: items on a keyspace. Every change of an item is one batch, decided on what was read.

Items, their sizes, their index entries and their change-log entry are written together or not at all; when somebody
else changed the item meanwhile the decision is taken again on fresh data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from asterism.clock import Clock
from asterism.documents.answers import ItemAnswer, Scope
from asterism.documents.indexes import IndexingRules
from asterism.documents.item_record import StoredItem, etag_text, pack_item, unpack_item
from asterism.errors import (
    ItemExists,
    ItemNotFound,
    LogicalPartitionFull,
    PartitionKeyMismatch,
    PhysicalPartitionFull,
    PreconditionFailed,
    SessionNotAvailable,
    TooLarge,
    TooMuchContention,
)
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.layout import (
    CHANGE_LOG,
    INDEX,
    ITEMS,
    LOGICAL_SIZES,
    TOTALS_KEY,
    after_prefix,
    id_key,
    log_key,
    log_suffix,
)
from asterism.keyspaces.owner import Owner
from asterism.keyspaces.records import KeyspaceRecord
from asterism.keyspaces.reshaping import Reshaping
from asterism.limits import Limits
from asterism.partitioning.effective_key import storage_point
from asterism.partitioning.partition_key import PartitionKey, extract, header_agrees_with_item, is_full
from asterism.partitioning.partition_map import PartitionRange
from asterism.storage.contract import Add, Batch, CeilingPassed, Expectation, ExpectationFailed
from asterism.throughput import charge
from asterism.values.item import Item, validate_item_id
from asterism.values.json_text import dumps, loads
from asterism.values.resource_ids import DocumentLinks

# (path token, value bytes): one index entry of an item, as `IndexingRules.terms` gives them.
Term = tuple[bytes, bytes]

# Writers of one item overtake each other at most once per commit; this many turns is some tenths of a second.
ATTEMPTS_MAX = 100


@dataclass(frozen=True, slots=True)
class Tools:
    """What the documents floor needs from the rest of the program."""

    owner: Owner
    reshaping: Reshaping
    limits: Limits
    clock: Clock
    random_bytes: Callable[[int], bytes]
    next_item_number: Callable[[], int]


class _Place(NamedTuple):
    """Where an item lives: its point on the hash line, its key, and its reference, which is the key without its
    family: what index and change-log entries hold, and are routed by."""

    point: bytes
    key: bytes
    reference: bytes


class Container:
    """Items of one keyspace, at one version of its settings."""

    __slots__ = ("_links", "_rules", "_rules_of", "_tools", "keyspace", "record")

    def __init__(self, keyspace: Keyspace, tools: Tools) -> None:
        self.keyspace = keyspace
        self.record: KeyspaceRecord = keyspace.record
        self._tools = tools
        self._rules_of = self.record
        self._rules = rules_of(self.record)
        self._links = DocumentLinks(self.record.rid)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def read_item(
        self, item_id: str, key: PartitionKey, *, session: Mapping[int, int] | None = None
    ) -> ItemAnswer:
        place = self._place(item_id, key)
        keyspace = self.keyspace
        partition, lsn, (stored,) = await self._tools.owner.read(keyspace, place.point, (place.key,))
        if session is not None:
            check_session(session, partition, lsn)
        if stored is None:
            keyspace.spend(partition, charge.MISS, place.point)
            raise ItemNotFound(item_id=item_id)
        found = unpack_item(stored)
        cost = charge.point_read(len(found.body))
        keyspace.spend(partition, cost, place.point)
        return ItemAnswer(found.body, found.etag, partition.id, lsn, cost)

    # --- writing ----------------------------------------------------------------------------------------------------

    async def create_item(self, item: Item, key: PartitionKey | None) -> ItemAnswer:
        item_id = validate_item_id(item.get("id"))
        place = self._place(item_id, self._key_of(item, key))
        try:
            return await self._write(place, None, item)
        except ExpectationFailed:
            raise ItemExists(item_id=item_id) from None

    async def upsert_item(self, item: Item, key: PartitionKey | None, *, if_match: str | None = None) -> ItemAnswer:
        item_id = validate_item_id(item.get("id"))
        place = self._place(item_id, self._key_of(item, key))

        async def attempt() -> ItemAnswer:
            before = await self._find(place)
            if before is not None:
                _check_etag(before, if_match)
            return await self._write(place, before, item)

        return await self._until_settled(attempt)

    async def replace_item(
        self, item_id: str, item: Item, key: PartitionKey | None, *, if_match: str | None = None
    ) -> ItemAnswer:
        # The item's own id may differ from the one in the address: the service then renames the item, which is a
        # delete and a create in one batch.
        new_id = validate_item_id(item.get("id"))
        full_key = self._key_of(item, key)
        place, target = self._place(item_id, full_key), self._place(new_id, full_key)

        async def attempt() -> ItemAnswer:
            before = await self._find(place)
            if before is None:
                raise ItemNotFound(item_id=item_id)
            _check_etag(before, if_match)
            if target.key == place.key:
                return await self._write(place, before, item)
            return await self._rename(place, before, target, item)

        return await self._until_settled(attempt)

    async def delete_item(self, item_id: str, key: PartitionKey, *, if_match: str | None = None) -> ItemAnswer:
        place = self._place(item_id, key)

        async def attempt() -> ItemAnswer:
            before = await self._find(place)
            if before is None:
                raise ItemNotFound(item_id=item_id)
            _check_etag(before, if_match)
            batch = Batch(expectations=[Expectation(place.key, before.version)], deletes=[place.key])
            old_terms = self.rules.possible_terms(_parsed(before))
            self._plan_log_removal(batch, before)
            batch.deletes += _index_keys(old_terms, before.number)
            self._plan_sizes(batch, place, -len(before.body), -1)
            cost = charge.delete(len(before.body), len(old_terms))
            partition, lsn = await self._apply(place, batch, cost)
            return ItemAnswer(before.body, before.etag, partition.id, lsn, cost)

        return await self._until_settled(attempt)

    @property
    def rules(self) -> IndexingRules:
        """The rules of the settings in force. Who goes by them does so within `keyspace.at_work`, entered in the same
        breath: items are brought to another policy only when nobody goes by the one before."""
        record = self.keyspace.record
        known = self._rules_of
        if record.settings is not known.settings or record.catching_up is not known.catching_up:
            self._rules_of, self._rules = record, rules_of(record)
        return self._rules

    # --- scopes -----------------------------------------------------------------------------------------------------

    def logical_scope(self, key: PartitionKey) -> Scope:
        """The interval of one logical partition, or of all that share the prefix of a hierarchical key."""
        prefix = storage_point(self.record.definition, key)
        return Scope(prefix, after_prefix(prefix) or b"\xff")

    # --- how a change is made -----------------------------------------------------------------------------------------

    def _key_of(self, item: Item, told: PartitionKey | None) -> PartitionKey:
        """The item's partition key value, which must be the one the request names."""
        own = extract(self.record.definition, item)
        if told is not None and not header_agrees_with_item(told, own):
            raise PartitionKeyMismatch
        return own

    def _place(self, item_id: str, key: PartitionKey) -> _Place:
        definition = self.record.definition
        if not is_full(definition, key):
            raise PartitionKeyMismatch
        point = storage_point(definition, key)
        reference = point + id_key(item_id)
        return _Place(point, ITEMS + reference, reference)

    async def _find(self, place: _Place) -> StoredItem | None:
        _, _, (stored,) = await self._tools.owner.read(self.keyspace, place.point, (place.key,))
        return None if stored is None else unpack_item(stored)

    async def _write(self, place: _Place, before: StoredItem | None, item: Item) -> ItemAnswer:
        """Writes an item in the place of what was found there, which may be nothing."""
        tools = self._tools
        guid = tools.random_bytes(16)
        number = tools.next_item_number() if before is None else before.number
        body = self._complete(item, number, guid)
        rules = self.rules
        terms = rules.terms(item)
        if before is None:
            batch = Batch(expectations=[Expectation(place.key, None)])
            new_terms = terms
            cost = charge.write(len(body), len(terms))
            self._plan_sizes(batch, place, len(body), 1)
        else:
            batch = Batch(expectations=[Expectation(place.key, before.version)])
            old_item = _parsed(before)
            old_terms = rules.possible_terms(old_item)
            batch.deletes += _index_keys(set(old_terms).difference(terms), number)
            new_terms = list(set(terms).difference(rules.certain_terms(old_item) if rules.earlier else old_terms))
            cost = charge.replace(len(before.body), len(body), len(terms))
            self._plan_log_removal(batch, before)
            self._plan_sizes(batch, place, len(body) - len(before.body), 0)
        self._plan_addition(batch, place, number, guid, body, new_terms)
        partition, lsn = await self._apply(place, batch, cost)
        return ItemAnswer(body, etag_text(guid), partition.id, lsn, cost, created=before is None)

    async def _rename(self, place: _Place, before: StoredItem, target: _Place, item: Item) -> ItemAnswer:
        tools = self._tools
        guid = tools.random_bytes(16)
        number = tools.next_item_number()
        body = self._complete(item, number, guid)
        rules = self.rules
        terms = rules.terms(item)
        batch = Batch(
            expectations=[Expectation(place.key, before.version), Expectation(target.key, None)], deletes=[place.key]
        )
        self._plan_log_removal(batch, before)
        batch.deletes += _index_keys(rules.possible_terms(_parsed(before)), before.number)
        self._plan_addition(batch, target, number, guid, body, terms)
        self._plan_sizes(batch, target, len(body) - len(before.body), 0)
        cost = charge.replace(len(before.body), len(body), len(terms))
        try:
            partition, lsn = await self._apply(target, batch, cost)
        except ExpectationFailed as failed:
            if failed.key == target.key:
                raise ItemExists(item_id=str(item["id"])) from None
            raise
        return ItemAnswer(body, etag_text(guid), partition.id, lsn, cost)

    def _complete(self, item: Item, number: int, guid: bytes) -> bytes:
        """Adds the system properties, in the service's order, and gives the item's JSON text."""
        for name in ("_rid", "_self", "_etag", "_attachments", "_ts"):
            item.pop(name, None)
        item["_rid"] = rid = self._links.rid_text(number)
        item["_self"] = self._links.self_link(rid)
        item["_etag"] = etag_text(guid)
        item["_attachments"] = "attachments/"
        item["_ts"] = int(self._tools.clock.wall_seconds())
        body = dumps(item)
        if len(body) > self._tools.limits.item_bytes_max:
            raise TooLarge(what="item", bytes_max=self._tools.limits.item_bytes_max)
        return body

    def _plan_addition(
        self, batch: Batch, place: _Place, number: int, guid: bytes, body: bytes, new_terms: Iterable[Term]
    ) -> None:
        reference = place.reference
        batch.versioned_puts.append((place.key, pack_item(number=number, place_in_batch=0, guid=guid, body=body)))
        batch.stamped_puts.append((CHANGE_LOG, log_suffix(place_in_batch=0, item_number=number), reference))
        tail = number.to_bytes(8, "big")
        batch.puts += [(INDEX + token + value + tail, reference) for token, value in new_terms]

    def _plan_log_removal(self, batch: Batch, before: StoredItem) -> None:
        """The log keeps only the latest change of an item; the one before goes with the change that follows it."""
        key = log_key(before.lsn, place_in_batch=before.place_in_batch, item_number=before.number)
        batch.deletes.append(key)

    def _plan_sizes(self, batch: Batch, place: _Place, bytes_delta: int, items_delta: int) -> None:
        limits = self._tools.limits
        fixed = self.record.definition.system_key
        logical_max = limits.fixed_container_bytes_max if fixed else limits.logical_partition_bytes_max
        deltas = (bytes_delta, items_delta)
        batch.adds.append(Add(LOGICAL_SIZES + place.point, deltas, logical_max))
        batch.adds.append(Add(TOTALS_KEY, deltas, limits.physical_partition_bytes_max))

    async def _apply(self, place: _Place, batch: Batch, cost: float) -> tuple[PartitionRange, int]:
        keyspace, tools = self.keyspace, self._tools

        def take_cost(partition: PartitionRange) -> None:
            keyspace.spend(partition, cost, place.point)

        admit: Callable[[PartitionRange], None] | None = take_cost
        # The index entries in the batch are those of the settings in force now, until it is applied.
        with keyspace.at_work:
            for _ in range(ATTEMPTS_MAX):
                try:
                    partition, lsn = await tools.owner.apply(keyspace, place.point, batch, admit)
                except CeilingPassed as passed:
                    if passed.key != TOTALS_KEY:
                        raise LogicalPartitionFull(bytes_max=batch.adds[0].first_max or 0) from None
                    await self._make_room(place.point)
                    admit = None
                else:
                    tools.reshaping.notice_growth(keyspace, partition, batch.adds[1].deltas[0])
                    return partition, lsn
        raise TooMuchContention

    async def _make_room(self, point: bytes) -> None:
        if not await self._tools.reshaping.make_room(self.keyspace, point):
            raise PhysicalPartitionFull(bytes_max=self._tools.limits.physical_partition_bytes_max)

    async def _until_settled(self, attempt: Callable[[], Awaitable[ItemAnswer]]) -> ItemAnswer:
        """Repeats a decision that was overtaken, on fresh data each time."""
        for turn in range(ATTEMPTS_MAX):
            try:
                return await attempt()
            except ExpectationFailed:
                await asyncio.sleep(0 if turn < ATTEMPTS_MAX // 2 else 0.001)
        raise TooMuchContention


def rules_of(record: KeyspaceRecord) -> IndexingRules:
    policy = cast(Mapping[str, Any], record.settings.get("indexingPolicy", {}))
    return IndexingRules.compile(policy, earlier=record.catching_up.get("policies", ()))


def _parsed(stored: StoredItem) -> Item:
    return cast(Item, loads(stored.body))


def _index_keys(terms: Iterable[Term], item_number: int) -> list[bytes]:
    tail = item_number.to_bytes(8, "big")
    return [INDEX + token + value + tail for token, value in terms]


def _check_etag(before: StoredItem, if_match: str | None) -> None:
    if if_match is not None and if_match != "*" and if_match != before.etag:
        raise PreconditionFailed


def check_session(session: Mapping[int, int], partition: PartitionRange, lsn: int) -> None:
    """Refuses a read that would not see what its session has seen, on this partition or on one it came from."""
    for range_id in (partition.id, *partition.parents):
        if session.get(range_id, 0) > lsn:
            raise SessionNotAvailable
