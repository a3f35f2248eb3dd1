"""Checks of a client for Python against a server. Run by the interpreter of the client's own environment:

    python check_python.py blocking|asyncio ENDPOINT KEY

prints one line of JSON: the client's version, and for each check "ok" or what went wrong. Old clients are run by it, so
it uses what azure-cosmos 4.3.1 has, and nothing else.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import time
import uuid
import warnings
from importlib.metadata import version
from typing import Any

from azure.cosmos import CosmosClient, PartitionKey, exceptions
from azure.cosmos import aio as cosmos_aio

VERSION = version("azure-cosmos")
SPLIT_SECONDS_MAX = 120.0
ITEMS = 40
KEYS = 10
# More than one partition can serve, so that the container begins with two.
RU_OF_TWO_PARTITIONS = 12_000
RU_OF_ONE_PARTITION = 400


class Same:
    """The client's calls, with one face for the blocking client and the one for asyncio."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @staticmethod
    async def done(call: Any) -> Any:
        return await call if inspect.isawaitable(call) else call

    @staticmethod
    async def all(results: Any) -> list[Any]:
        if hasattr(results, "__aiter__"):
            return [result async for result in results]
        return list(results)

    @staticmethod
    async def next_page(pages: Any) -> list[Any] | None:
        try:
            if hasattr(pages, "__anext__"):
                page = await pages.__anext__()
                return [item async for item in page]
            return list(next(pages))
        except (StopIteration, StopAsyncIteration):
            return None

    def query(self, container: Any, text: str, **options: Any) -> Any:
        # The client for asyncio crosses partitions unless a key is given, and knows no such option.
        if isinstance(self.client, CosmosClient):
            options["enable_cross_partition_query"] = True
        return container.query_items(text, **options)


def expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{found!r} is not {wanted!r}")


async def container_with(same: Same, database: Any, throughput: int) -> Any:
    name = f"container-{uuid.uuid4()}"
    key = PartitionKey(path="/pk")
    container = await same.done(database.create_container(name, key, offer_throughput=throughput))
    for number in range(ITEMS):
        item = {"id": f"item {number:02d}", "pk": f"key {number % KEYS}", "n": number, "g": 1 + number % 4}
        await same.done(container.create_item(item))
    return container


async def check_items(same: Same, database: Any) -> None:
    container = await same.done(database.create_container("items", PartitionKey(path="/pk")))
    created = await same.done(container.create_item({"id": "a", "pk": "x", "name": "Ä ☃"}))
    read = await same.done(container.read_item("a", partition_key="x"))
    expect((read["name"], read["_etag"]), ("Ä ☃", created["_etag"]))
    expect((await same.done(container.upsert_item({"id": "a", "pk": "x", "n": 1})))["n"], 1)
    expect((await same.done(container.replace_item("a", {"id": "a", "pk": "x", "n": 2})))["n"], 2)
    await refused(same, container.create_item, {"id": "a", "pk": "x"}, error=exceptions.CosmosResourceExistsError)
    expect(len(await same.all(container.read_all_items())), 1)
    await same.done(container.delete_item("a", partition_key="x"))
    await refused(same, container.read_item, "a", "x", error=exceptions.CosmosResourceNotFoundError)


async def refused(same: Same, call: Any, *arguments: Any, error: Any) -> None:
    try:
        await same.done(call(*arguments))
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


async def check_ids(same: Same, database: Any) -> None:
    container = await same.done(database.create_container("ids", PartitionKey(path="/pk")))
    refused_by_client = []
    for item_id in ("a b", "a+b", "100%", "ünï", "a;b=c&d", "(1)", "a?b", "tab\tbed", "line\nfeed", "Test "):
        try:
            created = await same.done(container.create_item({"id": item_id, "pk": "x"}))
        except ValueError:
            # The client refuses such an id itself, before it sends.
            refused_by_client.append(item_id)
            continue
        read = await same.done(container.read_item(item_id, partition_key="x"))
        expect(read["_rid"], created["_rid"])
        await same.done(container.replace_item(item_id, {"id": item_id, "pk": "x", "n": 1}))
        await same.done(container.delete_item(item_id, partition_key="x"))
    expect(set(refused_by_client) <= {"a?b", "tab\tbed", "line\nfeed", "Test "}, True)


