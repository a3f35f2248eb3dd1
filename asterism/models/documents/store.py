"""The front of the documents floor: databases, containers and their throughput, by name or by resource id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from asterism.errors import (
    MalformedRequest,
    OwnerNotFound,
    ReshapeRefused,
    ResourceNotFound,
    StorageUnavailable,
    ThroughputRefused,
)
from asterism.keyspaces.admission import Admission, shared_slot_count
from asterism.keyspaces.catalog.catalog import Catalog, CatalogChanges
from asterism.keyspaces.catalog.records import DatabaseRecord, OfferRecord, ScratchTerms
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.keyspaces.routing.statistics import stored_bytes
from asterism.limits import Limits
from asterism.models.documents.computed_container import ComputedKeyContainer
from asterism.models.documents.container import Container, DocumentServices
from asterism.models.documents.promotion.promoter import Promoter
from asterism.models.documents.promotion.use import ForwardingUse
from asterism.models.documents.rekey.copy_jobs import CopyTools
from asterism.models.documents.rekey.job import RekeyJob, RekeyStep
from asterism.models.documents.rekey.rekeyer import Rekeyer
from asterism.models.documents.upkeep.conversion import StoreConversion
from asterism.models.documents.upkeep.housekeeper import Housekeeper
from asterism.models.documents.upkeep.reindexer import Reindexer, due_after_change
from asterism.models.documents.upkeep.scratch import ScratchSweeper
from asterism.partitioning.partition_key import PartitionKeyDefinition
from asterism.partitioning.split_merge import partition_count_at_creation
from asterism.storage.contract import Batch, StorageRefusal
from asterism.throughput.budgets import (
    Autoscale,
    Manual,
    Throughput,
    effective_ru,
    minimum_autoscale_max_ru,
    minimum_ru,
    validate,
)
from asterism.values.resource_ids import from_text

# The throughput of a container that is created without any: the service's own default for the API.
DEFAULT_THROUGHPUT = Manual(400)


class DocumentStore:
    """Everything a door needs of the documents floor. One per process."""

    def __init__(self, catalog: Catalog, admission: Admission, services: DocumentServices) -> None:
        self.catalog = catalog
        self.services = services
        self._admission = admission
        self._profile = services.profile
        self.reindexer = Reindexer(catalog, services, self.find_container)
        self.conversion = StoreConversion(catalog, services)
        self._containers: dict[bytes, Container] = {}
        self.housekeeper = Housekeeper(catalog, services, self.find_container)
        tools = CopyTools(catalog, services, self.find_container, self.replace_container, self.housekeeper)
        self.rekeyer = Rekeyer(tools)
        self.promoter = Promoter(tools)
        self.forwarding_use = ForwardingUse(catalog, services.clock)
        self.scratch = ScratchSweeper(catalog, services.clock, self._delete_database)
        # Called when a container appears that keeps versions; set by the service that removes them in time.
        self.on_versions_kept: Callable[[], None] | None = None

    @property
    def _limits(self) -> Limits:
        return self.services.limits

    # --- other processes --------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """Return whether other processes change the catalog too."""
        return self.catalog.is_shared

    @property
    def known_lsn(self) -> int:
        """The LSN up to which this process knows the catalog."""
        return self.catalog.store.known_lsn

    async def catch_up(self) -> int:
        """Take over what others have changed in the catalog; return its LSN then."""
        try:
            await self.catalog.follow()
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal
        return self.catalog.store.known_lsn

    def take_over(self, changes: CatalogChanges) -> None:
        """Bring what this process keeps into line with what others have changed in the catalog."""
        for rid in changes.databases_gone:
            self._admission.forget_database(rid)
        for keyspace in changes.keyspaces:
            self._admission.refresh(keyspace)
            self.reindexer.wake(keyspace)
        for rid in changes.offers:
            for keyspace in self.catalog.governed_by(rid):
                self._admission.refresh(keyspace)
        for rid in [rid for rid in self._containers if rid not in self.catalog.keyspaces]:
            del self._containers[rid]
        self.services.reshaper.wake(changes)
        self.housekeeper.wake(changes)
        self.scratch.wake()
        if changes.work:
            self.rekeyer.wake()
            self.promoter.wake()
        self.rekeyer.look_again()
        self.promoter.look_again()
        if changes.keyspaces and self.on_versions_kept is not None:
            self.on_versions_kept()

    # --- databases --------------------------------------------------------------------------------------------------

    async def create_database(self, account: str, name: object, throughput: Throughput | None) -> DatabaseRecord:
        checked = self._profile.check_name(name)
        if throughput is not None:
            validate(throughput, self._limits, self._limits.throughput_ru_per_second_min)
        return await self.catalog.create_database(account, checked, throughput, now=self._now())

    async def create_scratch_database(self, account: str, name: str, terms: ScratchTerms) -> DatabaseRecord:
        """Create a database that the server drops when its lease ends, also if its creator is gone by then."""
        checked = self._profile.check_name(name)
        record = await self.catalog.create_database(account, checked, None, now=self._now(), scratch=terms)
        self.scratch.wake()
        return record

    def list_databases(self, account: str) -> list[DatabaseRecord]:
        return sorted(
            (record for record in self.catalog.databases.values() if record.account == account),
            key=lambda record: record.name,
        )

    def database(self, account: str, name_or_rid: str) -> DatabaseRecord:
        """Find a database by name, or else by resource id; a name that looks like a resource id is still a name."""
        found = self.catalog.find_database(account, name_or_rid)
        if found is None:
            rid = from_text(name_or_rid)
            found = None if rid is None else self.catalog.databases.get(rid)
        if found is None or found.account != account:
            raise ResourceNotFound(kind="database", name=name_or_rid)
        return found

    async def delete_database(self, account: str, name_or_rid: str) -> None:
        await self._delete_database(self.database(account, name_or_rid))

    async def _delete_database(self, record: DatabaseRecord) -> None:
        await self.catalog.delete_database(record)
        self.rekeyer.look_again()
        self._admission.forget_database(record.rid)
        self.services.reshaper.collect_garbage()

    # --- containers -------------------------------------------------------------------------------------------------

    async def create_container(
        self,
        database: DatabaseRecord,
        body: Mapping[str, Any],
        throughput: Throughput | None,
        *,
        with_puts: Callable[[bytes], Sequence[tuple[bytes, bytes]]] | None = None,
    ) -> Container:
        name, definition, settings = self._profile.new_container(body)
        shared = self.catalog.offer_for(database.rid)
        if throughput is None and shared is None:
            throughput = DEFAULT_THROUGHPUT
        count = self._initial_partition_count(definition, throughput, shared)
        if database.scratch is not None and not definition.system_key:
            count = database.scratch.partitions
        keyspace = await self.catalog.create_keyspace(
            database,
            name,
            definition,
            settings,
            nodes=await self.services.reshaper.placer.for_new_keyspace(database.name, name, count=count),
            throughput=throughput,
            now=self._now(),
            with_puts=with_puts,
        )
        self._admission.refresh(keyspace)
        return self._container(keyspace)

    def _initial_partition_count(
        self, definition: PartitionKeyDefinition, throughput: Throughput | None, shared: OfferRecord | None
    ) -> int:
        limits = self._limits
        if throughput is not None:
            validate(throughput, limits, limits.throughput_ru_per_second_min)
            ru = effective_ru(throughput)
            if definition.system_key:
                if ru > limits.physical_partition_ru_per_second_max:
                    raise ThroughputRefused(reason="A container without a partition key has at most 10,000 RU/s.")
                return 1
            return partition_count_at_creation(ru, autoscale=isinstance(throughput, Autoscale), limits=limits)
        if shared is None or definition.system_key:
            return 1
        return shared_slot_count(shared.throughput, limits)

    def list_containers(self, database: DatabaseRecord) -> list[Container]:
        keyspaces = sorted(self.catalog.keyspaces_of(database.rid), key=lambda keyspace: keyspace.record.name)
        return [self._container(keyspace) for keyspace in keyspaces]

    def container(self, database: DatabaseRecord, name_or_rid: str) -> Container:
        keyspace = self.catalog.find_keyspace(database.rid, name_or_rid)
        if keyspace is None:
            rid = from_text(name_or_rid)
            keyspace = None if rid is None else self.catalog.keyspaces.get(rid)
        if keyspace is None or keyspace.record.database_rid != database.rid:
            raise ResourceNotFound(kind="container", name=name_or_rid)
        return self._container(keyspace)

    def container_for_items(self, account: str, database: str, container: str) -> Container:
        """Find a container as the owner of items: its absence is another error than that of a container asked for."""
        try:
            return self.container(self.database(account, database), container)
        except ResourceNotFound as missing:
            raise OwnerNotFound(kind=missing.kind, name=missing.name) from None

    async def replace_container(self, container: Container, body: Mapping[str, Any]) -> Container:
        settings = self._profile.replaced(container.record.settings, body)
        mark = self.services.random_bytes(8).hex()
        changes = Batch()
        task = None
        after = replace(container.record, settings=settings, catching_up={})
        default_ttl = self._profile.compile(after, container.codec).default_ttl_seconds
        if default_ttl is not None and default_ttl != container.planner.settings.default_ttl_seconds:
            task = await self.housekeeper.plan_expiry_index(container, changes)
        await self.catalog.replace_keyspace_settings(
            container.keyspace,
            settings,
            now=self._now(),
            catching_up=lambda record: due_after_change(self._profile, record, settings, mark=mark),
            with_changes=changes,
        )
        self.reindexer.wake(container.keyspace)
        if task is not None:
            self.housekeeper.begin(task)
        return self._container(container.keyspace)

    async def begin_rekey(
        self, source: Container, name: str, paths: Sequence[str], synthetic: Mapping[str, Any] | None = None
    ) -> RekeyJob:
        """Make a container like `source` with another partition key, and begin to copy the items into it. `synthetic`
        has the rules of the levels that are computed."""
        record = source.keyspace.record
        shared = set(synthetic or ()) & set(record.definition.paths)
        if shared:
            raise ReshapeRefused(
                reason=f"The synthetic key {min(shared)} is a path of the present partition key, whose values the "
                "items have there. Choose another path for it."
            )
        if self.rekeyer.is_source(record.rid):
            raise ReshapeRefused(reason=f"The container '{record.name}' is being copied to another key already.")
        if record.forwarding is not None or self.promoter.is_busy_with(record.rid):
            raise ReshapeRefused(
                reason=f"Partition keys of '{record.name}' are served by containers of their own. End that with "
                "`asterism promote-tenant --end` and --forget before you copy it to another key."
            )
        offer = self.catalog.offer_for(record.rid)
        number = await self.catalog.work.new_task_number()

        def new_job(target_rid: bytes) -> RekeyJob:
            return RekeyJob(number, record.rid.hex(), target_rid.hex())

        # In one batch: whatever happens, every target has a job that fills it.
        target = await self.create_container(
            self.catalog.databases[record.database_rid],
            self._profile.with_key(record.settings, name=name, paths=paths, synthetic=synthetic),
            None if offer is None else offer.throughput,
            with_puts=lambda rid: [self.catalog.work.rekey_entry(number, new_job(rid).to_bytes())],
        )
        self.rekeyer.on_step(RekeyStep.TARGET_MADE)
        job = new_job(target.record.rid)
        self.catalog.work.rekeys[number] = job.to_bytes()
        self.rekeyer.start(job)
        return job

    async def delete_container(self, container: Container) -> None:
        await self.catalog.delete_keyspace(container.keyspace)
        self._containers.pop(container.record.rid, None)
        self.rekeyer.look_again()
        self.promoter.look_again()
        self.services.reshaper.collect_garbage()

    def find_container(self, rid: bytes) -> Container | None:
        """Find a container by its resource id; None for a keyspace that is not one of this store's containers."""
        keyspace = self.catalog.keyspaces.get(rid)
        return None if keyspace is None or not self._profile.describes(keyspace.record) else self._container(keyspace)

    def _container(self, keyspace: Keyspace) -> Container:
        known = self._containers.get(keyspace.record.rid)
        if known is None or known.record.settings is not keyspace.record.settings:
            known = self._containers[keyspace.record.rid] = self._new_container(keyspace)
            if known.keeps_versions and self.on_versions_kept is not None:
                self.on_versions_kept()
        return known

    def _new_container(self, keyspace: Keyspace) -> Container:
        is_computed = self._profile.computes_key(keyspace.record.settings)
        return (ComputedKeyContainer if is_computed else Container)(keyspace, self.services)

    # --- throughput -------------------------------------------------------------------------------------------------

    def list_offers(self, account: str) -> list[OfferRecord]:
        def belongs(offer: OfferRecord) -> bool:
            return self.catalog.databases[offer.resource_rid[:4]].account == account

        return [offer for offer in self.catalog.offers.values() if belongs(offer)]

    def offer(self, account: str, rid_text: str) -> OfferRecord:
        rid = from_text(rid_text)
        found = None if rid is None else self.catalog.offers.get(rid)
        if found is None or found not in self.list_offers(account):
            raise ResourceNotFound(kind="offer", name=rid_text)
        return found

    async def replace_offer(self, offer: OfferRecord, throughput: Throughput) -> OfferRecord:
        self.check_replacement(offer, throughput, minimum=await self.minimum_for(offer, throughput))
        changed = await self.catalog.replace_offer(offer, throughput, now=self._now())
        for keyspace in self._governed(offer):
            self._admission.refresh(keyspace)
            self.services.reshaper.grow(keyspace)
        return changed

    async def minimum_for(self, offer: OfferRecord, throughput: Throughput) -> int:
        """Return the least RU/s to which an offer can be changed, in the mode of the new throughput."""
        stored = 0
        for keyspace in self._governed(offer):
            stored += await stored_bytes(self.services.router, keyspace)
        lowest = minimum_autoscale_max_ru if isinstance(throughput, Autoscale) else minimum_ru
        return lowest(stored_bytes=stored, highest_ever_ru=offer.highest_ever_ru)

    def check_replacement(self, offer: OfferRecord, throughput: Throughput, *, minimum: int) -> None:
        """Refuse a change of an offer as the service does."""
        keyspaces = self._governed(offer)
        validate(throughput, self._limits, minimum)
        is_fixed = len(offer.resource_rid) == 8 and bool(keyspaces) and keyspaces[0].record.definition.system_key
        if is_fixed and effective_ru(throughput) > self._limits.physical_partition_ru_per_second_max:
            raise ThroughputRefused(reason="A container without a partition key has at most 10,000 RU/s.")
        if type(throughput) is not type(offer.throughput):
            raise MalformedRequest(
                reason="An offer cannot change between manual and autoscale throughput in place; migrate it instead."
            )

    def is_offer_pending(self, offer: OfferRecord) -> bool:
        """Return whether splits that the offer calls for are still to be done."""
        return any(self.services.reshaper.must_grow(keyspace) for keyspace in self._governed(offer))

    def minimum_ru_for(self, offer: OfferRecord) -> int:
        return minimum_ru(stored_bytes=0, highest_ever_ru=offer.highest_ever_ru)

    def _governed(self, offer: OfferRecord) -> list[Keyspace]:
        return self.catalog.governed_by(offer.resource_rid)

    def _now(self) -> int:
        return self.services.clock.stored_seconds()
