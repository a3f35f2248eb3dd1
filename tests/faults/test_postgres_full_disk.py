"""A database whose disk is full: it is opened for reading, and accepts writes again when there is space."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.store import CATALOG_EPOCH, CATALOG_PARTITION
from asterism.storage.contract import Batch, OutOfSpace
from asterism.storage.postgres import PostgresEngine
from tests.support.ports import free_port
from tests.support.postgres import shared_server
from tests.support.server import refused_start, running_server

DATABASE = "full_disk"
# The server's error when it cannot extend a file (disk_full), for every write.
FILL = """
CREATE FUNCTION asterism.is_full() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END$$;
CREATE TRIGGER is_full BEFORE UPDATE ON asterism.partitions FOR EACH STATEMENT EXECUTE FUNCTION asterism.is_full();
"""
EMPTY = "DROP TRIGGER is_full ON asterism.partitions; DROP FUNCTION asterism.is_full();"


async def open_catalog(engine: PostgresEngine) -> Catalog:
    catalog = Catalog(engine, random_bytes=bytes, monotonic=lambda: 0.0, is_shared=True)
    await catalog.open()
    return catalog


async def test_a_catalog_is_opened_on_a_full_disk_and_gets_its_number_later() -> None:
    server = shared_server()
    engine = await PostgresEngine.open(await server.empty_database(DATABASE))
    try:
        before = await open_catalog(engine)
        server.sql(FILL, DATABASE)
        with pytest.raises(OutOfSpace):
            await engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, Batch(puts=[(b"a", b"")]))
        catalog = await open_catalog(engine)
        assert catalog.boot_number == 0
        assert await catalog.store.read([b"n/boot"]) != [None]
        server.sql(EMPTY, DATABASE)
        await catalog.take_boot_number()
        assert catalog.boot_number == before.boot_number + 1
    finally:
        await engine.close()


def test_a_server_starts_on_a_database_whose_disk_is_full(tmp_path: Path) -> None:
    server = shared_server()
    server.create_database("full_disk_server")
    store = ("--store", server.dsn("full_disk_server"))
    with running_server(tmp_path, *store, alone=True) as first:
        first.client().create_database("d")
        assert first.end()[0] == 0
    server.sql(FILL, "full_disk_server")
    with running_server(tmp_path, *store, alone=True) as second:
        assert [found["id"] for found in second.client().list_databases()] == ["d"]
        status, errors = second.end()
    assert status == 0
    assert "no room left" in errors


def test_a_server_names_the_store_it_waits_for(tmp_path: Path) -> None:
    address = f"postgresql://someone:secret@127.0.0.1:{free_port()}/nothing"
    output = refused_start(tmp_path, "--store", address)
    assert re.search(r"the store postgresql://someone@127\.0\.0\.1\S* does not answer yet; waiting for it", output)
    assert "cannot be reached" in output.splitlines()[-1]
    assert "secret" not in output
