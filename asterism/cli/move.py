"""`asterism move`."""

from __future__ import annotations

from typing import Annotated

import typer

from asterism.cli.failure import CommandFailed
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Insecure, Key, Wait

MOVE_EXAMPLES = """[bold]Example[/bold]

  asterism move shop/orders/0 --to b --wait"""


def move(
    partition: Annotated[
        str,
        typer.Argument(
            metavar="PARTITION", help="DATABASE/CONTAINER/ID, as in asterism partitions.", show_default=False
        ),
    ],
    to: Annotated[str, typer.Option("--to", metavar="NODE", help="Name of the node.", show_default=False)],
    wait: Wait = False,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Move a partition to another node, while clients continue to read and write."""
    from asterism.cli.client import AdminClient
    from asterism.cli.reshape import report_started

    names = partition.split("/")
    if len(names) != 3 or not all(names):
        raise CommandFailed(f"{partition!r} is not a partition; write DATABASE/CONTAINER/ID")
    database, container, range_id = names
    client = AdminClient(endpoint, key, insecure=insecure)
    body = {"database": database, "container": container, "range": range_id, "node": to}
    report_started(client, [client.post("move", body)["job"]], wait=wait)
