"""People by household: vertices that are visited together share a key, and the profile shows what was read."""

from __future__ import annotations

import os

from azure.cosmos import CosmosClient, PartitionKey
from gremlin_python.driver import client, serializer

KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
ENDPOINT = os.environ.get("ASTERISM_URL", "http://localhost:8081")
GREMLIN = os.environ.get("ASTERISM_GREMLIN_URL", "ws://localhost:8901/")

with CosmosClient(ENDPOINT, KEY) as cosmos:
    database = cosmos.create_database_if_not_exists("graphs_example")
    container = database.create_container_if_not_exists("people", PartitionKey("/household"), offer_throughput=24_000)

    graph = client.Client(
        GREMLIN,
        "g",
        username="/dbs/graphs_example/colls/people",
        password=KEY,
        message_serializer=serializer.GraphSONSerializersV2d0(),
    )

    def ask(text: str, **bindings: object) -> list[object]:
        return graph.submit(text, bindings).all().result()

    ask("g.V().drop()")
    for name, household, age in (("thomas", "h1", 44), ("mary", "h1", 39), ("robin", "h2", 27)):
        ask(
            "g.addV('person').property('id', name).property('household', household).property('age', age)",
            name=name,
            household=household,
            age=age,
        )
    for source, household, target in (("thomas", "h1", "mary"), ("thomas", "h1", "robin"), ("mary", "h1", "robin")):
        ask(
            "g.V([household, source]).addE('knows').to(g.V(target))",
            household=household,
            source=source,
            target=target,
        )

    print("known to Thomas:", sorted(ask("g.V(['h1', 'thomas']).out('knows').id()")))
    print("older than 30:", ask("g.V().hasLabel('person').has('age', gt(30)).count()"))

    for start in ("g.V(['h1', 'thomas'])", "g.V('thomas')"):
        (profile,) = ask(f"{start}.executionProfile()")
        print(start, "asked", profile["metrics"][0]["storeOps"][0]["fanoutFactor"], "partition(s)")

    # Vertices and edges are documents.
    query = "SELECT VALUE c._sink FROM c WHERE c._isEdge AND c._vertexId = 'thomas'"
    print("as documents:", sorted(container.query_items(query, partition_key="h1")))
    graph.close()
