"""Batches of creates, and runs of a stored procedure that creates the same items."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from benchmarks.load import run_all
from benchmarks.wire import Caller, UnexpectedAnswer, request_head, signed_headers, signed_request
from benchmarks.workload import ITEM_BYTES, container_link, make_item

BATCH_ITEMS = 100
FILL_CONNECTIONS = 8

PROCEDURE = "createAll"
PROCEDURE_BODY = """function (items) {
    var response = getContext().getResponse(), collection = getContext().getCollection(), created = 0;
    function onCreated(error) {
        if (error) throw error;
        created += 1;
        if (created === items.length) response.setBody(created);
    }
    for (var place = 0; place < items.length; place += 1) {
        if (!collection.createDocument(collection.getSelfLink(), items[place], onCreated)) throw new Error("refused");
    }
}"""

_WIDTH = 8


def _bunch_name(prefix: str, number: int) -> str:
    return f"{prefix}{number:0{_WIDTH}d}"


def _bunch(name: str, item_bytes: int) -> list[dict[str, Any]]:
    """Items of one partition key. `n` differs between them."""
    items = []
    for place in range(BATCH_ITEMS):
        item = make_item(f"{name}-{place:02d}", item_bytes=item_bytes) | {"pk": f"p-{name}", "n": place}
        excess = len(json.dumps(item, separators=(",", ":"))) - item_bytes
        items.append(item | {"text": item["text"][excess:]})
    return items


def _requests(path: str, headers: dict[str, str], body: Any, prefix: str, count: int | None) -> Iterator[bytes]:
    """The request made for bunch 0, with the name of each bunch in the place of that one's."""
    form = _bunch_name(prefix, 0)
    content = json.dumps(body, separators=(",", ":")).encode()
    signed = headers | {"x-ms-documentdb-partitionkey": json.dumps([f"p-{form}"])}
    parts = (request_head("POST", path, signed, body_length=len(content)) + content).split(form.encode())
    for number in itertools.count() if count is None else range(count):
        yield _bunch_name(prefix, number).encode().join(parts)


def batches(
    container: str, *, prefix: str, count: int | None = None, item_bytes: int = ITEM_BYTES, is_brief: bool = False
) -> Iterator[bytes]:
    link = container_link(container)
    headers = signed_headers("POST", resource_type="docs", link=link)
    headers |= {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
    if is_brief:
        headers["prefer"] = "return=minimal"
    items = _bunch(_bunch_name(prefix, 0), item_bytes)
    body = [{"operationType": "Create", "resourceBody": item} for item in items]
    return _requests(f"/{link}/docs", headers, body, prefix, count)


def procedure_runs(container: str, *, prefix: str, count: int | None = None) -> Iterator[bytes]:
    """Runs that are given their items as the one parameter, so that as much travels as with a batch."""
    link = f"{container_link(container)}/sprocs/{PROCEDURE}"
    headers = signed_headers("POST", resource_type="sprocs", link=link)
    body = [_bunch(_bunch_name(prefix, 0), ITEM_BYTES)]
    return _requests(f"/{link}", headers, body, prefix, count)


async def create_script(caller: Caller, container: str, *, segment: str, name: str, body: str) -> None:
    link = container_link(container)
    script = {"id": name, "body": body}
    await caller.expect(
        signed_request("POST", f"/{link}/{segment}", resource_type=segment, link=link, body=script), 201
    )


async def fill_in_batches(
    port: int, container: str, item_count: int, *, prefix: str = "f", item_bytes: int = ITEM_BYTES
) -> None:
    requests = batches(container, prefix=prefix, count=item_count // BATCH_ITEMS, item_bytes=item_bytes, is_brief=True)
    filled = await run_all(port, requests, connections=FILL_CONNECTIONS)
    # 207 is the status of a batch of which nothing was done.
    if filled.error_count or set(filled.statuses) != {200}:
        raise UnexpectedAnswer(f"items could not be created: {dict(filled.statuses)}")
