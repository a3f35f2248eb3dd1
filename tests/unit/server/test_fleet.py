"""Opening and joining the nodes of a fleet: members, their numbers, and nodes that are refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from asterism.errors import ReshapeRefused
from asterism.partitioning.placement import NodeState
from asterism.server.assemble import Assembly, assembled
from asterism.server.config import ServerConfig, StartRefused
from asterism.server.data_directory import DataDirectory
from asterism.server.fleet import fleet as fleet_module
from asterism.server.fleet.config import FleetConfig, NodeConfig
from asterism.throughput.budgets import Manual
from tests.support.postgres import shared_server

PROPERTIES = {"id": "orders", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}


def fleet_of(tmp_path: Path, *names: str, catalog: str | None = None) -> FleetConfig:
    nodes = tuple(NodeConfig(name, f"lmdb:{tmp_path / name}") for name in names)
    return FleetConfig(nodes=nodes, catalog=catalog or names[0])


def serving(tmp_path: Path, config: FleetConfig | None):  # type: ignore[no-untyped-def]  # an async context manager
    return assembled(ServerConfig(fleet=config), DataDirectory(tmp_path / "data"))


async def fill(assembly: Assembly, throughput: int = 24_000) -> None:
    database = await assembly.services.documents.create_database("asterism", "shop", None)
    container = await assembly.services.documents.create_container(database, PROPERTIES, Manual(throughput))
    for number in range(50):
        await container.create_item({"id": str(number), "pk": str(number)}, None)


async def count(assembly: Assembly) -> int:
    container = assembly.services.documents.container_for_items("asterism", "shop", "orders")
    return len([await container.read_item(str(number).encode(), (str(number),)) for number in range(50)])


def names_and_numbers(assembly: Assembly) -> dict[str, int]:
    return {node.name: node.number for node in assembly.services.documents.catalog.nodes.records.values()}


async def test_nodes_get_numbers_that_they_keep_in_whatever_order_they_are_named(tmp_path: Path) -> None:
    async with serving(tmp_path, fleet_of(tmp_path, "a", "b")) as assembly:
        await fill(assembly)
        assert names_and_numbers(assembly) == {"a": 1, "b": 2}
    async with serving(tmp_path, fleet_of(tmp_path, "c", "b", "a", catalog="a")) as assembly:
        assert names_and_numbers(assembly) == {"a": 1, "b": 2, "c": 3}
        assert await count(assembly) == 50


# S11 of asterism/server/DESIGN.md.
async def test_a_node_of_another_fleet_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, fleet_of(tmp_path, "x")):
        pass
    async with serving(tmp_path, fleet_of(tmp_path, "a")):
        pass
    with pytest.raises(StartRefused, match=r"'x' .* belongs to another fleet"):
        async with serving(tmp_path, fleet_of(tmp_path, "a", "x")):
            pass


# S11 of asterism/server/DESIGN.md.
async def test_a_store_with_data_of_its_own_is_refused_as_a_further_node(tmp_path: Path) -> None:
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        await fill(assembly)
    config = FleetConfig(
        (NodeConfig("a", f"lmdb:{tmp_path / 'a'}"), NodeConfig("b", f"lmdb:{tmp_path / 'store'}")), "a"
    )
    with pytest.raises(StartRefused, match="holds data of no fleet"):
        async with serving(tmp_path, config):
            pass


async def test_a_store_of_a_data_directory_can_become_the_first_node(tmp_path: Path) -> None:
    async with assembled(ServerConfig(), DataDirectory(tmp_path)) as assembly:
        await fill(assembly)
    nodes = (NodeConfig("first", f"lmdb:{tmp_path / 'store'}"), NodeConfig("b", f"lmdb:{tmp_path / 'b'}"))
    async with serving(tmp_path, FleetConfig(nodes, "first")) as assembly:
        assert names_and_numbers(assembly) == {"first": 0, "b": 1}
        assert await count(assembly) == 50


async def test_the_catalog_cannot_be_looked_for_on_another_node(tmp_path: Path) -> None:
    async with serving(tmp_path, fleet_of(tmp_path, "a", "b")) as assembly:
        await fill(assembly)
    for wrong in ("b", "new"):
        with pytest.raises(StartRefused, match=f"the catalog of the fleet is not on '{wrong}'"):
            async with serving(tmp_path, fleet_of(tmp_path, "a", "b", "new", catalog=wrong)):
                pass
    # The mistakes have left nothing behind.
    async with serving(tmp_path, fleet_of(tmp_path, "a", "b", "new", catalog="a")) as assembly:
        assert names_and_numbers(assembly) == {"a": 1, "b": 2, "new": 3}


async def test_one_store_under_two_names_is_refused_and_keeps_its_first_name(tmp_path: Path) -> None:
    await shared_server().empty_database("fleet_twice")
    dsn = shared_server().dsn("fleet_twice")
    for count_of_nodes in (2, 1):
        nodes = (NodeConfig("a", dsn), NodeConfig("b", f"{dsn}?application_name=other"))[:count_of_nodes]
        if count_of_nodes == 2:
            with pytest.raises(StartRefused, match="'a' and 'b' are one and the same store"):
                async with serving(tmp_path, FleetConfig(nodes, "a")):
                    pass
        else:
            async with serving(tmp_path, FleetConfig(nodes, "a")) as assembly:
                assert names_and_numbers(assembly) == {"a": 1}


async def test_a_description_that_is_refused_has_renamed_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, fleet_of(tmp_path, "a", "b")):
        pass
    renamed = NodeConfig("z", f"lmdb:{tmp_path / 'a'}")
    with pytest.raises(StartRefused, match=r"a node 'b' .*asterism drain b"):
        async with serving(tmp_path, FleetConfig((renamed,), "z")):
            pass
    async with serving(tmp_path, fleet_of(tmp_path, "a", "b")) as assembly:
        assert names_and_numbers(assembly) == {"a": 1, "b": 2}
    both = (renamed, NodeConfig("b", f"lmdb:{tmp_path / 'b'}"))
    async with serving(tmp_path, FleetConfig(both, "z")) as assembly:
        assert names_and_numbers(assembly) == {"z": 1, "b": 2}


async def test_a_fleet_by_another_name_is_another_fleet(tmp_path: Path) -> None:
    nodes = fleet_of(tmp_path, "a").nodes
    async with serving(tmp_path, FleetConfig(nodes, "a")):
        pass
    async with serving(tmp_path, FleetConfig(nodes, "a", name="shop")):
        pass
    with pytest.raises(StartRefused, match="has the fleet 'shop', and 'store' is another"):
        async with serving(tmp_path, FleetConfig(nodes, "a", name="store")):
            pass
    # Without a name, as with --store, the store alone counts.
    async with serving(tmp_path, FleetConfig(nodes, "a")):
        pass


async def test_a_node_that_is_not_named_any_more_must_have_been_drained(tmp_path: Path) -> None:
    async with serving(tmp_path, fleet_of(tmp_path, "a", "b")) as assembly:
        await fill(assembly)
    with pytest.raises(StartRefused, match="a node 'b' that its description does not name"):
        async with serving(tmp_path, fleet_of(tmp_path, "a")):
            pass
    async with serving(tmp_path, fleet_of(tmp_path, "a", "b")) as assembly:
        nodes = assembly.services.documents.catalog.nodes
        record = nodes.named("b")
        assert record is not None
        mover = assembly.migration._mover
        await mover.drain(record)
        async with asyncio.timeout(180):
            while nodes.records[record.number].state is not NodeState.REMOVED:
                await asyncio.sleep(0.02)
    async with serving(tmp_path, fleet_of(tmp_path, "a")) as assembly:
        assert await count(assembly) == 50


async def test_a_node_that_cannot_be_reached_at_the_start_is_attached_when_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "_REOPEN_SECONDS", 0.05)
    config = fleet_of(tmp_path, "a", "b")
    async with serving(tmp_path, config) as assembly:
        await fill(assembly)
    # As a disk that is not mounted: something else stands where the store was.
    (tmp_path / "b").rename(tmp_path / "b-away")
    (tmp_path / "b").write_text("")
    async with serving(tmp_path, config) as assembly:
        statuses = await assembly.fleet.engines.node_statuses()
        assert [statuses[number] is None for number in sorted(statuses)] == [False, True]
        (tmp_path / "b").unlink()
        (tmp_path / "b-away").rename(tmp_path / "b")
        async with asyncio.timeout(180):
            while None in (await assembly.fleet.engines.node_statuses()).values():
                await asyncio.sleep(0.02)
        assert await count(assembly) == 50


async def test_without_the_node_of_the_catalog_the_server_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(StartRefused, match=r"the store lmdb:.*/a cannot be used"):
        async with serving(tmp_path, fleet_of(tmp_path, "a")):
            pass


async def migrated(assembly: Assembly) -> None:
    async with asyncio.timeout(180):
        while assembly.migration.progress().phase != "done":
            assert assembly.migration.progress().trouble == ""
            await asyncio.sleep(0.02)


async def postgres_fleet() -> FleetConfig:
    """Two databases of one server are as good as two servers."""
    server = shared_server()
    for name in ("fleet_a", "fleet_b"):
        await server.empty_database(name)
    return FleetConfig((NodeConfig("a", server.dsn("fleet_a")), NodeConfig("b", server.dsn("fleet_b"))), "a")


@pytest.mark.parametrize("kind", ["lmdb", "postgres"])
async def test_everything_goes_to_a_fleet_and_back_and_each_place_says_where_it_went(tmp_path: Path, kind: str) -> None:
    data = DataDirectory(tmp_path / "data")
    config = fleet_of(tmp_path, "a", "b") if kind == "lmdb" else await postgres_fleet()
    async with assembled(ServerConfig(), data) as assembly:
        await fill(assembly)
        await assembly.migration.to_fleet(config, where="fleet.toml")
        await migrated(assembly)
        # The same server goes on, from the fleet.
        assert await count(assembly) == 50
        await assembly.services.documents.create_database("asterism", "later", None)
        assert await assembly.fleet.engines.partitions() != {}
        assert {node.name for node in assembly.services.documents.catalog.nodes.online()} == {"a", "b"}
    with pytest.raises(StartRefused, match=r"is in fleet\.toml now"):
        async with assembled(ServerConfig(), data):
            pass
    async with serving(tmp_path / "elsewhere", config) as assembly:
        assert await count(assembly) == 50
        assert assembly.services.documents.database("asterism", "later").name == "later"
        await assembly.migration.to_directory(data.path)
        await migrated(assembly)
        assert await count(assembly) == 50
        await assembly.services.documents.create_database("asterism", "last", None)
    with pytest.raises(StartRefused, match=f"is in {data.path} now"):
        async with serving(tmp_path / "elsewhere", config):
            pass
    async with assembled(ServerConfig(), data) as assembly:
        assert await count(assembly) == 50
        assert assembly.services.documents.database("asterism", "last").name == "last"
        assert {partition.node for partition in await_map(assembly)} == {0}
        # And forth again: the nodes are known, and empty.
        await assembly.migration.to_fleet(config, where="fleet.toml")
        await migrated(assembly)
        assert await count(assembly) == 50


def await_map(assembly: Assembly):  # type: ignore[no-untyped-def]  # the ranges of the container
    return assembly.services.documents.container_for_items("asterism", "shop", "orders").keyspace.record.map.ranges


async def test_a_migration_to_where_something_else_is_is_refused_and_leaves_everything_as_it_was(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path / "x", fleet_of(tmp_path, "a")):
        pass
    async with assembled(ServerConfig(), DataDirectory(tmp_path / "data")) as assembly:
        await fill(assembly)
        with pytest.raises(ReshapeRefused, match="belongs to another fleet"):
            await assembly.migration.to_fleet(fleet_of(tmp_path, "new", "a"), where="fleet.toml")
        assert assembly.migration.progress().phase == "none"
        assert names_and_numbers(assembly) == {"local": 0}
        assert await count(assembly) == 50
    async with assembled(ServerConfig(), DataDirectory(tmp_path / "data")) as assembly:
        assert await count(assembly) == 50
