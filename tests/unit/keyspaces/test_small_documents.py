"""Small documents belong to a database or keyspace and are deleted with it, by every way of deletion."""

from __future__ import annotations

import pytest

from asterism.errors import OwnerNotFound
from asterism.keyspaces.catalog.small_documents import SmallDocuments
from asterism.keyspaces.catalog.store import CATALOG_PARTITION
from tests.support.world import ACCOUNT, World, open_world

DOCUMENTS = b"a"


async def stored(world: World) -> list[bytes]:
    return [value for _, value in await world.everything(CATALOG_PARTITION, DOCUMENTS)]


async def test_documents_are_found_by_owner_and_name() -> None:
    async with open_world(None) as world:
        documents = SmallDocuments(world.engine)
        container = await world.container()
        database = container.record.database_rid
        await documents.put(container.record.rid, "acl", b"of the keyspace")
        await documents.put(database, "acl", b"of the database")
        await documents.put(database, "acl", b"of the database, again")
        assert await documents.get(container.record.rid, "acl") == b"of the keyspace"
        assert await documents.get(database, "acl") == b"of the database, again"
        assert await documents.get(database, "other") is None


# K11 of asterism/keyspaces/DESIGN.md.
async def test_a_deleted_keyspace_takes_its_documents_along_and_no_others() -> None:
    async with open_world(None) as world:
        documents = SmallDocuments(world.engine)
        container = await world.container()
        other = await world.container(id="other")
        for owner in (container.record.rid, other.record.rid, container.record.database_rid):
            await documents.put(owner, "acl", b"of " + owner)
        await world.catalog.delete_keyspace(container.keyspace)
        assert sorted(await stored(world)) == sorted(
            [b"of " + other.record.rid, b"of " + container.record.database_rid]
        )


async def test_a_deleted_database_takes_along_its_documents_and_those_of_its_keyspaces() -> None:
    async with open_world(None) as world:
        documents = SmallDocuments(world.engine)
        containers = [await world.container(), await world.container(id="second")]
        elsewhere = await world.store.create_database(ACCOUNT, "elsewhere", None)
        for owner in (*(container.record.rid for container in containers), containers[0].record.database_rid):
            await documents.put(owner, "acl", b"goes")
        await documents.put(elsewhere.rid, "acl", b"stays")
        await world.store.delete_database(ACCOUNT, "d")
        assert await stored(world) == [b"stays"]


# K11 of asterism/keyspaces/DESIGN.md.
async def test_an_owner_that_was_deleted_gets_no_documents() -> None:
    async with open_world(None) as world:
        documents = SmallDocuments(world.engine)
        container = await world.container()
        await world.store.delete_database(ACCOUNT, "d")
        for owner in (container.record.rid, container.record.database_rid):
            with pytest.raises(OwnerNotFound):
                await documents.put(owner, "acl", b"late")
        assert await stored(world) == []
