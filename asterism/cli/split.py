"""`asterism split`."""

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


def split(
    database: Database,
    container: Container,
    range_id: Annotated[str, typer.Argument(metavar="RANGE", help="Id of the partition.", show_default=False)],
    wait: Wait = False,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Split a partition in two at the middle of its data, while clients continue to read and write."""
    from asterism.cli.client import AdminClient
    from asterism.cli.reshape import report_started

    client = AdminClient(endpoint, key, insecure=insecure)
    answer = client.post("split", {"database": database, "container": container, "range": range_id})
    report_started(client, [answer["job"]], wait=wait)
