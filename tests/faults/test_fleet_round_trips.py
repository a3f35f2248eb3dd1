"""The round trips of requests to the database: counted on the wire, at a node that holds items and not the catalog."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from azure.cosmos import ContainerProxy

from tests.faults.fleet_of_two import container_at, fleet_file, gateway, make_container, partitions
from tests.support.postgres import shared_server
from tests.support.proxy import Proxy, enter_behind_proxy, proxy_to
from tests.support.server import PlainClient

COUNT = 20


@dataclass
class ProxiedContainer:
    """A container, names of items whose partition is on the node behind the proxy, and that proxy."""

    container: ContainerProxy
    names: list[str]
    proxy: Proxy

    async def requests(self, call: Callable[[str], object]) -> int:
        """Return the number of messages to the node while the call was made for each name."""
        before = self.proxy.requests
        await asyncio.to_thread(lambda: [call(name) for name in self.names])
        return self.proxy.requests - before


@pytest.fixture
async def counted(tmp_path: Path) -> AsyncIterator[ProxiedContainer]:
    server = shared_server()
    addresses = {name: await server.empty_database(f"counted_{name}") for name in "ab"}
    async with AsyncExitStack() as stack:
        # It leads, and so does the background work, which asks every node now and then.
        stack.enter_context(gateway(tmp_path / "leader", fleet_file(tmp_path / "near.toml", **addresses)))
        proxy = await stack.enter_async_context(proxy_to(server.port))
        addresses["b"] = server.dsn("counted_b", port=proxy.port)
        starting = gateway(tmp_path / "one", fleet_file(tmp_path / "far.toml", **addresses))
        running = await enter_behind_proxy(stack, starting)
        await asyncio.to_thread(make_container, running)
        (behind,) = (part["id"] for part in await asyncio.to_thread(partitions, running) if part["node"] == "b")
        container = await asyncio.to_thread(container_at, running)

        def names_behind() -> list[str]:
            client, names = PlainClient(running.port), []
            for number in range(6 * COUNT):
                headers = client.write_item("c", {"id": f"n{number}", "pk": f"n{number}"}, key=f"n{number}")[1]
                if headers["x-ms-session-token"].partition(":")[0] == behind:
                    names.append(f"n{number}")
            return names[:COUNT]

        names = await asyncio.to_thread(names_behind)
        assert len(names) == COUNT
        yield ProxiedContainer(container, names, proxy)


async def test_a_point_read_is_one_round_trip_and_a_write_at_most_two(counted: ProxiedContainer) -> None:
    container = counted.container

    def patch(name: str) -> object:
        return container.patch_item(name, name, [{"op": "set", "path": "/n", "value": 2}])

    assert await counted.requests(lambda name: container.read_item(name, name)) == COUNT
    # The item is read, and written under the condition that it is unchanged.
    assert await counted.requests(lambda name: container.upsert_item({"id": name, "pk": name, "n": 0})) == 2 * COUNT
    assert await counted.requests(lambda name: container.replace_item(name, {"id": name, "pk": name})) == 2 * COUNT
    assert await counted.requests(patch) == 2 * COUNT
    assert await counted.requests(lambda name: container.delete_item(name, name)) == 2 * COUNT
    # An item that must not exist is not read.
    assert await counted.requests(lambda name: container.create_item({"id": name, "pk": name})) == COUNT


async def test_a_batch_of_items_is_at_most_two_round_trips(counted: ProxiedContainer) -> None:
    def write(name: str, prefix: str = "a") -> object:
        items = [{"id": f"{prefix}-{number}", "pk": name} for number in range(10)]
        return counted.container.execute_item_batch([("create", (item,)) for item in items], partition_key=name)

    # A statement that a connection has not seen yet is prepared once.
    await asyncio.to_thread(write, counted.names[0], "first")
    assert await counted.requests(write) <= 2 * COUNT
