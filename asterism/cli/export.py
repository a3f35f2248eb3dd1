"""`asterism export`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli import options

if TYPE_CHECKING:
    from asterism.cli.data_client import DataClient
    from asterism.cli.dump_file import ContainerLine

# The server's maximum of items in a page.
PAGE_ITEMS = 1000

EXPORT_EXAMPLES = """[bold]Examples[/bold]

One container with its settings, scripts and items:\n
  asterism export shop orders --to orders.jsonl

All containers of a database:\n
  asterism export shop --to shop.jsonl"""

OptionalContainer = Annotated[
    str | None,
    typer.Argument(metavar="CONTAINER", help="Name of the container; all if omitted.", show_default=False),
]
OutputFile = Annotated[Path, typer.Option("--to", metavar="FILE", help="The file to write.", show_default=False)]
SystemProperties = Annotated[
    bool, typer.Option("--system-properties", help="Keep _rid, _self, _etag, _attachments and _ts of the items.")
]


def export(
    database: options.Database,
    to: OutputFile,
    container: OptionalContainer = None,
    system_properties: SystemProperties = False,
    output_format: options.OutputFormat = options.Format.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Write containers to a file of JSON lines: settings, throughput, scripts, and one item per line."""
    from asterism.cli.client import AdminClient
    from asterism.cli.data_client import DataClient
    from asterism.cli.failure import CommandFailed
    from asterism.cli.transfer import item_bar, report

    client, admin = DataClient(endpoint, key, insecure=insecure), AdminClient(endpoint, key, insecure=insecure)
    containers = container_lines(client, database, container)
    # The file gets its name only when it is complete.
    unfinished = to.with_name(f"{to.name}.part")
    exported = []
    try:
        with unfinished.open("wb") as file:
            for line in containers:
                file.write(line.to_line())
                with item_bar(f"{database}/{line.name}", _item_count(admin, database, line.name)) as advance:
                    count = _write_items(client, line, file.write, advance, keep_system=system_properties)
                exported.append({"database": database, "container": line.name, "items": count})
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(to)
    except OSError as error:
        raise CommandFailed(f"{to} cannot be written: {error.strerror}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    report("exported", exported, output_format)


def container_lines(client: DataClient, database: str, container: str | None) -> list[ContainerLine]:
    """Return the containers to export, without their items."""
    link = f"dbs/{database}"
    if container is None:
        pages = client.feed(f"{link}/colls", "DocumentCollections", type_="colls", link=link, page_items=PAGE_ITEMS)
        found = [resource for page in pages for resource in page]
    else:
        path = f"{link}/colls/{container}"
        found = [client.need("GET", path, type_="colls", link=path).body]
    offers = {
        offer["offerResourceId"]: offer["content"]
        for page in client.feed("offers", "Offers", type_="offers", link="", page_items=PAGE_ITEMS)
        for offer in page
    }
    shared = _throughput(offers.get(client.need("GET", link, type_="dbs", link=link).body["_rid"]))
    return [
        _container_line(client, database, resource, _throughput(offers.get(resource["_rid"])), shared)
        for resource in found
    ]


def _container_line(
    client: DataClient,
    database: str,
    resource: dict[str, Any],
    throughput: dict[str, Any] | None,
    shared: dict[str, Any] | None,
) -> ContainerLine:
    from asterism.cli.dump_file import SCRIPT_SEGMENTS, ContainerLine, without_system_properties

    link = f"dbs/{database}/colls/{resource['id']}"
    scripts = {
        segment: [
            without_system_properties(script)
            for page in client.feed(f"{link}/{segment}", envelope, type_=segment, link=link, page_items=PAGE_ITEMS)
            for script in page
        ]
        for segment, envelope in SCRIPT_SEGMENTS.items()
    }
    settings = {name: value for name, value in resource.items() if not name.startswith("_")}
    return ContainerLine(database, settings, throughput, scripts, shared)


def _throughput(offer: dict[str, Any] | None) -> dict[str, Any] | None:
    if offer is None:
        return None
    autoscale = offer.get("offerAutopilotSettings")
    return {"manual": offer["offerThroughput"]} if autoscale is None else {"autoscale": autoscale}


def _item_count(admin: Any, database: str, container: str) -> int:
    reply = admin.get("partitions", database=database, container=container, details="false")
    return sum(partition["items"] or 0 for partition in reply["partitions"])


def _write_items(
    client: DataClient,
    line: ContainerLine,
    write: Callable[[bytes], object],
    advance: Callable[[int], None],
    *,
    keep_system: bool,
) -> int:
    from asterism.cli.dump_file import EXCLUDE, INCLUDE, ItemLine, without_system_properties

    count, link = 0, f"dbs/{line.database}/colls/{line.name}"
    policy = line.settings.get("indexingPolicy", {})
    is_automatic = policy.get("automatic", True) or policy.get("indexingMode") == "none"
    headers = {"x-ms-max-item-count": str(PAGE_ITEMS), "x-asterism-index-marks": "true"}
    for answer in client.pages(f"{link}/docs", type_="docs", link=link, headers=headers):
        page = answer.body["Documents"]
        unindexed = set(answer.headers.get("x-asterism-unindexed-items", "").split(","))
        for index, item in enumerate(page):
            is_indexed = str(index) not in unindexed
            indexing = None if is_indexed == is_automatic else INCLUDE if is_indexed else EXCLUDE
            write(ItemLine(item if keep_system else without_system_properties(item), indexing).to_line())
        count += len(page)
        advance(len(page))
    return count
