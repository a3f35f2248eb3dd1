"""The registry of hubs, queues and topics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from asterism.clock import SYSTEM_CLOCK
from asterism.errors import ReshapeRefused, ResourceExists, ResourceNotFound
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.routing.commit import Committer
from asterism.models.namespaces.store import NamespaceStore
from asterism.partitioning.partition_key import numbered_point
from asterism.storage.contract import Batch
from tests.support.world import World, open_world

KEY = b"\x20"


def store_of(world: World) -> NamespaceStore:
    return NamespaceStore(world.catalog, world.admission, SmallDocuments(world.engine), world.reshaper, SYSTEM_CLOCK)


def run(directory: Path, test: Callable[[World, NamespaceStore], Awaitable[None]]) -> None:
    async def go() -> None:
        async with open_world(directory) as world:
            await test(world, store_of(world))

    asyncio.run(go())


def test_names_of_all_kinds_share_a_namespace_and_do_not_regard_case(tmp_path: Path) -> None:
    async def test(_: World, store: NamespaceStore) -> None:
        created = await store.create("ns", "Orders/eu", "queue", points=1, description={"a": 1})
        with pytest.raises(ResourceExists):
            await store.create("ns", "orders/EU", "hub", points=2, description={})
        await store.create("ns", "telemetry", "hub", points=4, description={})
        await store.create("other", "orders/eu", "topic", points=1, description={})
        found = store.find("ns", "ORDERS/eu")
        assert found is not None
        assert (found.name, found.kind, found.description) == ("Orders/eu", "queue", {"a": 1})
        assert found.keyspace is created.keyspace
        assert [(entity.name, entity.partition_count) for entity in store.entities_of("ns", "hub", "queue")] == [
            ("Orders/eu", 1),
            ("telemetry", 4),
        ]
        assert [entity.namespace for entity in store.all("topic")] == ["other"]
        assert store.find("nowhere", "x") is None

    run(tmp_path, test)


def test_a_description_is_changed_and_a_deleted_entity_is_gone(tmp_path: Path) -> None:
    async def test(_: World, store: NamespaceStore) -> None:
        entity = await store.create("ns", "q", "queue", points=1, description={"count": 1})
        changes = [store.change(entity, lambda before: {"count": before["count"] + 1}) for _ in range(5)]
        await asyncio.gather(*changes)
        found = store.find("ns", "q")
        assert found is not None
        assert found.description == {"count": 6}
        await store.delete(entity)
        assert store.find("ns", "q") is None
        with pytest.raises(ResourceNotFound):
            await store.change(entity, dict)
        with pytest.raises(ResourceNotFound):
            await store.delete(entity)

    run(tmp_path, test)


def test_each_point_lies_in_a_physical_partition_that_does_not_split(tmp_path: Path) -> None:
    async def test(world: World, store: NamespaceStore) -> None:
        entity = await store.create("ns", "hub", "hub", points=3, description={})
        committer = Committer(
            entity.keyspace, world.router, world.reshaper, logical_bytes_max=None, physical_bytes_max=None
        )
        places = []
        for number in range(3):
            point = numbered_point(number)
            batch = Batch(puts=[(KEY + point, b"%d" % number)])
            with entity.keyspace.in_flight:
                place, _ = await committer.commit(point, batch, bytes_delta=1, items_delta=1, cost=1.0)
            places.append(place.partition)
        assert len(set(places)) == 3
        with pytest.raises(ReshapeRefused):
            await world.reshaper.split(entity.keyspace, 0)

    run(tmp_path, test)


def test_documents_about_a_namespace_are_replaced_by_those_who_saw_the_last(tmp_path: Path) -> None:
    async def test(_: World, store: NamespaceStore) -> None:
        assert await store.get_document("ns", "rules") is None
        assert await store.replace_document("ns", "rules", b"first", before=None)
        assert not await store.replace_document("ns", "rules", b"second", before=None)
        assert await store.replace_document("ns", "rules", b"second", before=b"first")
        assert await store.get_document("ns", "rules") == b"second"

    run(tmp_path, test)
