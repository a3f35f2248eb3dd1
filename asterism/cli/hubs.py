"""`asterism hubs`."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import typer

from asterism.access.keys import DEVELOPMENT_ACCOUNT
from asterism.cli.failure import CommandFailed
from asterism.cli.messaging_options import (
    DEFAULT_NAMESPACE,
    ContentType,
    Namespace,
    PropertyTexts,
    Search,
    listed_entities,
    read_properties,
)
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat

HUBS_EXAMPLES: Final = """[bold]Examples[/bold]

A hub of four partitions that keeps events for three days, and three events:\n
  asterism hubs create telemetry --partitions 4 --retention 72\n
  asterism hubs send telemetry '{"t": 21}' '{"t": 22}' --partition-key sensor-7\n
  asterism hubs send telemetry - < readings.txt

Read them from the beginning; reading changes nothing:\n
  asterism hubs read telemetry

Partitions, and how far each consumer group is behind, by its checkpoints in a container of blobs:\n
  asterism hubs show telemetry\n
  asterism hubs show telemetry --checkpoints checkpoints"""

hubs = typer.Typer(no_args_is_help=True, help="Create, list, fill and read event hubs of a running server.")

Name = Annotated[str, typer.Argument(metavar="HUB", help="Name of the hub.", show_default=False)]
BlobAccount = Annotated[
    str, typer.Option("--account", metavar="NAME", help="The storage account of the container of checkpoints.")
]

# The server's limit for a request.
_PAGE_MAX: Final = 100


@hubs.command("list")
def list_(
    search: Search = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the hubs of a namespace."""
    from asterism.cli.client import AdminClient

    found = [*listed_entities(AdminClient(endpoint, key, insecure=insecure), namespace, kinds="hub", search=search)]
    if output_format is Format.JSON:
        typer.echo(json.dumps({"hubs": found}, indent=2, ensure_ascii=False))
    elif found:
        from asterism.cli.tables import print_table, readable_bytes

        rows = [
            [
                each["path"],
                str(each["partitions"]),
                "-" if each["bytes"] is None else readable_bytes(each["bytes"]),
                each["status"],
            ]
            for each in found
        ]
        print_table(f"Hubs of {namespace}", ["hub", "partitions", "bytes", "status"], rows)
    else:
        typer.echo("There are no such hubs. Create one with `asterism hubs create`.")


