"""`asterism bus`."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import typer

from asterism.cli.bus_messages import (
    PEEK_EXAMPLES,
    RESUBMIT_EXAMPLES,
    SEND_EXAMPLES,
    peek,
    purge,
    receive,
    resubmit,
    send,
)
from asterism.cli.bus_options import Path, Subscription, where
from asterism.cli.failure import CommandFailed
from asterism.cli.messaging_options import DEFAULT_NAMESPACE, Namespace, Search, listed_entities
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat

BUS_EXAMPLES: Final = """[bold]Examples[/bold]

A queue, two messages, and a look at them that changes nothing:\n
  asterism bus create orders\n
  asterism bus send orders '{"id": 1}' '{"id": 2}'\n
  asterism bus peek orders

A topic with a subscription that has a filter:\n
  asterism bus create events --topic\n
  asterism bus create events/subscriptions/eu --filter "region = 'eu'"\n
  asterism bus send events '{"id": 3}' --property region=eu\n
  asterism bus receive events/subscriptions/eu

Dead letters with their reasons; then all of them are sent again:\n
  asterism bus peek orders --dead-letter\n
  asterism bus resubmit orders --all

A message for each line of a file:\n
  asterism bus send orders - < orders.txt"""

CREATE_EXAMPLES: Final = """[bold]Examples[/bold]

  asterism bus create orders --partitioned --duplicates 600\n
  asterism bus create sagas --sessions --lock 120\n
  asterism bus create events --topic\n
  asterism bus create events/subscriptions/eu --filter "region = 'eu'" --forward-to orders"""

bus = typer.Typer(
    no_args_is_help=True, help="List, fill, read and repair queues, topics and subscriptions of a running server."
)

_SECONDS: Final = "SECONDS"


@bus.command("list")
def list_(
    search: Search = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the queues, topics and subscriptions of a namespace, with the numbers of their messages."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    found = [*listed_entities(client, namespace, kinds="queue,topic,subscription", search=search)]
    if output_format is Format.JSON:
        typer.echo(json.dumps({"entities": found}, indent=2, ensure_ascii=False))
    elif found:
        from asterism.cli.tables import print_table

        columns = ["name", "kind", "active", "scheduled", "deferred", "dead letters", "bytes", "fragments", "status"]
        print_table(f"Entities of {namespace}", columns, [_entity_row(entity) for entity in found])
    else:
        typer.echo("There are no such queues or topics. Create one with `asterism bus create`.")


def _entity_row(entity: dict[str, Any]) -> list[str]:
    from asterism.cli.tables import readable_bytes

    counts = entity["counts"]
    figures = ["-"] * 4
    if counts is not None and entity["kind"] != "topic":
        figures = [f"{counts[name]:,}" for name in ("active", "scheduled", "deferred", "dead_letters")]
    elif counts is not None:
        # The messages of a topic are in its subscriptions, but for those that are not due yet.
        figures = ["-", f"{counts['scheduled']:,}", "-", "-"]
    return [
        entity["path"],
        entity["kind"],
        *figures,
        "-" if counts is None else readable_bytes(counts["bytes"]),
        str(entity["partitions"]),
        entity["status"],
    ]


@bus.command(epilog=CREATE_EXAMPLES)
def create(
    path: Path,
    subscription: Subscription = None,
    is_topic: Annotated[bool, typer.Option("--topic", help="A topic, in place of a queue.")] = False,
    has_sessions: Annotated[
        bool, typer.Option("--sessions", help="Messages have sessions, each read in order.")
    ] = False,
    is_partitioned: Annotated[
        bool,
        typer.Option("--partitioned", help="Fragments in several physical partitions, which may be on other nodes."),
    ] = False,
    duplicates_seconds: Annotated[
        int | None,
        typer.Option("--duplicates", min=20, metavar=_SECONDS, help="Drop repeated message ids for so long."),
    ] = None,
    lock_seconds: Annotated[
        int | None, typer.Option("--lock", min=5, max=300, metavar=_SECONDS, help="How long a receiver may work.")
    ] = None,
    ttl_seconds: Annotated[
        int | None, typer.Option("--ttl", min=1, metavar=_SECONDS, help="When messages expire.")
    ] = None,
    max_delivery_count: Annotated[
        int | None,
        typer.Option("--max-delivery", min=1, max=2000, metavar="N", help="Then a message is a dead letter."),
    ] = None,
    dead_letters_expired: Annotated[
        bool, typer.Option("--dead-letter-expired", help="Messages that expire become dead letters.")
    ] = False,
    forward_to: Annotated[
        str | None, typer.Option("--forward-to", metavar="NAME", help="Move everything to that queue or topic.")
    ] = None,
    filter_sql: Annotated[
        str | None, typer.Option("--filter", metavar="SQL", help="Of a subscription: the messages that it takes.")
    ] = None,
    namespace: Namespace = DEFAULT_NAMESPACE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Create a queue, a topic or a subscription."""
    from asterism.cli.client import AdminClient

    body: dict[str, Any] = {
        **where(namespace, path, subscription),
        "kind": "topic" if is_topic else None,
        "requires_session": has_sessions or None,
        "is_partitioned": is_partitioned or None,
        "duplicate_window_seconds": duplicates_seconds,
        "lock_seconds": lock_seconds,
        "ttl_seconds": ttl_seconds,
        "max_delivery_count": max_delivery_count,
        "dead_letters_expired": dead_letters_expired or None,
        "forward_to": forward_to,
        "filter": filter_sql,
    }
    given = {name: value for name, value in body.items() if value is not None}
    created = AdminClient(endpoint, key, insecure=insecure).post("messaging/create", given)
    typer.echo(f"The {created['kind']} {created['path']} is created.")


