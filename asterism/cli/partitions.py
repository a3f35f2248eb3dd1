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
        str | None, typer.Argument(metavar="CONTAINER", help="Name of the container or collection.", show_default=False)
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="A table, in place of a container.")
    ] = None,
    blob: Annotated[
        str | None, typer.Option("--blob", metavar="CONTAINER", help="A container of blobs, in place of a container.")
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", metavar="NAME", help="A queue, or * for all; those of an account share ranges."),
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
    """Show the physical partitions of a container, collection, table, container of blobs or queue: range, size, load or
    share of RU/s, state."""
    in_account = {"table": table, "blob": blob, "queue": queue}
    named = {parameter: name for parameter, name in in_account.items() if name is not None}
    if len(named) == 1 and database is None:
        parameters = {"account": account, **named}
    elif not named and database is not None and container is not None:
        parameters = {"database": database, "container": container}
    else:
        raise typer.BadParameter("give a database and a container, or --table NAME, --blob CONTAINER or --queue NAME")
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    reply = client.get("partitions", **parameters, details="true" if details else "false")
    if output_format is options.Format.JSON:
        typer.echo(json.dumps(reply, indent=2, ensure_ascii=False))
        return
    names = "/".join(parameters.values())
    title = f"{names}: partition key {', '.join(reply['partition_key']['paths'])}"
    if queue is not None:
        title = f"{account}: its queues, by name"
    if reply["collections"]:
        title = f"{names}: shared by {_count(reply['collections'])}"
    if reply["partition_key"]["kind"] == "Range":
        _print_ordered(title, reply)
    else:
        _print_hashed(title, reply)
    if reply["own_partition"] is not None:
        typer.echo(f"The queue {queue} is in partition {reply['own_partition']}.")
    if details:
        _print_details(reply)


def _count(collections: list[str]) -> str:
    return "1 collection" if len(collections) == 1 else f"{len(collections)} collections"


def _print_hashed(title: str, reply: dict[str, Any]) -> None:
    from asterism.cli.tables import print_table, readable_range

    print_table(
        title,
        ["id", "range", "bytes", "items", "RU/s share", "state", "node", "parents"],
        [
            [
                partition["id"],
                readable_range(partition["min"], partition["max"]),
                *_size(partition),
                "-" if partition["ru_share"] is None else f"{partition['ru_share']:,.0f}",
                partition["state"],
                partition["node"],
                ", ".join(partition["parents"]) or "-",
            ]
            for partition in reply["partitions"]
        ],
    )


def _size(partition: dict[str, Any]) -> tuple[str, str]:
    """Return bytes and items, which are unknown while the partition's node is unreachable."""
    from asterism.cli.tables import readable_bytes

    return ("-", "-") if partition["bytes"] is None else (readable_bytes(partition["bytes"]), f"{partition['items']:,}")


def _print_ordered(title: str, reply: dict[str, Any]) -> None:
    from asterism.cli.tables import print_table

    print_table(
        title,
        ["id", "from key", "to key", "bytes", "items", "RU/s", "RU so far", "load", "state", "parents"],
        [
            [
                partition["id"],
                "(start)" if partition["start_key"] is None else partition["start_key"],
                "(end)" if partition["end_key"] is None else partition["end_key"],
                *_size(partition),
                f"{partition['ru_per_second']:,.0f}",
                f"{partition['ru_consumed']:,.0f}",
                _load_mark(partition),
                partition["state"],
                ", ".join(partition["parents"]) or "-",
            ]
            for partition in reply["partitions"]
        ],
    )
    for partition in reply["partitions"]:
        if partition["says"]:
            typer.echo(f"Partition {partition['id']}: {partition['says']}")


def _load_mark(partition: dict[str, Any]) -> str:
    marks = ["HOT"] if partition["hot"] else []
    if partition["drift"] != "none":
        marks.append(f"hotspot, keys {partition['drift']}")
    return ", ".join(marks) or "-"


def _print_details(reply: dict[str, Any]) -> None:
    from asterism.cli.tables import print_table, readable_bytes, readable_key

    print_table(
        "Largest logical partitions",
        ["partition", "partition key", "bytes", "items"],
        [
            [partition["id"], readable_key(large), readable_bytes(large["bytes"]), f"{large['items']:,}"]
            for partition in reply["partitions"]
            for large in partition["largest"]
        ],
    )
    print_table(
        "Hottest logical partitions",
        ["partition", "partition key", "RU so far"],
        [
            [partition["id"], readable_key(hot), f"{hot['request_units']:,.1f}"]
            for partition in reply["partitions"]
            for hot in partition["hottest"]
        ],
    )
