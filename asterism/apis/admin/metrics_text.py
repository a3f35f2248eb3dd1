"""Counters and sizes in the text formats that Prometheus and its kin read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

from asterism.apis.admin.exposition import (
    OPENMETRICS_TYPE,
    PROMETHEUS_TYPE,
    Family,
    labels_of,
    openmetrics_text,
    prefers_openmetrics,
    prometheus_text,
)
from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.sizes import PartitionSizes
from asterism.apis.transports.http import Request, Response
from asterism.keyspaces.catalog.accounts import account_of
from asterism.keyspaces.processes.usage_gatherer import Usage
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.metrics import LATENCY_SECONDS, OperationRequests, PartitionUsage, RequestCounts, WorkCounts
from asterism.models.collections.records import MARK
from asterism.models.collections.shared_names import NAME_PREFIX
from asterism.models.collections.store import ACCOUNT_PREFIX

# After this many containers other requests get their turn.
_KEYSPACES_PER_TURN = 50
_RESHAPES = ("split", "merge", "move")

# The work of each partition since the process started; ranges that were split or merged away keep their counts.
_COUNTERS: dict[str, tuple[str, Callable[[PartitionUsage], float]]] = {
    "asterism_requests_total": ("Requests admitted.", lambda usage: usage.requests),
    "asterism_request_units_total": ("Request units charged.", lambda usage: usage.request_units),
    "asterism_throttled_total": ("Requests refused with 429.", lambda usage: usage.throttled),
}


async def show_metrics(services: AdminServices, request: Request) -> Response:
    families = {name: Family("counter", text) for name, (text, _) in _COUNTERS.items()}
    families |= {
        "asterism_partition_bytes": Family("gauge", "Bytes of items in a physical partition."),
        "asterism_partition_items": Family("gauge", "Items in a physical partition."),
        "asterism_partition_ru_share": Family("gauge", "Request units per second that a partition may use."),
        "asterism_reshape_jobs": Family("gauge", "Splits, merges and moves under way."),
        "asterism_reshapes_total": Family("counter", "Splits, merges and moves that were finished."),
        "asterism_store_commits_total": Family("counter", "Transactions that the storage engines have committed."),
        "asterism_store_bytes": Family("gauge", "Bytes of the store on disk."),
        "asterism_info": Family("gauge", "The version that is running."),
        # Not asterism_requests_total, which counts by partition: a sum over both would count requests twice.
        "asterism_door_requests_total": Family("counter", "Requests answered, by door, operation and status."),
        "asterism_door_request_seconds": Family("histogram", "Time from a request at its door to the answer."),
        "asterism_door_requests_in_flight": Family("gauge", "Requests that a door has not answered yet."),
    }
    served = await services.usage.of_all()
    sizes = PartitionSizes(services.router)
    for place, (database, keyspace) in enumerate(services.keyspaces(), start=1):
        await _add_keyspace(
            families, services, database, keyspace, served.keyspaces.get(keyspace.record.rid, {}), sizes
        )
        if place % _KEYSPACES_PER_TURN == 0:
            await asyncio.sleep(0)
    await _add_node(families, services)
    _add_work(families, served.work)
    _add_doors(families, served.requests)
    if prefers_openmetrics(request.headers.get("accept")):
        return Response(200, [("content-type", OPENMETRICS_TYPE)], openmetrics_text(families).encode())
    return Response(200, [("content-type", PROMETHEUS_TYPE)], prometheus_text(families).encode())


async def _add_keyspace(
    families: dict[str, Family],
    services: AdminServices,
    database: str,
    keyspace: Keyspace,
    served: Usage,
    sizes: PartitionSizes,
) -> None:
    label = _database_label(services, database, keyspace)

    def add(family: str, range_id: int, value: float) -> None:
        labels = labels_of(database=label, container=services.shown_name(keyspace), range=str(range_id))
        families[family].samples.append(f"{family}{labels} {value:.10g}")

    for range_id, usage in served.items():
        for name, (_, count) in _COUNTERS.items():
            add(name, range_id, count(usage))
    share = services.admission.share_of(keyspace)
    for partition in keyspace.record.map.ranges:
        size = await sizes.of(keyspace, partition)
        if size is not None:
            add("asterism_partition_bytes", partition.id, size.bytes)
            add("asterism_partition_items", partition.id, size.items)
        if share is not None:
            add("asterism_partition_ru_share", partition.id, share)


def _database_label(services: AdminServices, shown: str, keyspace: Keyspace) -> str:
    """Return the label of a keyspace's database: of another account the account's name, and its own too where an
    account has several databases, so that two containers of the same name are two series."""
    database = services.store.catalog.databases[keyspace.record.database_rid]
    if MARK in keyspace.record.settings:
        # The same whether a database of containers has the name or not.
        is_own = database.account == ACCOUNT_PREFIX + services.account
        return NAME_PREFIX + database.name if is_own else f"{database.account}/{database.name}"
    has_several = account_of(database.account) == database.account
    return f"{shown}/{database.name}" if has_several and database.account != services.account else shown


async def _add_node(families: dict[str, Family], services: AdminServices) -> None:
    jobs = Counter(progress.job.kind for progress in services.reshaper.progress.values())
    for kind in _RESHAPES:
        families["asterism_reshape_jobs"].samples.append(f"asterism_reshape_jobs{labels_of(kind=kind)} {jobs[kind]}")
    families["asterism_store_bytes"].samples.append(f"asterism_store_bytes {await services.health.store_bytes()}")
    families["asterism_info"].samples.append(f"asterism_info{labels_of(version=services.version)} 1")


def _add_work(families: dict[str, Family], work: WorkCounts) -> None:
    for kind in _RESHAPES:
        families["asterism_reshapes_total"].samples.append(
            f"asterism_reshapes_total{labels_of(kind=kind)} {work.reshapes[kind]}"
        )
    families["asterism_store_commits_total"].samples.append(f"asterism_store_commits_total {work.store_commits}")


def _add_doors(families: dict[str, Family], requests: RequestCounts) -> None:
    totals, in_flight = families["asterism_door_requests_total"], families["asterism_door_requests_in_flight"]
    for name, door in sorted(requests.doors.items()):
        in_flight.samples.append(f"asterism_door_requests_in_flight{labels_of(door=name)} {door.in_flight}")
        for operation, counted in sorted(door.operations.items()):
            for status, count in sorted(counted.by_status.items()):
                labels = labels_of(door=name, operation=operation, status=str(status))
                totals.samples.append(f"asterism_door_requests_total{labels} {count}")
            families["asterism_door_request_seconds"].samples += _histogram(name, operation, counted)


def _histogram(door: str, operation: str, counted: OperationRequests) -> Iterator[str]:
    """The samples of one histogram: each bucket counts whatever took at most so long, the faster included."""
    name, cumulative = "asterism_door_request_seconds", 0
    for bound, count in zip((*map(str, LATENCY_SECONDS), "+Inf"), counted.by_latency, strict=True):
        cumulative += count
        yield f"{name}_bucket{labels_of(door=door, operation=operation, le=bound)} {cumulative}"
    labels = labels_of(door=door, operation=operation)
    yield f"{name}_sum{labels} {counted.seconds:.10g}"
    yield f"{name}_count{labels} {cumulative}"
