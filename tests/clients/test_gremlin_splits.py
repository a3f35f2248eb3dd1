"""Traversals while the partitions of their graph are divided and joined: nothing fails, is lost or comes twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.cosmos import DatabaseProxy

from tests.clients.gremlin_door import Door, results
from tests.clients.test_change_feed import Partitions
from tests.support.server import RunningServer

KEYS = 12
WRITERS = 3
# Each finds every vertex of the ring once.
READS = ("g.V().hasLabel('fixed')", "g.V().out('ring')", "g.V().in('ring')", "g.E().hasLabel('ring').outV()")


@pytest.fixture(params=[True, False], ids=["incoming edges", "plain"])
def door(request: pytest.FixtureRequest, server: RunningServer, database: DatabaseProxy) -> Door:
    body = {"id": "graph", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}, "incomingEdges": request.param}
    database.client_connection.CreateContainer(database.database_link, body)
    return Door(server, database.id, "graph")


def test_traversals_go_on_through_splits_and_merges(door: Door, server: RunningServer, database: DatabaseProxy) -> None:
    with door.client() as client:
        for number in range(KEYS):
            text = "g.addV('fixed').property('id','v').property('pk',k)"
            results(client, text, {"k": f"k{number}"})
        for number in range(KEYS):
            text = "g.V([k,'v']).addE('ring').to(g.V([j,'v']))"
            results(client, text, {"k": f"k{number}", "j": f"k{(number + 1) % KEYS}"})
    stopping = threading.Event()

    def write(writer: int) -> int:
        written = 0
        with door.client() as client:
            while not stopping.is_set():
                bindings = {"k": f"k{written % KEYS}", "j": f"k{(written + 1) % KEYS}", "i": f"{writer}-{written}"}
                results(
                    client,
                    "g.V([j,'v']).as('v').addV('new').property('id',i).property('pk',k).addE('to').to('v')",
                    bindings,
                )
                results(client, "g.V([k,i]).property('seen', true).outE().property('seen', true)", bindings)
                written += 1
        return written

    def read(_: int) -> int:
        reads = 0
        expected = sorted(f"k{number}" for number in range(KEYS))
        with door.client() as client:
            # At least once, also where the partitions are done before this thread is.
            while not (reads and stopping.is_set()):
                for text in READS:
                    assert sorted(results(client, f"{text}.values('pk')")) == expected, text
                reads += 1
        return reads

    partitions = Partitions(server, database.id, "graph")
    with ThreadPoolExecutor(WRITERS + 1) as threads:
        writers = [threads.submit(write, number) for number in range(WRITERS)]
        reader = threads.submit(read, 0)
        try:
            partitions.split(0)
            partitions.split(1)
            partitions.merge(3, 4)
        finally:
            stopping.set()
        counts = [writer.result(120) for writer in writers]
        assert reader.result(120)
    with door.client() as client:
        assert sorted(results(client, "g.V().hasLabel('new').id()")) == sorted(
            f"{writer}-{number}" for writer, count in enumerate(counts) for number in range(count)
        )
        total = sum(counts)
        for text in (
            "g.V().hasLabel('new').has('seen', true)",
            "g.E().hasLabel('to').has('seen', true)",
            "g.V().hasLabel('new').out('to')",
            "g.V().hasLabel('fixed').in('to')",
        ):
            assert results(client, f"{text}.count()") == [total], text
