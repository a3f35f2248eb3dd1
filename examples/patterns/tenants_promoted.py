"""A large tenant, promoted to a container of its own while clients go on.

Most tenants share a container, keyed by the tenant. The one that has outgrown it is moved by `asterism promote-tenant`:
its items are copied and followed, and from the switch on the requests that clients still send to the old container are
forwarded, and paid by the new one. The neighbors have their partition for themselves again. When all clients know the
new container, `--end` stops the forwarding.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError
from burst import LARGE_TEXT, WRITES, is_admitted
from connection import (
    ENDPOINT,
    KEY,
    RU_PER_SECOND_OF_FOUR_PARTITIONS,
    connect,
    fresh_database,
    lower_throughput,
    of_four_partitions,
)
from costs import charge_of
from partition_picture import load_since, partitions_of, print_picture

DATABASE, SHARED, OWN = "patterns_tenants_promoted", "tenants", "tenant-cedar"
# Their keys lie in the same of the four partitions.
LARGE, NEIGHBOR = "cedar", "linden"
TENANTS = (LARGE, NEIGHBOR, "acorn", "birch", "fir", "hazel", "maple", "oak")
ROWS_OF_LARGE, ROWS = 60, 6
# Of later rows.
NUMBERS = itertools.count(ROWS_OF_LARGE)
# A partition of 3,000 RU/s or more saves none for bursts, so that a container which had them begins without.
OWN_RU_PER_SECOND = 4_000
TENANTS_OF = "SELECT DISTINCT VALUE c.tenantId FROM c"


def row(tenant: str, number: int, note: str = "") -> dict[str, Any]:
    return {"id": f"row-{number:03}", "tenantId": tenant, "note": note}


def promote_tenant(*options: str) -> None:
    """Run the command; with `--to` it returns when requests are forwarded."""
    command = [sys.executable, "-m", "asterism", "promote-tenant", DATABASE, SHARED, LARGE, "--endpoint", ENDPOINT]
    subprocess.run([*command, *options], check=True, capture_output=True)


def write_large(container: ContainerProxy, _number: int) -> None:
    container.create_item(row(LARGE, next(NUMBERS), LARGE_TEXT))


def write_neighbor(container: ContainerProxy, _number: int) -> None:
    container.create_item(row(NEIGHBOR, next(NUMBERS)))


def compare(title: str, shared: ContainerProxy, *others: ContainerProxy) -> None:
    """Write rows of both tenants by turns to the shared container, and print how many were throttled."""
    containers = (shared, *others)
    before = [partitions_of(container) for container in containers]
    throttled = {LARGE: 0, NEIGHBOR: 0}
    for number in range(WRITES):
        throttled[LARGE] += not is_admitted(write_large, shared, number)
        throttled[NEIGHBOR] += not is_admitted(write_neighbor, shared, number)
    for container, earlier in zip(containers, before, strict=True):
        load = load_since(earlier, partitions_of(container))
        print_picture(f"{title}, {container.id}", load, by="request_units")
    for tenant, count in throttled.items():
        print(f"  throttled requests of {tenant}: {count} of {WRITES}")


def write_until(stopped: threading.Event) -> list[str]:
    """Write to the shared container like a client that knows nothing of the promotion; return the acknowledged ids."""
    acknowledged: list[str] = []
    with CosmosClient(ENDPOINT, KEY) as client:
        shared = client.get_database_client(DATABASE).get_container_client(SHARED)
        while not stopped.wait(0.01):
            acknowledged.append(shared.upsert_item(row(LARGE, next(NUMBERS)))["id"])
    return acknowledged


def promote_while_written() -> list[str]:
    stopped = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_until, stopped)
        try:
            promote_tenant("--to", OWN, "--ru", str(OWN_RU_PER_SECOND))
        finally:
            stopped.set()
        return writing.result()


def main() -> None:
    with connect() as client:
        database = fresh_database(client, DATABASE)
        shared = of_four_partitions(database, SHARED, PartitionKey("/tenantId"))
        for tenant in TENANTS:
            for number in range(ROWS_OF_LARGE if tenant == LARGE else ROWS):
                shared.create_item(row(tenant, number))
        lower_throughput(shared)
        compare("before", shared)

        shared.replace_throughput(RU_PER_SECOND_OF_FOUR_PARTITIONS)
        acknowledged = promote_while_written()
        own = database.get_container_client(OWN)
        there = set(own.query_items("SELECT VALUE c.id FROM c", partition_key=LARGE))
        print("rows written meanwhile that are missing:", len(set(acknowledged) - there))
        lower_throughput(shared, own)
        compare("after", shared, own)

        forwarded = shared.read_item("row-007", LARGE)
        print(f"a point read by the old container: {forwarded['id']}, {charge_of(forwarded):.2f} RU")
        print("by the new container:", own.read_item("row-007", LARGE)["id"])
        print(
            "tenants in a query over the old container:",
            sorted(shared.query_items(TENANTS_OF, enable_cross_partition_query=True)),
        )

        promote_tenant("--end")
        try:
            shared.upsert_item(row(LARGE, 1))
        except CosmosHttpResponseError as refused:
            print("a write by the old container after --end:", refused.status_code)


if __name__ == "__main__":
    main()
