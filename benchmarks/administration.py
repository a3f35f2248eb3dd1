"""The server's own endpoints, and reading a whole container to see what is in it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

from benchmarks.wire import Caller, UnexpectedAnswer, signed_request
from benchmarks.workload import DATABASE, container_link

POLL_SECONDS = 0.05
PAGE_ITEMS = 1000


def admin_request(verb: str, name: str, *, query: str = "", body: Any = None) -> bytes:
    link = f"_asterism/{name}"
    return signed_request(verb, f"/{link}{query}", resource_type="asterism", link=link, body=body)


async def partitions(caller: Caller, container: str) -> list[dict[str, Any]]:
    query = f"?database={DATABASE}&container={container}&details=false"
    answer = await caller.expect(admin_request("GET", "partitions", query=query), 200)
    found: list[dict[str, Any]] = answer.json()["partitions"]
    return found


def online_ids(found: list[dict[str, Any]]) -> set[str]:
    return {partition["id"] for partition in found if partition["state"] == "online"}


async def split_and_wait(caller: Caller, container: str, range_id: str, *, seconds_max: float) -> float:
    """Split a partition; return the seconds until its children have taken over."""
    started = time.perf_counter()
    body = {"database": DATABASE, "container": container, "range": range_id}
    await caller.expect(admin_request("POST", "split", body=body), 200, 202)
    while time.perf_counter() < started + seconds_max:
        online = online_ids(await partitions(caller, container))
        if range_id not in online and len(online) >= 2:
            return time.perf_counter() - started
        await asyncio.sleep(POLL_SECONDS)
    raise UnexpectedAnswer(f"the split took more than {seconds_max} s")


async def move_and_wait(caller: Caller, container: str, range_id: str, node: str, *, seconds_max: float) -> float:
    """Move a partition; return the seconds until the other node serves it."""
    started = time.perf_counter()
    body = {"database": DATABASE, "container": container, "range": range_id, "node": node}
    await caller.expect(admin_request("POST", "move", body=body), 202)
    while time.perf_counter() < started + seconds_max:
        shown = await partitions(caller, container)
        if [partition["node"] for partition in shown if partition["id"] == range_id] == [node]:
            return time.perf_counter() - started
        await asyncio.sleep(POLL_SECONDS)
    raise UnexpectedAnswer(f"the move took more than {seconds_max} s")


async def read_all_ids(caller: Caller, container: str) -> Counter[str]:
    """How often each id is in the container: range by range, page by page, as a client reads a feed."""
    link = container_link(container)
    ranges = await caller.expect(signed_request("GET", f"/{link}/pkranges", resource_type="pkranges", link=link), 200)
    ids: Counter[str] = Counter()
    for key_range in ranges.json()["PartitionKeyRanges"]:
        headers = {"x-ms-documentdb-partitionkeyrangeid": key_range["id"], "x-ms-max-item-count": str(PAGE_ITEMS)}
        while True:
            request = signed_request("GET", f"/{link}/docs", resource_type="docs", link=link, headers=headers)
            answer = await caller.expect(request, 200)
            ids.update(item["id"] for item in answer.json()["Documents"])
            if "x-ms-continuation" not in answer.headers:
                break
            headers["x-ms-continuation"] = answer.headers["x-ms-continuation"]
    return ids
