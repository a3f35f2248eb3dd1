"""Counters and sizes in the text format that Prometheus and its kin read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from asterism.apis.admin.services import AdminServices
from asterism.apis.admin.sizes import PartitionSizes
from asterism.apis.transports.http import Request, Response
from asterism.keyspaces.processes.usage_gatherer import Usage
from asterism.keyspaces.routing.keyspace import Keyspace
from asterism.metrics import LATENCY_SECONDS, OperationRequests, PartitionUsage, RequestCounts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# After this many containers other requests get their turn.
_KEYSPACES_PER_TURN = 50
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

# The work of each partition since the process started; ranges that were split or merged away keep their counts.
_COUNTERS: dict[str, tuple[str, Callable[[PartitionUsage], float]]] = {
    "asterism_requests_total": ("Requests admitted.", lambda usage: usage.requests),
    "asterism_request_units_total": ("Request units charged.", lambda usage: usage.request_units),
    "asterism_throttled_total": ("Requests refused with 429.", lambda usage: usage.throttled),
}


@dataclass(slots=True)
class _Family:
    kind: str
    help: str
    samples: list[str] = field(default_factory=list)


async def show_metrics(services: AdminServices, _: Request) -> Response:
    families = {name: _Family("counter", text) for name, (text, _) in _COUNTERS.items()}
    families |= {
        "asterism_partition_bytes": _Family("gauge", "Bytes of items in a physical partition."),
        "asterism_partition_items": _Family("gauge", "Items in a physical partition."),
        "asterism_partition_ru_share": _Family("gauge", "Request units per second that a partition may use."),
        "asterism_reshape_jobs": _Family("gauge", "Splits, merges and moves under way."),
        "asterism_store_bytes": _Family("gauge", "Bytes of the store on disk."),
        "asterism_info": _Family("gauge", "The version that is running."),
        # Not asterism_requests_total, which counts by partition: a sum over both would count requests twice.
        "asterism_door_requests_total": _Family("counter", "Requests answered, by door, operation and status."),
        "asterism_door_request_seconds": _Family("histogram", "Time from a request at its door to the answer."),
        "asterism_door_requests_in_flight": _Family("gauge", "Requests that a door has not answered yet."),
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
    _add_doors(families, served.requests)
    return Response(200, [("content-type", CONTENT_TYPE)], _text(families).encode())


async def _add_keyspace(
    families: dict[str, _Family],
    services: AdminServices,
    database: str,
    keyspace: Keyspace,
    served: Usage,
    sizes: PartitionSizes,
) -> None:
    def add(family: str, range_id: int, value: float) -> None:
        labels = _labels(database=database, container=keyspace.record.name, range=str(range_id))
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


async def _add_node(families: dict[str, _Family], services: AdminServices) -> None:
    jobs = Counter(progress.job.kind for progress in services.reshaper.progress.values())
    for kind in ("split", "merge", "move"):
        families["asterism_reshape_jobs"].samples.append(f"asterism_reshape_jobs{_labels(kind=kind)} {jobs[kind]}")
    families["asterism_store_bytes"].samples.append(f"asterism_store_bytes {await services.health.store_bytes()}")
    families["asterism_info"].samples.append(f"asterism_info{_labels(version=services.version)} 1")


def _add_doors(families: dict[str, _Family], requests: RequestCounts) -> None:
    totals, in_flight = families["asterism_door_requests_total"], families["asterism_door_requests_in_flight"]
    for name, door in sorted(requests.doors.items()):
        in_flight.samples.append(f"asterism_door_requests_in_flight{_labels(door=name)} {door.in_flight}")
        for operation, counted in sorted(door.operations.items()):
            for status, count in sorted(counted.by_status.items()):
                labels = _labels(door=name, operation=operation, status=str(status))
                totals.samples.append(f"asterism_door_requests_total{labels} {count}")
            families["asterism_door_request_seconds"].samples += _histogram(name, operation, counted)


def _histogram(door: str, operation: str, counted: OperationRequests) -> Iterator[str]:
    """The samples of one histogram: each bucket counts whatever took at most so long, the faster included."""
    name, cumulative = "asterism_door_request_seconds", 0
    for bound, count in zip((*map(str, LATENCY_SECONDS), "+Inf"), counted.by_latency, strict=True):
        cumulative += count
        yield f"{name}_bucket{_labels(door=door, operation=operation, le=bound)} {cumulative}"
    labels = _labels(door=door, operation=operation)
    yield f"{name}_sum{labels} {counted.seconds:.10g}"
    yield f"{name}_count{labels} {cumulative}"


def _labels(**labels: str) -> str:
    inside = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _text(families: dict[str, _Family]) -> str:
    lines: list[str] = []
    for name, family in families.items():
        lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}", *family.samples]
    return "\n".join(lines) + "\n"
