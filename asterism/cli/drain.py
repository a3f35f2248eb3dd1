"""`asterism drain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asterism.cli.failure import CommandFailed
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Insecure, Key

if TYPE_CHECKING:
    from asterism.cli.client import AdminClient


def drain(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", show_default=False)],
    undo: Annotated[bool, typer.Option("--undo", help="Let the node take partitions again.")] = False,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Move everything away from a node, so that it can be removed.

    The server does it, and goes on with it when this command is ended; the same command shows how far it is."""
    from asterism.cli.client import AdminClient
    from asterism.cli.progress import follow_until_none

    client = AdminClient(endpoint, key, insecure=insecure)
    if undo:
        client.post("drain", {"node": node, "undo": True})
        typer.echo(f"The node {node} takes partitions again.")
        return
    now = client.get("drain", node=node)
    if now["node"]["state"] != "removed":
        now = client.post("drain", {"node": node})
    follow_until_none(f"draining {node}", total=int(now["partitions_left"]) + 1, left=lambda: _left(client, node))
    typer.echo(
        f"The node {node} is empty. Take it out of the fleet's description; then it may be removed. "
        f"The catalog is on {client.get('drain', node=node)['catalog']}."
    )


def _left(client: AdminClient, node: str) -> int:
    told = client.get("drain", node=node)
    state = told["node"]["state"]
    if state == "online":
        raise CommandFailed(f"the node {node} was told to take partitions again")
    if told["stuck"] and len(told["stuck"]) == told["partitions_left"]:
        raise CommandFailed(
            f"{len(told['stuck']):,} partitions may be on no other node by the rules of their containers; change them "
            "with asterism placement",
            detail="\n".join(f"  {one['partition']}" for one in told["stuck"]),
        )
    # What was moved away is still to be dropped.
    return 0 if state == "removed" else int(told["partitions_left"]) + 1
