"""`asterism accounts`."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from asterism.cli.failure import CommandFailed
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat

ACCOUNTS_EXAMPLES = """[bold]Examples[/bold]

A further account with keys of its own, at most ten containers and 20,000 RU/s:\n
  asterism accounts create blue --quota containers=10 --quota ru-per-second=20000

Replace a key; clients that use the other one are not affected:\n
  asterism accounts rotate blue --which primary

Clients connect to the same endpoint with the account's own key."""

accounts = typer.Typer(no_args_is_help=True, help="Create, list, change and delete accounts of a running server.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the account.", show_default=False)]
Kind = Annotated[str, typer.Option("--kind", help="cosmos (databases and containers) or storage (tables).")]
Consistency = Annotated[
    str | None, typer.Option("--consistency", metavar="LEVEL", help="The account's default consistency level.")
]
Quotas = Annotated[
    list[str] | None,
    typer.Option(
        "--quota",
        metavar="NAME=VALUE",
        help="databases, containers or ru-per-second; may be repeated. 'none' takes a quota away.",
    ),
]
PrimaryKey = Annotated[
    str | None, typer.Option("--primary-key", metavar="KEY", help="Base64 text; made by the server when left out.")
]
WithData = Annotated[bool, typer.Option("--with-data", help="Delete its databases, containers and tables too.")]


class Which(StrEnum):
    PRIMARY = "primary"
    SECONDARY = "secondary"


@accounts.command("list")
def list_(
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the accounts of the server, without their keys."""
    found = _post_or_get(endpoint, key, insecure, "accounts")["accounts"]
    if output_format is Format.JSON:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    from asterism.cli.tables import print_table

    columns = ["name", "kind", "consistency", "databases", "quotas"]
    print_table("Accounts", columns, [_row(account) for account in found])


@accounts.command(epilog=ACCOUNTS_EXAMPLES)
def create(
    name: Name,
    kind: Kind = "cosmos",
    consistency: Consistency = None,
    quota: Quotas = None,
    primary_key: PrimaryKey = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Create an account and show its keys."""
    given = {"consistency": consistency, "primary_key": primary_key}
    body = {"name": name, "kind": kind, "quotas": _quotas(quota), **_without_none(given)}
    _show_keys(_post_or_get(endpoint, key, insecure, "accounts", body)["keys"], output_format)


@accounts.command(name="set")
def set_(
    name: Name,
    consistency: Consistency = None,
    quota: Quotas = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Change an account's consistency level or quotas."""
    body = {"name": name, "quotas": _quotas(quota), **_without_none({"consistency": consistency})}
    changed = _post_or_get(endpoint, key, insecure, "accounts/change", body)["account"]
    typer.echo(f"{name}: {changed['consistency']}, {_quotas_text(changed['quotas'])}")


@accounts.command()
def keys(
    name: Name,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the four keys of an account."""
    _show_keys(_post_or_get(endpoint, key, insecure, "accounts/keys", {"name": name})["keys"], output_format)


@accounts.command()
def rotate(
    name: Name,
    which: Annotated[Which, typer.Option("--which", help="The key to replace.")],
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Replace one of an account's two keys. The other one, and the read-only key that goes with it, stay valid."""
    body = {"name": name, "which": which.value}
    _show_keys(_post_or_get(endpoint, key, insecure, "accounts/rotate", body)["keys"], output_format)


@accounts.command()
def delete(
    name: Name,
    with_data: WithData = False,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Delete an account; refused while it has databases, unless --with-data is given."""
    _post_or_get(endpoint, key, insecure, "accounts/delete", {"name": name, "with_data": with_data})
    typer.echo(f"The account {name} is deleted.")


# --- the parts ------------------------------------------------------------------------------------------------------


def _post_or_get(
    endpoint: str, key: str, insecure: bool, route: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    return client.get(route) if body is None else client.post(route, body)


def _quotas(given: list[str] | None) -> dict[str, int | None]:
    quotas: dict[str, int | None] = {}
    for text in given or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not (value == "none" or (value.isascii() and value.isdigit())):
            raise CommandFailed(f"the quota {text!r} has no value; write NAME=NUMBER, or NAME=none to take it away")
        quotas[name] = None if value == "none" else int(value)
    return quotas


def _without_none(values: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _row(account: dict[str, Any]) -> list[str]:
    if account["configured"]:
        return [account["name"], "-", "-", "-", "given by configuration"]
    state = " (being deleted)" if account["closing"] else ""
    quotas = _quotas_text(account["quotas"])
    return [account["name"] + state, account["kind"], account["consistency"], f"{account['databases']:,}", quotas]


def _quotas_text(quotas: dict[str, int]) -> str:
    named = [f"{name.removesuffix('_max').replace('_', '-')} {value:,}" for name, value in quotas.items()]
    return ", ".join(named) or "no quotas"


def _show_keys(found: dict[str, str], output_format: Format) -> None:
    if output_format is Format.JSON:
        typer.echo(json.dumps(found, indent=2))
        return
    for name, text in found.items():
        typer.echo(f"{name.replace('_readonly', ', read-only'):<20} {text}")
