"""`asterism export`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli import options

if TYPE_CHECKING:
    from asterism.cli.client import AdminClient
    from asterism.cli.data_client import DataClient
    from asterism.cli.dump_file import CollectionLine, ContainerLine
    from asterism.cli.mongo_server import MongoServer

# The server's maximum of items in a page.
PAGE_ITEMS = 1000

EXPORT_EXAMPLES = """[bold]Examples[/bold]

One container with its settings, scripts and items:\n
  asterism export shop orders --to orders.jsonl

All containers of a database:\n
  asterism export shop --to shop.jsonl

All collections of a MongoDB database, with indexes, shard keys and documents as stored:\n
  asterism export mongo:shop --to shop.jsonl"""

OptionalContainer = Annotated[
    str | None,
    typer.Argument(
        metavar="CONTAINER", help="Name of the container or collection; all if omitted.", show_default=False
    ),
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
    mongodb: options.MongoAddress = None,
    output_format: options.OutputFormat = options.Format.TABLE,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Write containers or MongoDB collections to a file of JSON lines: settings, throughput, scripts, indexes, and one
    item or document per line."""
    from asterism.cli.client import AdminClient
    from asterism.cli.data_client import DataClient
    from asterism.cli.failure import CommandFailed
    from asterism.cli.mongo_server import MongoServer
    from asterism.cli.transfer import report

    client, admin = DataClient(endpoint, key, insecure=insecure), AdminClient(endpoint, key, insecure=insecure)
    collections = _collections(admin, database, container)
    exports: Iterator[Exported]
    if collections is not None:
        exports = _export_collections(MongoServer(admin, endpoint, key, mongodb, insecure=insecure), collections)
    else:
        exports = _export_containers(client, admin, database, container, keep_system=system_properties)
    # The file gets its name only when it is complete.
    unfinished = to.with_name(f"{to.name}.part")
    exported = []
    try:
        with unfinished.open("wb") as file:
            for name, line, write_all in exports:
                file.write(line)
                exported.append({"database": database, "container": name, "items": write_all(file.write)})
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(to)
    except OSError as error:
        raise CommandFailed(f"{to} cannot be written: {error.strerror}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    report("exported", exported, output_format)


# A name, its first line, and a function that writes its items and returns their number.
Exported = tuple[str, bytes, Callable[[Callable[[bytes], object]], int]]


def _collections(admin: AdminClient, database: str, container: str | None) -> list[dict[str, Any]] | None:
    """Return the collections of MongoDB to export; None if the names are not those of any."""
    from asterism.cli.client import Refused

    try:
        named = {} if container is None else {"container": container}
        found: list[dict[str, Any]] = admin.get("collections", database=database, **named)["collections"]
    except Refused as refused:
        if refused.reply.get("code") != "NotFound":
            raise
        return None
    return found


def _export_containers(
    client: DataClient, admin: AdminClient, database: str, container: str | None, *, keep_system: bool
) -> Iterator[Exported]:
    from asterism.cli.transfer import item_bar

    for line in container_lines(client, database, container):

        def write_all(write: Callable[[bytes], object], line: ContainerLine = line) -> int:
            with item_bar(f"{database}/{line.name}", _item_count(admin, database, line.name)) as advance:
                return _write_items(client, line, write, advance, keep_system=keep_system)

        yield line.name, line.to_line(), write_all


def _export_collections(server: MongoServer, collections: list[dict[str, Any]]) -> Iterator[Exported]:
    from asterism.cli.export_documents import collection_lines, write_documents
    from asterism.cli.transfer import item_bar

    for line, count in collection_lines(server, collections):

        def write_all(write: Callable[[bytes], object], line: CollectionLine = line, count: int | None = count) -> int:
            with item_bar(f"{line.database}/{line.name}", count) as advance:
                return write_documents(server, line, write, advance)

        yield line.name, line.to_line(), write_all
    server.close()


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
