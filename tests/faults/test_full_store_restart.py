"""A server that is started again on a store that is full."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from azure.cosmos import PartitionKey

from asterism.keyspaces.catalog.catalog import Catalog
from asterism.keyspaces.catalog.store import CATALOG_EPOCH, CATALOG_PARTITION
from asterism.limits import MIB
from asterism.storage.contract import Batch, OutOfSpace
from asterism.storage.lmdb import LmdbEngine
from tests.support.full_disk import files_limited_to
from tests.support.server import PlainClient, running_server

ROOM_BYTES = 8 * MIB
ITEM_PAD = "x" * 20_000
# Less than any page of the store; the claim of the server is a record of 64 bytes.
NO_ROOM_BYTES = 1024
SMALL_MAP_BYTES = 2 * MIB

ONE_PROCESS, TWO_WORKERS = (), ("--workers", "2")


def send(client: PlainClient, verb: str, item_id: str) -> int:
    link = f"dbs/d/colls/c/docs/{item_id}"
    headers = {"x-ms-documentdb-partitionkey": '["a"]'}
    return client.send(verb, f"/{link}", resource_type="docs", link=link, headers=headers)[0]


def write(client: PlainClient, item_id: str, pad: str = ITEM_PAD) -> int:
    return client.write_item("c", {"id": item_id, "pk": "a", "pad": pad}, key="a")[0]


def fill_server(data: Path, *options: str) -> int:
    """Write until the store is full, and stop the server; return the number of items."""
    with running_server(
        data, "--no-throttle", *options, before_start=files_limited_to(ROOM_BYTES), embedded=True
    ) as server:
        server.client().create_database("d").create_container("c", PartitionKey("/pk"))
        client = PlainClient(server.port)
        count = 0
        while (status := write(client, f"i{count}")) == 201:
            count += 1
        assert status == 507
        # Whatever the larger ones have left.
        small = 0
        while write(client, f"small{small}", "") == 201:
            small += 1
        assert server.end()[0] == 0
    return count


@pytest.mark.parametrize("options", [ONE_PROCESS, TWO_WORKERS], ids=["one process", "workers"])
def test_a_server_restarts_on_a_full_store_and_takes_reads_and_deletes(tmp_path: Path, options: tuple[str]) -> None:
    count = fill_server(tmp_path, *options)
    with running_server(
        tmp_path, "--no-throttle", *options, before_start=files_limited_to(ROOM_BYTES), embedded=True, alone=True
    ) as server:
        client = PlainClient(server.port)
        assert send(client, "GET", "i0") == 200
        assert write(client, "new") == 507
        assert {send(client, "DELETE", f"i{number}") for number in range(count // 2)} == {204}
        assert write(client, "new") == 201
        assert send(client, "GET", f"i{count - 1}") == 200


@pytest.mark.parametrize("options", [ONE_PROCESS, TWO_WORKERS], ids=["one process", "workers"])
def test_a_server_restarts_where_nothing_at_all_can_be_written_and_answers_reads(
    tmp_path: Path, options: tuple[str]
) -> None:
    count = fill_server(tmp_path, *options)
    with running_server(
        tmp_path, "--no-throttle", *options, before_start=files_limited_to(NO_ROOM_BYTES), embedded=True, alone=True
    ) as server:
        client = PlainClient(server.port)
        assert {send(client, "GET", f"i{number}") for number in range(count)} == {200}
        assert write(client, "new") == 507
        assert send(client, "DELETE", "i0") == 507
        assert send(client, "GET", "i0") == 200
        status, errors = server.end()
    assert status == 0
    assert "no room left" in errors


def test_a_server_that_started_without_room_takes_creates_when_there_is_some(tmp_path: Path) -> None:
    fill_server(tmp_path)
    with running_server(tmp_path, before_start=files_limited_to(NO_ROOM_BYTES), embedded=True, alone=True) as server:
        client = PlainClient(server.port)
        assert write(client, "new") == 507
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
        statuses = {write(client, "new")}
        while 201 not in statuses:
            statuses.add(write(client, "new"))
        assert statuses <= {201, 507}


async def fill_catalog(engine: LmdbEngine, prefix: bytes) -> None:
    for number in range(10_000):
        try:
            batch = Batch(puts=[(prefix + b"%d" % number, bytes(1000))])
            await engine.apply(CATALOG_PARTITION, CATALOG_EPOCH, batch)
        except OutOfSpace:
            return
    raise AssertionError("there was room for everything")


async def test_a_store_whose_map_is_full_opens_its_catalog(tmp_path: Path) -> None:
    def new_catalog(engine: LmdbEngine) -> Catalog:
        return Catalog(engine, random_bytes=bytes, monotonic=lambda: 0.0, is_shared=True)

    boot_numbers: list[int] = []
    for start in range(30):
        engine = LmdbEngine.open(tmp_path, map_bytes=SMALL_MAP_BYTES, durable=False)
        catalog = new_catalog(engine)
        await catalog.open()
        boot_numbers.append(catalog.boot_number)
        await fill_catalog(engine, b"a%d/" % start)
        await engine.close()
    assert boot_numbers == list(range(1, 31))
