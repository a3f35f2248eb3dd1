"""A gateway sleeps while a partition is moved away, and wakes with its old map: the fence holds it back."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.fleet_of_two import (
    CONTAINER,
    WAIT_SECONDS_MAX,
    Clients,
    check,
    container_at,
    fleet_file,
    gateway,
    make_container,
    partitions,
    read_item,
    run,
)
from tests.support.postgres import shared_server
from tests.support.proxy import Proxy, enter_behind_proxy, proxy_to
from tests.support.server import PlainClient, RunningServer

NAMES = [f"item-{number}" for number in range(24)]


@dataclass
class Fleet:
    """`leader` moves partitions; `sleeper` reaches the catalog through a proxy, and the other nodes without."""

    leader: RunningServer
    sleeper: RunningServer
    catalog: Proxy


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    server = shared_server()
    near = {name: await server.empty_database(f"stale_{name}") for name in "abc"}
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(proxy_to(server.port))
        far = {**near, "a": server.dsn("stale_a", port=proxy.port)}
        leader = stack.enter_context(gateway(tmp_path / "leader", fleet_file(tmp_path / "near.toml", **near)))
        sleeping = gateway(tmp_path / "sleeper", fleet_file(tmp_path / "far.toml", **far))
        sleeper = await enter_behind_proxy(stack, sleeping)
        await asyncio.to_thread(make_container, leader, throughput=18_000)
        yield Fleet(leader, sleeper, proxy)


def write_all(client: PlainClient, version: int) -> dict[str, int]:
    return {name: client.write_item(CONTAINER, {"id": name, "pk": name, "v": version}, key=name)[0] for name in NAMES}


def partition_of(client: PlainClient) -> dict[str, str]:
    """Return the range that answers for each item, by its session token."""
    return {name: read_item(client, name)[1]["x-ms-session-token"].partition(":")[0] for name in NAMES}


async def test_a_gateway_that_slept_through_a_move_neither_reads_nor_writes_the_old_copy(fleet: Fleet) -> None:
    client, other = PlainClient(fleet.sleeper.port), PlainClient(fleet.leader.port)
    assert set((await asyncio.to_thread(write_all, client, 1)).values()) <= {200, 201}
    ranges = await asyncio.to_thread(partition_of, client)
    moved = next(part for part in await asyncio.to_thread(partitions, fleet.leader) if part["node"] == "b")
    fleet.sleeper.process.send_signal(signal.SIGSTOP)
    await asyncio.to_thread(run, fleet.leader, "move", f"d/c/{moved['id']}", "--to", "c", "--wait")
    assert set((await asyncio.to_thread(write_all, other, 2)).values()) == {200}
    # It wakes up and cannot ask the catalog what has happened.
    await fleet.catalog.refuse()
    fleet.sleeper.process.send_signal(signal.SIGCONT)
    gone = next(name for name in NAMES if ranges[name] == moved["id"])
    with_old_map = [
        asyncio.to_thread(read_item, PlainClient(fleet.sleeper.port), gone),
        asyncio.to_thread(
            PlainClient(fleet.sleeper.port).write_item, CONTAINER, {"id": gone, "pk": gone, "v": 3}, key=gone
        ),
    ]
    for status, _, body in await asyncio.gather(*with_old_map):
        assert status == 503, body
    # As soon as it can, it reads and writes where the partition is now.
    await fleet.catalog.start()
    for name in NAMES:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while (answer := await asyncio.to_thread(read_item, client, name))[0] == 503:
                await asyncio.sleep(0.05)
        status, _, item = answer
        assert (status, item["v"]) == (200, 2)
    assert set((await asyncio.to_thread(write_all, client, 4)).values()) == {200}
    found = await asyncio.to_thread(lambda: list(container_at(fleet.leader).read_all_items()))
    assert {item["id"]: item["v"] for item in found} == dict.fromkeys(NAMES, 4)


async def test_a_gateway_that_sleeps_again_and_again_while_partitions_move_loses_and_doubles_nothing(
    fleet: Fleet,
) -> None:
    clients = [Clients(fleet.leader, "awake"), Clients(fleet.sleeper, "sleepy")]
    for client in clients:
        client.start()
    for target in ("c", "b", "c"):
        await asyncio.to_thread(clients[1].wait_for_more, 5)
        source = "b" if target == "c" else "c"
        listed = await asyncio.to_thread(partitions, fleet.leader)
        moved = next(part for part in listed if part["node"] == source)
        fleet.sleeper.process.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(run, fleet.leader, "move", f"d/c/{moved['id']}", "--to", target, "--wait")
        fleet.sleeper.process.send_signal(signal.SIGCONT)
    await asyncio.to_thread(clients[1].wait_for_more, 5)
    answers = [await asyncio.to_thread(client.end) for client in clients]
    assert [client.refused for client in answers] == [{}, {}]
    await asyncio.to_thread(check, container_at(fleet.sleeper), *answers)