async def check_filter(same: Same, container: Any) -> None:
    found = await same.all(same.query(container, "SELECT * FROM c WHERE c.n > 29"))
    expect(sorted(item["n"] for item in found), list(range(30, 40)))
    within = container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n", partition_key="key 3")
    expect(await same.all(within), [3, 13, 23, 33])


async def check_order(same: Same, container: Any) -> None:
    for direction, wanted in (("ASC", list(range(40))), ("DESC", list(range(39, -1, -1)))):
        found = await same.all(same.query(container, f"SELECT c.n FROM c ORDER BY c.n {direction}", max_item_count=6))
        expect([item["n"] for item in found], wanted)


async def check_aggregates(same: Same, container: Any) -> None:
    for text, wanted in (("COUNT(1)", 40), ("SUM(c.n)", 780), ("MIN(c.n)", 0), ("MAX(c.n)", 39), ("AVG(c.n)", 19.5)):
        expect(await same.all(same.query(container, f"SELECT VALUE {text} FROM c")), [wanted])


async def check_distinct(same: Same, container: Any) -> None:
    found = await same.all(same.query(container, "SELECT DISTINCT VALUE c.g FROM c"))
    expect(sorted(found), [1, 2, 3, 4])
    ordered = await same.all(same.query(container, "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g"))
    expect(ordered, [1, 2, 3, 4])


