"""`asterism placement`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from asterism.cli.options import (
    DEFAULT_ENDPOINT,
    DEFAULT_KEY,
    Container,
    Database,
    Endpoint,
    Format,
    Insecure,
    Key,
    OutputFormat,
)

PLACEMENT_EXAMPLES = """[bold]Examples[/bold]

Show the rules of a container and its present nodes:\n
  asterism placement shop orders

Keep it in a region, spread over the nodes there, and move partitions that are elsewhere:\n
  asterism placement shop orders --label westeurope --spread\n
  asterism rebalance --apply"""

Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="LABEL", help="A label or region its nodes must have; may be repeated."),
]
Spread = Annotated[
    bool | None, typer.Option("--spread/--no-spread", help="Equally many of its partitions on each of its nodes.")
]
Default = Annotated[bool, typer.Option("--default", help="Return to the fleet's default rules.")]


def placement(
    database: Database,
    container: Container,
    label: Labels = None,
    spread: Spread = None,
    default: Default = False,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show or set the nodes that may hold a container's partitions. New partitions follow the rules at once, existing
    ones with the next rebalance."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    names = {"database": database, "container": container}
    reply = client.get("placement", **names)
    if default:
        reply = client.post("placement", {**names, "default": True})
    elif label is not None or spread is not None:
        labels = reply["labels"] if label is None else label
        wanted = {**names, "labels": labels, "spread": reply["spread"] if spread is None else spread}
        reply = client.post("placement", wanted)
    if output_format is Format.JSON:
        typer.echo(json.dumps(reply, ensure_ascii=False))
    else:
        typer.echo(_summary(database, container, reply))


def _summary(database: str, container: str, reply: dict[str, Any]) -> str:
    where = f"nodes with {' and '.join(reply['labels'])}" if reply["labels"] else "any node"
    spread = ", spread evenly" if reply["spread"] else ""
    origin = " (the fleet's default)" if reply["is_default"] else ""
    counts = ", ".join(f"{count} on {node}" for node, count in reply["nodes"].items())
    return f"{database}/{container}: on {where}{spread}{origin}. Partitions: {counts}."
