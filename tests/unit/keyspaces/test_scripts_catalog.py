"""Scripts in the catalog: there again after a restart, gone with their container or its database."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism.errors import OwnerNotFound
from asterism.keyspaces.catalog.scripts_catalog import STORED_PROCEDURES, TRIGGERS, USER_DEFINED_FUNCTIONS
from tests.support.world import ACCOUNT, open_world

KINDS = (STORED_PROCEDURES, TRIGGERS, USER_DEFINED_FUNCTIONS)


async def test_scripts_are_there_after_a_restart(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        rid = (await world.container()).record.rid
        scripts = world.catalog.scripts
        procedure = await scripts.stored_procedures.create(rid, "same", {"body": "p"}, now=1)
        trigger = await scripts.triggers.create(rid, "same", {"body": "t"}, now=2)
        function = await scripts.functions.create(rid, "same", {"body": "f"}, now=3)
    async with open_world(tmp_path) as world:
        scripts = world.catalog.scripts
        assert scripts.stored_procedures.owned_by(rid) == [procedure]
        assert scripts.triggers.owned_by(rid) == [trigger]
        assert scripts.functions.find(rid, "same") == function


async def test_scripts_go_with_their_database(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        rid = (await world.container()).record.rid
        await world.catalog.scripts.triggers.create(rid, "t", {}, now=1)
        await world.store.delete_database(ACCOUNT, "d")
        assert world.catalog.scripts.triggers.owned_by(rid) == []
        left = [
            await world.catalog.store.scan(prefix)
            for kind in KINDS
            for prefix in (kind.record_prefix, kind.name_prefix)
        ]
        assert left == [[]] * 6
        with pytest.raises(OwnerNotFound):
            await world.catalog.scripts.triggers.create(rid, "t", {}, now=1)
