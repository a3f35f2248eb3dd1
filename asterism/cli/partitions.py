"""`asterism partitions`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from asterism.cli import options


def partitions(
    database: Annotated[
        str | None, typer.Argument(metavar="DATABASE", help="Name of the database.", show_default=False)
    ] = None,
    container: Annotated[
        str | None, typer.Argument(metavar="CONTAINER", help="Name of the container.", show_default=False)
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="A table, in place of a container.")
    ] = None,
    account: options.TableAccount = options.DEFAULT_TABLE_ACCOUNT,
    details: Annotated[
        bool, typer.Option("--details", help="Also the largest and the hottest logical partitions.")
    ] = False,
    output_format: options.OutputFormat = options.Format.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Show the physical partitions of a container or a table: range, size, load or share of throughput, state."""
    if table is not None and database is None:
        asked = {"account": account, "table": table}
    elif table is None and database is not None and container is not None:
        asked = {"database": database, "container": container}
    else:
        raise typer.BadParameter("give a database and a container, or --table NAME")
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    told = client.get("partitions", **asked, details="true" if details else "false")
    if output_format is options.Format.JSON:
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    title = f"{'/'.join(asked.values())}: partition key {', '.join(told['partition_key']['paths'])}"
    if told["partition_key"]["kind"] == "Range":
        _print_ordered(title, told)
    else:
        _print_hashed(title, told)
    if details:
        _print_details(told)


def _print_hashed(title: str, told: dict[str, Any]) -> None:
    from asterism.cli.tables import print_table, readable_range

    print_table(
        title,
        ["id", "range", "bytes", "items", "RU/s share", "state", "node", "parents"],
        [
            [
                one["id"],
                readable_range(one["min"], one["max"]),
                *_size(one),
                "-" if one["ru_share"] is None else f"{one['ru_share']:,.0f}",
                one["state"],
                one["node"],
                ", ".join(one["parents"]) or "-",
            ]
            for one in told["partitions"]
        ],
    )


def _size(one: dict[str, Any]) -> tuple[str, str]:
    """Unknown while the partition's node is away."""
    from asterism.cli.tables import readable_bytes

    return ("-", "-") if one["bytes"] is None else (readable_bytes(one["bytes"]), f"{one['items']:,}")


def _print_ordered(title: str, told: dict[str, Any]) -> None:
    from asterism.cli.tables import print_table

    print_table(
        title,
        ["id", "from key", "to key", "bytes", "items", "RU/s", "RU so far", "load", "state", "parents"],
        [
            [
                one["id"],
                "(start)" if one["start_key"] is None else one["start_key"],
                "(end)" if one["end_key"] is None else one["end_key"],
                *_size(one),
                f"{one['ru_per_second']:,.0f}",
                f"{one['ru_consumed']:,.0f}",
                _load_mark(one),
                one["state"],
                ", ".join(one["parents"]) or "-",
            ]
            for one in told["partitions"]
        ],
    )
    for one in told["partitions"]:
        if one["says"]:
            typer.echo(f"Partition {one['id']}: {one['says']}")


def _load_mark(one: dict[str, Any]) -> str:
    marks = ["HOT"] if one["hot"] else []
    if one["drift"] != "none":
        marks.append(f"hotspot, keys {one['drift']}")
    return ", ".join(marks) or "-"


def _print_details(told: dict[str, Any]) -> None:
    from asterism.cli.tables import print_table, readable_bytes, readable_key

    print_table(
        "Largest logical partitions",
        ["partition", "partition key", "bytes", "items"],
        [
            [one["id"], readable_key(large), readable_bytes(large["bytes"]), f"{large['items']:,}"]
            for one in told["partitions"]
            for large in one["largest"]
        ],
    )
    print_table(
        "Hottest logical partitions",
        ["partition", "partition key", "RU so far"],
        [
            [one["id"], readable_key(hot), f"{hot['request_units']:,.1f}"]
            for one in told["partitions"]
            for hot in one["hottest"]
        ],
    )
