"""The network between a gateway and a node breaks in the middle of writes; another gateway has its own way there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

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
    run,
)
from tests.support.postgres import shared_server
from tests.support.proxy import Fault, Proxy, enter_behind_proxy, proxy_to
from tests.support.server import PlainClient, RunningServer


@dataclass
class Fleet:
    """`far` reaches the nodes through proxies, and `near` without."""

    far: RunningServer
    near: RunningServer
    catalog: Proxy
    node: Proxy


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    server = shared_server()
    direct = {name: await server.empty_database(f"cut_{name}") for name in "ab"}
    async with AsyncExitStack() as stack:
        proxies = {name: await stack.enter_async_context(proxy_to(server.port)) for name in "ab"}
        broken = {name: server.dsn(f"cut_{name}", port=proxy.port) for name, proxy in proxies.items()}
        near_file = fleet_file(tmp_path / "near.toml", **direct)
        far_file = fleet_file(tmp_path / "far.toml", **broken)
        near = stack.enter_context(gateway(tmp_path / "near", near_file))
        far = await enter_behind_proxy(stack, gateway(tmp_path / "far", far_file))
        await asyncio.to_thread(make_container, near)
        yield Fleet(far, near, proxies["a"], proxies["b"])


async def test_connections_are_cut_again_and_again_and_no_client_notices(fleet: Fleet) -> None:
    clients = [Clients(fleet.far, "far"), Clients(fleet.near, "near")]
    official = await asyncio.to_thread(OfficialClient, fleet.far)
    for client in (*clients, official):
        client.start()
    for fault in (Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.ANSWER_LOST, Fault.REQUEST_LOST):
        for proxy in (fleet.node, fleet.catalog):
            proxy.arm(fault)
            await asyncio.wait_for(proxy.struck.wait(), 180)
        await asyncio.to_thread(clients[0].wait_for_more, 5)
    for proxy in (fleet.node, fleet.catalog):
        proxy.cut_all()
        await asyncio.to_thread(clients[0].wait_for_more, 5)
    answers = [await asyncio.to_thread(client.end) for client in clients]
    await asyncio.to_thread(official.end)
    # Every outcome was found out, so that no client was asked to retry.
    assert [client.refused for client in answers] == [{}, {}]
    assert (official.surprises, official.refused) == ([], {})
    await asyncio.to_thread(check, container_at(fleet.near), *answers)


async def test_a_node_that_goes_silent_is_503_and_all_is_well_when_it_is_heard_again(fleet: Fleet) -> None:
    clients = [Clients(fleet.far, "far"), Clients(fleet.near, "near")]
    for client in clients:
        client.start()
    await asyncio.to_thread(clients[0].wait_for_more)
    fleet.catalog.stall()
    fleet.node.stall()
    async with asyncio.timeout(180):
        while not clients[0].answers.refused:
            await asyncio.sleep(0.05)
    # The other gateway has its own way there.
    await asyncio.to_thread(clients[1].wait_for_more)
    fleet.catalog.flow()
    fleet.node.flow()
    await asyncio.to_thread(clients[0].wait_for_more)
    answers = [await asyncio.to_thread(client.end) for client in clients]
    assert set(answers[0].refused) <= {449, 503}
    assert answers[1].refused == {}
    await asyncio.to_thread(check, container_at(fleet.near), *answers)


async def test_an_unreachable_catalog_is_503_for_requests_that_need_it_and_the_rest_succeed(fleet: Fleet) -> None:
    # Its partition is on the node that can be reached.
    names = [f"item-{number}" for number in range(20)]
    near = container_at(fleet.near)
    await asyncio.to_thread(lambda: [near.create_item({"id": name, "pk": name}) for name in names])
    client = PlainClient(fleet.far.port)

    def statuses() -> set[int]:
        return {client.write_item("c", {"id": name, "pk": name}, key=name)[0] for name in names}

    assert await asyncio.to_thread(statuses) == {200}
    await fleet.catalog.refuse()
    # A client can connect, which needs no catalog.
    await asyncio.to_thread(fleet.far.client)
    created = asyncio.to_thread(client.send, "POST", "/dbs", {"id": "new"}, resource_type="dbs", link="")
    listed_by = PlainClient(fleet.far.port)
    link = f"dbs/{DATABASE}"
    listed = asyncio.to_thread(listed_by.send, "GET", f"/{link}/colls", resource_type="colls", link=link)
    for status, _, body in await asyncio.gather(created, listed):
        assert (status, isinstance(body, dict) and body["code"]) == (503, "ServiceUnavailable")
    await fleet.catalog.start()
    async with asyncio.timeout(180):
        while True:
            status, _, body = await asyncio.to_thread(
                client.send, "POST", "/dbs", {"id": "new"}, resource_type="dbs", link=""
            )
            if status == 201:
                break
            assert status == 503, body
            await asyncio.sleep(0.1)
    assert await asyncio.to_thread(statuses) == {200}


async def test_an_operator_sees_which_node_is_away_and_new_containers_go_elsewhere(fleet: Fleet) -> None:
    names = [f"item-{number}" for number in range(20)]
    near = container_at(fleet.near)
    await asyncio.to_thread(lambda: [near.create_item({"id": name, "pk": name}) for name in names])
    await fleet.node.refuse()
    nodes = json.loads(await asyncio.to_thread(run, fleet.far, "nodes", "--format", "json"))["nodes"]
    assert [(node["name"], node["health"]) for node in nodes] == [("a", "ok"), ("b", "unreachable")]
    shown = await asyncio.to_thread(partitions, fleet.far)
    assert sorted((part["node"], part["state"], part["items"] is None) for part in shown) == [
        ("a", "online", False),
        ("b", "unreachable", True),
    ]
    assert "unreachable" in await asyncio.to_thread(run, fleet.far, "partitions", DATABASE, "c", "--details")
    client = PlainClient(fleet.far.port)
    definition = {"id": "new", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    link = f"dbs/{DATABASE}"
    status, _, _ = await asyncio.to_thread(
        client.send, "POST", f"/{link}/colls", definition, resource_type="colls", link=link
    )
    assert status == 201
    shown = json.loads(await asyncio.to_thread(run, fleet.far, "partitions", DATABASE, "new", "--format", "json"))
    assert [part["node"] for part in shown["partitions"]] == ["a"]
    await fleet.node.start()