@bus.command()
def delete(
    path: Path,
    subscription: Subscription = None,
    namespace: Namespace = DEFAULT_NAMESPACE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Delete a queue, a topic or a subscription with its messages."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    deleted = client.post("messaging/delete", where(namespace, path, subscription))
    typer.echo(f"The {deleted['kind']} {deleted['path']} is deleted.")


@bus.command()
def show(
    path: Path,
    subscription: Subscription = None,
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show an entity: settings, counts, fragments with their nodes and state, subscriptions with their rules."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    found = client.get("messaging/entity", **where(namespace, path, subscription))
    if output_format is Format.JSON:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    from asterism.cli.tables import print_table

    settings = {name: value for name, value in found["settings"].items() if value not in (None, False, "", [], {})}
    print_table(
        f"{found['kind']} {found['path']}: {found['status']}",
        ["setting", "value"],
        [[name.replace("_", " "), _setting_text(value)] for name, value in settings.items()],
    )
    _print_fragments(found)
    print_table(
        "Subscriptions",
        ["subscription", "active", "scheduled", "deferred", "dead letters", "status", "rules"],
        [_subscription_row(each) for each in found["subscriptions"]],
    )
    print_table("Rules", ["rule", "filter", "action"], [_rule_row(rule) for rule in found["rules"]])


def _setting_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _rule_row(rule: dict[str, Any]) -> list[str]:
    return [rule["name"], rule["filter"], rule["action"] or "-"]


def _subscription_row(each: dict[str, Any]) -> list[str]:
    counts = each["counts"]
    figures = ["-"] * 4
    if counts is not None:
        figures = [f"{counts[name]:,}" for name in ("active", "scheduled", "deferred", "dead_letters")]
    return [each["name"], *figures, each["status"], ", ".join(each["rules"])]


def _print_fragments(found: dict[str, Any]) -> None:
    from asterism.cli.tables import print_table, readable_bytes

    rows = [
        [
            str(each["id"]),
            each["state"],
            each["node"],
            each["physical_partition"],
            "-" if each["messages"] is None else f"{each['messages']:,}",
            "-" if each["bytes"] is None else readable_bytes(each["bytes"]),
        ]
        for each in found["fragments"]
    ]
    columns = ["fragment", "state", "node", "partition", "messages", "bytes"]
    print_table("Fragments", columns, rows)


bus.command(epilog=PEEK_EXAMPLES)(peek)
bus.command(epilog=SEND_EXAMPLES)(send)
bus.command()(receive)
bus.command(epilog=RESUBMIT_EXAMPLES)(resubmit)
bus.command()(purge)


@bus.command()
def fragment(
    path: Path,
    number: Annotated[
        int | None, typer.Argument(metavar="FRAGMENT", min=0, help="Its number; without it all are shown.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Argument(metavar="close|open", help="Closed: senders and receivers go around it.", show_default=False),
    ] = None,
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the fragments of a queue or topic; or close one, as for work on its node, or open it again."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    named = where(namespace, path, None)
    if number is None:
        found = client.get("messaging/entity", **named)
    elif state in ("close", "open"):
        found = client.post("messaging/fragment", {**named, "fragment": number, "is_closed": state == "close"})
    else:
        raise CommandFailed("say `close` or `open` behind the number of the fragment")
    if output_format is Format.JSON:
        typer.echo(json.dumps({"fragments": found["fragments"]}, indent=2, ensure_ascii=False))
    else:
        _print_fragments(found)
