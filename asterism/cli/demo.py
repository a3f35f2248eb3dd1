"""`asterism demo`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from asterism.cli.client import AdminClient
    from asterism.cli.data_client import DataClient
    from asterism.cli.demo_load import Load

DEMO_EXAMPLES = """[bold]Examples[/bold]

A bad and a good partition key side by side, for a minute:\n
  asterism demo

For longer, and more of it:\n
  asterism demo --seconds 300 --rate 60

Remove the database `asterism-demo`:\n
  asterism demo --remove"""

SECONDS_MAX = 3600
RATE_MAX = 200
# About 230 RU/s: more than twice the share of a partition, little more than half of what a container has.
RATE_DEFAULT = 50

Seconds = Annotated[int, typer.Option(min=1, max=SECONDS_MAX, help="How long to drive the load.")]
Rate = Annotated[int, typer.Option(min=1, max=RATE_MAX, help="Operations per second for each container.")]
Seed = Annotated[int, typer.Option(help="Another number makes other readings.")]
Remove = Annotated[bool, typer.Option("--remove", help="Remove the containers of the demonstration, and nothing else.")]
PageUrl = Annotated[
    str | None,
    typer.Option("--portal", metavar="URL", help="Address of the web page, if not the one that the server knows."),
]


def demo(
    seconds: Seconds = 60,
    rate: Rate = RATE_DEFAULT,
    seed: Seed = 1,
    remove: Remove = False,
    page_url: PageUrl = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show a bad and a good partition key: the same telemetry in two containers, by date and by device.

    Both have 400 RU/s and four partitions. By date, all of a day's load is on one of them, which throttles while the
    others idle; by device, all four share it.
    """
    from asterism.cli.client import AdminClient
    from asterism.cli.data_client import DataClient

    def connect() -> DataClient:
        return DataClient(endpoint, key, insecure=insecure)

    if remove:
        _remove(connect())
        return
    admin = AdminClient(endpoint, key, insecure=insecure)
    facts = admin.get("server")
    address = compare_address(page_url or facts["web_page"], facts["account"])
    _prepare(admin, connect())
    typer.echo(_where_to_look(address), err=True)
    if not facts["throttles"]:
        typer.echo("The server runs with --no-throttle: the loads differ, but no request is throttled.", err=True)
    results = _drive(admin, connect, seconds=seconds, rate=rate, seed=seed)
    _report(results, address, output_format)


def compare_address(page_url: str | None, account: str) -> str | None:
    """Return the address of the page with both containers side by side; None if the server has no pages."""
    from urllib.parse import quote

    from asterism.cli.demo_setup import BY_DATE, BY_DEVICE

    if page_url is None:
        return None
    left, right = (quote(f"{account}/{container.database}/{container.name}") for container in (BY_DATE, BY_DEVICE))
    return f"{page_url.rstrip('/')}/compare?left={left}&right={right}"


def _where_to_look(address: str | None) -> str:
    if address is None:
        return "The server has no web page; start it without --no-portal to see the containers side by side."
    return f"Watch both containers at {address}"


def _remove(client: DataClient) -> None:
    from asterism.cli.demo_setup import DATABASE, remove_database

    was_there = remove_database(client)
    typer.echo(f"The database {DATABASE} is removed." if was_there else f"There is no database {DATABASE}.")


def _prepare(admin: AdminClient, client: DataClient) -> None:
    from asterism.cli.demo_setup import CONTAINERS, PARTITIONS, create_containers, empty_reserves, split_containers
    from asterism.cli.progress import counting_bars

    create_containers(client)
    with counting_bars() as progress:
        bar = progress.add_task("Splitting the containers", total=len(CONTAINERS) * PARTITIONS)
        split_containers(admin, lambda partitions: progress.update(bar, completed=partitions))
    empty_reserves(client)
    client.close()


def _drive(
    admin: AdminClient, connect: Callable[[], DataClient], *, seconds: int, rate: int, seed: int
) -> list[dict[str, Any]]:
    from datetime import UTC, datetime

    from asterism.cli.demo_load import Load, busiest_share
    from asterism.cli.demo_setup import CONTAINERS, spent_by_range
    from asterism.cli.demo_telemetry import Telemetry
    from asterism.cli.progress import counting_bars

    before = {container: spent_by_range(admin, container) for container in CONTAINERS}
    load = Load(Telemetry(seed=seed, start=datetime.now(UTC)), CONTAINERS, connect=connect, rate=rate, seconds=seconds)
    try:
        with counting_bars() as progress:
            bar = progress.add_task("Seconds of load", total=seconds)
            load.run(lambda passed: progress.update(bar, completed=int(passed)))
    except KeyboardInterrupt:
        typer.echo("Stopped.", err=True)
        _report_interrupted(load)
        raise
    return [
        {
            "database": container.database,
            "container": container.name,
            "partition_key": f"/{container.key_property}",
            "accepted": load.tally(container).accepted,
            "throttled": load.tally(container).throttled,
            "request_units": round(load.tally(container).request_units, 2),
            "busiest_partition_share": busiest_share(before[container], spent_by_range(admin, container)),
        }
        for container in CONTAINERS
    ]


def _report_interrupted(load: Load) -> None:
    from asterism.cli.demo_setup import CONTAINERS

    for container in CONTAINERS:
        tally = load.tally(container)
        typer.echo(f"{container.name}: {tally.accepted:,} accepted, {tally.throttled:,} throttled so far.", err=True)


def _report(results: list[dict[str, Any]], address: str | None, output_format: Format) -> None:
    if output_format is Format.JSON:
        typer.echo(json.dumps({"containers": results, "page": address}, indent=2))
        return
    from asterism.cli.tables import print_table

    print_table(
        "The same telemetry, by two partition keys",
        ["container", "partition key", "accepted", "throttled", "RU", "busiest partition"],
        [
            [
                f"{result['database']}/{result['container']}",
                result["partition_key"],
                f"{result['accepted']:,}",
                f"{result['throttled']:,}",
                f"{result['request_units']:,.0f}",
                _share_text(result["busiest_partition_share"]),
            ]
            for result in results
        ],
    )
    if address is not None:
        typer.echo(f"Both side by side: {address}")
    typer.echo("Remove them with: asterism demo --remove")


def _share_text(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%} of the RU"
