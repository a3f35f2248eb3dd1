"""The commands of `asterism bus` on messages: peek, send, receive, resubmit, purge."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from asterism.cli.bus_options import Count, DeadLetter, Path, Subscription, TransferDeadLetter, sub_queue, where
from asterism.cli.failure import CommandFailed
from asterism.cli.messaging_options import DEFAULT_NAMESPACE, ContentType, Namespace, PropertyTexts, read_properties
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from asterism.cli.client import AdminClient
    from asterism.cli.messaging_output import Show

# The server's limit for a page, and for the messages of one request.
_PAGE_MAX: Final = 100
# A request of the server takes as many at a time, so that each is answered soon.
_RESUBMIT_MAX: Final = 200
# The counts that make up each queue.
_COUNTED: Final = {
    "main": ("active", "scheduled", "deferred"),
    "dead-letter": ("dead_letters",),
    "transfer-dead-letter": ("transfer_dead_letters",),
}

PEEK_EXAMPLES: Final = """[bold]Examples[/bold]

  asterism bus peek orders --count 20\n
  asterism bus peek orders --dead-letter\n
  asterism bus peek orders --from 1200 --format json"""
SEND_EXAMPLES: Final = """[bold]Examples[/bold]

  asterism bus send orders '{"id": 7}' --content-type application/json --property region=eu\n
  asterism bus send sagas "step 1" "step 2" --session saga-17\n
  asterism bus send orders "tomorrow" --at 2027-01-31T08:00:00Z\n
  asterism bus send orders - < lines.txt"""
RESUBMIT_EXAMPLES: Final = """[bold]Examples[/bold]

  asterism bus resubmit orders --all\n
  asterism bus resubmit orders 17 18 42\n
  asterism bus resubmit events/subscriptions/eu --all

Dead letters of a subscription are sent to its topic again, so every subscription whose rules match gets them."""


def peek(
    path: Path,
    subscription: Subscription = None,
    count: Count = 10,
    start: Annotated[int, typer.Option("--from", min=0, metavar="NUMBER", help="Begin at this sequence number.")] = 0,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only those of this session.")] = None,
    dead_letter: DeadLetter = False,
    transfer_dead_letter: TransferDeadLetter = False,
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show messages in the order of their numbers, whatever their state, and leave them as they are."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    queue = sub_queue(dead_letter, transfer_dead_letter)
    named = {**where(namespace, path, subscription), "queue": queue}
    if session is not None:
        named["session"] = session
    following: int | None = start
    with _messages(path, queue, output_format) as show:
        while count > 0 and following is not None:
            asked = {"from": str(following), "count": str(min(count, _PAGE_MAX))}
            page = client.get("messaging/messages", **named, **asked)
            show(page["messages"])
            count -= len(page["messages"])
            following = page["next"]


def _messages(path: str, queue: str, output_format: Format) -> AbstractContextManager[Show]:
    from asterism.cli.messaging_output import (
        DEAD_LETTER_COLUMNS,
        MESSAGE_COLUMNS,
        dead_letter_row,
        message_row,
        shown_pages,
    )

    if queue == "main":
        return shown_pages(f"Messages of {path}", "messages", message_row, MESSAGE_COLUMNS, output_format)
    return shown_pages(f"Dead letters of {path}", "messages", dead_letter_row, DEAD_LETTER_COLUMNS, output_format)


def send(
    path: Path,
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT…", help="A message each; - is a message for each line of the input.", show_default=False
        ),
    ],
    properties: PropertyTexts = None,
    content_type: ContentType = None,
    subject: Annotated[str | None, typer.Option("--subject", metavar="TEXT", help="The subject, or label.")] = None,
    message_id: Annotated[
        str | None, typer.Option("--message-id", metavar="ID", help="Of a single message; otherwise random.")
    ] = None,
    correlation_id: Annotated[str | None, typer.Option("--correlation-id", metavar="ID")] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The session that they belong to.")
    ] = None,
    partition_key: Annotated[
        str | None, typer.Option("--partition-key", metavar="KEY", help="Chooses the fragment of a partitioned entity.")
    ] = None,
    ttl_seconds: Annotated[
        int | None, typer.Option("--ttl", min=1, metavar="SECONDS", help="When they expire.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Not before then: ISO 8601, such as 2027-01-31T08:00:00Z."),
    ] = None,
    namespace: Namespace = DEFAULT_NAMESPACE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Send messages to a queue or a topic."""
    from asterism.cli.client import AdminClient
    from asterism.cli.messaging_texts import counted, read_texts
    from asterism.cli.progress import counting_bars

    bodies = read_texts(texts)
    if message_id is not None and len(bodies) != 1:
        raise CommandFailed("--message-id is for a single message: others would be its duplicates")
    shared: dict[str, Any] = {
        "properties": read_properties(properties or ()),
        "content_type": content_type,
        "subject": subject,
        "message_id": message_id,
        "correlation_id": correlation_id,
        "session_id": session,
        "partition_key": partition_key,
        "ttl_seconds": ttl_seconds,
        "scheduled_ms": None if at is None else _milliseconds(at),
    }
    client = AdminClient(endpoint, key, insecure=insecure)
    with counting_bars() as progress:
        bar = progress.add_task(f"messages into {path}".replace("[", "\\["), total=len(bodies))
        for done in range(0, len(bodies), _PAGE_MAX):
            page = [{**shared, "body": body} for body in bodies[done : done + _PAGE_MAX]]
            try:
                client.post("messaging/send", {**where(namespace, path, None), "messages": page})
            except CommandFailed as failure:
                if done == 0:
                    raise
                raise CommandFailed(f"{failure} ({counted(done, 'message')} sent before it)") from None
            progress.advance(bar, len(page))
    typer.echo(f"{counted(len(bodies), 'message')} sent to {path}.")


