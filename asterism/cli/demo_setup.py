"""The containers of the demonstration: created, split into partitions, and removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from asterism.cli.client import AdminClient
from asterism.cli.data_client import DataClient
from asterism.cli.demo_load import DemoContainer
from asterism.cli.failure import CommandFailed
from asterism.cli.offers import set_throughput
from asterism.cli.progress import POLL_SECONDS

DATABASE = "asterism-demo"
# The bad key first: all readings of a day have the same.
BY_DATE = DemoContainer(DATABASE, "telemetry-by-date", "date")
BY_DEVICE = DemoContainer(DATABASE, "telemetry-by-device", "deviceId")
CONTAINERS = (BY_DATE, BY_DEVICE)
PARTITIONS = 4
RU_PER_SECOND = 400
# A partition of 3,000 RU/s or more keeps no reserve for bursts (docs/request-units.md).
_RU_PER_SECOND_WITHOUT_RESERVE = 3_000 * PARTITIONS
_SPLIT_SECONDS_MAX = 300.0


def create_containers(client: DataClient) -> None:
    """Create what is missing; a container of this name with another partition key is a failure."""
    reply = client.ask("POST", "dbs", {"id": DATABASE}, type_="dbs", link="")
    _check(reply.status, reply.message)
    for container in CONTAINERS:
        link = f"dbs/{DATABASE}"
        paths = [f"/{container.key_property}"]
        settings = {"id": container.name, "partitionKey": {"paths": paths, "kind": "Hash", "version": 2}}
        throughput = {"x-ms-offer-throughput": str(RU_PER_SECOND)}
        reply = client.ask("POST", f"{link}/colls", settings, type_="colls", link=link, headers=throughput)
        _check(reply.status, reply.message)
        existing = client.need("GET", container.link, type_="colls", link=container.link).body
        if existing["partitionKey"]["paths"] != paths:
            raise CommandFailed(
                f"{DATABASE}/{container.name} exists with another partition key; run `asterism demo --remove` first"
            )


def _check(status: int, message: str) -> None:
    if status >= 400 and status != 409:
        raise CommandFailed(message)


def split_containers(client: AdminClient, show: Callable[[int], None]) -> None:
    """Split each container until it has its partitions; call `show` with the partitions so far, of all containers."""
    give_up_at = time.monotonic() + _SPLIT_SECONDS_MAX
    while True:
        ranges = {container: range_ids(client, container) for container in CONTAINERS}
        show(sum(min(len(ids), PARTITIONS) for ids in ranges.values()))
        if all(len(ids) >= PARTITIONS for ids in ranges.values()):
            return
        if time.monotonic() > give_up_at:
            raise CommandFailed(
                "the splits of the demonstration take too long; see `asterism jobs` and the server's log"
            )
        if not _jobs(client):
            for container, ids in ranges.items():
                for range_id in splittable(ids, wanted=PARTITIONS):
                    client.post("split", {"database": DATABASE, "container": container.name, "range": range_id})
        time.sleep(POLL_SECONDS)


def splittable(ids: Sequence[str], *, wanted: int) -> Sequence[str]:
    """Return the ranges to split now, so that no more than the wanted number result."""
    return ids[: max(wanted - len(ids), 0)]


def _jobs(client: AdminClient) -> list[dict[str, Any]]:
    return [job for job in client.get("jobs")["jobs"] if job["database"] == DATABASE]


def range_ids(client: AdminClient, container: DemoContainer) -> list[str]:
    return list(spent_by_range(client, container))


def spent_by_range(client: AdminClient, container: DemoContainer) -> dict[str, float]:
    """Return the request units that each partition has spent since the server has started."""
    reply = client.get("partitions", database=DATABASE, container=container.name, details="false")
    return {partition["id"]: partition["ru_consumed"] for partition in reply["partitions"]}


def empty_reserves(client: DataClient) -> None:
    """Take from the partitions the request units that they saved while idle, which would serve bursts for minutes.

    The reserve of a partition is never larger than its rate allows, so a moment of a high rate clears it.
    """
    for container in CONTAINERS:
        for ru_per_second in (_RU_PER_SECOND_WITHOUT_RESERVE, RU_PER_SECOND):
            set_throughput(client, container.link, ru_per_second)


def remove_database(client: DataClient) -> bool:
    """Remove the database with its containers; return False if it does not exist."""
    link = f"dbs/{DATABASE}"
    reply = client.ask("DELETE", link, type_="dbs", link=link)
    if reply.status == 404:
        return False
    if reply.status >= 400:
        raise CommandFailed(reply.message)
    return True
