"""`asterism blobs`."""

from __future__ import annotations

import mimetypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from asterism.cli.blob_output import byte_bar, report, show_blobs, show_containers
from asterism.cli.failure import CommandFailed
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat
from asterism.cli.storage_options import (
    DEFAULT_ACCOUNT,
    AccountKey,
    Metadata,
    Prefix,
    StorageAccount,
    client_maker,
    one_segment,
    storage_client,
)

if TYPE_CHECKING:
    from asterism.cli.blob_mover import Connections

BLOBS_EXAMPLES = """[bold]Examples[/bold]

A container, a blob, and what is in it now:\n
  asterism blobs create photos\n
  asterism blobs put photos cat.jpg 2026/cat.jpg\n
  asterism blobs list photos --prefix 2026/\n
  asterism blobs get photos 2026/cat.jpg copy.jpg

From a program, and into another one:\n
  tar c src | asterism blobs put backups - src.tar\n
  asterism blobs get backups src.tar - | tar t

A folder, over eight connections, and back:\n
  asterism blobs upload photos ./pictures --prefix pictures/ --connections 8\n
  asterism blobs download photos ./restored --prefix pictures/

How a container is partitioned, and which range of names is hot:\n
  asterism partitions --blob photos"""

blobs = typer.Typer(no_args_is_help=True, help="List, fill and empty containers of blobs of a running server.")

Container = Annotated[
    str,
    typer.Argument(
        metavar="CONTAINER", help="Name of the container of blobs.", show_default=False, callback=one_segment
    ),
]
Blob = Annotated[str, typer.Argument(metavar="BLOB", help="Name of the blob.", show_default=False)]
ConnectionCount = Annotated[
    int, typer.Option("--connections", min=1, max=64, metavar="N", help="How many files are moved at a time.")
]

DEFAULT_CONNECTIONS: Final = 4
_PUBLIC: Final = ("blob", "container")
_STANDARD: Final = "-"

_client = partial(storage_client, "blob")


