"""Which partitions a traversal reads, as `executionProfile()` shows it (spec G3 to G5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from gremlin_python.driver import client, serializer

from tests.support.server import RunningServer, running_server

KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
PARTITIONS = 4
# Keys that lie in different physical partitions; found when the graph is filled.
KEYS = [f"key {number}" for number in range(40)]


class Graph:
    def __init__(self, server: RunningServer, name: str) -> None:
        self._client = client.Client(
            f"ws://127.0.0.1:{server.ports['gremlin']}/",
            "g",
            username=f"/dbs/places/colls/{name}",
            password=KEY,
            message_serializer=serializer.GraphSONSerializersV2d0(),
        )

    def ask(self, text: str, **bindings: Any) -> list[Any]:
        return list(self._client.submit(text, bindings).all().result())

    def profile(self, text: str, **bindings: Any) -> dict[str, Any]:
        (found,) = self.ask(f"{text}.executionProfile()", **bindings)
        return dict(found)

    def partitions(self, text: str, step: str, **bindings: Any) -> set[str]:
        """Return the partitions that the operations of one name touched."""
        metrics = self.profile(text, **bindings)["metrics"]
        found = [op for metric in metrics if metric["name"] == step for op in metric.get("storeOps", ())]
        assert found, metrics
        return {partition for op in found for partition in op["partitions"]}

    def close(self) -> None:
        self._client.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data = tmp_path_factory.mktemp("partitions")
    with running_server(data, "--no-throttle", doors=("nosql", "gremlin")) as running:
        yield running


@pytest.fixture(scope="module")
def graphs(server: RunningServer) -> Iterator[dict[str, Graph]]:
    with CosmosClient(server.endpoint, KEY) as cosmos:
        database = cosmos.create_database("places")
        for name, settings in (("plain", {}), ("indexed", {"incomingEdges": True})):
            made = database.client_connection.CreateContainer(
                database.database_link,
                {"id": name, "partitionKey": PartitionKey("/pk"), **settings},
                {"offerThroughput": 6_000 * PARTITIONS},
            )
            assert made["id"] == name
    found = {name: Graph(server, name) for name in ("plain", "indexed")}
    for graph in found.values():
        for number, key in enumerate(KEYS):
            graph.ask("g.addV('place').property('id', i).property('pk', k)", i=f"v{number}", k=key)
        for number, key in enumerate(KEYS[:-1]):
            text = "g.V([k, i]).addE('next').to(g.V([k2, j])).property('id', e)"
            graph.ask(text, k=key, i=f"v{number}", k2=KEYS[number + 1], j=f"v{number + 1}", e=f"e{number}")
    yield found
    for graph in found.values():
        graph.close()


@pytest.fixture
def plain(graphs: dict[str, Graph]) -> Graph:
    return graphs["plain"]


def place_of(graph: Graph, number: int) -> str:
    (partition,) = graph.partitions("g.V([k, i])", "GetVertices", k=KEYS[number], i=f"v{number}")
    return partition


def test_the_vertices_lie_in_all_partitions(plain: Graph) -> None:
    assert len({place_of(plain, number) for number in range(len(KEYS))}) == PARTITIONS


# G4: the service's forms of naming vertices and edges, for the vertices 0 and 1.
@pytest.mark.parametrize(
    "text",
    [
        "g.V('v0').has('pk', k0)",
        "g.V().has('pk', k0).hasId('v0')",
        "g.V([k0, 'v0'])",
        "g.V().has('pk', k0)",
        "g.V().hasLabel('place').has('pk', k0)",
        "g.withStrategies(PartitionStrategy.build().partitionKey('pk').readPartitions(k0).create()).V()",
    ],
)
def test_a_form_with_one_key_reads_the_partition_of_the_key(plain: Graph, text: str) -> None:
    assert plain.partitions(text, "GetVertices", k0=KEYS[0]) == {place_of(plain, 0)}
    assert [vertex["id"] for vertex in plain.ask(text, k0=KEYS[0])] == ["v0"]


@pytest.mark.parametrize("text", ["g.V([k0, 'v0'], [k1, 'v1'])", "g.V('v0', 'v1').has('pk', within(k0, k1))"])
def test_a_form_with_two_keys_reads_their_partitions(plain: Graph, text: str) -> None:
    keys = {"k0": KEYS[0], "k1": KEYS[1]}
    assert plain.partitions(text, "GetVertices", **keys) == {place_of(plain, 0), place_of(plain, 1)}
    assert sorted(vertex["id"] for vertex in plain.ask(text, **keys)) == ["v0", "v1"]


def test_an_edge_is_read_where_its_source_is(plain: Graph) -> None:
    assert plain.partitions("g.E([k0, 'e0'])", "GetEdges", k0=KEYS[0]) == {place_of(plain, 0)}


@pytest.mark.parametrize("text", ["g.V('v0')", "g.V().has('name', 'x')", "g.V().hasLabel('place')"])
def test_a_form_without_a_key_asks_every_partition_and_is_advised(plain: Graph, text: str) -> None:
    assert len(plain.partitions(text, "GetVertices")) == PARTITIONS
    assert plain.profile(text)["advice"] == [f"V() was looked for in {PARTITIONS} partitions; give the partition key."]


def test_out_reads_the_source_and_then_the_targets(plain: Graph) -> None:
    text = "g.V([k0, 'v0']).out()"
    assert plain.partitions(text, "GetEdges", k0=KEYS[0]) == {place_of(plain, 0)}
    assert plain.partitions(text, "GetNeighborVertices", k0=KEYS[0]) == {place_of(plain, 1)}
    assert plain.profile(text, k0=KEYS[0])["advice"] == []


def test_in_asks_every_partition_unless_incoming_edges_are_kept(graphs: dict[str, Graph]) -> None:
    text = "g.V([k1, 'v1']).in()"
    assert len(graphs["plain"].partitions(text, "GetEdges", k1=KEYS[1])) == PARTITIONS
    indexed = graphs["indexed"]
    expected = {place_of(indexed, 0), place_of(indexed, 1)}
    assert indexed.partitions(text, "GetEdges", k1=KEYS[1]) <= expected
    for graph in graphs.values():
        assert [vertex["id"] for vertex in graph.ask(text, k1=KEYS[1])] == ["v0"]


def test_a_profile_has_the_shape_of_the_service(plain: Graph) -> None:
    profile = plain.profile("g.V([k0, 'v0']).out()", k0=KEYS[0])
    assert profile["gremlin"].startswith("g.V(")
    assert isinstance(profile["totalTime"], int)
    names = [metric["name"] for metric in profile["metrics"]]
    assert names == ["GetVertices", "GetEdges", "GetNeighborVertices", "ProjectOperator"]
    first = profile["metrics"][0]
    assert set(first) == {"name", "time", "annotations", "counts", "storeOps"}
    assert set(first["annotations"]) == {"percentTime"}
    assert first["counts"] == {"resultCount": 1}
    assert set(first["storeOps"][0]) >= {"fanoutFactor", "count", "size", "time", "partitions", "requestCharge"}
    assert first["storeOps"][0]["fanoutFactor"] == 1


def test_a_profile_of_writes_writes(plain: Graph) -> None:
    profile = plain.profile("g.addV('place').property('id', 'made').property('pk', k0)", k0=KEYS[0])
    written = [metric for metric in profile["metrics"] if metric["name"] == "WriteElements"]
    assert [metric["counts"]["resultCount"] for metric in written] == [1]
    assert plain.ask("g.V([k0, 'made']).drop()", k0=KEYS[0]) == []
    assert plain.ask("g.V([k0, 'made'])", k0=KEYS[0]) == []


def test_explain_shows_the_plan_without_a_run(plain: Graph) -> None:
    (found,) = plain.ask("g.addV('place').property('id', 'never').property('pk', 'x').explain()")
    assert found["steps"]
    (found,) = plain.ask("g.V().has('pk', 'x').hasId('v').out('next').explain()")
    assert found["steps"][0]["lookups"] == [{"ids": ["v"], "keys": ["x"]}]
    assert plain.ask("g.V(['x', 'never'])") == []


def test_profile_counts_the_traversers_of_each_step(plain: Graph) -> None:
    (text,) = plain.ask("g.V([k0, 'v0']).out().count().profile()", k0=KEYS[0])
    assert "Traversal Metrics" in text
    assert "out" in text
