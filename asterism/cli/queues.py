"""`asterism queues`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from asterism.cli.failure import CommandFailed
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat
from asterism.cli.storage_options import (
    DEFAULT_ACCOUNT,
    AccountKey,
    Metadata,
    Prefix,
    StorageAccount,
    one_segment,
    storage_client,
)

if TYPE_CHECKING:
    from asterism.cli.storage_client import StorageClient

QUEUES_EXAMPLES = """[bold]Examples[/bold]

A queue, three messages, and a look at them that changes nothing:\n
  asterism queues create jobs\n
  asterism queues put jobs "resize 1.jpg" "resize 2.jpg" "resize 3.jpg"\n
  asterism queues peek jobs --count 3

A message for each line of a file:\n
  asterism queues put jobs - < jobs.txt

Take ten messages for a minute; those that are not deleted by then come back:\n
  asterism queues get jobs --count 10 --for 60\n
  asterism queues get jobs --count 10 --delete

Which physical partition a queue lies in:\n
  asterism partitions --queue jobs"""

queues = typer.Typer(no_args_is_help=True, help="Create, list, fill and empty queues of a running server.")

Name = Annotated[
    str, typer.Argument(metavar="QUEUE", help="Name of the queue.", show_default=False, callback=one_segment)
]
Texts = Annotated[
    list[str],
    typer.Argument(
        metavar="TEXT…", help="A message each; - is a message for each line of the input.", show_default=False
    ),
]
Count = Annotated[int, typer.Option("--count", min=1, metavar="N", help="How many messages, if there are as many.")]

_client = partial(storage_client, "queue")

# The service's limits for one request.
_MESSAGES_MAX: Final = 32
_LISTED_MAX: Final = 1000
_INVISIBLE_SECONDS_MAX: Final = 7 * 24 * 3600
_LIFE_SECONDS_MAX: Final = 2**31 - 1


@queues.command("list")
def list_(
    prefix: Prefix = "",
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the queues of an account, with the numbers of their messages."""
    with _client(account, account_key, endpoint, key, insecure=insecure) as client:
        counts = _counts(client, _names(client, prefix))
    if output_format is Format.JSON:
        found = [{"name": name, "messages": count} for name, count in counts.items()]
        typer.echo(json.dumps({"queues": found}, indent=2, ensure_ascii=False))
    elif counts:
        from asterism.cli.tables import print_table

        rows = [[name, f"{count:,}"] for name, count in counts.items()]
        print_table(f"Queues of {account}", ["queue", "items"], rows)
    else:
        typer.echo("There are no such queues. Create one with `asterism queues create`.")


