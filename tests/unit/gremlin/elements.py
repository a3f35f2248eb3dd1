"""A vertex and an edge as they are stored, for the tests of formats."""

from __future__ import annotations

from asterism.languages.gremlin.graph.elements import Edge, Vertex

VERTEX = Vertex(
    "v1",
    "person",
    "p1",
    {
        "id": "v1",
        "label": "person",
        "pk": "p1",
        "name": [{"id": "x", "_value": "GER", "_meta": {"de": "D"}}],
        "ttl": 5,
        "_etag": "e",
    },
    key_name="pk",
)
EDGE = Edge(
    {
        "id": "e1", "label": "knows", "_isEdge": True, "pk": "p1", "_vertexId": "v1", "_vertexLabel": "person",
        "_sink": "v2", "_sinkLabel": "dog", "_sinkPartition": "p2", "since": 2017, "_ts": 5,
    },
    key_name="pk",
)  # fmt: skip
