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

    The server does the work and continues after this command ends; run it again to see the progress."""
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
        f"The node {node} is empty. Remove it from the fleet file; then it can be shut down. "
        f"The catalog is on {client.get('drain', node=node)['catalog']}."
    )


def _left(client: AdminClient, node: str) -> int:
    reply = client.get("drain", node=node)
    state = reply["node"]["state"]
    if state == "online":
        raise CommandFailed(f"the drain of the node {node} was undone: it takes partitions again")
    if reply["stuck"] and len(reply["stuck"]) == reply["partitions_left"]:
        raise CommandFailed(
            f"{len(reply['stuck']):,} partitions cannot move: the placement rules of their containers allow no other "
            "node; change the rules with 'asterism placement'",
            detail="\n".join(f"  {stuck['partition']}" for stuck in reply["stuck"]),
        )
    # The moved partitions are still to be dropped.
    return 0 if state == "removed" else int(reply["partitions_left"]) + 1
