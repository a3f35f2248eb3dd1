"""Containers with plain and with synthetic keys under the same load: creates and point reads, in turns."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from asterism import keys
from asterism.keys import KeyRule
from benchmarks.load import run_all, run_load
from benchmarks.wire import Caller, UnexpectedAnswer, request_head, signed_headers
from benchmarks.workload import container_link, create_container, create_database, make_item

CONNECTIONS = 16
# Short turns, so that whatever disturbs the machine for a while disturbs all containers.
ROUNDS = 14
ROUND_SECONDS = 0.5
READ_ITEMS = 1000

REGION = "eu-west"
CONCATENATED = keys.concatenate("/region", "/part")
PRECALCULATED = keys.hash_suffix("/region", of="/part", count=400)


@dataclass
class KeyedContainer:
    """A container with a rule, or with a plain key whose values the client computes by the same rule."""

    name: str
    rule: KeyRule
    # The client sends plain items, and names the values of the sources.
    is_synthetic: bool
    creates_per_second: list[float] = field(default_factory=list)
    reads_per_second: list[float] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, Any]:
        definition: dict[str, Any] = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        if self.is_synthetic:
            definition["synthetic"] = {"/pk": self.rule.to_json()}
        return {"partitionKey": definition}

    def key_of(self, item: dict[str, Any]) -> list[Any]:
        return [item["region"], item["part"]] if self.is_synthetic else list(self.rule.keys_of(item))

    def item(self, item_id: str) -> dict[str, Any]:
        item = make_item(item_id) | {"region": REGION, "part": f"p-{item_id}"}
        del item["pk"]
        return item if self.is_synthetic else item | {"pk": self.rule.keys_of(item)[0]}

    def creates(self, prefix: str, count: int | None = None) -> Iterator[bytes]:
        """Yield creates of new items; the bytes of all but the key are made once."""
        link = container_link(self.name)
        signed = signed_headers("POST", resource_type="docs", link=link)
        marker = "0" * 12
        body = json.dumps(self.item(marker), separators=(",", ":")).replace(
            json.dumps(self._key_property(marker)), "%k"
        )
        for number in itertools.count() if count is None else range(count):
            item_id = f"{prefix}{number:0{12 - len(prefix)}d}"
            content = body.replace("%k", json.dumps(self._key_property(item_id))).replace(marker, item_id).encode()
            named = {"x-ms-documentdb-partitionkey": json.dumps(self.key_of(self._sources(item_id)))}
            yield request_head("POST", f"/{link}/docs", signed | named, body_length=len(content)) + content

    def reads(self, prefix: str) -> list[bytes]:
        requests = []
        for number in range(READ_ITEMS):
            item_id = f"{prefix}{number:0{12 - len(prefix)}d}"
            link = f"{container_link(self.name)}/docs/{item_id}"
            headers = signed_headers("GET", resource_type="docs", link=link)
            headers["x-ms-documentdb-partitionkey"] = json.dumps(self.key_of(self._sources(item_id)))
            requests.append(request_head("GET", f"/{link}/", headers))
        return requests

    def _sources(self, item_id: str) -> dict[str, Any]:
        return {"region": REGION, "part": f"p-{item_id}"}

    def _key_property(self, item_id: str) -> str:
        return self.rule.keys_of(self._sources(item_id))[0]


def containers() -> list[KeyedContainer]:
    """Return pairs: a plain key, and the synthetic one of the same values."""
    return [
        KeyedContainer("plain-concatenated", CONCATENATED, is_synthetic=False),
        KeyedContainer("concatenated", CONCATENATED, is_synthetic=True),
        KeyedContainer("plain-precalculated", PRECALCULATED, is_synthetic=False),
        KeyedContainer("precalculated", PRECALCULATED, is_synthetic=True),
    ]


async def prepare(port: int, found: list[KeyedContainer]) -> None:
    caller = Caller(port)
    await create_database(caller)
    for container in found:
        await create_container(caller, container.name, settings=container.settings)
    await caller.close()
    for container in found:
        filled = await run_all(port, container.creates("i", READ_ITEMS), connections=8)
        if filled.error_count:
            raise UnexpectedAnswer(f"items could not be created in {container.name}: {dict(filled.statuses)}")


async def measure_rounds(port: int, found: list[KeyedContainer]) -> None:
    """Add a creates and a reads figure per round to each container, in an order that alternates."""
    read_requests = {container.name: container.reads("i") for container in found}
    for number in range(ROUNDS):
        for container in found if number % 2 else reversed(found):
            creates, reads = container.creates(f"r{number:02d}"), itertools.cycle(read_requests[container.name])
            container.creates_per_second.append(await _rate(port, container, creates))
            container.reads_per_second.append(await _rate(port, container, reads))


async def _rate(port: int, container: KeyedContainer, requests: Iterator[bytes]) -> float:
    result = await run_load(port, requests, connections=CONNECTIONS, seconds=ROUND_SECONDS, warm_up_seconds=0.1)
    if result.error_count:
        raise UnexpectedAnswer(f"the load of {container.name} failed: {dict(result.statuses)}")
    return result.rate_per_second
