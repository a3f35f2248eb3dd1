"""The hubs of all namespaces: each is an entity, whose points are the partitions of the hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from asterism.errors import MalformedRequest, ResourceExists, ResourceNotFound
from asterism.keyspaces.catalog.memory import CatalogChanges
from asterism.models.event_logs.description import (
    DEFAULT_GROUP,
    ConsumerGroup,
    HubDescription,
    check_description,
    check_hub_name,
    with_group,
    without_group,
)
from asterism.models.event_logs.events import PartitionProperties
from asterism.models.event_logs.hub import Hub
from asterism.models.event_logs.receivers import ReceiverBook
from asterism.models.event_logs.services import EventLogServices
from asterism.models.namespaces.store import EntityRecord, Kind, NamespaceStore

KIND: Final[Kind] = "hub"
DEFAULT_PARTITION_COUNT: Final = 4


class EventLogStore:
    """Creates, finds, lists, changes and deletes hubs. One per process.

    `take_over` must be among the listeners of the catalog, so that links hear of what other processes change.
    """

    def __init__(self, namespaces: NamespaceStore, services: EventLogServices) -> None:
        self.namespaces = namespaces
        self.services = services
        self.receivers = ReceiverBook(services)
        self._hubs: dict[bytes, Hub] = {}

    async def stop(self) -> None:
        """End what goes on for hubs; appends that were begun are finished."""
        await self.receivers.stop()
        for hub in self._hubs.values():
            await hub.stop()

    # --- other processes ----------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        return self.services.router.has_others

    def take_over(self, changes: CatalogChanges) -> None:
        """Bring what this process keeps into line with what others have changed in the catalog."""
        changed = {keyspace.record.rid for keyspace in changes.keyspaces}
        for rid, hub in list(self._hubs.items()):
            if hub.is_deleted:
                self._forget(hub)
            elif rid in changed:
                record = self.namespaces.find(hub.namespace, hub.name)
                if record is not None:
                    hub.refresh(record)
                    hub.notify()

    def _forget(self, hub: Hub) -> None:
        self._hubs.pop(hub.keyspace.record.rid, None)
        hub.notify()

    # --- hubs ---------------------------------------------------------------------------------------------------------

    async def create_hub(self, namespace: str, name: str, description: HubDescription | None = None) -> Hub:
        """Create a hub; ResourceExists if the name is taken, by whatever kind of entity.

        The times of the description are set, and the group `$Default` is added.
        """
        now = self.services.now_ms()
        described = description or HubDescription(DEFAULT_PARTITION_COUNT, now, now)
        described = replace(described, created_ms=now, updated_ms=now)
        check_hub_name(name, self.services.limits)
        check_description(described, self.services.limits)
        if described.group(DEFAULT_GROUP) is None:
            group = ConsumerGroup(DEFAULT_GROUP, now)
            described = replace(described, consumer_groups={DEFAULT_GROUP.lower(): group, **described.consumer_groups})
        for group in described.consumer_groups.values():
            with_group(described, group, namespace=namespace, limits=self.services.limits)
        record = await self.namespaces.create(
            namespace, name, KIND, points=described.partition_count, description=described.to_json()
        )
        return self._hub(record)

    def find(self, namespace: str, name: str) -> Hub | None:
        """Find a hub by name, without regard to case, among those that this process knows."""
        record = self.namespaces.find(namespace, name)
        return self._hub(record) if record is not None and record.kind == KIND else None

    async def find_newest(self, namespace: str, name: str) -> Hub | None:
        """Find a hub, also if another process has created it just now."""
        found = self.find(namespace, name)
        if found is None and self.is_shared:
            await self.namespaces.catch_up()
            found = self.find(namespace, name)
        return found

    def hubs(self, namespace: str) -> list[Hub]:
        """List the hubs of a namespace in the order of their names."""
        return [self._hub(record) for record in self.namespaces.entities_of(namespace, KIND)]

    def all_hubs(self) -> list[Hub]:
        return [self._hub(record) for record in self.namespaces.all(KIND)]

    async def update(self, hub: Hub, change: Callable[[HubDescription], HubDescription]) -> Hub:
        """Change the description; `change` is called again if another process was faster, and may refuse by raising."""

        def changed(stored: Any) -> dict[str, Any]:
            before = HubDescription.from_json(stored)
            after = replace(change(before), created_ms=before.created_ms, updated_ms=self.services.now_ms())
            if after.partition_count != before.partition_count:
                raise MalformedRequest(reason="The number of partitions of a hub is fixed when the hub is created.")
            check_description(after, self.services.limits)
            return after.to_json()

        hub.refresh(await self.namespaces.change(self._record(hub), changed))
        hub.notify()
        return hub

    async def delete(self, hub: Hub) -> None:
        """Delete a hub with its events; its links are ended. ResourceNotFound if it is gone already."""
        await self.namespaces.delete(self._record(hub))
        self._forget(hub)
        self.services.reshaper.collect_garbage()

    # --- consumer groups ----------------------------------------------------------------------------------------------

    async def create_group(self, hub: Hub, name: str, metadata: str | None = None) -> ConsumerGroup:
        """Create a consumer group; ResourceExists if there is one of that name."""
        group = ConsumerGroup(name, self.services.now_ms(), metadata)

        def change(description: HubDescription) -> HubDescription:
            if description.group(name) is not None:
                raise ResourceExists(kind="consumer group", name=name)
            return with_group(description, group, namespace=hub.namespace, limits=self.services.limits)

        await self.update(hub, change)
        return group

    async def replace_group(self, hub: Hub, name: str, metadata: str | None) -> ConsumerGroup:
        """Change the metadata of a consumer group, or create it."""
        now = self.services.now_ms()

        def change(description: HubDescription) -> HubDescription:
            known = description.group(name) or ConsumerGroup(name, now)
            group = replace(known, metadata=metadata, updated_ms=now)
            return with_group(description, group, namespace=hub.namespace, limits=self.services.limits)

        found = (await self.update(hub, change)).description.group(name)
        assert found is not None, "a change that is in force has its group"
        return found

    async def delete_group(self, hub: Hub, name: str) -> None:
        """Delete a consumer group; its receivers are ended. ResourceNotFound without a group of that name."""
        without_group(hub.description, name)
        await self.update(hub, lambda description: without_group(description, name))

    # --- partitions ---------------------------------------------------------------------------------------------------

    async def properties(self, hub: Hub) -> Sequence[PartitionProperties]:
        """Return the properties of all partitions, in their order."""
        return [await hub.log(partition).properties() for partition in range(hub.partition_count)]

    # --- handles ------------------------------------------------------------------------------------------------------

    def _hub(self, record: EntityRecord) -> Hub:
        rid = record.keyspace.record.rid
        hub = self._hubs.get(rid)
        if hub is None:
            hub = self._hubs[rid] = Hub(record, self.services)
        else:
            hub.refresh(record)
        return hub

    def _record(self, hub: Hub) -> EntityRecord:
        record = self.namespaces.find(hub.namespace, hub.name)
        if record is None or record.keyspace is not hub.keyspace:
            raise ResourceNotFound(kind="hub", name=hub.name)
        return record