@hubs.command()
def create(
    name: Name,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, metavar="N", help="How many; the number cannot be changed later.")
    ] = 4,
    retention_hours: Annotated[
        int, typer.Option("--retention", min=1, metavar="HOURS", help="How long events are kept.")
    ] = 24,
    retention_mb: Annotated[
        int | None,
        typer.Option(
            "--retention-mb", min=1, metavar="MB", help="How much of a partition is kept; no limit if omitted."
        ),
    ] = None,
    groups: Annotated[
        list[str] | None, typer.Option("--group", metavar="NAME", help="A consumer group; may be repeated.")
    ] = None,
    namespace: Namespace = DEFAULT_NAMESPACE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Create a hub."""
    from asterism.cli.client import AdminClient

    body: dict[str, Any] = {
        "namespace": namespace,
        "entity": name,
        "kind": "hub",
        "partitions": partitions,
        "retention_hours": retention_hours,
        "groups": groups or [],
    }
    if retention_mb is not None:
        body["retention_mb"] = retention_mb
    AdminClient(endpoint, key, insecure=insecure).post("messaging/create", body)
    typer.echo(f"The hub {name} is created.")


@hubs.command()
def delete(
    name: Name,
    namespace: Namespace = DEFAULT_NAMESPACE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Delete a hub with its events."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    client.post("messaging/delete", {"namespace": namespace, "entity": name, "kind": "hub"})
    typer.echo(f"The hub {name} is deleted.")


@hubs.command()
def show(
    name: Name,
    checkpoints: Annotated[
        str | None,
        typer.Option(
            "--checkpoints", metavar="CONTAINER", help="The container of blobs that the consumers keep their places in."
        ),
    ] = None,
    account: BlobAccount = DEVELOPMENT_ACCOUNT,
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the partitions of a hub: positions, sizes, nodes; and the lag of its consumer groups."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    found = client.get("messaging/hub", namespace=namespace, hub=name)
    if checkpoints is not None:
        lag = client.get("messaging/lag", namespace=namespace, hub=name, account=account, container=checkpoints)
        found["lag"] = lag["groups"]
    if output_format is Format.JSON:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    _print_partitions(found)
    typer.echo(f"Consumer groups: {', '.join(group['name'] for group in found['groups'])}")
    for group in found.get("lag", ()):
        _print_lag(group)
    if checkpoints is not None and not found["lag"]:
        typer.echo(f"The container {checkpoints} has no checkpoints of this hub.")


def _print_partitions(found: dict[str, Any]) -> None:
    from asterism.cli.messaging_output import moment
    from asterism.cli.tables import print_table, readable_bytes

    rows = [
        [
            str(each["id"]),
            *(
                "-" if each[name] is None else f"{each[name]:,}"
                for name in ("begin_sequence", "last_sequence", "events")
            ),
            "-" if each["bytes"] is None else readable_bytes(each["bytes"]),
            moment(each["last_enqueued_ms"]),
            each["state"],
            each["node"],
            each["physical_partition"],
            ", ".join(f"{group}: {count}" for group, count in each["receivers"].items()) or "-",
        ]
        for each in found["partitions"]
    ]
    columns = [
        "partition",
        "first",
        "last",
        "events",
        "bytes",
        "last enqueued (UTC)",
        "state",
        "node",
        "physical",
        "receivers",
    ]
    print_table(f"Hub {found['path']}: {found['status']}", columns, rows)


def _print_lag(group: dict[str, Any]) -> None:
    from asterism.cli.messaging_output import moment, text_or_dash
    from asterism.cli.printable import printable
    from asterism.cli.tables import print_table

    rows = [
        [
            str(each["id"]),
            "-" if each["sequence"] is None else f"{each['sequence']:,}",
            "-" if each["lag"] is None else f"{each['lag']:,}",
            moment(each["stored_ms"]),
            text_or_dash(each["owner"]),
        ]
        for each in group["partitions"]
    ]
    # A title would be folded to the width of the table.
    typer.echo(
        f"Consumer group {printable(group['group'])} ({printable(group['host'])}): {group['lag']:,} events behind"
    )
    print_table("", ["partition", "checkpoint", "lag", "stored (UTC)", "owner"], rows)


@hubs.command()
def groups(
    name: Name,
    add: Annotated[str | None, typer.Option("--add", metavar="GROUP", help="Create a consumer group.")] = None,
    remove: Annotated[str | None, typer.Option("--remove", metavar="GROUP", help="Delete one.")] = None,
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the consumer groups of a hub, after creating or deleting one."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    named = {"namespace": namespace, "hub": name}
    if add is not None:
        client.post("messaging/groups", {**named, "group": add})
    if remove is not None:
        client.post("messaging/groups", {**named, "group": remove, "delete": True})
    found = client.get("messaging/hub", **named)["groups"]
    if output_format is Format.JSON:
        typer.echo(json.dumps({"groups": found}, indent=2, ensure_ascii=False))
        return
    from asterism.cli.messaging_output import moment
    from asterism.cli.tables import print_table

    rows = [[each["name"], moment(each["created_ms"])] for each in found]
    print_table(f"Consumer groups of {name}", ["group", "created (UTC)"], rows)


@hubs.command()
def send(
    name: Name,
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT…", help="An event each; - is an event for each line of the input.", show_default=False
        ),
    ],
    partition_key: Annotated[
        str | None,
        typer.Option("--partition-key", metavar="KEY", help="Events of a key are in one partition, in order."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="N", help="The partition itself.")
    ] = None,
    properties: PropertyTexts = None,
    content_type: ContentType = None,
    namespace: Namespace = DEFAULT_NAMESPACE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Send events to a hub; without a key or a partition, a batch of them to each partition in turn."""
    from asterism.cli.client import AdminClient
    from asterism.cli.messaging_texts import counted, read_texts
    from asterism.cli.progress import counting_bars

    if partition is not None and partition_key is not None:
        raise CommandFailed("give --partition-key or --partition: the key decides about the partition")
    bodies = read_texts(texts)
    shared = {"properties": read_properties(properties or ()), "content_type": content_type}
    named = {"namespace": namespace, "hub": name, "partition": partition, "partition_key": partition_key}
    client = AdminClient(endpoint, key, insecure=insecure)
    with counting_bars() as progress:
        bar = progress.add_task(f"events into {name}".replace("[", "\\["), total=len(bodies))
        for done in range(0, len(bodies), _PAGE_MAX):
            page = [{**shared, "body": body} for body in bodies[done : done + _PAGE_MAX]]
            try:
                client.post("messaging/events", {**named, "events": page})
            except CommandFailed as failure:
                if done == 0:
                    raise
                raise CommandFailed(f"{failure} ({counted(done, 'event')} sent before it)") from None
            progress.advance(bar, len(page))
    typer.echo(f"{counted(len(bodies), 'event')} sent to {name}.")


@hubs.command()
def read(
    name: Name,
    count: Annotated[
        int, typer.Option("--count", min=1, metavar="N", help="How many of each partition, if there are as many.")
    ] = 20,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="N", help="Only this partition.")
    ] = None,
    start: Annotated[
        int, typer.Option("--from", min=0, metavar="NUMBER", help="Begin at this sequence number of each partition.")
    ] = 0,
    namespace: Namespace = DEFAULT_NAMESPACE,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show events, partition by partition; reading moves no consumer group."""
    from asterism.cli.client import AdminClient
    from asterism.cli.messaging_output import EVENT_COLUMNS, event_row, shown_pages

    client = AdminClient(endpoint, key, insecure=insecure)
    named = {"namespace": namespace, "hub": name}
    partitions = (
        [partition] if partition is not None else range(client.get("messaging/hub", **named)["partition_count"])
    )
    with shown_pages(f"Events of {name}", "events", event_row, EVENT_COLUMNS, output_format) as show_page:
        for number in partitions:
            left, following = count, start
            while left > 0:
                asked = {"partition": str(number), "from": str(following), "count": str(min(left, _PAGE_MAX))}
                page = client.get("messaging/events", **named, **asked)
                show_page(page["events"])
                left -= len(page["events"])
                if page["next"] is None:
                    break
                following = page["next"]
