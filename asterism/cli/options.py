"""Options and arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from asterism.access.keys import DEVELOPMENT_ACCOUNT, WELL_KNOWN_EMULATOR_KEY
from asterism.server.doors import DOORS

_CONNECTION = "The running server"

Database = Annotated[str, typer.Argument(metavar="DATABASE", help="Name of the database.", show_default=False)]
Container = Annotated[
    str, typer.Argument(metavar="CONTAINER", help="Name of the container or collection.", show_default=False)
]
Endpoint = Annotated[
    str, typer.Option(envvar="ASTERISM_ENDPOINT", metavar="URL", rich_help_panel=_CONNECTION, help="Where it is.")
]
Key = Annotated[
    str,
    typer.Option(
        envvar="ASTERISM_KEY",
        metavar="KEY",
        show_default="the emulator's well-known key",
        rich_help_panel=_CONNECTION,
        help="Its account key.",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        rich_help_panel=_CONNECTION,
        help="Accept any certificate; on this machine's own addresses that is the default.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Stay until it is done, and show how far it is.")]

TableAccount = Annotated[
    str, typer.Option("--account", metavar="NAME", help="The account of a table, queue or container of blobs.")
]

MongoAddress = Annotated[
    str | None,
    typer.Option(
        "--mongodb",
        envvar="ASTERISM_MONGODB",
        metavar="mongodb://…",
        rich_help_panel=_CONNECTION,
        help="Connection string of its MongoDB port, for collections; without it the port is asked of the server.",
        show_default=False,
    ),
]

DEFAULT_TABLE_ACCOUNT = DEVELOPMENT_ACCOUNT
DEFAULT_ENDPOINT = f"http://127.0.0.1:{DOORS[0].ports[0].default}"
DEFAULT_KEY = WELL_KNOWN_EMULATOR_KEY


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputFormat = Annotated[Format, typer.Option("--format", help="For people, or for programs.")]
