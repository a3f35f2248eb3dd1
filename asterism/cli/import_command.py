"""`asterism import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat

IMPORT_EXAMPLES = """[bold]Examples[/bold]

A file of `asterism export`, under its own names:\n
  asterism import orders.jsonl

Into another database, under another name:\n
  asterism import orders.jsonl --database test --container orders-copy"""

DumpFile = Annotated[Path, typer.Argument(metavar="FILE", help="A file of `asterism export`.", show_default=False)]
IntoDatabase = Annotated[
    str | None, typer.Option("--database", metavar="NAME", help="Database, if not the one in the file.")
]
IntoContainer = Annotated[
    str | None, typer.Option("--container", metavar="NAME", help="New name, for a file with one container.")
]


def import_(
    file: DumpFile,
    database: IntoDatabase = None,
    container: IntoContainer = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Import a file of `export`: create missing containers, and upsert scripts and items, so it can be repeated."""
    from asterism.cli.data_client import DataClient
    from asterism.cli.import_items import CONNECTIONS, import_file
    from asterism.cli.transfer import report

    clients = [DataClient(endpoint, key, insecure=insecure) for _ in range(CONNECTIONS)]
    report("imported", import_file(file, clients, database, container), output_format)