@blobs.command("list")
def list_(
    container: Annotated[
        str | None,
        typer.Argument(
            metavar="CONTAINER",
            help="Its blobs; without it, the containers.",
            show_default=False,
            callback=one_segment,
        ),
    ] = None,
    prefix: Prefix = "",
    folders: Annotated[
        bool, typer.Option("--folders", help="Show what has another / behind the prefix as one folder.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many entries at most.")] = 1000,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the containers of an account, or the blobs of a container in the order of their names."""
    from asterism.cli.blob_pages import list_blobs, list_containers

    with _client(account, account_key, endpoint, key, insecure=insecure) as client:
        if container is None:
            show_containers(account, list(islice(list_containers(client, prefix), limit)), output_format)
            return
        listed = list_blobs(client, container, prefix, "/" if folders else "")
        found = list(islice(listed, limit))
        show_blobs(container, found, output_format)
        if output_format is Format.TABLE and next(listed, None) is not None:
            typer.echo(f"There are more than {limit:,}; --limit shows more, --prefix fewer.")


@blobs.command()
def create(
    container: Container,
    metadata: Metadata = None,
    public: Annotated[
        str | None,
        typer.Option(
            "--public",
            metavar="LEVEL",
            help="Everybody may read: blob, or container for its list too.",
            show_default=False,
        ),
    ] = None,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Create a container."""
    from asterism.cli.storage_client import metadata_headers

    if public is not None and public not in _PUBLIC:
        raise typer.BadParameter(f"--public is {' or '.join(_PUBLIC)}")
    headers = metadata_headers(metadata or ())
    if public is not None:
        headers["x-ms-blob-public-access"] = public
    with _client(account, account_key, endpoint, key, insecure=insecure) as client:
        client.ask("PUT", container, query={"restype": "container"}, headers=headers)
    typer.echo(f"The container {container} is created.")


@blobs.command()
def delete(
    container: Container,
    blob: Annotated[
        str | None,
        typer.Argument(metavar="BLOB", help="A blob; without it, the container with all of them.", show_default=False),
    ] = None,
    snapshots: Annotated[bool, typer.Option("--snapshots", help="The snapshots of the blob too.")] = False,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Delete a blob, or a container with its blobs."""
    with _client(account, account_key, endpoint, key, insecure=insecure) as client:
        if blob is None:
            client.ask("DELETE", container, query={"restype": "container"})
        else:
            headers = {"x-ms-delete-snapshots": "include"} if snapshots else {}
            client.ask("DELETE", f"{container}/{blob}", headers=headers)
    typer.echo(f"The container {container} is deleted." if blob is None else f"{container}/{blob} is deleted.")


@blobs.command()
def put(
    container: Container,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file; - is the input.", show_default=False)],
    blob: Annotated[
        str | None,
        typer.Argument(metavar="BLOB", help="Name of the blob; without it, that of the file.", show_default=False),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a blob of that name.")] = False,
    content_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Such as text/plain; else after the name.", show_default=False),
    ] = None,
    metadata: Metadata = None,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Write a blob of a file, or of the input."""
    from asterism.cli.blob_files import TargetExists, upload_file
    from asterism.cli.blob_folders import upload_path
    from asterism.cli.storage_client import metadata_headers
    from asterism.cli.tables import readable_bytes

    if blob is None and file == _STANDARD:
        raise typer.BadParameter("name the blob for the input: asterism blobs put CONTAINER - BLOB")
    path = f"{container}/{blob or Path(file).name}"
    guessed = content_type or mimetypes.guess_type(blob or file)[0] or "application/octet-stream"
    headers = {**metadata_headers(metadata or ()), "x-ms-blob-content-type": guessed}
    size = None if file == _STANDARD else _size_of(Path(file))
    with (
        _client(account, account_key, endpoint, key, insecure=insecure) as client,
        byte_bar(path, size) as (advance, _),
    ):
        try:
            if file == _STANDARD:
                source = sys.stdin.buffer
                written = upload_file(
                    client, path, source, size=None, headers=headers, may_replace=overwrite, advance=advance
                )
            else:
                written = upload_path(client, path, Path(file), headers=headers, may_replace=overwrite, advance=advance)
        except TargetExists as exists:
            raise CommandFailed(f"{exists}; --overwrite replaces it") from None
    typer.echo(f"{path}: {readable_bytes(written)} written.")


@blobs.command()
def get(
    container: Container,
    blob: Blob,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A file, or - for the output; without it, the last part of the name."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file of that name.")] = False,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Write a file of a blob; it appears when it is whole, and its MD5 is checked."""
    from asterism.cli.blob_files import TargetExists
    from asterism.cli.blob_folders import download_path, is_name_of_file, write_to
    from asterism.cli.tables import readable_bytes

    path, last = f"{container}/{blob}", blob.rpartition("/")[2]
    if file is None and not is_name_of_file(last):
        raise CommandFailed(f"{last!r} cannot be the name of a file; name one: asterism blobs get CONTAINER BLOB FILE")
    with _client(account, account_key, endpoint, key, insecure=insecure) as client:
        if file == _STANDARD:
            write_to(client, path, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return
        target = Path(last if file is None else file)
        with byte_bar(path, None) as (advance, _):
            try:
                written = download_path(client, path, target, may_replace=overwrite, advance=advance)
            except TargetExists as exists:
                raise CommandFailed(f"{exists}; --overwrite replaces it") from None
    typer.echo(f"{target}: {readable_bytes(written)} written.")


@blobs.command()
def upload(
    container: Container,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder with the files.", show_default=False)],
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Before the names of all blobs.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace blobs of those names.")] = False,
    connections: ConnectionCount = DEFAULT_CONNECTIONS,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Write a blob of each file in a folder and the folders in it. Links are left out."""
    from asterism.cli.blob_folders import files_of, upload_folder

    with (
        _connections(connections, account, account_key, endpoint, key, insecure=insecure) as clients,
        byte_bar(f"{folder} to {container}", 0) as (advance, grow),
    ):
        files = files_of(folder, prefix)
        moved = upload_folder(clients, container, files, may_replace=overwrite, advance=advance, grow=grow)
    report(moved, f"written to {container}", "cannot be blobs")


@blobs.command()
def download(
    container: Container,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the files shall be; it may be new.", show_default=False)
    ],
    prefix: Prefix = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files of those names.")] = False,
    connections: ConnectionCount = DEFAULT_CONNECTIONS,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Write a file of each blob, in folders after the parts of its name, never outside FOLDER."""
    from asterism.cli.blob_folders import download_folder
    from asterism.cli.blob_pages import list_blobs

    with (
        _client(account, account_key, endpoint, key, insecure=insecure) as lister,
        _connections(connections, account, account_key, endpoint, key, insecure=insecure) as clients,
        byte_bar(f"{container} to {folder}", 0) as (advance, grow),
    ):
        listed = list_blobs(lister, container, prefix)
        moved = download_folder(clients, container, listed, folder, may_replace=overwrite, advance=advance, grow=grow)
    report(moved, f"written to {folder}", f"cannot be files in {folder}")


# --- the parts ------------------------------------------------------------------------------------------------------


@contextmanager
def _connections(
    count: int, account: str, account_key: str | None, endpoint: str, key: str, *, insecure: bool
) -> Iterator[Connections]:
    from asterism.cli.blob_mover import Connections

    connections = Connections(client_maker("blob", account, account_key, endpoint, key, insecure=insecure), count)
    try:
        yield connections
    finally:
        connections.close()


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from None