@queues.command()
def create(
    name: Name,
    metadata: Metadata = None,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Create a queue."""
    from asterism.cli.storage_client import metadata_headers

    with _client(account, account_key, endpoint, key, insecure=insecure) as client:
        reply = client.ask("PUT", name, headers=metadata_headers(metadata or ()))
    is_new = reply.status == 201
    typer.echo(f"The queue {name} is created." if is_new else f"The queue {name} exists, with the same metadata.")


@queues.command()
def delete(
    name: Name,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Delete a queue with its messages."""
    with _client(account, account_key, endpoint, key, insecure=insecure) as client:
        client.ask("DELETE", name)
    typer.echo(f"The queue {name} is deleted.")


@queues.command()
def put(
    name: Name,
    texts: Texts,
    delay_seconds: Annotated[
        int,
        typer.Option(
            "--delay",
            min=0,
            max=_INVISIBLE_SECONDS_MAX,
            metavar="SECONDS",
            help="For how long the messages are invisible; at most 7 days, and less than --ttl.",
        ),
    ] = 0,
    ttl_seconds: Annotated[
        int,
        typer.Option("--ttl", min=-1, max=_LIFE_SECONDS_MAX, metavar="SECONDS", help="When they expire; -1 is never."),
    ] = 7 * 24 * 3600,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Put messages into a queue."""
    from asterism.cli.progress import counting_bars
    from asterism.cli.queue_messages import read_texts

    if ttl_seconds == 0:
        raise CommandFailed("--ttl is a number of seconds, or -1 for never")
    sent = read_texts(texts)
    query = {"visibilitytimeout": str(delay_seconds), "messagettl": str(ttl_seconds)}
    with _client(account, account_key, endpoint, key, insecure=insecure) as client, counting_bars() as progress:
        bar = progress.add_task(f"messages into {name}", total=len(sent))
        for done, text in enumerate(sent):
            try:
                client.ask("POST", f"{name}/messages", text.body, query=query)
            except CommandFailed as failure:
                if len(sent) == 1:
                    raise
                raise CommandFailed(f"{failure} ({text.place}; {_messages(done)} put before it)") from None
            progress.advance(bar)
    typer.echo(f"{_messages(len(sent))} put into {name}.")


@queues.command()
def peek(
    name: Name,
    count: Count = 1,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the first visible messages, at most 32, and leave them as they are."""
    from asterism.cli.queue_messages import message_output, read_page

    with _client(account, account_key, endpoint, key, insecure=insecure) as client:
        query = {"peekonly": "true", "numofmessages": str(min(count, _MESSAGES_MAX))}
        found = read_page(client.ask("GET", f"{name}/messages", query=query))
    with message_output(name, output_format) as show:
        show(found)


@queues.command()
def get(
    name: Name,
    count: Count = 1,
    invisible_seconds: Annotated[
        int,
        typer.Option(
            "--for",
            min=1,
            max=_INVISIBLE_SECONDS_MAX,
            metavar="SECONDS",
            help="For how long nothing else sees the messages.",
        ),
    ] = 30,
    with_delete: Annotated[bool, typer.Option("--delete", help="Delete them as soon as they are shown.")] = False,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Take messages: for a time nothing else sees them, then they come back unless they were deleted."""
    from asterism.cli.queue_messages import message_output, read_page

    with (
        _client(account, account_key, endpoint, key, insecure=insecure) as client,
        message_output(name, output_format) as show,
    ):
        while count > 0:
            query = {"numofmessages": str(min(count, _MESSAGES_MAX)), "visibilitytimeout": str(invisible_seconds)}
            page = read_page(client.ask("GET", f"{name}/messages", query=query))
            show(page)
            if not page:
                break
            # A page at a time, before its messages come back; and none is gone before its text is on the terminal.
            for message in page if with_delete else ():
                client.ask("DELETE", f"{name}/messages/{message['id']}", query={"popreceipt": message["receipt"]})
            count -= len(page)


@queues.command()
def purge(
    name: Name,
    account: StorageAccount = DEFAULT_ACCOUNT,
    account_key: AccountKey = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Remove all messages of a queue, at once whatever their number."""
    with _client(account, account_key, endpoint, key, insecure=insecure) as client:
        count = _count(client, name)
        client.ask("DELETE", f"{name}/messages")
    typer.echo(f"{_messages(count)} removed from {name}.")


# --- the parts ------------------------------------------------------------------------------------------------------


def _names(client: StorageClient, prefix: str) -> Iterator[str]:
    query = {"comp": "list", "prefix": prefix, "maxresults": str(_LISTED_MAX)}
    while True:
        page = client.ask("GET", query=query).xml
        yield from (element.text or "" for element in page.iter("Name"))
        marker = page.findtext("NextMarker")
        if not marker:
            return
        query["marker"] = marker


def _counts(client: StorageClient, names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of messages by queue, without the queues that were deleted since they were listed."""
    from asterism.cli.storage_client import StorageRefused

    counts: dict[str, int] = {}
    for name in names:
        try:
            counts[name] = _count(client, name)
        except StorageRefused as refusal:
            if refusal.code != "QueueNotFound":
                raise
    return counts


def _count(client: StorageClient, name: str) -> int:
    reply = client.ask("GET", name, query={"comp": "metadata"})
    return int(reply.headers.get("x-ms-approximate-messages-count", 0))


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"
