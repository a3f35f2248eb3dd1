"""The options of `asterism serve`: each with its variable, its place in the help and its words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asterism.server.config import limit_names

_WHERE = "Where it listens and keeps its data"
_WHO = "Who may connect"
_HOW = "How it behaves"

Data = Annotated[
    Path,
    typer.Option(
        envvar="ASTERISM_DATA", metavar="DIR", rich_help_panel=_WHERE, help="Data directory; made if missing."
    ),
]
Host = Annotated[
    str,
    typer.Option(envvar="ASTERISM_HOST", rich_help_panel=_WHERE, help="Address to listen on; 0.0.0.0 for all."),
]
Port = Annotated[
    int,
    typer.Option(
        envvar="ASTERISM_PORT", min=0, max=65535, rich_help_panel=_WHERE, help="Port to listen on; 0 for any."
    ),
]
Apis = Annotated[
    str,
    typer.Option(
        envvar="ASTERISM_APIS",
        metavar="NAMES",
        rich_help_panel=_WHERE,
        help="The protocols to serve, with commas between: nosql, table.",
    ),
]
TablePort = Annotated[
    int,
    typer.Option(
        envvar="ASTERISM_TABLE_PORT",
        min=0,
        max=65535,
        rich_help_panel=_WHERE,
        help="Port for Azure Table storage; 0 for any.",
    ),
]
CosmosTablePort = Annotated[
    int,
    typer.Option(
        envvar="ASTERISM_COSMOS_TABLE_PORT",
        min=0,
        max=65535,
        rich_help_panel=_WHERE,
        help="Port for the same tables as Cosmos DB for Table; 0 for any.",
    ),
]
Https = Annotated[
    bool,
    typer.Option(
        "--https",
        envvar="ASTERISM_HTTPS",
        rich_help_panel=_WHERE,
        help="Encrypt, with a self-signed certificate that is kept in the data directory.",
    ),
]
TlsName = Annotated[
    list[str] | None,
    typer.Option(
        envvar="ASTERISM_TLS_NAME",
        metavar="NAME",
        rich_help_panel=_WHERE,
        help="A further host name or address for the certificate; may be repeated.",
    ),
]
Key = Annotated[
    str,
    typer.Option(
        envvar="ASTERISM_KEY",
        metavar="KEY",
        show_default="the emulator's well-known key",
        rich_help_panel=_WHO,
        help="Account key, base64. Better in the environment, where other users do not see it.",
    ),
]
Account = Annotated[
    str, typer.Option(envvar="ASTERISM_ACCOUNT", metavar="NAME", rich_help_panel=_WHO, help="Account name.")
]
Fleet = Annotated[
    Path | None,
    typer.Option(
        envvar="ASTERISM_FLEET",
        metavar="FILE",
        rich_help_panel=_WHERE,
        help="Keep the data on the nodes that this TOML file describes, and not in the data directory.",
    ),
]
Store = Annotated[
    list[str] | None,
    typer.Option(
        envvar="ASTERISM_STORE",
        metavar="URL",
        rich_help_panel=_WHERE,
        help="The same without a file: postgresql://… or lmdb:DIR; may be repeated, the first has the catalog.",
    ),
]
TableAccount = Annotated[
    list[str] | None,
    typer.Option(
        envvar="ASTERISM_TABLE_ACCOUNT",
        metavar="NAME:KEY",
        show_default="the well-known development account",
        rich_help_panel=_WHO,
        help="An account for tables, its key in base64; may be repeated.",
    ),
]
CosmosTableAccount = Annotated[
    list[str] | None,
    typer.Option(
        envvar="ASTERISM_COSMOS_TABLE_ACCOUNT",
        metavar="NAME:KEY",
        rich_help_panel=_WHO,
        help="A further account, or another key, for the port of Cosmos DB for Table; may be repeated.",
    ),
]
UnsignedTokens = Annotated[
    bool,
    typer.Option(
        "--unsigned-tokens",
        envvar="ASTERISM_UNSIGNED_TOKENS",
        rich_help_panel=_WHO,
        help="Let tables take bearer tokens that nobody has signed. For tests only.",
    ),
]
AllowedHost = Annotated[
    list[str] | None,
    typer.Option(
        envvar="ASTERISM_ALLOWED_HOST",
        metavar="NAME",
        rich_help_panel=_WHO,
        help="While a key is the public development key, requests by a host name with a dot are refused, so that no "
        "web page can use the server; this name is answered, *.NAME all below it, * any. May be repeated.",
    ),
]
Seed = Annotated[
    Path | None,
    typer.Option(
        envvar="ASTERISM_SEED",
        metavar="FILE",
        rich_help_panel=_HOW,
        help='At first start, create what this JSON file says: {"databases": [{"id", "containers": [{"id", '
        '"partitionKey", "items"}]}]}.',
    ),
]
LenientSql = Annotated[
    bool,
    typer.Option(
        "--lenient-sql",
        envvar="ASTERISM_LENIENT_SQL",
        rich_help_panel=_HOW,
        help="Answer queries that run here though the service refuses them, such as ORDER BY in a subquery.",
    ),
]
NoThrottle = Annotated[
    bool,
    typer.Option(
        "--no-throttle",
        envvar="ASTERISM_NO_THROTTLE",
        rich_help_panel=_HOW,
        help="Charge request units but never answer 429.",
    ),
]
Consistency = Annotated[
    str,
    typer.Option(
        envvar="ASTERISM_CONSISTENCY",
        metavar="LEVEL",
        rich_help_panel=_HOW,
        help="Default consistency level of the account.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        envvar="ASTERISM_WORKERS",
        min=1,
        max=64,
        metavar="N",
        rich_help_panel=_HOW,
        help="Processes that serve together, over one store; each uses one core.",
    ),
]
AnnounceSeconds = Annotated[
    float,
    typer.Option(
        envvar="ASTERISM_ANNOUNCE_SECONDS",
        min=0,
        metavar="SECONDS",
        rich_help_panel=_HOW,
        help="How long a split for throughput is announced (offer pending, range splitting) before it happens.",
    ),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        envvar="ASTERISM_LIMIT",
        metavar="NAME=VALUE",
        rich_help_panel=_HOW,
        help=f"Change a limit; bytes may end in KB, MB or GB; may be repeated. Names: {', '.join(limit_names())}.",
    ),
]
