"""Budgets of the running process: the bucket that pays for each partition's requests (spec C11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.records import OfferRecord
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.limits import Limits
from asterism.partitioning.split_merge import partition_count_at_creation
from asterism.throughput.budgets import Autoscale, Throughput, effective_ru, share_per_partition
from asterism.throughput.token_bucket import TokenBucket


def shared_slot_count(throughput: Throughput, limits: Limits) -> int:
    """Return how many budgets a database's shared throughput is divided into; its containers get as many partitions."""
    return partition_count_at_creation(
        effective_ru(throughput), autoscale=isinstance(throughput, Autoscale), limits=limits
    )


class Admission:
    """The buckets of every keyspace, in step with its map and its offer. With `enforce` off there are none."""

    def __init__(self, catalog: Catalog, limits: Limits, *, enforce: bool, monotonic: Callable[[], float]) -> None:
        self._catalog = catalog
        self._limits = limits
        self._enforce = enforce
        self._monotonic = monotonic
        self._shared: dict[bytes, list[TokenBucket]] = {}
        # The number of processes that share the budgets, this one included.
        self.processes = 1
        # The number of keyspaces, and their buckets by name; made again when a bucket may have been replaced.
        self._named: tuple[int, dict[str, TokenBucket]] | None = None

    @property
    def is_enforced(self) -> bool:
        return self._enforce

    def refresh(self, keyspace: Keyspace) -> None:
        """Give the keyspace its buckets; call it after the keyspace's map or offer has changed."""
        self._named = None
        offer = self._catalog.governing_offer(keyspace.record.rid)
        if not self._enforce or offer is None:
            keyspace.buckets = {}
        elif len(offer.resource_rid) == len(keyspace.record.rid):
            self._refresh_own(keyspace, offer)
        else:
            self._refresh_shared(keyspace, offer)

    def forget_database(self, database_rid: bytes) -> None:
        self._shared.pop(database_rid, None)
        self._named = None

    def budgets(self) -> dict[str, TokenBucket]:
        """Return every bucket of the process, under a name that is the same in all processes."""
        count = len(self._catalog.keyspaces)
        if self._named is None or self._named[0] != count:
            self._named = (count, self._name_buckets())
        return self._named[1]

    def _name_buckets(self) -> dict[str, TokenBucket]:
        own = {
            f"{keyspace.record.rid.hex()}/{range_id}": bucket
            for keyspace in self._catalog.keyspaces.values()
            if keyspace.buckets and self._catalog.offer_for(keyspace.record.rid) is not None
            for range_id, bucket in keyspace.buckets.items()
        }
        for rid, slots in self._shared.items():
            own.update({f"{rid.hex()}/{place}": bucket for place, bucket in enumerate(slots)})
        return own

    def has_been_asked(self, before: Mapping[str, float]) -> bool:
        """Return True if any bucket was asked for RU since its total was that of `before`."""
        return any(bucket.asked_ru != before.get(name, 0.0) for name, bucket in self.budgets().items())

    def share_of(self, keyspace: Keyspace, *, partitions: int | None = None) -> float | None:
        """Return the RU/s of each of the keyspace's partitions, enforced or not; None without any offer. `partitions`:
        if it had so many."""
        offer = self._catalog.governing_offer(keyspace.record.rid)
        if offer is None:
            return None
        if len(offer.resource_rid) == len(keyspace.record.rid):
            return self.share(offer.throughput, len(keyspace.record.map.ranges) if partitions is None else partitions)
        return self.share(offer.throughput, shared_slot_count(offer.throughput, self._limits))

    def share(self, throughput: Throughput, parts: int) -> float:
        """Return the RU/s of each of so many partitions, or slots of a database's shared throughput."""
        # Until a split has caught up with a raised offer, a partition still serves no more than its maximum.
        return min(share_per_partition(throughput, parts), self._limits.physical_partition_ru_per_second_max)

    def _refresh_own(self, keyspace: Keyspace, offer: OfferRecord) -> None:
        ranges = keyspace.record.map.ranges
        share = self.share(offer.throughput, len(ranges))
        database = self._catalog.databases.get(keyspace.record.database_rid)
        has_reserve = database is None or database.scratch is None
        keyspace.buckets = {
            partition.id: self._bucket(keyspace.buckets.get(partition.id), share, burst=has_reserve)
            for partition in ranges
        }

    def _refresh_shared(self, keyspace: Keyspace, offer: OfferRecord) -> None:
        count = shared_slot_count(offer.throughput, self._limits)
        share = self.share(offer.throughput, count)
        known: list[TokenBucket | None] = [*self._shared.get(offer.resource_rid, ())]
        known += [None] * (count - len(known))
        slots = [self._bucket(bucket, share) for bucket in known[:count]]
        self._shared[offer.resource_rid] = slots
        ranges = keyspace.record.map.ranges
        keyspace.buckets = {partition.id: slots[place % count] for place, partition in enumerate(ranges)}

    def _bucket(self, known: TokenBucket | None, share: float, *, burst: bool = True) -> TokenBucket:
        now = self._monotonic()
        if known is None:
            return TokenBucket(share, burst=burst, now=now, share=1.0 / self.processes)
        known.set_rate(share, now=now)
        return known
