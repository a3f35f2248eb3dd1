"""Containers as graphs: which can be one, and how one is created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asterism.cli.failure import CommandFailed
from asterism.languages.gremlin.graph.elements import SINK_ID, SOURCE_ID

if TYPE_CHECKING:
    from asterism.cli.data_client import DataClient

# Names of documents that a partition key of a graph cannot be.
_RESERVED = ("/id", "/label")


# Everything is indexed, as by default; with the composite ones, out('x') and in('x') read just the edges of that label.
_INDEXING_POLICY = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}],
    "compositeIndexes": [
        [{"path": f"/{end}", "order": "ascending"}, {"path": "/label", "order": "ascending"}]
        for end in (SOURCE_ID, SINK_ID)
    ],
}


@dataclass(frozen=True, slots=True)
class GraphDefinition:
    # Path of the container for the NoSQL door.
    link: str
    # The property that is the partition key; None for a graph without partitions.
    key_name: str | None


def key_name(settings: dict[str, Any]) -> str | None:
    """Return the name of the property that divides a container's items; None if they are not divided."""
    definition = settings.get("partitionKey") or {}
    paths = definition.get("paths") or []
    if not paths or definition.get("systemKey"):
        return None
    return str(paths[0]).removeprefix("/").strip('"')


def refusal(paths: list[str]) -> str | None:
    """Return the reason why a partition key cannot divide a graph; None if it can."""
    if len(paths) > 1:
        return "a graph is divided by one property, not by a hierarchical key; give one --partition-key /NAME"
    for path in paths:
        if not path.startswith("/") or len(path) < 2:
            return f"the partition key {path!r} is not a path such as /city"
        if path.lower() in _RESERVED:
            return (
                f"{path} cannot be the partition key of a graph, because edges lie with their source vertex and have "
                f"{'ids' if path.lower() == '/id' else 'labels'} of their own; choose a property such as /pk"
            )
        if "/" in path[1:]:
            return f"{path} is a property within another, which no vertex has; choose a path of one name such as /pk"
    return None


def is_graph(settings: dict[str, Any]) -> bool:
    return refusal(list((settings.get("partitionKey") or {}).get("paths") or [])) is None


def create_graph(
    client: DataClient, database: str, graph: str, path: str, *, ru: int | None, incoming_edges: bool
) -> bool:
    """Create the graph and its database; return False if the graph exists."""
    problem = refusal(path.split(",") if "," in path else [path])
    if problem is not None:
        raise CommandFailed(problem)
    made = client.ask("POST", "dbs", {"id": database}, type_="dbs", link="")
    if made.status >= 400 and made.status != 409:
        raise CommandFailed(made.message)
    settings: dict[str, Any] = {
        "id": graph,
        "partitionKey": {"paths": [path], "kind": "Hash", "version": 2},
        "indexingPolicy": _INDEXING_POLICY,
    }
    if incoming_edges:
        settings["incomingEdges"] = True
    link = f"dbs/{database}"
    headers = {} if ru is None else {"x-ms-offer-throughput": str(ru)}
    made = client.ask("POST", f"{link}/colls", settings, type_="colls", link=link, headers=headers)
    if made.status >= 400 and made.status != 409:
        raise CommandFailed(made.message)
    return made.status != 409


def read_definition(client: DataClient, database: str, graph: str) -> GraphDefinition:
    link = f"dbs/{database}/colls/{graph}"
    answer = client.ask("GET", link, type_="colls", link=link)
    if answer.status == 404:
        raise CommandFailed(
            f"there is no graph {database}/{graph}; create it with `asterism graphs create`, or give --partition-key"
        )
    if answer.status >= 400:
        raise CommandFailed(answer.message)
    problem = refusal(list((answer.body.get("partitionKey") or {}).get("paths") or []))
    if problem is not None:
        raise CommandFailed(f"{database}/{graph} cannot be a graph: {problem}")
    return GraphDefinition(link, key_name(answer.body))
