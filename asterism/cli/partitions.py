"""`asterism partitions`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from asterism.cli import options


def partitions(
    database: options.Database,
    container: options.Container,
    details: Annotated[
        bool, typer.Option("--details", help="Also the largest and the hottest logical partitions.")
    ] = False,
    output_format: options.OutputFormat = options.Format.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Show a container's physical partitions: range, size, share of throughput, state, parents."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    told = client.get("partitions", database=database, container=container, details="true" if details else "false")
    if output_format is options.Format.JSON:
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    from asterism.cli.tables import print_table, readable_bytes, readable_key, readable_range

    print_table(
        f"{database}/{container}: partition key {', '.join(told['partition_key']['paths'])}",
        ["id", "range", "bytes", "items", "RU/s share", "state", "node", "parents"],
        [
            [
                one["id"],
                readable_range(one["min"], one["max"]),
                readable_bytes(one["bytes"]),
                f"{one['items']:,}",
                "-" if one["ru_share"] is None else f"{one['ru_share']:,.0f}",
                one["state"],
                one["node"],
                ", ".join(one["parents"]) or "-",
            ]
            for one in told["partitions"]
        ],
    )
    if details:
        print_table("Largest logical partitions", ["partition", "partition key", "bytes", "items"], _largest(told))
        print_table(
            "Hottest logical partitions",
            ["partition", "partition key", "RU so far"],
            [
                [one["id"], readable_key(hot), f"{hot['request_units']:,.1f}"]
                for one in told["partitions"]
                for hot in one["hottest"]
            ],
        )


def _largest(told: dict[str, Any]) -> list[list[str]]:
    from asterism.cli.tables import readable_bytes, readable_key

    return [
        [one["id"], readable_key(large), readable_bytes(large["bytes"]), f"{large['items']:,}"]
        for one in told["partitions"]
        for large in one["largest"]
    ]