async def check_top(same: Same, container: Any) -> None:
    expect(len(await same.all(same.query(container, "SELECT TOP 7 * FROM c"))), 7)
    found = await same.all(same.query(container, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"))
    expect(found, [39, 38, 37])


async def check_offset(same: Same, container: Any) -> None:
    found = await same.all(same.query(container, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 4"))
    expect(found, [5, 6, 7, 8])
    expect(len(await same.all(same.query(container, "SELECT * FROM c OFFSET 38 LIMIT 10"))), 2)


async def check_pages(same: Same, container: Any) -> None:
    pages = same.query(container, "SELECT * FROM c", max_item_count=7).by_page()
    seen: list[int] = []
    page = await same.next_page(pages)
    while page is not None:
        expect(len(page) <= 7, True)
        seen += [item["n"] for item in page]
        page = await same.next_page(pages)
    expect(sorted(seen), list(range(ITEMS)))
    for text, size, wanted in (
        ("SELECT * FROM c WHERE c.pk = 'key 3'", 1, [3, 13, 23, 33]),
        ("SELECT * FROM c", 7, list(range(ITEMS))),
    ):
        try:
            expect(await resumed(same, container, text, size), wanted)
        except ValueError as problem:
            # Clients of 4.3 refuse to begin with a token before they send; the one for asyncio does so even in a key.
            if "not supported for cross-partition" not in str(problem):
                raise


async def resumed(same: Same, container: Any, text: str, size: int) -> list[int]:
    """Read page by page, each with a query of its own that begins with the token of the page before."""
    options = {"partition_key": "key 3"} if "key 3" in text else {}
    seen: list[int] = []
    token = None
    for _ in range(ITEMS + 5):
        if options:
            pages = container.query_items(text, max_item_count=size, **options).by_page(token)
        else:
            pages = same.query(container, text, max_item_count=size).by_page(token)
        page = await same.next_page(pages)
        seen += [item["n"] for item in page or []]
        token = pages.continuation_token
        if not token:
            break
    return sorted(seen)


async def check_feed(same: Same, container: Any) -> None:
    # The client for asyncio of before 4.7 reads no second page (see the changes of 4.7.0), from any server.
    ends_early = not isinstance(same.client, CosmosClient) and tuple(map(int, VERSION.split(".")[:2])) < (4, 7)
    options = {} if ends_early else {"max_item_count": 9}
    feed = container.query_items_change_feed(is_start_from_beginning=True, **options)
    expect(sorted(item["n"] for item in await same.all(feed)), list(range(ITEMS)))


async def check_more(same: Same, database: Any) -> None:
    """Patches, batches and procedures, as far as the client has them."""
    container = await same.done(database.create_container("more", PartitionKey(path="/pk")))
    await same.done(container.create_item({"id": "a", "pk": "x", "n": 1}))
    if hasattr(container, "patch_item"):
        steps = [{"op": "incr", "path": "/n", "value": 2}]
        patched = await same.done(container.patch_item("a", partition_key="x", patch_operations=steps))
        expect(patched["n"], 3)
    if hasattr(container, "execute_item_batch"):
        operations = [("create", ({"id": "b", "pk": "x"},)), ("read", ("b",)), ("delete", ("b",))]
        results = await same.done(container.execute_item_batch(operations, partition_key="x"))
        expect([result["statusCode"] for result in results], [201, 200, 204])
    body = "function (name) { getContext().getResponse().setBody('hello ' + name); }"
    await same.done(container.scripts.create_stored_procedure({"id": "greet", "body": body}))
    # The two clients name it differently.
    name = "params" if isinstance(same.client, CosmosClient) else "parameters"
    arguments: dict[str, Any] = {"partition_key": "x", name: ["you"]}
    said = await same.done(container.scripts.execute_stored_procedure("greet", **arguments))
    expect(said, "hello you")


async def check_split(same: Same, database: Any) -> None:
    container = await container_with(same, database, RU_OF_ONE_PARTITION)
    plain = same.query(container, "SELECT * FROM c", max_item_count=6).by_page()
    ordered = same.query(container, "SELECT * FROM c ORDER BY c.n", max_item_count=6).by_page()
    seen_plain = [item["n"] for item in await same.next_page(plain) or []]
    seen_ordered = [item["n"] for item in await same.next_page(ordered) or []]
    await split(same, container)
    for pages, seen in ((plain, seen_plain), (ordered, seen_ordered)):
        page = await same.next_page(pages)
        while page is not None:
            seen += [item["n"] for item in page]
            page = await same.next_page(pages)
    expect(sorted(seen_plain), list(range(ITEMS)))
    expect(seen_ordered, list(range(ITEMS)))
    expect(await same.all(same.query(container, "SELECT VALUE COUNT(1) FROM c")), [ITEMS])
    for number in range(ITEMS):
        await same.done(container.read_item(f"item {number:02d}", partition_key=f"key {number % KEYS}"))


async def split(same: Same, container: Any) -> None:
    await same.done(container.replace_throughput(RU_OF_TWO_PARTITIONS))
    deadline = time.monotonic() + SPLIT_SECONDS_MAX
    while time.monotonic() < deadline:
        offer = await same.done(container.get_throughput())
        if not offer.properties["content"].get("isOfferReplacePending"):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the split takes too long")


ON_A_DATABASE = {
    "items": check_items,
    "ids": check_ids,
    "patch, batch, scripts": check_more,
    "split while paging": check_split,
}
ON_A_CONTAINER = {
    "filter": check_filter,
    "ORDER BY": check_order,
    "aggregates": check_aggregates,
    "DISTINCT": check_distinct,
    "TOP": check_top,
    "OFFSET LIMIT": check_offset,
    "pages": check_pages,
    "change feed": check_feed,
}


async def run_checks(same: Same) -> dict[str, str]:
    database = await same.done(same.client.create_database(f"database-{uuid.uuid4()}"))
    two_partitions = await container_with(same, database, RU_OF_TWO_PARTITIONS)
    outcomes = {}
    calls: list[tuple[str, Any, Any]] = [(name, check, database) for name, check in ON_A_DATABASE.items()]
    calls += [(name, check, two_partitions) for name, check in ON_A_CONTAINER.items()]
    for name, check, target in calls:
        try:
            await check(same, target)
            outcomes[name] = "ok"
        except Exception as problem:
            outcomes[name] = f"{type(problem).__name__}: {problem}"[:400]
    await same.done(same.client.delete_database(database.id))
    return outcomes


async def main(kind: str, endpoint: str, key: str) -> None:
    warnings.simplefilter("ignore")
    if kind == "blocking":
        outcomes = await run_checks(Same(CosmosClient(endpoint, key, connection_verify=False)))
    else:
        async with cosmos_aio.CosmosClient(endpoint, key, connection_verify=False) as client:
            outcomes = await run_checks(Same(client))
    print(json.dumps({"version": VERSION, "checks": outcomes}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
