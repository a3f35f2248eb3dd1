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

    reply = AdminClient(endpoint, key, insecure=insecure).get("nodes")
    if output_format is Format.JSON:
        typer.echo(json.dumps(reply, indent=2, ensure_ascii=False))
        return
    from asterism.cli.tables import print_table, readable_bytes

    print_table(
        "Nodes",
        ["number", "name", "labels", "state", "partitions", "bytes", "RU/s share", "RU so far", "health", "standbys"],
        [
            [
                str(node["number"]),
                f"{node['name']} (catalog)" if node["catalog"] else node["name"],
                ", ".join(node["labels"]) or "-",
                node["state"],
                f"{node['partitions']:,}",
                readable_bytes(node["bytes"]),
                f"{node['ru_share']:,}",
                f"{node['ru_consumed']:,}",
                node["health"],
                ", ".join(_standby(standby) for standby in node["standbys"]) or "-",
            ]
            for node in reply["nodes"]
        ],
    )
    if reply["moves_wanted"]:
        typer.echo(f"{reply['moves_wanted']:,} moves are pending; see 'asterism jobs'.")


def _standby(standby: dict[str, Any]) -> str:
    from asterism.cli.tables import readable_bytes

    lag = "lag unknown" if standby["lag_bytes"] is None else f"{readable_bytes(standby['lag_bytes'])} behind"
    return f"{standby['name']} {standby['state']}, {lag}"
