"""`asterism version`."""

from __future__ import annotations

import typer

from asterism import __version__


def version() -> None:
    """Show the version of the program."""
    typer.echo(f"asterism {__version__}")
