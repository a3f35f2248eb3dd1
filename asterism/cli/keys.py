"""`asterism keys`."""

from __future__ import annotations

import typer

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, AccountKeys
from asterism.cli.failure import CommandFailed
from asterism.cli.serve_options import Key

KEYS_EXAMPLES = "A server's own: asterism keys --key KEY   The ones that may only read are for dashboards and scrapers."


def keys(key: Key = WELL_KNOWN_EMULATOR_KEY) -> None:
    """Show the four keys of an account; a server that knows the first one takes them all."""
    try:
        four = AccountKeys.complete(primary=key)
    except ValueError as error:
        raise CommandFailed(f"the key cannot be used: {error}") from None
    typer.echo(f"primary              {four.primary}")
    typer.echo(f"secondary            {four.secondary}")
    typer.echo(f"primary, read-only   {four.primary_readonly}")
    typer.echo(f"secondary, read-only {four.secondary_readonly}")
