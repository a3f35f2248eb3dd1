"""Writes to one day, with a random suffix and without, into containers of twenty partitions with their budgets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asterism import keys
from asterism.cli.scratch_containers import ScratchContainer, Server, scratch_database
from benchmarks.load import Load
from benchmarks.wire import ACCOUNT_KEY, request_head, signed_headers

PARTITIONS = 20
SUFFIXES = 400
# 500 for each partition: a day's writes need six times as much in one of them, and a third of that in twenty.
RU_PER_SECOND = 10_000
WRITES_PER_SECOND = 600
SECONDS = 7
_CONNECTIONS = 32
_DAY = "2026-03-02"
_LEASE_SECONDS = 300


@dataclass(frozen=True)
class DayOfWrites:
    """Outcome of the writes to one container. The skew is the largest partition as a multiple of the mean."""

    throttled_share: float
    skew: float
    accepted: int


async def write_a_day(port: int, *, with_suffix: bool) -> DayOfWrites:
    """Write at a fixed rate, so that a refused write is lost and not repeated."""
    server = Server(f"http://127.0.0.1:{port}", ACCOUNT_KEY)
    definition: dict[str, Any] = {"paths": ["/pk" if with_suffix else "/date"], "kind": "Hash", "version": 2}
    if with_suffix:
        definition["synthetic"] = {"/pk": keys.random_suffix("/date", count=SUFFIXES).to_json()}
    with scratch_database(server, lease_seconds=_LEASE_SECONDS, partitions=PARTITIONS) as database:
        container = database.make_container("day", definition, [], ru_per_second=RU_PER_SECOND)
        load = Load(port, _writes(container), connections=_CONNECTIONS, per_second=WRITES_PER_SECOND)
        await load.start()
        await load.wait_until_idle()
        result = await load.finish()
        spent = container.spent_by_range()
    accepted, throttled = result.statuses[201], result.statuses[429]
    return DayOfWrites(
        throttled / max(accepted + throttled, 1), max(spent.values()) * PARTITIONS / sum(spent.values()), accepted
    )


def _writes(container: ScratchContainer) -> Iterator[bytes]:
    """Yield creates of plain items, which name the date alone: with a suffix, the server draws it."""
    signed = signed_headers("POST", resource_type="docs", link=container.link)
    head = signed | {"x-ms-documentdb-partitionkey": json.dumps([_DAY])}
    for number in range(WRITES_PER_SECOND * SECONDS):
        item = {
            "id": f"i{number:06d}",
            "date": _DAY,
            "vin": f"v{number % 997}",
            "speed": number % 200,
            "text": "x" * 300,
        }
        content = json.dumps(item, separators=(",", ":")).encode()
        yield request_head("POST", f"/{container.link}/docs", head, body_length=len(content)) + content
