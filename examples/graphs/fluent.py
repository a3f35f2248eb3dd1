"""The fluent form, with the client's defaults: typed results, and upserts that can be repeated."""

from __future__ import annotations

import os

from azure.cosmos import CosmosClient, PartitionKey
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import Direction, Merge, P, T

KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
ENDPOINT = os.environ.get("ASTERISM_URL", "http://localhost:8081")
GREMLIN = os.environ.get("ASTERISM_GREMLIN_URL", "ws://localhost:8901/")

with CosmosClient(ENDPOINT, KEY) as cosmos:
    database = cosmos.create_database_if_not_exists("graphs_example")
    database.create_container_if_not_exists("flights", PartitionKey("/country"))

connection = DriverRemoteConnection(GREMLIN, "g", username="/dbs/graphs_example/colls/flights", password=KEY)
g = traversal().with_remote(connection)

airports = (("ZRH", "CH", 2.5), ("GVA", "CH", 3.9), ("MUC", "DE", 4.0), ("HAM", "DE", 3.7), ("VIE", "AT", 3.6))
flights = (("ZRH", "MUC"), ("ZRH", "VIE"), ("MUC", "HAM"), ("VIE", "HAM"), ("GVA", "ZRH"))
for _ in range(2):
    for code, country, kilometers in airports:
        place = {T.id: code, T.label: "airport", "country": country}
        g.merge_v(place).option(Merge.on_create, {"runway": kilometers}).iterate()
    for source, target in flights:
        g.V(source).as_("a").V(target).as_("b").merge_e(
            {T.label: "flies_to", Direction.from_: Merge.out_v, Direction.to: Merge.in_v}
        ).option(Merge.out_v, __.select("a")).option(Merge.in_v, __.select("b")).iterate()

print(g.V().count().next(), "airports,", g.E().count().next(), "flights")
print("from Zurich:", sorted(g.V("ZRH").out("flies_to").id_().to_list()))
route = g.V("GVA").repeat(__.out("flies_to").simple_path()).until(__.has_id("HAM")).path().by(T.id).limit(1).next()
print("Geneva to Hamburg:", len(route.objects) - 1, "flights")
print("long runways:", sorted(g.V().has("runway", P.gt(3.65)).id_().to_list()))
print("by country:", sorted(g.V().group_count().by("country").next().items()))
connection.close()
