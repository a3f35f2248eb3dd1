"""`asterism import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asterism.cli.options import (
    DEFAULT_ENDPOINT,
    DEFAULT_KEY,
    Endpoint,
    Format,
    Insecure,
    Key,
    MongoAddress,
    OutputFormat,
)

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
    mongodb: MongoAddress = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Import a file of `export`: create missing containers and collections, and upsert scripts, items and documents, so
    it can be repeated."""
    from asterism.cli.client import AdminClient
    from asterism.cli.data_client import DataClient
    from asterism.cli.import_items import CONNECTIONS, import_file
    from asterism.cli.mongo_server import MongoServer
    from asterism.cli.transfer import report

    clients = [DataClient(endpoint, key, insecure=insecure) for _ in range(CONNECTIONS)]
    admin = AdminClient(endpoint, key, insecure=insecure)
    server = MongoServer(admin, endpoint, key, mongodb, insecure=insecure)
    report("imported", import_file(file, clients, server, database, container), output_format)
