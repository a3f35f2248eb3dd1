"""kill -9 under a load of writes through the Gremlin door, on a graph that keeps incoming edges, then a restart.

Everything acknowledged is there, a traversal within one logical partition is whole or absent, and for every edge both
of its ends show it. A further kind of load is a further class in `LOADS`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gremlin_python.driver.client import Client
from gremlin_python.driver.protocol import GremlinServerError

from tests.clients.gremlin_door import Door, results
from tests.support.raw import wait_until
from tests.support.server import PlainClient, RunningServer, running_server

HUB = "g.V(['hub','hub'])"


class Load(ABC):
    """Writes of one thread until the server is gone, and the check of them after its restart."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.key = f"{type(self).__name__}-{number}"
        self.tried = 0
        self.acknowledged = 0
        self.refusal: Exception | None = None

    def run(self, server: RunningServer) -> None:
        try:
            with connected(server) as client:
                while True:
                    self.tried += 1
                    self.write(client)
                    self.acknowledged += 1
        except GremlinServerError as refusal:
            self.refusal = refusal
        except Exception:
            # The client has many ways to say that the server is gone.
            return

    @abstractmethod
    def write(self, client: Client) -> None: ...

    @abstractmethod
    def check(self, client: Client) -> None: ...

    def name(self, write: int) -> str:
        return f"{self.key}-{write}"


@contextmanager
def connected(server: RunningServer) -> Iterator[Client]:
    with Door(server, "d", "c").client() as client:
        yield client


class Groups(Load):
    """Three vertices and two edges in a logical partition of their own, by one traversal."""

    def write(self, client: Client) -> None:
        results(
            client,
            "g.addV('n').property('id','a').property('pk',k).as('a').addV('n').property('id','b').property('pk',k).as('b')"
            ".addV('n').property('id','c').property('pk',k).addE('e').to('a').addE('e').from('a').to('b')",
            {"k": self.name(self.tried)},
        )

    def check(self, client: Client) -> None:
        for write in range(1, self.tried + 1):
            bindings = {"k": self.name(write)}
            vertices = sorted(results(client, "g.V().has('pk', k).id()", bindings))
            edges = results(client, "g.V().has('pk', k).outE().count()", bindings)
            assert (vertices, edges) in ((["a", "b", "c"], [2]), ([], [0]))
            assert vertices or write > self.acknowledged


class Bridges(Load):
    """A vertex with an edge to and from a vertex of another partition, by one traversal; every third is dropped."""

    def write(self, client: Client) -> None:
        if self.tried % 3:
            results(
                client,
                f"{HUB}.as('h').addV('n').property('id','v').property('pk',k).as('v').addE('to').to('h')"
                ".addE('from').from('h').to('v')",
                {"k": self.name(self.tried)},
            )
        else:
            results(client, "g.V([k,'v']).drop()", {"k": self.name(self.tried - 1)})

    def check(self, client: Client) -> None:
        for write in range(1, self.tried + 1):
            if not write % 3:
                continue
            bindings = {"k": self.name(write)}
            found = results(
                client, "g.V([k,'v']).project('o','i').by(__.outE('to').count()).by(__.inE().count())", bindings
            )
            is_dropped = write % 3 == 2 and write < self.acknowledged
            if is_dropped:
                assert found == []
            elif write <= self.acknowledged and (write % 3 == 1 or write == self.tried):
                assert found == [{"o": 1, "i": 1}]
            # The rest was under way: the vertex and its own edge are a unit, that of the hub is another.
            assert all(each["o"] == 1 for each in found)


class Changes(Load):
    """Two properties of a vertex and one of an edge, which are always changed together."""

    def write(self, client: Client) -> None:
        if self.tried == 1:
            results(
                client,
                f"g.addV('n').property('id','v').property('pk',k).as('v').addE('to').to({HUB}).property('n',0)"
                ".outV().property('n',0).property('m',0)",
                {"k": self.key},
            )
        results(
            client,
            "g.V([k,'v']).property('n',n).property('m',n).sideEffect(__.outE('to').property('n',n))",
            {"k": self.key, "n": self.tried},
        )

    def check(self, client: Client) -> None:
        values = "g.V([k,'v']).union(__.values('n','m'), __.outE('to').values('n'))"
        found = results(client, values, {"k": self.key})
        assert len(found) == (3 if self.acknowledged else len(found))
        assert len(set(found)) <= 1
        assert all(self.acknowledged <= number <= self.tried for number in found)


class Merges(Load):
    """The same elements merged by several threads."""

    def write(self, client: Client) -> None:
        bindings = {"k": f"m-{self.tried % 7}", "i": f"m{self.tried}"}
        results(client, "g.mergeV([(T.id): i, (T.label): 'n', pk: k]).option(onMatch, [seen: true])", bindings)
        text = "g.mergeE([(T.label): 'merged', (Direction.OUT): [k, i], (Direction.IN): ['hub','hub']])"
        results(client, text, bindings)

    def check(self, client: Client) -> None:
        for write in range(1, self.acknowledged + 1):
            bindings = {"k": f"m-{write % 7}", "i": f"m{write}"}
            assert results(client, "g.V([k, i]).outE('merged').count()", bindings) == [1]


LOADS = (Groups, Bridges, Changes, Merges, Merges)


def create_graph(server: RunningServer) -> None:
    client = PlainClient(server.port)
    client.send("POST", "/dbs", {"id": "d"}, resource_type="dbs", link="")
    body = {
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "incomingEdges": True,
    }
    # Several physical partitions.
    headers = {"x-ms-offer-throughput": "24000"}
    status, _, answer = client.send("POST", "/dbs/d/colls", body, resource_type="colls", link="dbs/d", headers=headers)
    assert status == 201, answer
    client.close()
    with connected(server) as gremlin:
        results(gremlin, "g.addV('hub').property('id','hub').property('pk','hub')")


def check_directions(client: Client) -> None:
    """Check that every edge is found from its source, from its target, and among all edges."""
    ends = ".project('e','s','t').by(id).by(__.outV().id()).by(__.inV().id())"

    def counted(text: str) -> Counter[Any]:
        return Counter(tuple(found.values()) for found in results(client, text + ends))

    everything = counted("g.E()")
    assert everything == counted("g.V().outE()") == counted("g.V().inE()")
    assert max(Counter(edge_id for edge_id, _, _ in everything).values()) == 1
    assert results(client, "g.E().count()") == [everything.total()]
    assert results(client, "g.V().outE().inV().count()") == [everything.total()]
    assert results(client, "g.V().inE().outV().count()") == [everything.total()]


@pytest.mark.parametrize("writes", [5, 30])
def test_a_graph_is_whole_after_kill_9(tmp_path: Path, writes: int) -> None:
    loads = [load(number) for number, load in enumerate(LOADS)]
    doors = ("nosql", "gremlin")
    with running_server(tmp_path, "--no-throttle", doors=doors, embedded=True) as server:
        create_graph(server)
        threads = [threading.Thread(target=load.run, args=[server]) for load in loads]
        for thread in threads:
            thread.start()
        wait_until(lambda: all(load.acknowledged >= writes or load.refusal for load in loads))
        server.kill()
        for thread in threads:
            thread.join()
    assert [load.refusal for load in loads] == [None] * len(loads)
    with running_server(tmp_path, "--no-throttle", doors=doors, embedded=True) as server, connected(server) as client:
        check_directions(client)
        for load in loads:
            load.check(client)
        # The same goes on from there.
        for load in loads:
            load.tried += 3 - load.tried % 3 + 1
            load.write(client)
        check_directions(client)
