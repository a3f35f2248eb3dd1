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

Where may it be, and where is it?\n
  asterism placement shop orders

Keep it in a region, spread over the nodes there, and move what is elsewhere:\n
  asterism placement shop orders --label westeurope --spread\n
  asterism rebalance --apply"""

Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="LABEL", help="A label or region its nodes must have; may be repeated."),
]
Spread = Annotated[
    bool | None, typer.Option("--spread/--no-spread", help="Equally many of its partitions on each of its nodes.")
]
Default = Annotated[bool, typer.Option("--default", help="Go by the fleet's own rules again.")]


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
    """Show or set on which nodes a container's partitions may be. New partitions go by it at once, and those that are
    there with the next rebalance."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    named = {"database": database, "container": container}
    told = client.get("placement", **named)
    if default:
        told = client.post("placement", {**named, "default": True})
    elif label is not None or spread is not None:
        labels = told["labels"] if label is None else label
        wanted = {**named, "labels": labels, "spread": told["spread"] if spread is None else spread}
        told = client.post("placement", wanted)
    if output_format is Format.JSON:
        typer.echo(json.dumps(told, ensure_ascii=False))
    else:
        typer.echo(_sentence(database, container, told))


def _sentence(database: str, container: str, told: dict[str, Any]) -> str:
    where = f"nodes with {' and '.join(told['labels'])}" if told["labels"] else "any node"
    spread = ", spread evenly" if told["spread"] else ""
    whose = " (the fleet's own rule)" if told["is_default"] else ""
    now = ", ".join(f"{count} on {node}" for node, count in told["nodes"].items())
    return f"{database}/{container}: on {where}{spread}{whose}. Partitions: {now}."
