"""A server that stops while Gremlin requests are under way."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import aiohttp
from azure.cosmos import PartitionKey

from tests.clients.gremlin_door import Door
from tests.clients.gremlin_messages import bare_socket, script
from tests.support.server import WAIT_SECONDS_MAX, running_server

SLOW = "g.inject(1).repeat(union(identity(), identity())).times(17).count()"
WALKS = 2**17


async def test_requests_under_way_are_answered_before_the_good_bye(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", doors=("nosql", "gremlin")) as server:
        with server.client() as client:
            client.create_database("d").create_container("g", PartitionKey("/pk"))
        async with bare_socket(Door(server, "d", "g")) as bare:
            for _ in range(4):
                await bare.send(script(SLOW))
            # Its answer overtakes those of the others, which are under way then; those that are done already if this
            # test was held up, or the server is quick, come before it.
            answers = [(await bare.ask(script("g.inject(1)")))["result"]["data"]]
            while [1] not in answers:
                answers.append((await bare.receive())["result"]["data"])
            server.process.send_signal(signal.SIGTERM)
            while len(answers) < 5:
                answers.append((await bare.receive())["result"]["data"])
            assert sorted(answers) == [[1], *[[WALKS]] * 4]
            closed = await bare.socket.receive(timeout=WAIT_SECONDS_MAX)
            assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1001)
        assert await asyncio.to_thread(server.process.wait, WAIT_SECONDS_MAX) == 0
