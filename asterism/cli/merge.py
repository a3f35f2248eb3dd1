"""`asterism merge`."""

from __future__ import annotations

from typing import Annotated

import typer

from asterism.cli.options import (
    DEFAULT_ENDPOINT,
    DEFAULT_KEY,
    Container,
    Database,
    Endpoint,
    Insecure,
    Key,
    Wait,
)


def merge(
    database: Database,
    container: Container,
    left: Annotated[str | None, typer.Argument(metavar="LEFT", help="Id of a partition.", show_default=False)] = None,
    right: Annotated[
        str | None, typer.Argument(metavar="RIGHT", help="Id of its neighbor.", show_default=False)
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only show which neighbors are worth merging.")] = False,
    accept_plan: Annotated[bool, typer.Option("--accept-plan", help="Merge all of those.")] = False,
    wait: Wait = False,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Merge two neighboring partitions, or those that a plan proposes after throughput or data has shrunk."""
    named = left is not None and right is not None
    if (left is None) != (right is None) or [named, plan, accept_plan].count(True) != 1:
        raise typer.BadParameter("give two partitions, or --plan, or --accept-plan")
    from asterism.cli.client import AdminClient
    from asterism.cli.reshape import report_started

    client = AdminClient(endpoint, key, insecure=insecure)
    pairs = [[left, right]]
    if not named:
        planned = client.get("merge-plan", database=database, container=container)["merges"]
        pairs = [merge_plan["ranges"] for merge_plan in planned]
    if not pairs:
        typer.echo("Nothing to merge: the throughput needs every partition, or they are too large.")
    elif plan:
        for left_id, right_id in pairs:
            typer.echo(f"asterism merge {database} {container} {left_id} {right_id}")
    else:
        started = [
            client.post("merge", {"database": database, "container": container, "ranges": pair})["job"]
            for pair in pairs
        ]
        report_started(client, started, wait=wait)
