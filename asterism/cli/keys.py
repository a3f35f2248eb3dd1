"""`asterism keys`."""

from __future__ import annotations

import typer

from asterism.access.keys import AccountKeys
from asterism.apis.settings import options_of
from asterism.cli.declared_options import with_options
from asterism.cli.failure import CommandFailed
from asterism.server.config import ServerConfig

KEYS_EXAMPLES = (
    "Of a server with its own key: asterism keys --key KEY   The read-only keys are for dashboards and scrapers."
)


@with_options([options_of(ServerConfig)["key"]])
def keys(key: str) -> None:
    """Show the four keys of an account; a server that has the first one accepts all of them."""
    try:
        account_keys = AccountKeys.complete(primary=key)
    except ValueError as error:
        raise CommandFailed(f"the key cannot be used: {error}") from None
    typer.echo(f"primary              {account_keys.primary}")
    typer.echo(f"secondary            {account_keys.secondary}")
    typer.echo(f"primary, read-only   {account_keys.primary_readonly}")
    typer.echo(f"secondary, read-only {account_keys.secondary_readonly}")