def _milliseconds(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandFailed(f"{text!r} is no time: write it as 2027-01-31T08:00:00Z") from None
    if moment.tzinfo is None:
        raise CommandFailed(f"{text!r} has no time zone: write Z behind it for UTC")
    return int(moment.timestamp() * 1000)


def receive(
    path: Path,
    subscription: Subscription = None,
    count: Count = 1,
    wait_seconds: Annotated[
        int, typer.Option("--wait", min=0, max=20, metavar="SECONDS", help="How long to wait for the first.")
    ] = 0,
    at_most_once: Annotated[
        bool,
        typer.Option("--delete", help="Remove them before they are shown, as receive-and-delete does."),
    ] = False,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Of entities with sessions; without it the next one.")
    ] = None,
    dead_letter: DeadLetter = False,
    transfer_dead_letter: TransferDeadLetter = False,
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Take messages: each is locked, shown, and completed only then. Those of sessions need --delete."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    queue = sub_queue(dead_letter, transfer_dead_letter)
    named = {**where(namespace, path, subscription), "queue": queue}
    asked: dict[str, Any] = {"mode": "delete" if at_most_once else "peek-lock", "wait_seconds": wait_seconds}
    if session is not None:
        asked["session"] = session
    with _messages(path, queue, output_format) as show:
        while count > 0:
            reply = client.post("messaging/receive", {**named, **asked, "count": min(count, _PAGE_MAX)})
            page = reply["messages"]
            show(page)
            if not page:
                break
            if not at_most_once:
                _complete(client, named, [message["lock_token"] for message in page])
            count -= len(page)
            asked["wait_seconds"] = 0


def _complete(client: AdminClient, named: dict[str, Any], tokens: list[str]) -> None:
    settled = client.post("messaging/settle", {**named, "action": "complete", "lock_tokens": tokens})
    if settled["failed"]:
        first = settled["failed"][0]["reason"]
        raise CommandFailed(f"{len(settled['failed'])} messages were shown and are not removed: {first}")


def resubmit(
    path: Path,
    numbers: Annotated[
        list[int] | None,
        typer.Argument(metavar="NUMBER…", help="Sequence numbers of dead letters.", show_default=False),
    ] = None,
    subscription: Subscription = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters that are there now.")] = False,
    transfer_dead_letter: TransferDeadLetter = False,
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Send dead letters to their entity again, without the reasons; each is removed when its copy is stored."""
    from asterism.cli.client import AdminClient
    from asterism.cli.messaging_texts import counted
    from asterism.cli.progress import counting_bars

    if bool(numbers) == everything:
        raise CommandFailed("name the sequence numbers of dead letters, or say --all")
    client = AdminClient(endpoint, key, insecure=insecure)
    queue = "transfer-dead-letter" if transfer_dead_letter else "dead-letter"
    named = {**where(namespace, path, subscription), "queue": queue}
    done = 0
    missing: list[int] = []
    with counting_bars() as progress:
        total = len(numbers or ()) or _left(client, named)
        bar = progress.add_task(f"dead letters of {path}".replace("[", "\\["), total=total)
        # Those that come back as dead letters meanwhile are left alone: the loop ends.
        while done + len(missing) < total:
            place = done + len(missing)
            chosen = {"sequence_numbers": numbers[place : place + _RESUBMIT_MAX]} if numbers else {}
            asked = {**named, **chosen, "count": min(_RESUBMIT_MAX, total - place)}
            reply = client.post("messaging/resubmit", asked)
            done += reply["resubmitted"]
            missing += reply["missing"]
            progress.update(bar, completed=done)
            if not reply["resubmitted"] and not reply["missing"]:
                break
    if output_format is Format.JSON:
        typer.echo(json.dumps({"resubmitted": done, "missing": missing}))
    else:
        typer.echo(f"{counted(done, 'dead letter')} of {path} sent again.")
    if missing:
        listed = ", ".join(map(str, missing[:20]))
        raise CommandFailed(f"{counted(len(missing), 'number')} of no free dead letter: {listed}")


def _left(client: AdminClient, named: dict[str, Any]) -> int:
    """Return the number of messages in a queue or sub-queue; 0 if it is not known."""
    counts = client.get("messaging/entity", **named)["counts"] or {}
    return sum(counts.get(name, 0) for name in _COUNTED[named["queue"]])


def purge(
    path: Path,
    subscription: Subscription = None,
    dead_letter: DeadLetter = False,
    transfer_dead_letter: TransferDeadLetter = False,
    namespace: Namespace = DEFAULT_NAMESPACE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Remove all messages of a queue or subscription, or of its dead letter queue."""
    from asterism.cli.client import AdminClient
    from asterism.cli.messaging_texts import counted
    from asterism.cli.progress import counting_bars

    client = AdminClient(endpoint, key, insecure=insecure)
    queue = sub_queue(dead_letter, transfer_dead_letter)
    named = {**where(namespace, path, subscription), "queue": queue}
    removed = 0
    with counting_bars() as progress:
        bar = progress.add_task(f"messages of {path}".replace("[", "\\["), total=_left(client, named))
        while True:
            reply = client.post("messaging/purge", named)
            removed += reply["removed"]
            progress.update(bar, completed=removed, total=max(removed + reply["left"], 1))
            if reply["is_done"]:
                break
    typer.echo(f"{counted(removed, 'message')} removed from {path}.")
