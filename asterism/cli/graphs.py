"""`asterism graphs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli import options
from asterism.cli.failure import CommandFailed
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat

if TYPE_CHECKING:
    from asterism.cli.data_client import DataClient

GRAPHS_EXAMPLES = """[bold]Examples[/bold]

A graph whose vertices are divided by their city, with cheap in() by reverse entries:\n
  asterism graphs create social people --partition-key /city --ru 4000 --incoming-edges

Tables of vertices and edges; the first line names the columns:\n
  asterism graphs import social people vertices.csv edges.csv

A file of TinkerPop, whose vertices have no city: 100 partitions by the hash of the id:\n
  asterism graphs import social people graph.json --partition-key-from hash:100

Then ask it:\n
  asterism gremlin social people "g.V().limit(5)\""""

IMPORT_EXAMPLES = """[bold]Files[/bold]

vertices.csv   id,label,city,name,age:Int,tags:String[]\n
edges.csv      id,label,from,to,since:Int   and, for vertices that are elsewhere, fromPk,fromLabel,toPk,toLabel\n
               ~id, ~label, ~from and ~to are accepted too. Cells are texts unless a column says Int, Double or Bool;\n
               [] separates several values by semicolons.\n
graph.json     GraphSON 1, 2 or 3: a vertex on each line with its outE, or {"vertices": […], "edges": […]}

An import can be repeated: elements with the same id are replaced. Edges without an id get one of their ends, label and
line."""

graphs = typer.Typer(no_args_is_help=True, help="Create, list and fill graphs of a running server.")

Graph = Annotated[
    str, typer.Argument(metavar="GRAPH", help="Name of the graph, which is a container.", show_default=False)
]
OptionalDatabase = Annotated[
    str | None, typer.Argument(metavar="DATABASE", help="Name of the database; all if omitted.", show_default=False)
]
PartitionKeyPath = Annotated[
    str,
    typer.Option(
        "--partition-key",
        metavar="/NAME",
        help="The property that every vertex has and that divides the graph; not /id, not /label.",
        show_default=False,
    ),
]
OptionalPartitionKeyPath = Annotated[
    str | None,
    typer.Option("--partition-key", metavar="/NAME", help="Create the graph with this key if it does not exist."),
]
Throughput = Annotated[int | None, typer.Option("--ru", min=400, metavar="N", help="RU/s of a new graph.")]
IncomingEdges = Annotated[
    bool,
    typer.Option(
        "--incoming-edges",
        help="Keep reverse entries, so that in() and both() go to single partitions too; edges cost a little more.",
    ),
]
Files = Annotated[
    list[Path], typer.Argument(metavar="FILE…", help="CSV or GraphSON, in any order.", show_default=False)
]
KeyFrom = Annotated[
    str | None,
    typer.Option(
        "--partition-key-from",
        metavar="SOURCE",
        help="What becomes a vertex's partition key: a PROPERTY, label, id, or hash:N for N buckets by the id. "
        "Without it, the property that the graph's key names.",
        show_default=False,
    ),
]


@graphs.command("list")
def list_(
    database: OptionalDatabase = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the containers that can be graphs, with their partition keys."""
    from asterism.cli.data_client import DataClient

    found = [*_graphs(DataClient(endpoint, key, insecure=insecure), database)]
    if output_format is Format.JSON:
        typer.echo(json.dumps({"graphs": found}, indent=2, ensure_ascii=False))
    elif found:
        from asterism.cli.tables import print_table

        rows = [
            [row["database"], row["name"], row["partition_key"] or "-", "yes" if row["incoming_edges"] else "no"]
            for row in found
        ]
        print_table("Graphs", ["database", "graph", "partition key", "incoming edges"], rows)
    else:
        typer.echo("There are no containers that can be graphs. Create one with `asterism graphs create`.")


def _graphs(client: DataClient, database: str | None) -> list[dict[str, Any]]:
    from asterism.cli.graph_definition import is_graph, key_name

    found = []
    for page in client.feed("dbs", "Databases", type_="dbs", link="", page_items=1000):
        for each in page:
            if database is not None and each["id"] != database:
                continue
            link = f"dbs/{each['id']}"
            for containers in client.feed(
                f"{link}/colls", "DocumentCollections", type_="colls", link=link, page_items=1000
            ):
                found += [
                    {
                        "database": each["id"],
                        "name": settings["id"],
                        "partition_key": key_name(settings),
                        "incoming_edges": bool(settings.get("incomingEdges")),
                    }
                    for settings in containers
                    if is_graph(settings)
                ]
    return found


@graphs.command(epilog=GRAPHS_EXAMPLES)
def create(
    database: options.Database,
    graph: Graph,
    partition_key: PartitionKeyPath,
    ru: Throughput = None,
    incoming_edges: IncomingEdges = False,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Create a graph, and its database if that does not exist."""
    from asterism.cli.data_client import DataClient
    from asterism.cli.graph_definition import create_graph

    client = DataClient(endpoint, key, insecure=insecure)
    if not create_graph(client, database, graph, partition_key, ru=ru, incoming_edges=incoming_edges):
        raise CommandFailed(f"{database}/{graph} exists already")
    typer.echo(f"{database}/{graph}: created, divided by {partition_key}.")


@graphs.command("import", epilog=IMPORT_EXAMPLES, no_args_is_help=True)
def import_(
    database: options.Database,
    graph: Graph,
    files: Files,
    partition_key_from: KeyFrom = None,
    partition_key: OptionalPartitionKeyPath = None,
    ru: Throughput = None,
    incoming_edges: IncomingEdges = False,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Import vertices and edges from CSV or GraphSON files; those that exist are replaced, so it can be repeated."""
    from asterism.cli.client import AdminClient
    from asterism.cli.data_client import DataClient
    from asterism.cli.graph_definition import create_graph, read_definition
    from asterism.cli.graph_import.documents import DocumentMaker, KeyRule
    from asterism.cli.graph_import.load import GraphFile, learn_places, load_files
    from asterism.cli.graph_import.writer import CONNECTIONS, GraphWriter

    found = [GraphFile.find(file) for file in files]
    clients = [DataClient(endpoint, key, insecure=insecure) for _ in range(CONNECTIONS)]
    if partition_key is not None:
        create_graph(clients[0], database, graph, partition_key, ru=ru, incoming_edges=incoming_edges)
    definition = read_definition(clients[0], database, graph)
    maker = DocumentMaker(KeyRule(definition.key_name, partition_key_from))
    if not any(file.has_vertices for file in found):
        learn_places(AdminClient(endpoint, key, insecure=insecure), database, graph, maker)
    writer = GraphWriter(definition.link, clients, has_partitions=definition.key_name is not None)
    try:
        loaded = load_files(found, maker, writer)
    finally:
        writer.close()
    if output_format is Format.JSON:
        typer.echo(json.dumps({"vertices": loaded.vertices, "edges": loaded.edges}))
        return
    vertices = f"{loaded.vertices:,} {'vertex' if loaded.vertices == 1 else 'vertices'}"
    edges = f"{loaded.edges:,} {'edge' if loaded.edges == 1 else 'edges'}"
    typer.echo(f"{database}/{graph}: {vertices} and {edges} imported.")
