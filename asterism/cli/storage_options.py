"""Options of the commands for queues and blobs."""

from __future__ import annotations

from typing import Annotated

import typer

StorageAccount = Annotated[str, typer.Option("--account", metavar="NAME", help="The storage account.")]
AccountKey = Annotated[
    str | None,
    typer.Option(
        "--account-key",
        envvar="ASTERISM_STORAGE_KEY",
        metavar="KEY",
        help="A key of the storage account; without it, the server is asked for one.",
        show_default=False,
    ),
]
Metadata = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="NAME=VALUE", help="Metadata; may be repeated.", show_default=False),
]
