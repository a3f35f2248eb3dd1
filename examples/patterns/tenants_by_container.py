"""A container for each tenant, with throughput of its own.

In a shared container, tenants whose keys lie in the same physical partition share its request units: a tenant that
imports data throttles its neighbors. A container per tenant separates them, can have a key, indexes and a time to live
of its own, and is removed with a single request. The price: a container has at least 400 RU/s, which tenants without a
load pay too. It suits few and large tenants.
"""

from __future__ import annotations

from typing import Any

from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from burst import LARGE_TEXT, WRITES, is_admitted
from connection import connect, fresh_database, of_four_partitions
from partition_picture import load_since, partitions_of, print_picture

# Their keys lie in the same of the four partitions.
IMPORTING, QUIET = "cedar", "linden"
# Both together have 800 RU/s in either way.
SHARED_RU_PER_SECOND = 800
OWN_RU_PER_SECOND = 400
# A partition of 3,000 RU/s or more saves none for bursts, so that a container which had them begins without.
RU_PER_SECOND_WITHOUT_RESERVE = 3_000
# About 116 RU in a transaction.
ROWS_OF_IMPORT = 6


def row(tenant: str, upload: str, number: int, note: str = "") -> dict[str, Any]:
    return {"id": f"{upload}-{number}", "tenantId": tenant, "upload": upload, "note": note}


def key_of(container: ContainerProxy, item: dict[str, Any]) -> str:
    return str(item["tenantId" if container.id == "tenants" else "upload"])


def import_rows(container: ContainerProxy, number: int) -> None:
    rows = [row(IMPORTING, f"upload-{number}", each, LARGE_TEXT) for each in range(ROWS_OF_IMPORT)]
    container.execute_item_batch([("create", (item,)) for item in rows], key_of(container, rows[0]))


def add_row(container: ContainerProxy, number: int) -> None:
    container.create_item(row(QUIET, "by-hand", number))


def show(name: str, importing: ContainerProxy, quiet: ContainerProxy) -> None:
    """Print how many requests of either tenant were throttled, and the partitions that served them."""
    containers = [importing] if importing is quiet else [importing, quiet]
    before = [partitions_of(container) for container in containers]
    throttled = {IMPORTING: 0, QUIET: 0}
    for number in range(WRITES):
        throttled[IMPORTING] += not is_admitted(import_rows, importing, number)
        throttled[QUIET] += not is_admitted(add_row, quiet, number)
    for container, earlier in zip(containers, before, strict=True):
        print_picture(f"{name}, {container.id}", load_since(earlier, partitions_of(container)), by="request_units")
    for tenant, count in throttled.items():
        print(f"  throttled requests of {tenant}: {count} of {WRITES}")


def own_container(database: DatabaseProxy, tenant: str) -> ContainerProxy:
    name = f"tenant-{tenant}"
    created = database.create_container(name, PartitionKey("/upload"), offer_throughput=RU_PER_SECOND_WITHOUT_RESERVE)
    created.replace_throughput(OWN_RU_PER_SECOND)
    return created


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_tenants_by_container")
        shared = of_four_partitions(database, "tenants", PartitionKey("/tenantId"))
        shared.replace_throughput(SHARED_RU_PER_SECOND)
        show("shared", shared, shared)
        importing, quiet = own_container(database, IMPORTING), own_container(database, QUIET)
        show("of its own", importing, quiet)
        database.delete_container(quiet)
        print("left when a tenant is gone:", sorted(container["id"] for container in database.list_containers()))


if __name__ == "__main__":
    main()
