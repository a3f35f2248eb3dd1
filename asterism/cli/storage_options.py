"""Options of the commands for queues and blobs, and the client that they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from asterism.cli import options
from asterism.cli.failure import CommandFailed

if TYPE_CHECKING:
    from asterism.cli.storage_client import Service, StorageClient


def one_segment(name: str | None) -> str | None:
    """Refuse a name that is not one part of a URL: `jobs/messages` would be all messages of the queue `jobs`."""
    if name is not None and (not name or "/" in name):
        raise CommandFailed(f"{name!r} cannot be a name: it is empty or has a /")
    return name


DEFAULT_ACCOUNT: Final = options.DEFAULT_TABLE_ACCOUNT

StorageAccount = Annotated[
    str, typer.Option("--account", metavar="NAME", help="The storage account.", callback=one_segment)
]
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
Prefix = Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Only names that begin so.")]


def client_maker(
    service: Service, account: str, account_key: str | None, endpoint: str, key: str, *, insecure: bool
) -> Callable[[], StorageClient]:
    """Return a function that makes a client of a service, with a connection of its own."""
    from asterism.cli.client import AdminClient
    from asterism.cli.storage_client import StorageClient

    admin = AdminClient(endpoint, key, insecure=insecure)
    return lambda: StorageClient(
        admin, endpoint, key, service=service, account=account, account_key=account_key, insecure=insecure
    )


@contextmanager
def storage_client(
    service: Service, account: str, account_key: str | None, endpoint: str, key: str, *, insecure: bool
) -> Iterator[StorageClient]:
    client = client_maker(service, account, account_key, endpoint, key, insecure=insecure)()
    try:
        yield client
    finally:
        client.close()
