"""`asterism collections`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from asterism.cli import options

COLLECTIONS_EXAMPLES = """[bold]Examples[/bold]

All collections of MongoDB clients, of every database:\n
  asterism collections

The indexes of a collection, with their options:\n
  asterism collections shop orders

Its partitions; collections without a shard key share those of system.home:\n
  asterism partitions shop orders"""

OptionalDatabase = Annotated[
    str | None,
    typer.Argument(
        metavar="DATABASE",
        help="Name of the database; all if omitted. If a database of containers has the name, give mongo:NAME.",
        show_default=False,
    ),
]
OptionalCollection = Annotated[
    str | None, typer.Argument(metavar="COLLECTION", help="Name of the collection.", show_default=False)
]


def collections(
    database: OptionalDatabase = None,
    collection: OptionalCollection = None,
    output_format: options.OutputFormat = options.Format.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Show the collections of MongoDB clients: shard key, partitions, documents, indexes and options."""
    from asterism.cli.client import AdminClient

    named = {"database": database, "container": collection}
    parameters = {name: value for name, value in named.items() if value is not None}
    reply = AdminClient(endpoint, key, insecure=insecure).get("collections", **parameters)
    if output_format is options.Format.JSON:
        typer.echo(json.dumps(reply, indent=2, ensure_ascii=False))
    elif collection is not None:
        _print_single(reply["collections"][0])
    elif reply["collections"]:
        _print_list(reply["collections"])
    else:
        typer.echo("There are no collections.")


def _print_list(found: list[dict[str, Any]]) -> None:
    from asterism.cli.tables import print_table, readable_bytes

    print_table(
        "Collections",
        ["database", "collection", "shard key", "partitions", "items", "bytes", "indexes"],
        [
            [
                each["database"],
                each["name"],
                _shard_key(each),
                str(each.get("partitions", "-")),
                f"{each['items']:,}" if "items" in each else "-",
                readable_bytes(each["bytes"]) if "bytes" in each else "-",
                ", ".join(index["name"] for index in each["indexes"]),
            ]
            for each in found
        ],
    )


def _shard_key(each: dict[str, Any]) -> str:
    if each["type"] == "view":
        return "(view)"
    return ", ".join(f"{path}: {way}" for path, way in each["shard_key"].items()) or "- (shared partitions)"


def _print_single(each: dict[str, Any]) -> None:
    from asterism.cli.tables import print_table

    _print_list([each])
    print_table(
        "Indexes",
        ["index", "fields", "options", "state"],
        [
            [
                index["name"],
                ", ".join(f"{field}: {way}" for field, way in index["key"].items()),
                json.dumps(index["options"], ensure_ascii=False) if index["options"] else "-",
                index["state"],
            ]
            for index in each["indexes"]
        ],
    )
    if each["options"]:
        typer.echo(f"Options: {json.dumps(each['options'], ensure_ascii=False)}")
