"""The items, and the requests that create and read them: the same bytes for every server that is compared."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.wire import Answer, Caller, request_head, signed_headers, signed_request

DATABASE = "bench"
DATABASE_LINK = f"dbs/{DATABASE}"
ITEM_BYTES = 1024
READ_ITEMS = 1000
RANDOM_PROPERTIES = 20
# Manual throughput for which a container begins with one partition.
ONE_PARTITION_RU_PER_SECOND = 6000


def make_item(item_id: str, *, item_bytes: int = ITEM_BYTES) -> dict[str, Any]:
    """Ten properties of mixed kinds; the last one fills the item up to its size."""
    item: dict[str, Any] = {
        "id": item_id,
        "pk": f"p-{item_id}",
        "name": f"Item {item_id}",
        "quantity": 42,
        "price": 19.95,
        "isActive": True,
        "tags": ["alpha", "beta", "gamma"],
        "address": {"street": "1 Long Lane", "city": "Springfield", "zip": "12345"},
        "createdAt": "2024-01-31T12:34:56Z",
        "text": "",
    }
    item["text"] = "x" * (item_bytes - len(json.dumps(item, separators=(",", ":"))))
    return item


def make_random_item(item_id: str, chance: random.Random, *, item_bytes: int = ITEM_BYTES) -> dict[str, Any]:
    """Strings without order or repetition: each index entry of the item belongs to another page of the store."""
    item = {"id": item_id, "pk": f"p-{item_id}"} | {f"r{number:02d}": "" for number in range(RANDOM_PROPERTIES)}
    free_bytes = item_bytes - len(json.dumps(item, separators=(",", ":")))
    # Two characters for a byte.
    value_bytes = free_bytes // RANDOM_PROPERTIES // 2
    return {name: value or chance.randbytes(value_bytes).hex() for name, value in item.items()}


def container_link(container: str) -> str:
    return f"{DATABASE_LINK}/colls/{container}"


async def create_database(caller: Caller) -> None:
    await caller.expect(signed_request("POST", "/dbs", resource_type="dbs", link="", body={"id": DATABASE}), 201, 409)


def create_container_request(
    container: str, *, ru_per_second: int = ONE_PARTITION_RU_PER_SECOND, settings: dict[str, Any] | None = None
) -> bytes:
    return signed_request(
        "POST",
        f"/{DATABASE_LINK}/colls",
        resource_type="colls",
        link=DATABASE_LINK,
        body={"id": container, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}} | (settings or {}),
        headers={"x-ms-offer-throughput": str(ru_per_second)},
    )


async def create_container(
    caller: Caller,
    container: str,
    *,
    ru_per_second: int = ONE_PARTITION_RU_PER_SECOND,
    settings: dict[str, Any] | None = None,
) -> Answer:
    return await caller.expect(create_container_request(container, ru_per_second=ru_per_second, settings=settings), 201)


@dataclass
class Creates:
    """Creates of new items. `created_ids` are those handed out so far."""

    container: str
    prefix: str
    item_bytes: int = ITEM_BYTES
    created_ids: list[str] = field(default_factory=list)

    def requests(self, count: int | None = None) -> Iterator[bytes]:
        link = container_link(self.container)
        signed = signed_headers("POST", resource_type="docs", link=link)
        # Ids have one length, so the head differs only in the partition key and the body in two places.
        width = 8
        marker = "0" * width
        sample_id = f"{self.prefix}{marker}"
        body = json.dumps(make_item(sample_id, item_bytes=self.item_bytes), separators=(",", ":")).encode()
        key_header = json.dumps([f"p-{sample_id}"])
        head = request_head(
            "POST", f"/{link}/docs", signed | {"x-ms-documentdb-partitionkey": key_header}, body_length=len(body)
        )
        parts = (head + body).split(sample_id.encode())
        for number in itertools.count() if count is None else range(count):
            item_id = f"{self.prefix}{number:0{width}d}"
            self.created_ids.append(item_id)
            yield item_id.encode().join(parts)


def reads(container: str, item_ids: list[str]) -> list[bytes]:
    """A point read for each item, in the form the Python client gives it."""
    requests = []
    for item_id in item_ids:
        link = f"{container_link(container)}/docs/{item_id}"
        headers = signed_headers("GET", resource_type="docs", link=link)
        headers["x-ms-documentdb-partitionkey"] = json.dumps([f"p-{item_id}"])
        requests.append(request_head("GET", f"/{link}/", headers))
    return requests
