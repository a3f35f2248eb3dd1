"""The documents floor's front: databases, containers and their throughput, by name or by resource id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asterism.documents.container import Container, Tools
from asterism.documents.conversion import Conversion
from asterism.documents.housekeeping import Housekeeping
from asterism.documents.reindexing import Reindexing, due_after_change
from asterism.documents.rekey_job import RekeyJob, RekeyStep
from asterism.documents.rekeying import Rekeying
from asterism.documents.settings import complete_container_properties, replace_container_properties
from asterism.errors import (
    MalformedRequest,
    OwnerNotFound,
    ReshapeRefused,
    ResourceNotFound,
    StorageUnavailable,
    ThroughputRefused,
)
from asterism.keyspaces.admission import Admission, shared_slot_count
from asterism.keyspaces.catalog import Catalog, CatalogChanges
from asterism.keyspaces.keyspace import Keyspace
from asterism.keyspaces.records import DatabaseRecord, OfferRecord
from asterism.keyspaces.statistics import stored_bytes
from asterism.limits import Limits
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
from asterism.values.item import validate_resource_name
from asterism.values.resource_ids import from_text

# What a container gets when nobody says: the service's own default for the API.
DEFAULT_THROUGHPUT = Manual(400)


class DocumentStore:
    """Everything a door needs of the documents floor. One per process."""

    def __init__(self, catalog: Catalog, admission: Admission, tools: Tools) -> None:
        self.catalog = catalog
        self.tools = tools
        self._admission = admission
        self.reindexing = Reindexing(catalog, tools.owner, tools.clock)
        self.conversion = Conversion(catalog, tools.owner)
        self._containers: dict[bytes, Container] = {}
        self.housekeeping = Housekeeping(catalog, tools, self._container_by_rid)
        self.rekeying = Rekeying(catalog, tools, self._container_by_rid, self.replace_container, self.housekeeping)
        # Called when a container turns up that keeps versions; set by who removes them in time.
        self.on_versions_kept: Callable[[], None] | None = None

    @property
    def _limits(self) -> Limits:
        return self.tools.limits

    # --- other processes --------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """Whether other processes change the catalog too."""
        return self.catalog.is_shared

    async def catch_up(self) -> int:
        """Takes over what others have changed in the catalog; how new it is then."""
        try:
            await self.catalog.follow()
        except StorageRefusal as refusal:
            raise StorageUnavailable(reason=str(refusal)) from refusal
        return self.catalog.store.known_lsn

    def take_over(self, changes: CatalogChanges) -> None:
        """Brings what this process keeps into line with what others have changed in the catalog."""
        for rid in changes.databases_gone:
            self._admission.forget_database(rid)
        for keyspace in changes.keyspaces:
            self._admission.refresh(keyspace)
            self.reindexing.wake(keyspace)
        for rid in changes.offers:
            for keyspace in self.catalog.governed_by(rid):
                self._admission.refresh(keyspace)
        for rid in [rid for rid in self._containers if rid not in self.catalog.keyspaces]:
            del self._containers[rid]
        self.tools.reshaping.wake(changes)
        self.housekeeping.wake(changes)
        if changes.work:
            self.rekeying.wake()
        self.rekeying.look_again()
        if changes.keyspaces and self.on_versions_kept is not None:
            self.on_versions_kept()

    # --- databases --------------------------------------------------------------------------------------------------

    async def create_database(self, account: str, name: object, throughput: Throughput | None) -> DatabaseRecord:
        checked = validate_resource_name(name)
        if throughput is not None:
            validate(throughput, self._limits, self._limits.throughput_ru_per_second_min)
        return await self.catalog.create_database(account, checked, throughput, now=self._now())

    def list_databases(self, account: str) -> list[DatabaseRecord]:
        return sorted(
            (record for record in self.catalog.databases.values() if record.account == account),
            key=lambda record: record.name,
        )

    def database(self, account: str, name_or_rid: str) -> DatabaseRecord:
        """By name, or else by resource id; a name that looks like a resource id is still a name."""
        found = self.catalog.find_database(account, name_or_rid)
        if found is None:
            rid = from_text(name_or_rid)
            found = None if rid is None else self.catalog.databases.get(rid)
        if found is None or found.account != account:
            raise ResourceNotFound(kind="database", name=name_or_rid)
        return found

    async def delete_database(self, account: str, name_or_rid: str) -> None:
        record = self.database(account, name_or_rid)
        await self.catalog.delete_database(record)
        self.rekeying.look_again()
        self._admission.forget_database(record.rid)
        self.tools.reshaping.collect_garbage()

    # --- containers -------------------------------------------------------------------------------------------------

    async def create_container(
        self,
        database: DatabaseRecord,
        body: Mapping[str, Any],
        throughput: Throughput | None,
        *,
        with_puts: Callable[[bytes], Sequence[tuple[bytes, bytes]]] | None = None,
    ) -> Container:
        settings = complete_container_properties(body)
        definition = PartitionKeyDefinition.parse(settings["partitionKey"])
        settings["partitionKey"] = definition.to_json()
        shared = self.catalog.offer_for(database.rid)
        if throughput is None and shared is None:
            throughput = DEFAULT_THROUGHPUT
        count = self._initial_partition_count(definition, throughput, shared)
        name = validate_resource_name(settings["id"])
        keyspace = await self.catalog.create_keyspace(
            database,
            name,
            definition,
            settings,
            nodes=await self.tools.reshaping.placing.for_new_keyspace(database.name, name, count=count),
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
        """The container as the owner of items: its absence is another error than that of a container asked for."""
        try:
            return self.container(self.database(account, database), container)
        except ResourceNotFound as missing:
            raise OwnerNotFound(kind=missing.kind, name=missing.name) from None

    async def replace_container(self, container: Container, body: Mapping[str, Any]) -> Container:
        settings = replace_container_properties(container.record.settings, body)
        mark = self.tools.random_bytes(8).hex()
        changes = Batch()
        task = None
        default_ttl = settings.get("defaultTtl")
        if default_ttl is not None and default_ttl != container.record.settings.get("defaultTtl"):
            task = await self.housekeeping.plan_expiry_index(container, changes)
        await self.catalog.replace_keyspace_settings(
            container.keyspace,
            settings,
            now=self._now(),
            catching_up=lambda before: due_after_change(before, settings, mark=mark),
            with_changes=changes,
        )
        self.reindexing.wake(container.keyspace)
        if task is not None:
            self.housekeeping.begin(task)
        return self._container(container.keyspace)

    async def begin_rekey(self, source: Container, name: str, paths: Sequence[str]) -> RekeyJob:
        """Makes a container like `source` with another partition key, and begins to copy the items into it."""
        record = source.keyspace.record
        if self.rekeying.is_source(record.rid):
            raise ReshapeRefused(reason=f"The container '{record.name}' is being copied to another key already.")
        kind = "Hash" if len(paths) == 1 else "MultiHash"
        key = {"paths": list(paths), "kind": kind, "version": 2}
        offer = self.catalog.offer_for(record.rid)
        number = await self.catalog.work.new_task_number()

        def new_job(target_rid: bytes) -> RekeyJob:
            return RekeyJob(number, record.rid.hex(), target_rid.hex())

        # In one batch: whatever happens, there is no target that no job fills.
        target = await self.create_container(
            self.catalog.databases[record.database_rid],
            {**record.settings, "id": name, "partitionKey": key},
            None if offer is None else offer.throughput,
            with_puts=lambda rid: [self.catalog.work.rekey_entry(number, new_job(rid).to_bytes())],
        )
        self.rekeying.on_step(RekeyStep.TARGET_MADE)
        job = new_job(target.record.rid)
        self.catalog.work.rekeys[number] = job.to_bytes()
        self.rekeying.start(job)
        return job

    async def delete_container(self, container: Container) -> None:
        await self.catalog.delete_keyspace(container.keyspace)
        self._containers.pop(container.record.rid, None)
        self.rekeying.look_again()
        self.tools.reshaping.collect_garbage()

    def _container_by_rid(self, rid: bytes) -> Container | None:
        keyspace = self.catalog.keyspaces.get(rid)
        return None if keyspace is None else self._container(keyspace)

    def _container(self, keyspace: Keyspace) -> Container:
        known = self._containers.get(keyspace.record.rid)
        if known is None or known.record.settings is not keyspace.record.settings:
            known = self._containers[keyspace.record.rid] = Container(keyspace, self.tools)
            if known.keeps_versions and self.on_versions_kept is not None:
                self.on_versions_kept()
        return known

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
        keyspaces = self._governed(offer)
        stored = 0
        for keyspace in keyspaces:
            stored += await stored_bytes(self.tools.owner, keyspace)
        lowest = minimum_autoscale_max_ru if isinstance(throughput, Autoscale) else minimum_ru
        minimum = lowest(stored_bytes=stored, highest_ever_ru=offer.highest_ever_ru)
        validate(throughput, self._limits, minimum)
        is_fixed = len(offer.resource_rid) == 8 and bool(keyspaces) and keyspaces[0].record.definition.system_key
        if is_fixed and effective_ru(throughput) > self._limits.physical_partition_ru_per_second_max:
            raise ThroughputRefused(reason="A container without a partition key has at most 10,000 RU/s.")
        if type(throughput) is not type(offer.throughput):
            raise MalformedRequest(
                reason="An offer cannot change between manual and autoscale throughput in place; migrate it instead."
            )
        changed = await self.catalog.replace_offer(offer, throughput, now=self._now())
        for keyspace in keyspaces:
            self._admission.refresh(keyspace)
            self.tools.reshaping.grow(keyspace)
        return changed

    def is_offer_pending(self, offer: OfferRecord) -> bool:
        """Whether splits that the offer calls for are still to be done."""
        return any(self.tools.reshaping.must_grow(keyspace) for keyspace in self._governed(offer))

    def minimum_ru_for(self, offer: OfferRecord) -> int:
        return minimum_ru(stored_bytes=0, highest_ever_ru=offer.highest_ever_ru)

    def _governed(self, offer: OfferRecord) -> list[Keyspace]:
        return self.catalog.governed_by(offer.resource_rid)

    def _now(self) -> int:
        return self.tools.clock.stored_seconds()
