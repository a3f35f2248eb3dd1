"""The primary of a node dies, with the catalog on it, and its standby takes its place: the fleet heals by itself."""

from __future__ import annotations

from pathlib import Path

from azure.cosmos import PartitionKey

from tests.faults.fleet_of_two import (
    DATABASE,
    Clients,
    OfficialClient,
    check,
    container_at,
    fleet_file,
    gateway,
    make_container,
    partitions,
)
from tests.support.postgres import both_hosts, replicated_server, shared_server


async def test_acknowledged_writes_survive_a_primary_without_any_restart(tmp_path: Path) -> None:
    other = await shared_server().empty_database("failover_b")
    with replicated_server() as (primary, standby):
        primary.create_database()
        fleet = fleet_file(tmp_path / "fleet.toml", a=both_hosts(primary, standby), b=other)
        with gateway(tmp_path / "first", fleet) as first, gateway(tmp_path / "second", fleet) as second:
            make_container(first)
            assert {part["node"] for part in partitions(second)} == {"a", "b"}
            clients = [Clients(first, "x"), Clients(second, "y")]
            official = OfficialClient(second)
            for client in (*clients, official):
                client.start()
            for client in clients:
                client.wait_for_more(20)
            primary.kill()
            standby.promote()
            for client in clients:
                client.wait_for_more(20)
            # The catalog is changed through one gateway and known to the other at once.
            database = first.client().get_database_client(DATABASE)
            database.create_container("later", PartitionKey("/pk"))
            later = second.client().get_database_client(DATABASE).get_container_client("later")
            later.create_item({"id": "1", "pk": "1"})
            answers = [client.end() for client in clients]
            official.end()
            assert official.surprises == []
            check(container_at(first), *answers)
            check(container_at(second), *answers)
            found = {item["id"]: item.get("n") for item in container_at(first).read_all_items()}
            assert {name: found[name] for name in official.known} == official.known
