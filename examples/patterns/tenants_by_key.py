"""Many tenants in one container, with the tenant as the key.

A tenant's items are a logical partition: its queries read one physical partition, and its items can change in one
transaction. With the kind of an item as the key, the users of all tenants are together, and a query for a tenant asks
every partition. The key per tenant suits many tenants of similar size. A tenant that grows too large for one partition
cannot be divided; with `/tenantId, /userId`, a hierarchical key, a split divides it, and its queries stay its own.
"""

from __future__ import annotations

from typing import Any

import operator_endpoint
from azure.cosmos import ContainerProxy, PartitionKey
from burst import LARGE_TEXT, send_burst
from connection import (
    RU_PER_SECOND_OF_FOUR_PARTITIONS,
    connect,
    fresh_database,
    lower_throughput,
    of_four_partitions,
)
from costs import ask
from partition_picture import partitions_of, print_picture

TENANTS = 40
USERS = 80
LARGE = "tenant-large"
NEWEST = "SELECT TOP 3 * FROM c WHERE c.tenantId = @tenant ORDER BY c.number DESC"


def user(number: int, *, tenant: str | None = None) -> dict[str, Any]:
    return {
        "id": f"user-{number:03}",
        "tenantId": tenant or f"tenant-{number % TENANTS:02}",
        "kind": "user",
        "userId": f"user-{number:03}",
        "number": number,
    }


def change_user(container: ContainerProxy, number: int) -> None:
    container.upsert_item({**user(USERS + number), "note": LARGE_TEXT})


def split_largest(container: ContainerProxy) -> None:
    largest = max(partitions_of(container), key=lambda partition: partition.items)
    operator_endpoint.split(container, largest.id)


def main() -> None:
    with connect() as client:
        database = fresh_database(client, "patterns_tenants_by_key")
        by_kind = of_four_partitions(database, "by-kind", PartitionKey("/kind"))
        by_tenant = of_four_partitions(database, "by-tenant", PartitionKey("/tenantId"))
        levels = PartitionKey(["/tenantId", "/userId"], kind="MultiHash")
        by_tenant_and_user = of_four_partitions(database, "by-tenant-and-user", levels)
        containers = (by_kind, by_tenant, by_tenant_and_user)
        for container in containers:
            for number in range(USERS):
                container.create_item(user(number))
        tenant = "tenant-07"
        print("by kind, a tenant's users:", ask(by_kind, NEWEST, tenant=tenant))
        print("by tenant, a tenant's users:", ask(by_tenant, NEWEST, partition_key=tenant, tenant=tenant))
        batch = [("upsert", (user(7),)), ("create", ({"id": "plan", "tenantId": tenant, "kind": "plan"},))]
        results = by_tenant.execute_item_batch(batch, tenant)
        print("by tenant, a user and the plan in one transaction:", [result["statusCode"] for result in results])

        lower_throughput(*containers)
        for container, load in send_burst((by_kind, by_tenant), change_user):
            print_picture(container.id, load, by="request_units")

        for container in (by_tenant, by_tenant_and_user):
            container.replace_throughput(RU_PER_SECOND_OF_FOUR_PARTITIONS)
            for number in range(USERS, USERS * 2):
                container.upsert_item(user(number, tenant=LARGE))
            split_largest(container)
            print_picture(f"{container.id}, a large tenant, after a split", partitions_of(container), by="items")
        asked = ask(by_tenant_and_user, NEWEST, tenant=LARGE)
        print("by tenant and user, users of the large tenant:", asked)


if __name__ == "__main__":
    main()
