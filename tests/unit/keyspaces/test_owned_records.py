"""Users and permissions in the catalog: there again after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism.errors import OwnerNotFound, ResourceExists, ResourceNotFound
from tests.support.world import ACCOUNT, open_world


async def test_users_and_permissions_are_there_after_a_restart(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        database = await world.store.create_database(ACCOUNT, "d", None)
        user = await world.catalog.users.create(database.rid, "u", {}, now=1)
        renamed = await world.catalog.users.replace(user, "w", {}, now=2)
        permission = await world.catalog.permissions.create(user.rid, "p", {"permissionMode": "All"}, now=3)
        gone = await world.catalog.users.create(database.rid, "gone", {}, now=4)
        await world.catalog.permissions.create(gone.rid, "p", {}, now=5)
        await world.catalog.delete_user(gone)
        # The service's layout for users and their permissions: the bit of containers is clear.
        assert (len(user.rid), user.rid[4] & 0x80) == (8, 0)
        assert (len(permission.rid), permission.rid[:8]) == (16, user.rid)
    async with open_world(tmp_path) as world:
        assert world.catalog.users.owned_by(database.rid) == [renamed]
        assert world.catalog.permissions.owned_by(database.rid) == [permission]
        assert world.catalog.users.find(database.rid, "u") is None


async def test_a_name_is_free_again_after_a_delete_and_taken_until_then(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        database = await world.store.create_database(ACCOUNT, "d", None)
        users = world.catalog.users
        user = await users.create(database.rid, "u", {}, now=1)
        with pytest.raises(ResourceExists):
            await users.create(database.rid, "u", {}, now=1)
        await users.delete(user)
        with pytest.raises(ResourceNotFound):
            await users.delete(user)
        await users.create(database.rid, "u", {}, now=1)


async def test_a_user_of_an_unknown_database_is_refused(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        with pytest.raises(OwnerNotFound):
            await world.catalog.users.create(b"none", "u", {}, now=1)
