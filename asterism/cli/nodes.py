"""`asterism nodes`."""

from __future__ import annotations

import json
from typing import Any

import typer

from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat


def nodes(
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the nodes of the fleet: partitions, bytes, request units, health, replication lag."""
    from asterism.cli.client import AdminClient

    told = AdminClient(endpoint, key, insecure=insecure).get("nodes")
    if output_format is Format.JSON:
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    from asterism.cli.tables import print_table, readable_bytes

    print_table(
        "Nodes",
        ["number", "name", "labels", "state", "partitions", "bytes", "RU/s share", "RU so far", "health", "standbys"],
        [
            [
                str(one["number"]),
                f"{one['name']} (catalog)" if one["catalog"] else one["name"],
                ", ".join(one["labels"]) or "-",
                one["state"],
                f"{one['partitions']:,}",
                readable_bytes(one["bytes"]),
                f"{one['ru_share']:,}",
                f"{one['ru_consumed']:,}",
                one["health"],
                ", ".join(_standby(standby) for standby in one["standbys"]) or "-",
            ]
            for one in told["nodes"]
        ],
    )
    if told["moves_wanted"]:
        typer.echo(f"{told['moves_wanted']:,} moves are still to be made; see asterism jobs.")


def _standby(standby: dict[str, Any]) -> str:
    from asterism.cli.tables import readable_bytes

    lag = "lag unknown" if standby["lag_bytes"] is None else f"{readable_bytes(standby['lag_bytes'])} behind"
    return f"{standby['name']} {standby['state']}, {lag}"
